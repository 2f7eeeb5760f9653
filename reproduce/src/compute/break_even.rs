//! LHash, section 7.4: from which period of checks on the log hash is as fast as the hash tree.
//!
//! A check reads all memory in use, however long ago the last one was, so that it costs each access
//! a part of its time that falls with the period. With the time of a run without checks, what one
//! check adds is known from any period that has been simulated:
//!
//! ```text
//! time(T) = time(never) + check / T        break-even: time(T) = time(tree)
//! ```

use anyhow::{Context, Result};

use super::{Values, numbers, series};
use crate::data::{Figure, Point};
use crate::estimate::Estimate;

/// The longest period of Figure 10 here, in accesses, by which a check is measured: the checks of a
/// shorter one follow each other before the caches are as they were.
const LONGEST: (&str, f64) = ("10^5", 1e5);
/// Without checks.
const NEVER: &str = "never";
/// What they are compared with: the same for every period.
const TREE: &str = "CHTree";

/// The periods, in accesses, for each figure; none where the log hash is slower even without
/// checks or may be, by the interval, and where the longest period had no check.
pub(super) fn periods(figures: &[&Figure]) -> Result<Values> {
    let of_series = |name: &str| -> Result<_> {
        let points: Result<Vec<Point>> = figures
            .iter()
            .map(|figure| {
                let period = period(figure, name).with_context(|| {
                    format!("figure {} lacks what its break-even is computed of", figure.id)
                })?;
                Ok(Point::of(&figure.id, period))
            })
            .collect();
        Ok(series(name, points?))
    };
    Ok(numbers(vec![of_series("LHash")?, of_series("H-LHash")?]))
}

/// The outer option is none if a value is missing, the inner one if there is no break-even, or no
/// check fell into the runs.
fn period(figure: &Figure, name: &str) -> Option<Option<Estimate>> {
    let time = |series: &str, place: &str| {
        let series = figure.series.iter().find(|known| known.name == series)?;
        let point = series.points.iter().find(|point| point.place == place)?;
        // Instructions a cycle, normalised.
        Estimate::alone(1.0).over(&point.estimate()?)
    };
    let never = time(name, NEVER)?;
    let check = time(name, LONGEST.0)?.minus(&never).scaled(LONGEST.1, 0.0);
    let gained = time(TREE, NEVER)?.minus(&never);
    // To divide by what may be nothing gives no period, and the delta method no interval.
    let is_faster = gained.interval().map_or(gained.mean, |(low, _)| low) > 0.0;
    let period = check.over(&gained).filter(|_| is_faster && check.mean > 0.0);
    Some(period.map(|period| Estimate { least: Some(0.0), ..period }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Chart, Series};

    fn series(name: &str, times: [f64; 2]) -> Series {
        let places = ["10^5", "never"].into_iter().zip(times);
        let point =
            |(place, time): (&str, f64)| Point::of(place, Some(Estimate::alone(1.0 / time)));
        Series { name: name.to_owned(), points: places.map(point).collect() }
    }

    fn figure(tree: f64) -> Figure {
        Figure {
            id: "10a".to_owned(),
            title: String::new(),
            source: String::new(),
            note: String::new(),
            chart: Chart::Lines,
            upright: String::new(),
            level: String::new(),
            percent: true,
            level_percent: false,
            base: 0.0,
            series: vec![
                series("CHTree", [tree, tree]),
                series("LHash", [2.0, 1.0]),
                series("H-LHash", [1.25, 1.0]),
            ],
            ranges: Vec::new(),
        }
    }

    /// A check of 10^5 units of time: at 10^5 accesses each takes one more, at 2 * 10^5 half of
    /// one, which is what the tree takes more.
    #[test]
    fn the_period_is_that_at_which_both_take_as_long() {
        let found = periods(&[&figure(1.5)]).expect("all is there").series;
        let values: Vec<_> = found.iter().map(|series| series.points[0].value).collect();
        let near = |value: Option<f64>, wanted: f64| {
            value.is_some_and(|v| (v / wanted - 1.0).abs() < 1e-9)
        };
        assert!(near(values[0], 2e5) && near(values[1], 5e4), "{values:?}");
        let none = periods(&[&figure(1.0)]).expect("all is there").series;
        assert_eq!(none[0].points[0].value, None);
        let mut unchecked = figure(1.5);
        unchecked.series[1] = series("LHash", [1.0, 1.0]);
        let unchecked = periods(&[&unchecked]).expect("all is there").series;
        assert_eq!(unchecked[0].points[0].value, None);
        let mut lacking = figure(1.5);
        lacking.series.remove(0);
        let Err(error) = periods(&[&lacking]) else { panic!("there is no tree") };
        assert!(error.to_string().contains("10a"), "{error}");
    }

    /// What a check takes and what the tree does, in two stretches: 9 and 11 against 10 units
    /// without checks, and 15 and 15 of the tree's. The IPCs over a base of 10 in each: a check
    /// of 0.1 x 10^5 where the tree takes 0.5 more.
    #[test]
    fn the_period_is_as_sure_as_what_it_is_of() {
        use crate::estimate::Parts;
        use casemate_sim::results::interval::Ratio;
        let ipc = |cycles: [f64; 2]| {
            let ratio = |whole: f64| Ratio { part: 10.0, whole };
            Estimate::of("swim", Parts::Stretches, &cycles.map(ratio), 0.0)
        };
        let series = |name: &str, longest: [f64; 2], never: [f64; 2]| Series {
            name: name.to_owned(),
            points: vec![Point::of("10^5", ipc(longest)), Point::of("never", ipc(never))],
        };
        let figure = |tree: [f64; 2]| Figure {
            series: vec![series("CHTree", tree, tree), series("LHash", [10.5, 11.5], [10.0, 10.0])],
            ..figure(1.5)
        };
        let period = |tree: [f64; 2]| period(&figure(tree), "LHash").expect("all is there");
        // The check's residuals are 0.05 of a base's time either way, of a mean of 0.1: half of
        // it, times t(1) and over the root of 2 parts by n - 1 = 1 of them.
        let found = period([15.0, 15.0]).expect("the tree is slower");
        assert!((found.mean - 2e4).abs() < 1e-6, "{found:?}");
        let half = found.half_width().expect("of two");
        assert!((half / (12.706_205 * 1e4) - 1.0).abs() < 1e-6, "{half}");
        assert_eq!(found.interval().map(|(low, _)| low), Some(0.0));
        // The tree is slower by 5 in one stretch and by none in the other.
        assert_eq!(period([20.0, 10.0]), None);
    }
}
