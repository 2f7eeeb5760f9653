//! Series as a drawing: bars in groups, or lines.

use super::Series;
use super::frame::{Frame, Key, PLOT_HEIGHT};
use super::scale::Scale;
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

/// What the drawing says.
#[derive(Clone, Debug)]
pub struct Words {
    /// Above it; may be empty.
    pub title: String,
    /// Beside the upright axis.
    pub upright: String,
    /// Below the level axis.
    pub level: String,
    /// Whether values are shares of one.
    pub percent: bool,
}

/// Draws series. Bars that are far higher than all others are cut, and their number stands above
/// them.
pub fn draw(series: &[Series], form: Form, words: &Words) -> Scene {
    let mut places: Vec<String> = Vec::new();
    for (place, _) in series.iter().flat_map(|series| series.points.iter().chain(&series.paper)) {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    let mut keys: Vec<Key> = series
        .iter()
        .enumerate()
        .map(|(i, series)| match form {
            Form::Bars => Key::Bar(Style::of(i), series.name.clone()),
            Form::Lines => Key::Line(Style::of(i), series.name.clone()),
        })
        .collect();
    if series.iter().any(|series| series.paper.iter().any(|(_, value)| value.is_finite())) {
        keys.push(Key::Paper);
    }
    match form {
        Form::Bars => bars::draw(series, &places, &keys, words),
        Form::Lines => {
            let all = series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
            let ends = series.iter().flat_map(Series::intervals);
            let ends = ends.flat_map(|(_, (least, most))| [least, most]);
            let values: Vec<f64> = all.map(|(_, value)| *value).chain(ends).collect();
            let mut frame = Frame::new(words, &keys, Scale::from_zero(&values), 0.0, PLOT_HEIGHT);
            let below = lines::draw(&mut frame, series, &places);
            frame.finish(below, &words.level)
        }
    }
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
