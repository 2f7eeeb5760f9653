//! What stands around a plot: title, legend, axes, labels.

use super::chart::Words;
use super::font::{points_wide, wrapped};
use super::scale::Scale;
use super::scene::{Anchor, BLACK, GREY, Point, Primitive, Scene, WHITE};
use super::style::{Style, paper_mark};
use super::whisker;

/// Points. Half a column is 240 of a printer's, so letters are printed at not quite half their
/// size: those of labels at 7.8 points.
pub const WIDTH: f64 = 520.0;
/// From the bottom to the top of the upright axis, as a rule.
pub const PLOT_HEIGHT: f64 = 230.0;
const RIGHT: f64 = 12.0;
const TITLE: f64 = 18.5;
/// The size of letters.
pub const LETTERS: f64 = 17.0;
/// The size of numbers in the plot.
pub const NUMBERS: f64 = 14.5;
const LEGEND_LINE: f64 = 24.0;
/// The width of a bar in the legend.
pub const SWATCH: f64 = 30.0;
/// From where to where its lines go.
const LEGEND_LEFT: f64 = 14.0;
const LEGEND_RIGHT: f64 = WIDTH - 4.0;
/// Labels of the level axis are cut to this many letters.
const LABEL_LETTERS: usize = 22;

/// A line of the legend.
pub enum Key {
    /// Bars.
    Bar(Style, String),
    /// Lines with markers.
    Line(Style, String),
    /// Markers alone.
    Dot(Style, String),
    /// What a paper says.
    Paper,
    /// Bars of error.
    Interval,
    /// A line across the plot.
    Level(String),
}

impl Key {
    fn name(&self) -> &str {
        match self {
            Key::Bar(_, name) | Key::Line(_, name) | Key::Dot(_, name) | Key::Level(name) => name,
            Key::Paper => "paper",
            Key::Interval => "95 % interval",
        }
    }

    /// The width of what stands beside the name.
    fn swatch(&self, spacing: Spacing) -> f64 {
        match self {
            Key::Bar(..) | Key::Line(..) | Key::Level(_) => spacing.swatch,
            Key::Dot(..) | Key::Paper | Key::Interval => 14.0,
        }
    }

    /// With its name.
    fn wide(&self, spacing: Spacing) -> f64 {
        self.swatch(spacing) + spacing.name + points_wide(self.name(), LETTERS)
    }
}

/// How wide a legend is set.
#[derive(Clone, Copy)]
struct Spacing {
    /// A bar or a line.
    swatch: f64,
    /// From there to its name.
    name: f64,
    /// To the next.
    next: f64,
}

/// The widest is the best to read, but a line of its own for one name is waste.
const SPACINGS: [Spacing; 3] = [
    Spacing { swatch: SWATCH, name: 6.0, next: 16.0 },
    Spacing { swatch: 26.0, name: 5.0, next: 12.0 },
    Spacing { swatch: 22.0, name: 4.0, next: 8.0 },
];

impl Spacing {
    /// How many lines a legend has.
    fn lines(self, keys: &[Key]) -> usize {
        let (mut lines, mut x) = (1, LEGEND_LEFT);
        for key in keys {
            let wide = key.wide(self);
            if x + wide > LEGEND_RIGHT && x > LEGEND_LEFT {
                (lines, x) = (lines + 1, LEGEND_LEFT);
            }
            x += wide + self.next;
        }
        lines
    }
}

/// A plot while it is drawn.
pub struct Frame {
    /// The left end of the level axis.
    pub left: f64,
    /// The upper end of the upright axis.
    pub top: f64,
    /// From there to its lower end.
    pub height: f64,
    /// The upright axis.
    pub heights: Scale,
    /// Whether values are shares of one.
    pub percent: bool,
    /// What is drawn.
    pub primitives: Vec<Primitive>,
}

