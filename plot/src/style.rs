//! What tells series apart without colour: hatching, dashes, markers.

use super::scene::{BLACK, Colour, Point, Primitive, SERIES, WHITE};

/// Bars that are narrower are not hatched.
const NARROW_BAR: f64 = 4.0;
/// Half of a marker's height.
pub const MARKER: f64 = 5.0;
/// Between two lines of a hatching.
const HATCH_STEP: f64 = 5.0;

/// Lines across a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hatch {
    None,
    Rising,
    Crossed,
    Level,
    Falling,
    Upright,
    Dots,
}

const HATCHES: [Hatch; 7] = [
    Hatch::None,
    Hatch::Rising,
    Hatch::Dots,
    Hatch::Level,
    Hatch::Falling,
    Hatch::Crossed,
    Hatch::Upright,
];

/// What stands at a line's points. Diamonds are the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Circle,
    Square,
    Up,
    Down,
}

/// Markers, whether they are hollow, and how long dashes and gaps are.
const PENS: [(Marker, bool, &[f64]); 7] = [
    (Marker::Circle, false, &[]),
    (Marker::Square, true, &[9.0, 4.0]),
    (Marker::Up, false, &[2.5, 3.0]),
    (Marker::Circle, true, &[9.0, 3.0, 2.0, 3.0]),
    (Marker::Square, false, &[5.0, 3.0]),
    (Marker::Up, true, &[]),
    (Marker::Down, false, &[14.0, 4.0]),
];

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    pub colour: Colour,
    pub hatch: Hatch,
    pub marker: Marker,
    pub hollow: bool,
    pub dashes: &'static [f64],
}

impl Style {
    /// Of the series with this number. Hatching and colours repeat at different numbers.
    pub fn of(number: usize) -> Self {
        let (marker, hollow, dashes) = PENS[number % PENS.len()];
        let hatch = HATCHES[number % HATCHES.len()];
        Style { colour: SERIES[number % SERIES.len()], hatch, marker, hollow, dashes }
    }

    /// The colour of its lines: light ones are hard to see when they are thin.
    pub fn pen(&self) -> Colour {
        if brightness(self.colour) < 120.0 {
            return self.colour;
        }
        self.colour.map(|part| (f64::from(part) * 0.72) as u8)
    }

    /// A bar with its hatching and its edge.
    pub fn bar(&self, corner: Point, width: f64, height: f64, primitives: &mut Vec<Primitive>) {
        let (x, y) = corner;
        primitives.push(Primitive::Rectangle { x, y, width, height, colour: self.colour });
        if width < NARROW_BAR || height <= 0.0 {
            return;
        }
        let ink = if brightness(self.colour) < 120.0 { WHITE } else { BLACK };
        let pen = if self.hatch == Hatch::Dots { 2.0 } else { 0.9 };
        let segments = hatching(self.hatch, width, height);
        if !segments.is_empty() {
            let moved = |(a, b): (Point, Point)| ((a.0 + x, a.1 + y), (b.0 + x, b.1 + y));
            let segments = segments.into_iter().map(moved).collect();
            primitives.push(Primitive::Strokes { segments, width: pen, colour: ink });
        }
        let (right, bottom) = (x + width, y + height);
        let edge = vec![(x, y), (right, y), (right, bottom), (x, bottom), (x, y)];
        primitives.push(Primitive::Line { points: edge, width: 0.9, colour: BLACK });
    }

    /// A line with its dashes.
    pub fn line(&self, points: &[Point], primitives: &mut Vec<Primitive>) {
        let (width, colour) = (2.4, self.pen());
        primitives.push(if self.dashes.is_empty() {
            Primitive::Line { points: points.to_vec(), width, colour }
        } else {
            Primitive::Strokes { segments: dashed(points, self.dashes), width, colour }
        });
    }

    /// Its marker at a point.
    pub fn mark(&self, at: Point, primitives: &mut Vec<Primitive>) {
        let (radius, colour) = (MARKER, self.pen());
        let points = match self.marker {
            Marker::Circle => {
                primitives.push(Primitive::Dot { at, radius, colour });
                if self.hollow {
                    primitives.push(Primitive::Dot { at, radius: radius - 1.8, colour: WHITE });
                }
                return;
            }
            Marker::Square => around(at, &[(-4.4, -4.4), (4.4, -4.4), (4.4, 4.4), (-4.4, 4.4)]),
            Marker::Up => around(at, &[(0.0, -6.0), (5.6, 4.2), (-5.6, 4.2)]),
            Marker::Down => around(at, &[(0.0, 6.0), (5.6, -4.2), (-5.6, -4.2)]),
        };
        outlined(points, if self.hollow { WHITE } else { colour }, colour, primitives);
    }
}

/// Where a paper's value is: a hollow diamond.
pub fn paper_mark(at: Point, radius: f64, colour: Colour, primitives: &mut Vec<Primitive>) {
    let r = radius;
    outlined(around(at, &[(0.0, -r), (r, 0.0), (0.0, r), (-r, 0.0)]), WHITE, colour, primitives);
}

