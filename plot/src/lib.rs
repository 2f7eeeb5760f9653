//! Draws numbers. Top down: [`chart`] and [`scatter`] make a [`scene`] of series, which [`svg`]
//! writes as text, [`png`] as pixels of that text, and [`pdf`] as a page of it.
//!
//! Drawings are narrow and their letters large, so that they can be read at half a column's width,
//! and series differ in hatching, dashes and markers as well as in colour, so that they can be read
//! in black on white.

mod bars;
pub mod chart;
mod cut;
mod font;
mod frame;
mod lines;
mod numbers;
pub mod pdf;
pub mod png;
mod reading;
mod scale;
pub mod scatter;
pub mod scene;
mod spots;
mod style;
pub mod svg;
mod whisker;

pub use reading::{per_cent, reading};

/// No value that is drawn is farther from zero: distances between values are to be finite.
pub const MOST: f64 = 1e300;

/// Values of one colour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Place on the level axis as text, and value.
    pub points: Vec<(String, f64)>,
    /// Place, and half of the value's interval, where it is known.
    pub half_widths: Vec<(String, f64)>,
    /// Place, and both ends of the value's interval, where it is not as wide on both sides.
    pub ranges: Vec<(String, (f64, f64))>,
    /// Place and value of what a paper says, where it says a number.
    pub paper: Vec<(String, f64)>,
}

impl Series {
    /// The ends of the interval at a place, if it is known.
    fn interval(&self, place: &str) -> Option<(f64, f64)> {
        if let Some((_, range)) = self.ranges.iter().find(|(at, _)| at == place) {
            return Some(*range);
        }
        let value = self.points.iter().find(|(at, _)| at == place)?.1;
        let half = self.half_widths.iter().find(|(at, _)| at == place)?.1;
        (value.is_finite() && half.is_finite()).then_some((value - half, value + half))
    }

    /// The ends of all intervals.
    fn intervals(&self) -> impl Iterator<Item = (&str, (f64, f64))> {
        let ranges = self.ranges.iter().map(|(place, _)| place.as_str());
        let places = self.half_widths.iter().map(|(place, _)| place.as_str()).chain(ranges);
        places.filter_map(|place| Some((place, self.interval(place)?)))
    }
}
