//! Draws numbers. Top down: [`chart`] and [`scatter`] make a [`scene`] of series, which [`svg`] and
//! [`png`] write.
//!
//! Drawings are narrow and their letters large, so that they can be read at half a column's width,
//! and series differ in hatching, dashes and markers as well as in colour, so that they can be read
//! in black on white.

mod bars;
pub mod chart;
mod font;
mod frame;
mod lines;
pub mod png;
mod scale;
pub mod scatter;
pub mod scene;
mod spots;
mod style;
pub mod svg;

pub use scale::{per_cent, reading};

/// Values of one colour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Place on the level axis as text, and value.
    pub points: Vec<(String, f64)>,
    /// The same of what a paper says, where it says a number.
    pub paper: Vec<(String, f64)>,
}