fn outlined(mut points: Vec<Point>, inside: Colour, edge: Colour, primitives: &mut Vec<Primitive>) {
    primitives.push(Primitive::Polygon { points: points.clone(), colour: inside });
    points.extend_from_within(..1);
    primitives.push(Primitive::Line { points, width: 1.7, colour: edge });
}

fn around(at: Point, points: &[Point]) -> Vec<Point> {
    points.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect()
}

/// As eyes weigh red, green and blue (ITU-R BT.601), from 0 to 255.
fn brightness([red, green, blue]: Colour) -> f64 {
    0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue)
}

/// The lines of a hatching, from the upper left corner of what is hatched.
fn hatching(hatch: Hatch, width: f64, height: f64) -> Vec<(Point, Point)> {
    let steps = |most: f64| {
        (0..).map(|i| (f64::from(i) + 0.5) * HATCH_STEP).take_while(move |at| *at < most)
    };
    let rising = || {
        steps(width + height).map(|sum| {
            let (from, to) = ((sum - height).max(0.0), sum.min(width));
            ((from, sum - from), (to, sum - to))
        })
    };
    let falling = || rising().map(|(a, b)| ((width - a.0, a.1), (width - b.0, b.1)));
    match hatch {
        Hatch::None => Vec::new(),
        Hatch::Rising => rising().collect(),
        Hatch::Falling => falling().collect(),
        Hatch::Crossed => rising().chain(falling()).collect(),
        // From the bottom, so that equal bars look equal.
        Hatch::Level => {
            steps(height).map(|up| ((0.0, height - up), (width, height - up))).collect()
        }
        Hatch::Upright => steps(width).map(|right| ((right, 0.0), (right, height))).collect(),
        Hatch::Dots => dots(width, height),
    }
}

/// Dots in rows, each moved against the last.
fn dots(width: f64, height: f64) -> Vec<(Point, Point)> {
    let rows = (height / HATCH_STEP).ceil() as usize;
    let dot = |row: usize, column: usize| {
        let x = (column as f64 + if row.is_multiple_of(2) { 0.5 } else { 1.0 }) * HATCH_STEP;
        let y = height - (row as f64 + 0.5) * HATCH_STEP;
        (x < width - 1.0 && y > 1.0).then_some(((x - 1.0, y), (x + 1.0, y)))
    };
    let columns = (width / HATCH_STEP).ceil() as usize;
    (0..rows).flat_map(|row| (0..columns).filter_map(move |column| dot(row, column))).collect()
}

/// A line through points, cut into dashes; pattern of dash, gap, dash, gap.
pub fn dashed(points: &[Point], dashes: &[f64]) -> Vec<(Point, Point)> {
    let mut segments = Vec::new();
    let (mut part, mut left) = (0, dashes.first().copied().unwrap_or(1.0));
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let place = |along: f64| {
            (from.0 + (to.0 - from.0) * along / length, from.1 + (to.1 - from.1) * along / length)
        };
        let mut along = 0.0;
        while along < length {
            let end = (along + left).min(length);
            if part % 2 == 0 {
                segments.push((place(along), place(end)));
            }
            left -= end - along;
            along = end;
            if left <= 1e-9 {
                part += 1;
                left = dashes.get(part % dashes.len().max(1)).copied().unwrap_or(1.0);
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_in_grey_and_in_hatching() {
        for number in 0..SERIES.len() {
            let (this, next) = (Style::of(number), Style::of(number + 1));
            assert_ne!(this.hatch, next.hatch);
            assert_ne!((this.marker, this.hollow), (next.marker, next.hollow));
            let apart = (brightness(this.colour) - brightness(next.colour)).abs();
            assert!(apart > 40.0, "{number}: {apart}");
        }
    }

    #[test]
    fn hatching_stays_in_its_bar_and_fills_it() {
        for hatch in HATCHES {
            for (width, height) in [(4.0, 90.0), (30.0, 3.0), (22.0, 13.0), (5.0, 0.5)] {
                let lines = hatching(hatch, width, height);
                let inside = |(x, y): &Point| {
                    (-1e-9..=width + 1e-9).contains(x) && (-1e-9..=height + 1e-9).contains(y)
                };
                assert!(lines.iter().all(|(a, b)| inside(a) && inside(b)), "{hatch:?} {lines:?}");
                let full = width > 20.0 && height > 10.0 && hatch != Hatch::None;
                assert!(!full || lines.len() >= 2, "{hatch:?}");
            }
        }
    }

    #[test]
    fn dashes_go_on_around_corners() {
        let segments = dashed(&[(0.0, 0.0), (5.0, 0.0), (5.0, 10.0)], &[4.0, 2.0]);
        // 0-4 is a dash, 4-6 a gap, 6-10 a dash, 10-12 a gap, 12-15 what is left.
        assert_eq!(
            segments,
            [((0.0, 0.0), (4.0, 0.0)), ((5.0, 1.0), (5.0, 5.0)), ((5.0, 7.0), (5.0, 10.0))]
        );
        assert!(dashed(&[(1.0, 1.0), (1.0, 1.0)], &[4.0, 2.0]).is_empty());
    }
}
