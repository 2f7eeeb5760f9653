//! Lines over a level axis of places.

use super::chart::Words;
use super::font::points_wide;
use super::frame::{Frame, Key, LETTERS, PLOT_HEIGHT};
use super::reading::{size_of, whole};
use super::scale::Scale;
use super::scene::{Point, Scene};
use super::style::{MARKER, Style, paper_mark};
use super::{Series, whisker};

/// Lines with more points have no markers.
const MARKED: usize = 40;
/// Axes of numbers with more places are marked at round ones.
const LABELLED: usize = 12;
/// Between the frame and the first and last point.
const INSET: f64 = 12.0;
/// Labels may reach so far beyond the frame, where nothing else stands.
const BEYOND: f64 = 2.0;
/// From one series to the next, where they would hide each other.
const STEP: f64 = 6.0;
/// Less than that is no help.
const LEAST_STEP: f64 = 2.5;
/// What caps of intervals take.
const WHISKER: f64 = 10.0;
/// What all series take of the way to the next place, at most.
const SPREAD: f64 = 0.5;

/// A line for each series.
pub fn draw(series: &[Series], places: &[String], keys: &[Key], words: &Words) -> Scene {
    let all = series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
    let ends = series.iter().flat_map(Series::intervals);
    let ends = ends.flat_map(|(_, (least, most))| [least, most]);
    let values: Vec<f64> = all.map(|(_, value)| *value).chain(ends).collect();
    let mut frame = Frame::new(words, keys, Scale::near(&values), 0.0, PLOT_HEIGHT);
    let below = inside(&mut frame, series, places);
    frame.finish(below, &words.level)
}

/// Where places are on the level axis.
struct Level {
    /// None if places are no numbers: then they are equally far from each other, in their order.
    scale: Option<Scale>,
    inset: f64,
    left: f64,
    width: f64,
}

impl Level {
    fn of(frame: &Frame, places: &[String], inset: f64) -> Level {
        let numbers: Option<Vec<f64>> = places.iter().map(|place| size_of(place)).collect();
        let scale = numbers.as_deref().map(Scale::across);
        Level { scale, inset, left: frame.left + inset, width: frame.width() - 2.0 * inset }
    }

    /// With so much at its ends, if there is less. Places that are no numbers have enough.
    fn at_least(self, frame: &Frame, places: &[String], inset: f64) -> Level {
        if self.scale.is_none() || self.inset >= inset {
            return self;
        }
        Level::of(frame, places, inset)
    }

    fn x(&self, place: &str, places: &[String]) -> f64 {
        match (&self.scale, size_of(place)) {
            (Some(scale), Some(number)) => self.left + scale.place(number) * self.width,
            _ => {
                let at = places.iter().position(|known| known == place).unwrap_or(0);
                self.left + self.width * (at as f64 + 0.5) / places.len().max(1) as f64
            }
        }
    }

    /// What stands below the axis, and where.
    fn labels(&self, places: &[String]) -> Vec<(f64, String)> {
        match &self.scale {
            Some(scale) if places.len() > LABELLED => {
                let at = |tick: f64| self.left + scale.place(tick) * self.width;
                let label = |tick: f64| (at(tick), scale.mark(tick, false));
                scale.ticks().into_iter().map(label).collect()
            }
            Some(_) => places.iter().map(|at| (self.x(at, places), number(at))).collect(),
            None => places.iter().map(|at| (self.x(at, places), at.clone())).collect(),
        }
    }
}

/// How far the nearest labels are from each other.
fn nearest(labels: &[(f64, String)], width: f64) -> f64 {
    labels.windows(2).map(|two| (two[1].0 - two[0].0).abs()).fold(width, f64::min)
}

/// The level axis, with so much at its ends that labels which are not turned do not reach below the
/// numbers of the upright axis.
fn level(frame: &Frame, places: &[String]) -> Level {
    let level = Level::of(frame, places, INSET);
    let labels = level.labels(places);
    let over = |(x, text): &(f64, String)| {
        let half = points_wide(text, LETTERS) / 2.0;
        (frame.left - BEYOND - (x - half)).max(x + half - frame.right() - BEYOND)
    };
    let over = labels.iter().map(over).fold(0.0, f64::max);
    let inside = Level::of(frame, places, INSET + over);
    let widest = labels.iter().map(|(_, text)| points_wide(text, LETTERS)).fold(0.0, f64::max);
    let is_level = widest + 5.0 <= nearest(&inside.labels(places), inside.width);
    if is_level { inside } else { level }
}

/// From one series to the next, if at some place one would hide another or its interval; else 0.
fn step(frame: &Frame, series: &[Series], places: &[String], room: f64) -> f64 {
    let height = |series: &Series, place: &String| {
        let value = series.points.iter().find(|(at, value)| at == place && value.is_finite())?.1;
        let (least, most) = series.interval(place).unwrap_or((value, value));
        let y = frame.y(value);
        Some((frame.y(most).min(y - MARKER), frame.y(least).max(y + MARKER)))
    };
    let is_hidden = places.iter().any(|place| {
        let mut heights: Vec<(f64, f64)> =
            series.iter().filter_map(|series| height(series, place)).collect();
        heights.sort_by(|a, b| a.0.total_cmp(&b.0));
        heights.windows(2).any(|two| two[1].0 < two[0].1)
    });
    let step = STEP.min(room * SPREAD / (series.len() as f64 - 1.0).max(1.0));
    if is_hidden && step >= LEAST_STEP { step } else { 0.0 }
}

/// What is between the axes. How much room the labels take.
fn inside(frame: &mut Frame, series: &[Series], places: &[String]) -> f64 {
    let level = level(frame, places);
    let mut across: Vec<f64> = places.iter().map(|place| level.x(place, places)).collect();
    across.sort_by(f64::total_cmp);
    let room = across.windows(2).map(|two| two[1] - two[0]).fold(level.width, f64::min);
    let are_marked = series.iter().all(|series| series.points.len() <= MARKED);
    let step = if are_marked { step(frame, series, places, room) } else { 0.0 };
    let middle = (series.len() as f64 - 1.0) / 2.0;
    let level = level.at_least(frame, places, step * middle + 2.0 * MARKER);
    let x = |place: &str| level.x(place, places);
    frame.floor(frame.heights.least.max(0.0));
    for (i, series) in series.iter().enumerate() {
        let x = |place: &str| x(place) + step * (i as f64 - middle);
        let at = |frame: &Frame, points: &[(String, f64)]| -> Vec<Point> {
            let finite = points.iter().filter(|(_, value)| value.is_finite());
            finite.map(|(place, value)| (x(place), frame.y(*value))).collect()
        };
        let mut points = at(frame, &series.points);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let style = Style::of(i);
        style.line(&points, &mut frame.primitives);
        // Where series stand beside each other, it has to be seen whose interval it is.
        for (place, ends) in series.intervals().filter(|_| points.len() <= MARKED) {
            whisker::draw(frame, x(place), ends, WHISKER, style.pen());
        }
        if points.len() <= MARKED {
            points.iter().for_each(|at| style.mark(*at, &mut frame.primitives));
        }
        for at in at(frame, &series.paper) {
            paper_mark(at, 6.5, style.pen(), &mut frame.primitives);
        }
    }
    let labels = level.labels(places);
    frame.labels(&labels, nearest(&labels, level.width))
}

/// A place that is a number, as people read it.
fn number(place: &str) -> String {
    let whole_number = place.parse().ok().filter(|number: &f64| number.fract() == 0.0);
    whole_number.map_or(place.to_owned(), whole)
}
