//! What a plot is drawn from, in points from the upper left corner.

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

/// Of axes and letters.
pub const BLACK: Colour = [0x20, 0x20, 0x20];
/// Of the grid.
pub const GREY: Colour = [0xd8, 0xd8, 0xd8];
/// Of the paper.
pub const WHITE: Colour = [0xff, 0xff, 0xff];

/// Colours of series: Okabe and Ito's, which people with any kind of colour vision can tell apart,
/// and darker ones. Dark and light ones alternate, so that neighbours differ in grey as well.
pub const SERIES: [Colour; 12] = [
    [0x00, 0x72, 0xb2],
    [0xf8, 0xc8, 0x58],
    [0x00, 0x9e, 0x73],
    [0x8c, 0xcc, 0xf2],
    [0xd5, 0x5e, 0x00],
    [0xe0, 0xa8, 0xc8],
    [0x55, 0x55, 0x55],
    [0xd8, 0xd0, 0x50],
    [0x00, 0x3c, 0x60],
    [0xb8, 0x90, 0x50],
    [0x00, 0x50, 0x3a],
    [0xc0, 0xc0, 0xc0],
];

/// A point.
pub type Point = (f64, f64);

/// Where a text's point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// Something drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Primitive {
    /// A full rectangle.
    Rectangle {
        /// Its left side.
        x: f64,
        /// Its upper side.
        y: f64,
        /// To the right.
        width: f64,
        /// Downwards.
        height: f64,
        /// Of its area.
        colour: Colour,
    },
    /// A line through points.
    Line {
        /// From the first to the last.
        points: Vec<Point>,
        /// The pen's.
        width: f64,
        /// The pen's.
        colour: Colour,
    },
    /// Many short lines: dashes, hatching.
    Strokes {
        /// From where to where.
        segments: Vec<(Point, Point)>,
        /// The pen's.
        width: f64,
        /// The pen's.
        colour: Colour,
    },
    /// A full polygon.
    Polygon {
        /// Its corners.
        points: Vec<Point>,
        /// Of its area.
        colour: Colour,
    },
    /// A full circle.
    Dot {
        /// Its centre.
        at: Point,
        /// Half its width.
        radius: f64,
        /// Of its area.
        colour: Colour,
    },
    /// Letters in a line.
    Text {
        /// On the baseline.
        at: Point,
        /// What it says.
        text: String,
        /// The letters'.
        size: f64,
        /// Which part of it is at the point.
        anchor: Anchor,
        /// How far it is turned around the point, counter-clockwise.
        degrees: f64,
        /// Whether it stands out of what is below it.
        halo: bool,
    },
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// To the right.
    pub width: f64,
    /// Downwards.
    pub height: f64,
    /// What is on it; later ones cover earlier ones.
    pub primitives: Vec<Primitive>,
}
