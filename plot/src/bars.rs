//! Bars in groups.

use super::chart::Words;
use super::cut::highest_whole;
use super::frame::{Frame, Key, NUMBERS, PLOT_HEIGHT};
use super::numbers::{self, NUMBERED};
use super::scale::Scale;
use super::scene::{BLACK, Point, Primitive, Scene, WHITE};
use super::style::{Style, dashed, paper_mark};
use super::{Series, whisker};

/// Of a group, what its bars take.
const GROUP: f64 = 0.84;
/// In front of the place that is set apart, in groups.
const APART: f64 = 0.5;
/// No bar is wider, in points.
const WIDEST: f64 = 64.0;
/// Beside broken bars, the axis has room for intervals up to so many times the highest whole bar.
const INTERVAL: f64 = 1.4;
/// From the frame to the end of the lowest bar that is broken.
const BROKEN: f64 = 7.0;
/// From there to the end of the highest.
const BROKEN_STEP: f64 = 12.0;

/// Where bars stand, and which are broken.
pub struct Rows<'a> {
    /// What is drawn.
    pub series: &'a [Series],
    /// The groups, from left to right.
    pub places: &'a [String],
    /// What bars stand on, or hang from.
    pub base: f64,
    apart: Option<usize>,
    /// The highest value that is whole.
    whole: Option<f64>,
    /// The values that are broken, ascending.
    broken: Vec<f64>,
    left: f64,
    group: f64,
}

impl<'a> Rows<'a> {
    fn of(series: &'a [Series], places: &'a [String], words: &Words) -> Self {
        let is_apart = |place: &String| Some(place) == words.apart.as_ref();
        let apart = places.iter().position(is_apart).filter(|at| *at > 0);
        let whole = if words.base == 0.0 { highest_whole(series, places.len()) } else { None };
        let mut rows = Rows {
            series,
            places,
            base: words.base,
            apart,
            whole,
            broken: Vec::new(),
            left: 0.0,
            group: 0.0,
        };
        let all = series.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
        rows.broken = all.filter(|value| value.is_finite() && !rows.is_whole(*value)).collect();
        rows.broken.sort_by(f64::total_cmp);
        rows.broken.dedup();
        rows
    }

    /// Whether a value is drawn as high as it is.
    pub fn is_whole(&self, value: f64) -> bool {
        value.is_finite() && self.whole.is_none_or(|whole| value <= whole)
    }

    /// Whether it is a number, and drawn otherwise.
    pub fn is_broken(&self, value: f64) -> bool {
        value.is_finite() && !self.is_whole(value)
    }

    /// The end of a bar that is broken: a higher one ends higher.
    fn broken_end(&self, frame: &Frame, value: f64) -> f64 {
        let rank = self.broken.iter().take_while(|other| **other < value).count() as f64;
        let steps = (self.broken.len() as f64 - 1.0).max(1.0);
        frame.top - BROKEN - BROKEN_STEP * rank / steps
    }

    /// Above all bars that are broken, from the frame upwards.
    pub fn broken_room(&self) -> f64 {
        match self.broken.len() {
            0 => 0.0,
            1 => BROKEN,
            _ => BROKEN + BROKEN_STEP,
        }
    }

    fn spread_over(&mut self, frame: &Frame) {
        let gap = if self.apart.is_some() { APART } else { 0.0 };
        self.left = frame.left;
        self.group = frame.width() / (self.places.len().max(1) as f64 + gap);
    }

    /// How far from a bar to the next.
    pub fn pitch(&self) -> f64 {
        (self.group * GROUP / self.series.len().max(1) as f64).min(WIDEST)
    }

    /// How wide a group is, with what is between it and the next.
    pub fn group(&self) -> f64 {
        self.group
    }

    /// The left end of a group, by its number.
    fn group_left(&self, place: usize) -> f64 {
        let gap = if self.apart.is_some_and(|apart| place >= apart) { APART } else { 0.0 };
        self.left + self.group * (place as f64 + gap)
    }

    /// The middle of a group.
    pub fn group_middle(&self, place: usize) -> f64 {
        self.group_left(place) + self.group / 2.0
    }

    /// The left side of a bar.
    fn x(&self, series: usize, place: &str) -> f64 {
        let place = self.places.iter().position(|known| known == place).unwrap_or(0);
        let margin = (self.group - self.pitch() * self.series.len() as f64) / 2.0;
        self.group_left(place) + margin + self.pitch() * (series as f64 + 0.04)
    }

    /// The middle of a bar.
    pub fn middle(&self, series: usize, place: &str) -> f64 {
        self.x(series, place) + self.width() / 2.0
    }

    fn width(&self) -> f64 {
        self.pitch() * 0.92
    }

    /// All that is drawn as high as it is.
    fn heights(&self) -> Vec<f64> {
        let all = self.series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
        let whole: Vec<f64> =
            all.map(|(_, value)| *value).filter(|value| self.is_whole(*value)).collect();
        let highest = whole.iter().copied().fold(0.0, f64::max);
        let ends = self.series.iter().flat_map(Series::intervals);
        // What is not known at all is no reason to make all bars small.
        let ends = ends.filter(|(_, ends)| ends.1 <= INTERVAL * highest || self.whole.is_none());
        let ends = ends.flat_map(|(_, (least, most))| [least, most]);
        whole.iter().copied().chain(ends).collect()
    }

