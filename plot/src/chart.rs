//! Series as a drawing: bars in groups, or lines.

use super::Series;
use super::frame::Key;
use super::reading::size_of;
use super::scene::Scene;
use super::style::Style;
use super::{bars, lines};

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A group of bars for each place.
    Bars,
    /// A line for each series.
    Lines,
}

/// What the drawing says, and how its values are to be read.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Above it; may be empty.
    pub title: String,
    /// Beside the upright axis.
    pub upright: String,
    /// Below the level axis.
    pub level: String,
    /// Whether values are shares of one.
    pub percent: bool,
    /// Whether places on the level axis of a scatter plot are.
    pub level_percent: bool,
    /// What bars stand on, or hang from: 0, or 1 where that means "as without protection".
    pub base: f64,
    /// The place that is set apart from the others: their mean.
    pub apart: Option<String>,
}

/// Draws series. Bars that are far higher than all others are broken, and their number stands above
/// them. Places and series that are all sizes stand in the order of their sizes.
pub fn draw(series: &[Series], form: Form, words: &Words) -> Scene {
    let mut series = series.to_vec();
    by_size(&mut series, |series| &series.name);
    let mut places: Vec<String> = Vec::new();
    for (place, _) in series.iter().flat_map(|series| series.points.iter().chain(&series.paper)) {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    by_size(&mut places, |place| place);
    // One without any value would only take room.
    series.retain(|series| {
        series.points.iter().chain(&series.paper).any(|(_, value)| value.is_finite())
    });
    let level = if form == Form::Bars { take_level(&mut series, words.base) } else { None };
    let mut keys: Vec<Key> = series
        .iter()
        .enumerate()
        .map(|(i, series)| match form {
            Form::Bars => Key::Bar(Style::of(i), series.name.clone()),
            Form::Lines => Key::Line(Style::of(i), series.name.clone()),
        })
        .collect();
    keys.extend(level.map(Key::Level));
    if series.iter().any(|series| series.paper.iter().any(|(_, value)| value.is_finite())) {
        keys.push(Key::Paper);
    }
    if series.iter().flat_map(Series::intervals).any(|(_, (least, most))| most > least) {
        keys.push(Key::Interval);
    }
    match form {
        Form::Bars => bars::draw(&series, &places, &keys, words),
        Form::Lines => lines::draw(&series, &places, &keys, words),
    }
}

/// Sorts what is named by sizes by them, and leaves all else as it is.
fn by_size<T>(all: &mut [T], name: impl Fn(&T) -> &str) {
    if all.iter().all(|one| size_of(name(one)).is_some()) {
        let size = |one: &T| size_of(name(one)).unwrap_or_default();
        all.sort_by(|a, b| size(a).total_cmp(&size(b)));
    }
}

/// Takes out the series that is everywhere what the others hang from, and says its name: bars
/// without height say less than a line.
fn take_level(series: &mut Vec<Series>, base: f64) -> Option<String> {
    let is_level = |series: &Series| {
        let all = || series.points.iter().filter(|(_, value)| value.is_finite());
        base != 0.0 && all().count() > 0 && all().all(|(_, value)| *value == base)
    };
    let at = series.iter().position(|one| one.paper.is_empty() && is_level(one))?;
    (series.len() > 1).then(|| series.remove(at).name)
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
