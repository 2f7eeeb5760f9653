//! Draws numbers. Top down: [`chart`] makes a [`scene`] of [`Series`], which [`svg`] and [`png`] write.

pub mod chart;
mod font;
pub mod png;
mod scale;
pub mod scene;
pub mod svg;

/// Values of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Place on the level axis as text, and value.
    pub points: Vec<(String, f64)>,
}
