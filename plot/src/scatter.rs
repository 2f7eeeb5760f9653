//! Dots with their names beside them, and areas.

use super::chart::Words;
use super::font::points_wide;
use super::frame::{Frame, Key, NUMBERS, PLOT_HEIGHT};
use super::scale::Scale;
use super::scene::{Anchor, BLACK, Colour, Point, Primitive, Scene};
use super::spots::{Area, Taken, faults, find, line};
use super::style::{Style, dashed, paper_mark};
use super::whisker;

const AREA: Colour = [0xec, 0xec, 0xec];
const EDGE: Colour = [0x70, 0x70, 0x70];
/// More dots than that find no room for their names in a plot of the usual height.
const CROWD: usize = 14;
/// The upright axis then, at least.
const CROWD_HEIGHT: f64 = 460.0;
/// It grows by so much until all names have their places, so many times at most.
const GROWTH: f64 = 70.0;
const GROWTHS: usize = 3;
/// From the least to the most, if an axis is to be spread by ratio. Heights are compared, so that
/// they are left as they are as long as that can be read.
const RATIO_LEVEL: f64 = 20.0;
const RATIO_UPRIGHT: f64 = 60.0;
/// An area that takes less than this part of both axes is drawn as the spot that it is.
const SMALL: f64 = 0.03;
/// Half of a dot's width.
const DOT: f64 = 5.0;
/// Longer lists of names are broken.
const NAME_WIDTH: f64 = 130.0;
/// From a line of a name to the next.
const NAME_LINE: f64 = NUMBERS + 1.0;
/// Between the frame and a dot at its left or right end.
const INSET: f64 = 8.0;

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

/// Draws dots. An axis whose values are all above zero and span more than a certain ratio is spread
/// by ratio. The drawing is as high as it has to be for names to find their places.
pub fn draw(series: &[Dots], ranges: &[Range], words: &Words) -> Scene {
    let dots = series.iter().flat_map(|series| &series.dots).filter(|dot| drawn(dot)).count();
    let least = if dots > CROWD { CROWD_HEIGHT } else { PLOT_HEIGHT };
    let mut best: Option<(usize, Scene)> = None;
    for growth in 0..=GROWTHS {
        let (scene, faults) = draw_as_high(series, ranges, words, least + GROWTH * growth as f64);
        if best.as_ref().is_none_or(|(fewest, _)| faults < *fewest) {
            best = Some((faults, scene));
        }
        if best.as_ref().is_some_and(|(fewest, _)| *fewest == 0) {
            break;
        }
    }
    best.expect("one was drawn").1
}

/// With an upright axis so high, and how many faults the places of names have.
fn draw_as_high(series: &[Dots], ranges: &[Range], words: &Words, points: f64) -> (Scene, usize) {
    let dots = || series.iter().flat_map(|series| &series.dots).filter(|dot| drawn(dot));
    let papers = dots().filter_map(|dot| dot.paper);
    let levels: Vec<f64> = dots().map(|dot| dot.x).chain(ends(ranges, |r| r.x)).collect();
    let is_positive = dots().all(|dot| dot.y > 0.0);
    let intervals = dots().filter_map(|dot| {
        let half = dot.half_width.filter(|half| half.is_finite())?;
        // One that reaches below zero is no reason not to spread what is above by ratio.
        let least = Some(dot.y - half).filter(|least| *least > 0.0 || !is_positive);
        Some([least.unwrap_or(dot.y), dot.y + half])
    });
    let heights: Vec<f64> = dots()
        .map(|dot| dot.y)
        .chain(papers)
        .chain(ends(ranges, |r| r.y))
        .chain(intervals.flatten())
        .collect();
    let (level, height) =
        (Scale::around(&levels, RATIO_LEVEL), Scale::around(&heights, RATIO_UPRIGHT));
    let is_spot = |range: &&Range| is_small(&level, range.x) && is_small(&height, range.y);
    let (small, ranges): (Vec<&Range>, Vec<&Range>) = ranges.iter().partition(is_spot);
    let mut keys: Vec<Key> = Vec::new();
    if series.len() > 1 {
        let key = |(i, series): (usize, &Dots)| Key::Dot(Style::of(i), series.name.clone());
        keys.extend(series.iter().enumerate().map(key));
    }
    if dots().any(|dot| dot.paper.is_some()) || !small.is_empty() {
        keys.push(Key::Paper);
    }
    if dots().any(|dot| dot.half_width.is_some_and(|half| half > 0.0)) {
        keys.push(Key::Interval);
    }
    let mut frame = Frame::new(words, &keys, height, 6.0, points);
    let (left, width) = (frame.left + INSET, frame.width() - 2.0 * INSET);
    let x = |value: f64| left + level.place(value) * width;
    let spots: Vec<Point> = dots().map(|dot| (x(dot.x), frame.y(dot.y))).collect();
    let marks = areas(&mut frame, &ranges, &spots, &x);
    let mut taken = Taken { marks, lines: Vec::new() };
    let below = level_axis(&mut frame, &level, words.level_percent, &x);
    let mut places: Vec<Point> = Vec::new();
    for (i, series) in series.iter().enumerate() {
        for dot in series.dots.iter().filter(|dot| drawn(dot)) {
            let at = (x(dot.x), frame.y(dot.y));
            if let Some(half) = dot.half_width.filter(|half| half.is_finite() && *half > 0.0) {
                let ends = (dot.y - half, dot.y + half);
                whisker::draw(&mut frame, at.0, ends, 2.0 * DOT, EDGE);
                let from = (at.0 - whisker::CAP, frame.y(ends.1).max(frame.top));
                let to = (at.0 + whisker::CAP, frame.y(ends.0).min(frame.bottom()));
                taken.lines.push(Area { from, to });
            }
            if let Some(paper) = dot.paper {
                let paper = (at.0, frame.y(paper));
                frame.primitives.push(Primitive::Line {
                    points: vec![at, paper],
                    width: 1.0,
                    colour: EDGE,
                });
                paper_mark(paper, 6.0, BLACK, &mut frame.primitives);
                taken.marks.push(Area::around(paper, 6.0));
            }
            Style::of(i).mark(at, &mut frame.primitives);
            places.push(at);
        }
    }
    for range in &small {
        let (across, up) =
            (f64::midpoint(range.x.0, range.x.1), f64::midpoint(range.y.0, range.y.1));
        let at = (x(across), frame.y(up));
        paper_mark(at, 6.0, BLACK, &mut frame.primitives);
        places.push(at);
    }
    let names = small.iter().map(|range| range.name.as_str());
    let labels: Vec<&str> = dots().map(|dot| dot.label.as_str()).chain(names).collect();
    let faults = write(&mut frame, &places, &labels, &taken);
    (frame.finish(below, &words.level), faults)
}

