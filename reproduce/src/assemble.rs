//! Figures of results.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::data::{Figure, Point, Series};
use crate::estimate::Estimate;
use crate::metric::{Counted, Metric};
use crate::plan::{Cell, Simulated};
use crate::spec::{self, MEAN};

/// A figure with the values of its runs, whose results `result` finds by their numbers; what has no
/// result has no value.
#[must_use]
pub fn figure(
    spec: &spec::Figure,
    plan: &Simulated,
    result: &dyn Fn(usize) -> Option<Value>,
) -> Figure {
    let counted = counted(plan, result);
    let of = |metric: &Metric, cell: &Cell| {
        let run = counted.get(&cell.run)?.as_ref()?;
        match cell.baseline {
            Some(baseline) => metric.of(run, Some(counted.get(&baseline)?.as_ref()?)),
            None => metric.of(run, None),
        }
    };
    let value = |cell: &Cell| of(&plan.metric, cell);
    let series = spec.series.iter().enumerate().map(|(at, series)| {
        let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.series == at).collect();
        if let Some(across) = &plan.across {
            let dot = |cell: &&Cell| Point {
                x: of(across, cell).map(|across| across.mean),
                ..Point::of(&cell.workload, value(cell))
            };
            return Series { name: series.name.clone(), points: cells.iter().map(dot).collect() };
        }
        let values: Vec<(String, Option<Estimate>)> = if spec.points.is_empty() {
            let each = cells.iter().map(|cell| (cell.workload.clone(), value(cell)));
            let all = cells.iter().map(|cell| value(cell));
            // A mean of one says nothing.
            let mean = (plan.workloads.len() > 1).then(|| (MEAN.to_owned(), mean(all)));
            each.chain(mean).collect()
        } else {
            let of_point = |at: usize| {
                mean(cells.iter().filter(|cell| cell.point == at).map(|cell| value(cell)))
            };
            let points = spec.points.iter().enumerate();
            points.map(|(at, point)| (point.name.clone(), of_point(at))).collect()
        };
        let paper = |place: &str| spec.paper.get(&series.name)?.get(place).copied();
        let points = values
            .into_iter()
            .map(|(place, value)| Point { paper: paper(&place), ..Point::of(&place, value) });
        Series { name: series.name.clone(), points: points.collect() }
    });
    let mut series: Vec<Series> = series.collect();
    if spec.most_moved_first {
        most_moved_first(&mut series);
    }
    spec.with(plan.metric.percent(), series)
}

/// What the runs of a figure counted, by their numbers.
fn counted(
    plan: &Simulated,
    result: &dyn Fn(usize) -> Option<Value>,
) -> BTreeMap<usize, Option<Counted>> {
    let mut counted = BTreeMap::new();
    for run in plan.cells.iter().flat_map(|cell| [Some(cell.run), cell.baseline]).flatten() {
        counted.entry(run).or_insert_with(|| Counted::of(&result(run)?));
    }
    counted
}

/// Leaves the first place where it is, and puts behind it first what differs from it most, in
/// whichever series.
fn most_moved_first(series: &mut [Series]) {
    let places = series.iter().map(|series| series.points.len()).min().unwrap_or(0);
    let moved = |place: usize| {
        let values = |series: &Series| Some((series.points[0].value?, series.points[place].value?));
        let distances =
            series.iter().filter_map(values).map(|(first, value)| (value - first).abs());
        distances.fold(0.0, f64::max)
    };
    let mut order: Vec<(usize, f64)> = (0..places).map(|place| (place, moved(place))).collect();
    if let Some(others) = order.get_mut(1..) {
        others.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    }
    for series in series {
        series.points = order.iter().map(|&(place, _)| series.points[place].clone()).collect();
    }
}

/// The arithmetic mean; `None` if a value is missing, since a mean of the rest would be of
/// something else.
fn mean(values: impl Iterator<Item = Option<Estimate>>) -> Option<Estimate> {
    Estimate::mean_of(&values.collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_what_is_missing_is_missing() {
        let of = |mean| Some(Estimate::alone(mean));
        assert_eq!(mean([of(1.0), of(2.0)].into_iter()), of(1.5));
        assert_eq!(mean([of(1.0), None].into_iter()), None);
        assert_eq!(mean([].into_iter()), None);
    }

    #[test]
    fn what_moves_most_comes_behind_the_first() {
        let series = |values: [f64; 4]| {
            let places = ["as assumed", "little", "not", "much"];
            let point = |(place, value): (&str, f64)| {
                let value = (!value.is_nan()).then_some(value);
                Point::of(place, value.map(Estimate::alone))
            };
            let points = places.into_iter().zip(values).map(point).collect();
            Series { name: String::new(), points }
        };
        let mut both = [series([0.5, 0.4, 0.5, 0.5]), series([0.1, f64::NAN, 0.1, 0.3])];
        most_moved_first(&mut both);
        for series in both {
            let places: Vec<&str> = series.points.iter().map(|point| &*point.place).collect();
            assert_eq!(places, ["as assumed", "much", "little", "not"]);
        }
    }
}
