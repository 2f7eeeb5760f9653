//! Dots with their names beside them, and areas.

use super::chart::Words;
use super::font::points_wide;
use super::frame::{Frame, Key, NUMBERS, PLOT_HEIGHT};
use super::scale::Scale;
use super::scene::{Anchor, BLACK, Colour, Point, Primitive, Scene};
use super::spots::{Area, find};
use super::style::{Style, dashed, paper_mark};
use super::whisker;

const AREA: Colour = [0xec, 0xec, 0xec];
const EDGE: Colour = [0x70, 0x70, 0x70];
/// More dots than that find no room for their names in a plot of the usual height.
const CROWD: usize = 14;
/// Half of a dot's width.
const DOT: f64 = 5.0;
/// The upright axis then.
const CROWD_HEIGHT: f64 = 420.0;

/// Dots of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// What the legend says.
    pub name: String,
    /// The dots.
    pub dots: Vec<Dot>,
}

/// A dot.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// What stands beside it.
    pub label: String,
    /// Its place on the level axis.
    pub x: f64,
    /// Its place on the upright axis.
    pub y: f64,
    /// Half of its interval on the upright axis, if it is known.
    pub half_width: Option<f64>,
    /// Where a paper has it on the upright axis.
    pub paper: Option<f64>,
}

/// An area.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// What it is.
    pub name: String,
    /// From and to, on the level axis.
    pub x: (f64, f64),
    /// From and to, on the upright axis.
    pub y: (f64, f64),
}

/// Draws dots. An axis whose values are all above zero and span more than two decades is spread by
/// ratio.
pub fn draw(series: &[Dots], ranges: &[Range], words: &Words) -> Scene {
    let dots = || series.iter().flat_map(|series| &series.dots).filter(|dot| drawn(dot));
    let papers = dots().filter_map(|dot| dot.paper);
    let levels: Vec<f64> = dots().map(|dot| dot.x).chain(ends(ranges, |r| r.x)).collect();
    let heights: Vec<f64> =
        dots().map(|dot| dot.y).chain(papers).chain(ends(ranges, |r| r.y)).collect();
    let mut keys: Vec<Key> = Vec::new();
    if series.len() > 1 {
        let key = |(i, series): (usize, &Dots)| Key::Dot(Style::of(i), series.name.clone());
        keys.extend(series.iter().enumerate().map(key));
    }
    if dots().any(|dot| dot.paper.is_some()) {
        keys.push(Key::Paper);
    }
    let height = if dots().count() > CROWD { CROWD_HEIGHT } else { PLOT_HEIGHT };
    let mut frame = Frame::new(words, &keys, Scale::around(&heights), 6.0, height);
    let level = Scale::around(&levels);
    let (left, width) = (frame.left, frame.width());
    let x = |value: f64| left + level.place(value) * width;
    let spots: Vec<Point> = dots().map(|dot| (x(dot.x), frame.y(dot.y))).collect();
    let mut taken = areas(&mut frame, ranges, &spots, &x);
    let below = level_axis(&mut frame, &level, &x);
    let mut places: Vec<Point> = Vec::new();
    for (i, series) in series.iter().enumerate() {
        for dot in series.dots.iter().filter(|dot| drawn(dot)) {
            let at = (x(dot.x), frame.y(dot.y));
            if let Some(half) = dot.half_width.filter(|half| half.is_finite()) {
                let ends = (dot.y - half, dot.y + half);
                whisker::draw(&mut frame, at.0, ends, 2.0 * DOT, EDGE);
                let from = (at.0 - whisker::CAP, frame.y(ends.1).max(frame.top));
                let to = (at.0 + whisker::CAP, frame.y(ends.0).min(frame.bottom()));
                taken.push(Area { from, to });
            }
            if let Some(paper) = dot.paper {
                let paper = (at.0, frame.y(paper));
                frame.primitives.push(Primitive::Line {
                    points: vec![at, paper],
                    width: 1.0,
                    colour: EDGE,
                });
                paper_mark(paper, 6.0, BLACK, &mut frame.primitives);
                taken.push(Area::around(paper, 6.0));
            }
            Style::of(i).mark(at, &mut frame.primitives);
            places.push(at);
        }
    }
    let labels: Vec<&str> = dots().map(|dot| dot.label.as_str()).collect();
    write(&mut frame, &places, &labels, &taken);
    frame.finish(below, &words.level)
}