/// Whether an end is so near the other that an area would be hidden by a dot.
fn is_small(scale: &Scale, (from, to): (f64, f64)) -> bool {
    from.is_finite() && to.is_finite() && (scale.place(to) - scale.place(from)).abs() < SMALL
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
    ranges: &[&Range],
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
        let around = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        // An area without width is a line: dashes there and back would fill each other's gaps.
        let is_line = right - left < 1.0 || bottom - top < 1.0;
        let edge = if is_line { &[around[0], around[2]][..] } else { &around[..] };
        let segments = dashed(edge, &[5.0, 3.0]);
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
        frame.over(at, &range.name, NUMBERS, Anchor::Start);
    }
    names
}

/// The level axis with its grid. How much its labels take below.
fn level_axis(frame: &mut Frame, level: &Scale, percent: bool, x: &impl Fn(f64) -> f64) -> f64 {
    let (top, bottom) = (frame.top, frame.bottom());
    let ticks = level.ticks();
    for tick in &ticks {
        frame.line(vec![(x(*tick), top), (x(*tick), bottom)], 0.8);
    }
    frame.axis(vec![(frame.left, bottom), (frame.right(), bottom)]);
    let labels: Vec<(f64, String)> =
        ticks.iter().map(|tick| (x(*tick), level.mark(*tick, percent))).collect();
    let nearest = labels.windows(2).map(|two| two[1].0 - two[0].0).fold(frame.width(), f64::min);
    frame.labels(&labels, nearest)
}

/// Writes labels where there is room, with a line to those that are away. How many faults there are
/// in that.
fn write(frame: &mut Frame, places: &[Point], labels: &[&str], taken: &Taken) -> usize {
    let broken: Vec<Vec<String>> = labels.iter().map(|label| listed(label)).collect();
    let size = |lines: &Vec<String>| {
        let widest = lines.iter().map(|text| points_wide(text, NUMBERS)).fold(0.0, f64::max);
        (widest + 3.0, NAME_LINE * lines.len() as f64)
    };
    let sizes: Vec<(f64, f64)> = broken.iter().map(size).collect();
    let all =
        Area { from: (frame.left + 2.0, frame.top), to: (frame.right(), frame.bottom() - 2.0) };
    let areas = find(places, &sizes, taken, &all);
    let lines = places.iter().zip(&areas).filter_map(|(at, area)| line(*at, area));
    let segments: Vec<(Point, Point)> = lines.collect();
    if !segments.is_empty() {
        frame.primitives.push(Primitive::Strokes { segments, width: 0.9, colour: EDGE });
    }
    for ((at, lines), area) in places.iter().zip(&broken).zip(&areas) {
        // Towards the dot, so that it is clear whose name it is.
        let (x, anchor) = if area.from.0 > at.0 {
            (area.from.0, Anchor::Start)
        } else if area.to.0 < at.0 {
            (area.to.0, Anchor::End)
        } else {
            (f64::midpoint(area.from.0, area.to.0), Anchor::Middle)
        };
        for (i, text) in lines.iter().enumerate() {
            let y = area.from.1 + NAME_LINE * (i as f64 + 1.0) - 3.5;
            frame.over((x, y), text, NUMBERS, anchor);
        }
    }
    faults(places, &areas, taken)
}

/// A list of names in lines, each name in one.
fn listed(names: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names.split(", ") {
        if let Some(last) = lines.last_mut() {
            last.push(',');
            let longer = format!("{last} {name}");
            if points_wide(&longer, NUMBERS) <= NAME_WIDTH {
                *last = longer;
                continue;
            }
        }
        lines.push(name.to_owned());
    }
    lines
}