    /// How deep the axis has to be for the numbers below bars that hang, if any does.
    fn below_numbers(&self, heights: &[f64]) -> Option<f64> {
        let finite = || heights.iter().copied().filter(|value| value.is_finite());
        let (least, most) =
            (finite().fold(self.base, f64::min), finite().fold(self.base, f64::max));
        // What can hardly be seen has no number.
        let hangs = |(_, value): &(String, f64)| self.base - value > (most - least) / 100.0;
        self.series.iter().flat_map(|series| &series.points).find(|point| hangs(point))?;
        let room = numbers::BELOW / PLOT_HEIGHT;
        Some(least - (most - least) * room / (1.0 - room))
    }
}

/// A group of bars for each place.
pub fn draw(series: &[Series], places: &[String], keys: &[Key], words: &Words) -> Scene {
    let mut rows = Rows::of(series, places, words);
    let bars = series.iter().flat_map(|s| &s.points).filter(|(_, v)| v.is_finite()).count();
    let is_numbered = bars <= NUMBERED;
    let headroom = match numbers::broken_height(&rows, words.percent) {
        0.0 if is_numbered => NUMBERS + 2.0,
        0.0 => 0.0,
        height => rows.broken_room() + 5.0 + height,
    };
    let mut values = rows.heights();
    if is_numbered {
        values.extend(rows.below_numbers(&values));
    }
    let heights = Scale::standing(words.base, &values);
    let mut frame = Frame::new(words, keys, heights, headroom, PLOT_HEIGHT);
    rows.spread_over(&frame);
    set_apart(&mut frame, &rows);
    standing(&mut frame, &rows);
    frame.floor(words.base);
    whiskers(&mut frame, &rows);
    marks(&mut frame, &rows);
    let numbered = is_numbered && numbers::above(&mut frame, &rows);
    numbers::zeros(&mut frame, &rows, numbered);
    for place in places {
        numbers::broken(&mut frame, &rows, place);
    }
    let labels = places.iter().enumerate().map(|(i, place)| (rows.group_middle(i), place.clone()));
    let below = frame.labels(&labels.collect::<Vec<_>>(), rows.group);
    frame.finish(below, &words.level)
}

/// A line in front of the place that is set apart.
fn set_apart(frame: &mut Frame, rows: &Rows) {
    let Some(apart) = rows.apart else { return };
    let x = rows.group_left(apart) - rows.group * APART / 2.0;
    let segments = dashed(&[(x, frame.top), (x, frame.bottom())], &[4.0, 3.0]);
    frame.primitives.push(Primitive::Strokes { segments, width: 1.0, colour: BLACK });
}

fn standing(frame: &mut Frame, rows: &Rows) {
    let base = frame.y(rows.base);
    for (i, series) in rows.series.iter().enumerate() {
        for (place, value) in series.points.iter().filter(|(_, value)| value.is_finite()) {
            let x = rows.x(i, place);
            let is_whole = rows.is_whole(*value);
            let y = if is_whole { frame.y(*value) } else { rows.broken_end(frame, *value) };
            let (top, height) = (y.min(base), (y - base).abs());
            Style::of(i).bar((x, top), rows.width(), height, &mut frame.primitives);
            if !is_whole {
                broken((x, frame.top + 12.0), rows.width(), &mut frame.primitives);
            }
        }
    }
}

/// The sign that a bar is longer than drawn.
fn broken((x, y): Point, width: f64, primitives: &mut Vec<Primitive>) {
    let (left, right) = (x - 3.0, x + width + 3.0);
    let points = vec![(left, y + 3.0), (right, y - 3.0), (right, y + 3.0), (left, y + 9.0)];
    primitives.push(Primitive::Polygon { points, colour: WHITE });
    let segments = vec![((left, y + 3.0), (right, y - 3.0)), ((left, y + 9.0), (right, y + 3.0))];
    primitives.push(Primitive::Strokes { segments, width: 1.4, colour: BLACK });
}

/// How far the interval of each bar that is whole reaches.
fn whiskers(frame: &mut Frame, rows: &Rows) {
    for (i, series) in rows.series.iter().enumerate() {
        for (place, ends) in series.intervals() {
            let value = f64::midpoint(ends.0, ends.1);
            // None of a value that is exact.
            if rows.is_whole(value) && ends.1 > ends.0 {
                whisker::draw(frame, rows.middle(i, place), ends, rows.width(), BLACK);
            }
        }
    }
}

/// What the paper says, across each bar.
fn marks(frame: &mut Frame, rows: &Rows) {
    let radius = (rows.width() * 0.6).clamp(4.0, 6.5);
    for (i, series) in rows.series.iter().enumerate() {
        for (place, value) in series.paper.iter().filter(|(_, value)| rows.is_whole(*value)) {
            let at = (rows.middle(i, place), frame.y(*value));
            paper_mark(at, radius, BLACK, &mut frame.primitives);
        }
    }
}