fn drawn(dot: &Dot) -> bool {
    dot.x.is_finite() && dot.y.is_finite()
}

/// The ends of ranges that are somewhere.
fn ends(ranges: &[Range], side: fn(&Range) -> (f64, f64)) -> impl Iterator<Item = f64> {
    let ends = ranges.iter().map(side).flat_map(|(from, to)| [from, to]);
    ends.filter(|end| end.is_finite() && *end != 0.0)
}

/// Draws areas. Where their names are: not over each other, and over few dots.
fn areas(
    frame: &mut Frame,
    ranges: &[Range],
    dots: &[Point],
    x: &impl Fn(f64) -> f64,
) -> Vec<Area> {
    let mut names: Vec<Area> = Vec::new();
    let corners = |frame: &Frame, range: &Range| {
        let (left, right) = (x(range.x.0.min(range.x.1)), x(range.x.0.max(range.x.1)));
        let (a, b) = (frame.y(range.y.0), frame.y(range.y.1));
        (left, right, a.min(b), a.max(b))
    };
    for range in ranges {
        let (left, right, top, bottom) = corners(frame, range);
        let (width, height) = (right - left, bottom - top);
        frame.primitives.push(Primitive::Rectangle {
            x: left,
            y: top,
            width,
            height,
            colour: AREA,
        });
    }
    for range in ranges {
        let (left, right, top, bottom) = corners(frame, range);
        let edge = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        let segments = dashed(&edge, &[5.0, 3.0]);
        frame.primitives.push(Primitive::Strokes { segments, width: 1.2, colour: EDGE });
        let width = points_wide(&range.name, NUMBERS);
        let from = (left + 4.0).min(frame.right() - width);
        let named =
            |from_top: f64| Area { from: (from, from_top), to: (from + width, from_top + NUMBERS) };
        let above_bottom = bottom - NUMBERS - 5.0;
        let spots = [top + 3.0, above_bottom, top + 18.0, above_bottom - 15.0, top + 33.0];
        let covered = |area: &Area| {
            let dots = dots.iter().map(|dot| Area::around(*dot, 6.0).shared(area)).sum::<f64>();
            dots + names.iter().map(|name| name.shared(area)).sum::<f64>() * 4.0
        };
        let all = spots.map(named).into_iter();
        let area = all.min_by(|a, b| covered(a).total_cmp(&covered(b))).unwrap_or(named(top));
        names.push(area);
        let at = (area.from.0, area.to.1 - 2.0);
        frame.sized(at, &range.name, NUMBERS, Anchor::Start, 0.0);
    }
    names
}

/// The level axis with its grid. How much its labels take below.
fn level_axis(frame: &mut Frame, level: &Scale, x: &impl Fn(f64) -> f64) -> f64 {
    let (top, bottom) = (frame.top, frame.bottom());
    let ticks = level.ticks();
    for tick in &ticks {
        frame.line(vec![(x(*tick), top), (x(*tick), bottom)], 0.8);
    }
    frame.axis(vec![(frame.left, bottom), (frame.right(), bottom)]);
    let labels: Vec<(f64, String)> =
        ticks.iter().map(|tick| (x(*tick), level.mark(*tick, false))).collect();
    let nearest = labels.windows(2).map(|two| two[1].0 - two[0].0).fold(frame.width(), f64::min);
    frame.labels(&labels, nearest)
}

/// Writes labels where there is room, with a line to those that are away.
fn write(frame: &mut Frame, places: &[Point], labels: &[&str], taken: &[Area]) {
    let widths: Vec<f64> = labels.iter().map(|label| points_wide(label, NUMBERS) + 3.0).collect();
    let all =
        Area { from: (frame.left + 2.0, frame.top), to: (frame.right(), frame.bottom() - 2.0) };
    let areas = find(places, &widths, NUMBERS, taken, &all);
    for ((at, label), area) in places.iter().zip(labels).zip(areas) {
        let near = area.nearest(*at);
        if (near.0 - at.0).hypot(near.1 - at.1) > 11.0 {
            frame.primitives.push(Primitive::Line {
                points: vec![*at, near],
                width: 0.9,
                colour: EDGE,
            });
        }
        frame.sized((area.from.0, area.to.1 - 2.0), label, NUMBERS, Anchor::Start, 0.0);
    }
}
