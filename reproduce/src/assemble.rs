//! Figures of results.

use serde_json::Value;

use crate::data::{Figure, Point, Series};
use crate::metric::Metric;
use crate::plan::{Cell, Simulated};
use crate::spec::{self, MEAN};

/// A figure with the values of its runs; what has no result has no value.
#[must_use]
pub fn figure(spec: &spec::Figure, plan: &Simulated, results: &[Option<Value>]) -> Figure {
    let of = |metric: &Metric, cell: &Cell| {
        let result = results[cell.run].as_ref()?;
        match cell.baseline {
            Some(baseline) => metric.of(result, Some(results[baseline].as_ref()?)),
            None => metric.of(result, None),
        }
    };
    let value = |cell: &Cell| of(&plan.metric, cell);
    let series = spec.series.iter().enumerate().map(|(at, series)| {
        let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.series == at).collect();
        if let Some(across) = &plan.across {
            let dot = |cell: &&Cell| Point {
                place: cell.workload.clone(),
                x: of(across, cell),
                value: value(cell),
                paper: None,
            };
            return Series { name: series.name.clone(), points: cells.iter().map(dot).collect() };
        }
        let values: Vec<(String, Option<f64>)> = if spec.points.is_empty() {
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
        let points = values.into_iter().map(|(place, value)| Point {
            paper: paper(&place),
            place,
            x: None,
            value,
        });
        Series { name: series.name.clone(), points: points.collect() }
    });
    spec.with(plan.metric.percent(), series.collect())
}

/// The arithmetic mean; `None` if a value is missing, since a mean of the rest would be of something else.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_what_is_missing_is_missing() {
        assert_eq!(mean([Some(1.0), Some(2.0)].into_iter()), Some(1.5));
        assert_eq!(mean([Some(1.0), None].into_iter()), None);
        assert_eq!(mean([].into_iter()), None);
    }
}
