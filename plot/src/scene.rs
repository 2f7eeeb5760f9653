//! What a plot is drawn from, in points from the upper left corner.

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

pub const BLACK: Colour = [0x20, 0x20, 0x20];
pub const GREY: Colour = [0xd8, 0xd8, 0xd8];

/// Colours of series: Okabe and Ito's, which people with any kind of colour vision can tell apart, and darker ones.
pub const SERIES: [Colour; 12] = [
    [0x00, 0x72, 0xb2],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xd5, 0x5e, 0x00],
    [0x56, 0xb4, 0xe9],
    [0xcc, 0x79, 0xa7],
    [0xb8, 0xaa, 0x20],
    [0x55, 0x55, 0x55],
    [0x00, 0x3c, 0x60],
    [0x7a, 0x52, 0x00],
    [0x00, 0x50, 0x3a],
    [0x70, 0x30, 0x00],
];

/// A point.
pub type Point = (f64, f64);

/// Where a text's point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Something drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Rectangle {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        colour: Colour,
    },
    Line {
        points: Vec<Point>,
        width: f64,
        colour: Colour,
    },
    Dot {
        at: Point,
        radius: f64,
        colour: Colour,
    },
    /// `at` is on the baseline; `degrees` turns counter-clockwise.
    Text {
        at: Point,
        text: String,
        size: f64,
        anchor: Anchor,
        degrees: f64,
    },
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}
