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
/// checks, and where the longest period had none.
pub(super) fn periods(figures: &[&Figure]) -> Result<Values> {
    let of_series = |name: &str| -> Result<_> {
        let points: Result<Vec<Point>> = figures
            .iter()
            .map(|figure| {
                let period = period(figure, name).with_context(|| {
                    format!("figure {} lacks what its break-even is computed of", figure.id)
                })?;
                Ok(Point::of(&figure.id, period.map(Estimate::alone)))
            })
            .collect();
        Ok(series(name, points?))
    };
    Ok(numbers(vec![of_series("LHash")?, of_series("H-LHash")?]))
}

/// The outer option is none if a value is missing, the inner one if there is no break-even, or no
/// check fell into the runs.
fn period(figure: &Figure, name: &str) -> Option<Option<f64>> {
    let time = |series: &str, place: &str| {
        let series = figure.series.iter().find(|known| known.name == series)?;
        let point = series.points.iter().find(|point| point.place == place)?;
        // Instructions a cycle, normalised.
        point.value.map(|ipc| 1.0 / ipc)
    };
    let never = time(name, NEVER)?;
    let check = (time(name, LONGEST.0)? - never) * LONGEST.1;
    let gained = time(TREE, NEVER)? - never;
    Some((gained > 0.0 && check > 0.0).then_some(check / gained))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Chart, Series};

    /// A check of 10^5 units of time: at 10^5 accesses each takes one more, at 2 * 10^5 half of
    /// one, which is what the tree takes more.
    #[test]
    fn the_period_is_that_at_which_both_take_as_long() {
        let series = |name: &str, times: [f64; 2]| Series {
            name: name.to_owned(),
            points: ["10^5", "never"]
                .into_iter()
                .zip(times)
                .map(|(place, time)| Point::of(place, Some(Estimate::alone(1.0 / time))))
                .collect(),
        };
        let figure = |tree: f64| Figure {
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
        };
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
}