impl Frame {
    /// With title, legend and an upright axis so high, and some room above the axis.
    pub fn new(words: &Words, keys: &[Key], heights: Scale, headroom: f64, height: f64) -> Self {
        let (percent, primitives) = (words.percent, Vec::new());
        let mut frame = Frame { left: 0.0, top: 12.0, height, heights, percent, primitives };
        for line in wrapped(&words.title, TITLE, WIDTH - 20.0) {
            frame.top += TITLE + 3.0;
            let at = (WIDTH / 2.0, frame.top - 6.0);
            frame.sized(at, &line, TITLE, Anchor::Middle, 0.0);
        }
        frame.legend(keys);
        frame.top += 10.0 + headroom;
        let ticks = frame.ticks();
        let widest = ticks.iter().map(|(_, text)| points_wide(text, LETTERS)).fold(0.0, f64::max);
        let name = wrapped(&words.upright, LETTERS, height + headroom + 20.0);
        frame.left = 8.0 + name.len() as f64 * (LETTERS + 3.0) + widest + 12.0;
        let without_zero = frame.heights.least > 0.0 && frame.heights.is_even();
        for (i, line) in name.iter().enumerate() {
            let at = (20.0 + i as f64 * (LETTERS + 3.0), frame.top + height / 2.0);
            frame.text(at, line, Anchor::Middle, 90.0);
        }
        for (tick, text) in ticks {
            let y = frame.y(tick);
            frame.line(vec![(frame.left, y), (frame.right(), y)], 0.8);
            frame.text((frame.left - 7.0, y + 6.0), &text, Anchor::End, 0.0);
        }
        frame.axis(vec![(frame.left, frame.top), (frame.left, frame.bottom())]);
        if without_zero {
            frame.no_zero();
        }
        frame
    }

    /// The sign that the upright axis does not begin at zero.
    fn no_zero(&mut self) {
        let (left, right) = (self.left - 5.0, self.left + 5.0);
        let from_bottom = |above: f64| self.bottom() - above;
        let gap = vec![
            (left, from_bottom(5.0)),
            (right, from_bottom(9.0)),
            (right, from_bottom(14.0)),
            (left, from_bottom(10.0)),
        ];
        let segments = vec![(gap[0], gap[1]), (gap[3], gap[2])];
        self.primitives.push(Primitive::Polygon { points: gap, colour: WHITE });
        self.primitives.push(Primitive::Strokes { segments, width: 1.4, colour: BLACK });
    }

    /// The values that are marked on the upright axis.
    fn ticks(&self) -> Vec<(f64, String)> {
        let text = |tick: f64| self.heights.mark(tick, self.percent);
        self.heights.ticks().into_iter().map(|tick| (tick, text(tick))).collect()
    }

    /// Names with what they look like, in as many lines as they need.
    fn legend(&mut self, keys: &[Key]) {
        if !keys.is_empty() {
            self.top += 6.0;
        }
        let of_lines = SPACINGS.iter().min_by_key(|spacing| spacing.lines(keys));
        let spacing = *of_lines.unwrap_or(&SPACINGS[0]);
        let mut x = LEGEND_LEFT;
        for key in keys {
            x = self.key(key, x, spacing);
        }
        self.top += if keys.is_empty() { 0.0 } else { LEGEND_LINE };
    }

    /// Where the next one begins.
    fn key(&mut self, key: &Key, x: f64, spacing: Spacing) -> f64 {
        let (swatch, wide) = (key.swatch(spacing), key.wide(spacing));
        let mut x = x;
        if x + wide > LEGEND_RIGHT && x > LEGEND_LEFT {
            x = LEGEND_LEFT;
            self.top += LEGEND_LINE;
        }
        let middle = (x + swatch / 2.0, self.top + 7.5);
        let ends = [(x, middle.1), (x + swatch, middle.1)];
        match key {
            Key::Bar(style, _) => style.bar((x, self.top), swatch, 15.0, &mut self.primitives),
            Key::Line(style, _) => {
                style.line(&ends, &mut self.primitives);
                style.mark(middle, &mut self.primitives);
            }
            Key::Dot(style, _) => style.mark(middle, &mut self.primitives),
            Key::Paper => paper_mark(middle, 6.0, BLACK, &mut self.primitives),
            Key::Interval => whisker::mark(middle, 8.0, &mut self.primitives),
            Key::Level(_) => self.axis(ends.to_vec()),
        }
        let name = (x + swatch + spacing.name, self.top + 13.5);
        self.text(name, key.name(), Anchor::Start, 0.0);
        x + wide + spacing.next
    }

    /// The lower end of the upright axis.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The right end of the level axis.
    pub fn right(&self) -> f64 {
        WIDTH - RIGHT
    }

    /// How long the level axis is.
    pub fn width(&self) -> f64 {
        self.right() - self.left
    }

