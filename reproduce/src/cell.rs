//! Numbers of figures, as claims and experiments name them.

use serde::Deserialize;

use crate::data::{Figure, Point, Series};
use crate::estimate::Estimate;
use crate::spec::MEAN;

/// In place of a place: the same as that of what is measured.
const SAME: &str = "same";
/// In place of a place: how far the value that is farthest from the paper's lies from it. All
/// places at which the figure has both count.
const FARTHEST: &str = "farthest";

/// Whether a place stands for all places of a series, or for one among them.
pub(crate) fn is_of_all(place: &str) -> bool {
    [MEAN, "max", "min", SAME, FARTHEST].contains(&place)
}

/// A number of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Of which figure.
    pub figure: String,
    /// Of which series.
    pub series: String,
    /// At which place; or "mean", "max", "min" of all places; or "farthest".
    pub at: String,
    /// The places among which those three are; all of the series if there are none.
    #[serde(default)]
    pub among: Vec<String>,
}

/// A number, less another or beside another.
#[derive(Clone, Copy, Debug)]
pub struct Quantity<'a> {
    /// The number.
    pub of: &'a Cell,
    /// Subtracted from it. If one of these two is at the place "same", it is taken at each place
    /// of the number, whose `at` says which of the results counts.
    pub minus: Option<&'a Cell>,
    /// It is divided by that.
    pub over: Option<&'a Cell>,
    /// "%" multiplies shares by 100.
    pub unit: &'a str,
}

impl Quantity<'_> {
    /// How much it is, if its figures were computed and have it.
    #[must_use]
    pub fn value(&self, figures: &[Figure]) -> Option<Estimate> {
        let mut beside = [self.minus, self.over].into_iter().flatten();
        let value = if beside.any(|cell| cell.at == SAME) {
            let figure = self.of.figure_among(figures)?;
            let each = self.of.places(self.of.series_of(figure)?).map(|point| &point.place);
            extreme(&self.of.at, each.filter_map(|place| self.at_place(figures, place)))?
        } else {
            self.at_place(figures, &self.of.at)?
        };
        Some(scaled(self.unit, &value))
    }

    /// What is measured at a place, and what is at the same place beside it.
    fn at_place(&self, figures: &[Figure], place: &str) -> Option<Estimate> {
        let mut value = self.of.value_at(figures, place)?;
        let beside =
            |cell: &Cell| cell.value_at(figures, if cell.at == SAME { place } else { &cell.at });
        if let Some(cell) = self.minus {
            value = value.minus(&beside(cell)?);
        }
        if let Some(cell) = self.over {
            value = value.over(&beside(cell)?)?;
        }
        Some(value)
    }
}

/// A number of a figure in a unit.
pub(crate) fn scaled(unit: &str, value: &Estimate) -> Estimate {
    value.scaled(if unit == "%" { 100.0 } else { 1.0 }, 0.0)
}

/// The one of some values that "max", "min" or "mean" stands for.
fn extreme(which: &str, values: impl Iterator<Item = Estimate>) -> Option<Estimate> {
    match which {
        "max" => values.max_by(|a, b| a.mean.total_cmp(&b.mean)),
        "min" => values.min_by(|a, b| a.mean.total_cmp(&b.mean)),
        "mean" => Estimate::mean_of(&values.collect::<Vec<_>>()),
        _ => None,
    }
}

impl Cell {
    /// Its number, if the figure was computed and has it.
    #[must_use]
    pub fn value(&self, figures: &[Figure]) -> Option<Estimate> {
        self.value_at(figures, &self.at)
    }

    fn value_at(&self, figures: &[Figure], at: &str) -> Option<Estimate> {
        let figure = self.figure_among(figures)?;
        if at == FARTHEST {
            return farthest(figure);
        }
        let series = self.series_of(figure)?;
        let is_it = |point: &&Point| point.place == at && (at != MEAN || self.among.is_empty());
        if let Some(point) = series.points.iter().find(is_it) {
            return point.estimate();
        }
        extreme(at, self.places(series).filter_map(Point::estimate))
    }

    /// Where "mean", "max" and "min" look.
    fn places<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = &'a Point> {
        let is_among = |place: &String| self.among.is_empty() || self.among.contains(place);
        series.points.iter().filter(move |point| point.place != MEAN && is_among(&point.place))
    }

    fn figure_among<'a>(&self, figures: &'a [Figure]) -> Option<&'a Figure> {
        figures.iter().find(|figure| figure.id == self.figure)
    }

    fn series_of<'a>(&self, figure: &'a Figure) -> Option<&'a Series> {
        figure.series.iter().find(|series| series.name == self.series)
    }
}

/// The greatest distance of a value from the paper's, over all series.
fn farthest(figure: &Figure) -> Option<Estimate> {
    let points = figure.series.iter().flat_map(|series| &series.points);
    let distances = points.filter_map(|point| Some((point.value? - point.paper?).abs()));
    distances.max_by(f64::total_cmp).map(Estimate::alone)
}