    /// How high a value is.
    pub fn y(&self, value: f64) -> f64 {
        self.bottom() - self.heights.place(value) * self.height
    }

    /// Writes with letters of the usual size.
    pub fn text(&mut self, at: Point, text: &str, anchor: Anchor, degrees: f64) {
        self.sized(at, text, LETTERS, anchor, degrees);
    }

    /// Writes with letters of a size.
    pub fn sized(&mut self, at: Point, text: &str, size: f64, anchor: Anchor, degrees: f64) {
        let (text, halo) = (text.to_owned(), false);
        self.primitives.push(Primitive::Text { at, text, size, anchor, degrees, halo });
    }

    /// Writes a number or a name so that it can be read over lines.
    pub fn over(&mut self, at: Point, text: &str, size: f64, anchor: Anchor) {
        let (text, halo) = (text.to_owned(), true);
        self.primitives.push(Primitive::Text { at, text, size, anchor, degrees: 0.0, halo });
    }

    /// A line of the grid.
    pub fn line(&mut self, points: Vec<Point>, width: f64) {
        self.primitives.push(Primitive::Line { points, width, colour: GREY });
    }

    /// An axis.
    pub fn axis(&mut self, points: Vec<Point>) {
        self.primitives.push(Primitive::Line { points, width: 1.4, colour: BLACK });
    }

    /// The line on which bars stand, above what was drawn before.
    pub fn floor(&mut self, value: f64) {
        let y = self.y(value);
        self.axis(vec![(self.left, y), (self.right(), y)]);
    }

    /// Labels below the frame, each at its place and with this much room, turned if they are wider.
    /// How much they take below.
    pub fn labels(&mut self, labels: &[(f64, String)], room: f64) -> f64 {
        let labels: Vec<(f64, String)> = labels.iter().map(|(x, t)| (*x, shortened(t))).collect();
        let size = LETTERS.min(room * 0.95).max(4.0);
        let widest = labels.iter().map(|(_, text)| points_wide(text, size)).fold(0.0, f64::max);
        let bottom = self.bottom();
        if widest <= room - 5.0 {
            for (x, text) in &labels {
                let x = x.min(WIDTH - points_wide(text, size) / 2.0 - 2.0);
                self.sized((x, bottom + 19.0), text, size, Anchor::Middle, 0.0);
            }
            return 21.0;
        }
        // As little as keeps lines apart and the drawing's edge.
        let fits = |degrees: f64| {
            let (sine, cosine) = degrees.to_radians().sin_cos();
            let on = |(x, text): &(f64, String)| x + 4.0 - points_wide(text, size) * cosine > 3.0;
            room * sine >= size && labels.iter().all(on)
        };
        let degrees = [35.0, 50.0, 65.0].into_iter().find(|degrees| fits(*degrees)).unwrap_or(90.0);
        let (sine, cosine) = f64::to_radians(degrees).sin_cos();
        for (x, text) in &labels {
            let at = (x + size * 0.35 * sine, bottom + 7.0 + size * 0.6 * cosine);
            self.sized(at, text, size, Anchor::End, degrees);
        }
        14.0 + widest * sine
    }

    /// With the level axis' name below its labels.
    pub fn finish(mut self, below: f64, level: &str) -> Scene {
        let mut bottom = self.bottom() + below + 4.0;
        let middle = self.left + self.width() / 2.0;
        for line in wrapped(level, LETTERS, self.width()) {
            bottom += LETTERS + 3.0;
            self.text((middle, bottom), &line, Anchor::Middle, 0.0);
        }
        Scene { width: WIDTH, height: (bottom + 9.0).ceil(), primitives: self.primitives }
    }
}

/// A label as it is written: powers as such, and no longer than there is room.
fn shortened(label: &str) -> String {
    if let Some((base, power)) = label.split_once('^')
        && let Some(power) = raised(power)
    {
        return format!("{base}{power}");
    }
    if label.chars().count() <= LABEL_LETTERS {
        return label.to_owned();
    }
    label.chars().take(LABEL_LETTERS - 2).chain("..".chars()).collect()
}

/// Digits above the line; `None` of anything else.
fn raised(digits: &str) -> Option<String> {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    digits.chars().map(|digit| RAISED.get(digit.to_digit(10)? as usize)).collect()
}
