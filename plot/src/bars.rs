//! Bars in groups.

use super::chart::Words;
use super::font::points_wide;
use super::frame::{Frame, Key, NUMBERS, PLOT_HEIGHT, WIDTH};
use super::scale::{Scale, per_cent, reading};
use super::scene::{Anchor, BLACK, Point, Primitive, Scene, WHITE};
use super::style::{Style, paper_mark};
use super::{Series, whisker};

/// Places that are this many times as high as the next are cut.
const FAR: f64 = 4.0;
/// Up to so many bars have their number above them.
const NUMBERED: usize = 12;
/// Of a group, what its bars take.
const GROUP: f64 = 0.84;
/// Between two turned numbers.
const TURNED_STEP: f64 = 15.0;

/// A number above a bar.
struct Number {
    bar: f64,
    paper: bool,
    text: String,
}

/// Where bars stand.
struct Rows<'a> {
    series: &'a [Series],
    places: &'a [String],
    left: f64,
    group: f64,
}

impl Rows<'_> {
    /// How far from a bar to the next.
    fn pitch(&self) -> f64 {
        self.group * GROUP / self.series.len().max(1) as f64
    }

    fn place(&self, place: &str) -> usize {
        self.places.iter().position(|known| known == place).unwrap_or(0)
    }

    /// The left side of a bar.
    fn x(&self, series: usize, place: &str) -> f64 {
        let groups = self.place(place) as f64 + (1.0 - GROUP) / 2.0;
        self.left + self.group * groups + self.pitch() * (series as f64 + 0.04)
    }

    fn width(&self) -> f64 {
        self.pitch() * 0.92
    }
}

/// A group of bars for each place.
pub fn draw(series: &[Series], places: &[String], keys: &[Key], words: &Words) -> Scene {
    let cut = cut(series, places);
    let whole = |value: f64| value.is_finite() && cut.is_none_or(|cut| value <= cut);
    let all = series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
    let ends = series.iter().flat_map(Series::intervals).filter(|(_, ends)| whole(ends.1));
    let ends = ends.flat_map(|(_, (least, most))| [least, most]);
    let values = all.map(|(_, value)| *value).filter(|value| whole(*value));
    let values: Vec<f64> = values.chain(ends).collect();
    let bars = series.iter().flat_map(|s| &s.points).filter(|(_, v)| v.is_finite()).count();
    let numbers = bars <= NUMBERED;
    let longest = all_numbers(series, words.percent, |value| cut.is_some() && !whole(value));
    let headroom = if cut.is_some() {
        longest + 24.0
    } else if numbers {
        NUMBERS + 2.0
    } else {
        0.0
    };
    let mut frame = Frame::new(words, keys, Scale::from_zero(&values), headroom, PLOT_HEIGHT);
    let group = frame.width() / places.len().max(1) as f64;
    let rows = Rows { series, places, left: frame.left, group };
    let zero = frame.y(0.0);
    for (i, series) in series.iter().enumerate() {
        for (place, value) in series.points.iter().filter(|(_, value)| value.is_finite()) {
            let x = rows.x(i, place);
            let y = if whole(*value) { frame.y(*value) } else { frame.top - 6.0 };
            let (top, height) = (y.min(zero), (y - zero).abs());
            Style::of(i).bar((x, top), rows.width(), height, &mut frame.primitives);
            if !whole(*value) {
                broken((x, frame.top + 12.0), rows.width(), &mut frame.primitives);
            }
        }
    }
    frame.zero();
    whiskers(&mut frame, &rows, &whole);
    marks(&mut frame, &rows, &whole);
    if numbers {
        numbered(&mut frame, &rows, &whole);
    }
    for place in places {
        far_numbers(&mut frame, &rows, place, &whole);
    }
    let middle =
        |(i, place): (usize, &String)| (rows.left + group * (i as f64 + 0.5), place.clone());
    let labels: Vec<(f64, String)> = places.iter().enumerate().map(middle).collect();
    let below = frame.labels(&labels, group);
    frame.finish(below, &words.level)
}

/// Above which value bars are cut, so that few high ones do not hide all others.
fn cut(series: &[Series], places: &[String]) -> Option<f64> {
    let highest = |place: &String| {
        let all = series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
        all.filter(|(at, value)| at == place && value.is_finite())
            .map(|(_, v)| *v)
            .fold(0.0, f64::max)
    };
    let mut heights: Vec<f64> = places.iter().map(highest).collect();
    heights.sort_by(|a, b| b.total_cmp(a));
    // More than one may be far away, but not many.
    let most = (places.len() / 5).max(1);
    let found = heights.windows(2).take(most).position(|two| two[1] > 0.0 && two[0] > FAR * two[1]);
    found.map(|at| heights[at + 1])
}

/// How wide the widest number is among those that are wanted.
fn all_numbers(series: &[Series], percent: bool, wanted: impl Fn(f64) -> bool) -> f64 {
    let all = series.iter().flat_map(|series| series.points.iter().chain(&series.paper));
    let numbers = all.filter(|(_, value)| value.is_finite() && wanted(*value));
    numbers.map(|(_, value)| points_wide(&number(*value, percent), NUMBERS)).fold(0.0, f64::max)
}

fn number(value: f64, percent: bool) -> String {
    if percent { per_cent(value) } else { reading(value) }
}

/// The sign that a bar is longer than drawn.
fn broken((x, y): Point, width: f64, primitives: &mut Vec<Primitive>) {
    let (left, right) = (x - 3.0, x + width + 3.0);
    let points = vec![(left, y + 3.0), (right, y - 3.0), (right, y + 3.0), (left, y + 9.0)];
    primitives.push(Primitive::Polygon { points, colour: WHITE });
    let segments = vec![((left, y + 3.0), (right, y - 3.0)), ((left, y + 9.0), (right, y + 3.0))];
    primitives.push(Primitive::Strokes { segments, width: 1.4, colour: BLACK });
}

/// How far the interval of each bar that is not cut reaches.
fn whiskers(frame: &mut Frame, rows: &Rows, whole: &impl Fn(f64) -> bool) {
    for (i, series) in rows.series.iter().enumerate() {
        for (place, ends) in series.intervals().filter(|(_, ends)| whole(ends.0)) {
            let x = rows.x(i, place) + rows.width() / 2.0;
            whisker::draw(frame, x, ends, rows.width(), BLACK);
        }
    }
}

/// What the paper says, across each bar.
fn marks(frame: &mut Frame, rows: &Rows, whole: &impl Fn(f64) -> bool) {
    let radius = (rows.width() * 0.6).clamp(4.0, 6.5);
    for (i, series) in rows.series.iter().enumerate() {
        for (place, value) in series.paper.iter().filter(|(_, value)| whole(*value)) {
            let at = (rows.x(i, place) + rows.width() / 2.0, frame.y(*value));
            paper_mark(at, radius, BLACK, &mut frame.primitives);
        }
    }
}

/// The number above each bar that is not cut.
fn numbered(frame: &mut Frame, rows: &Rows, whole: &impl Fn(f64) -> bool) {
    let text = |value: f64| number(value, frame.percent).trim_end_matches(" %").to_owned();
    let all = rows.series.iter().flat_map(|series| &series.points);
    let widest = all.map(|(_, v)| points_wide(&text(*v), NUMBERS)).fold(0.0, f64::max);
    // Letters that touch cannot be read.
    let size = NUMBERS * (rows.pitch() / (widest + 4.0)).min(1.0);
    if size < NUMBERS * 0.75 {
        return;
    }
    let mut texts = Vec::new();
    for (i, series) in rows.series.iter().enumerate() {
        for (place, value) in series.points.iter().filter(|(_, value)| whole(*value)) {
            let paper = series.paper.iter().find(|(at, value)| at == place && whole(*value));
            let most = series.interval(place).map_or(*value, |(_, most)| most);
            let mut y = frame.y(most.max(0.0)).max(frame.top) - 4.0;
            // Not over the diamond, if that is near.
            let mark = paper.map(|(_, paper)| frame.y(*paper));
            if let Some(mark) = mark.filter(|mark| (y - 22.0..y + 10.0).contains(mark)) {
                y = y.min(mark - 8.0);
            }
            texts.push(((rows.x(i, place) + rows.width() / 2.0, y), text(*value)));
        }
    }
    for (at, text) in texts {
        frame.sized(at, &text, size, Anchor::Middle, 0.0);
    }
}

/// The numbers of the bars of a place that are cut: one stands upright, several lie.
fn far_numbers(frame: &mut Frame, rows: &Rows, place: &str, whole: &impl Fn(f64) -> bool) {
    let mut numbers = Vec::new();
    for (i, series) in rows.series.iter().enumerate() {
        for (paper, points) in [(false, &series.points), (true, &series.paper)] {
            let far =
                |(at, value): &&(String, f64)| at == place && value.is_finite() && !whole(*value);
            numbers.extend(points.iter().find(far).map(|(_, value)| Number {
                bar: rows.x(i, place) + rows.width() / 2.0,
                paper,
                text: number(*value, frame.percent),
            }));
        }
    }
    let base = frame.top - 11.0;
    if let [Number { bar, paper: false, text }] = &numbers[..] {
        let half = points_wide(text, NUMBERS) / 2.0;
        let x = bar.clamp(frame.left + half + 3.0, WIDTH - half - 3.0);
        return frame.sized((x, base), text, NUMBERS, Anchor::Middle, 0.0);
    }
    let mixed = numbers.iter().any(|number| number.paper);
    let step = if mixed { TURNED_STEP } else { rows.pitch().max(TURNED_STEP) };
    let middle = numbers.iter().map(|n| n.bar).sum::<f64>() / numbers.len().max(1) as f64;
    let half = step * (numbers.len() as f64 - 1.0) / 2.0;
    let from = (middle - half).max(frame.left + 8.0).min(WIDTH - 10.0 - 2.0 * half);
    for (i, number) in numbers.iter().enumerate() {
        let x = from + step * i as f64;
        let mut y = base;
        if number.paper {
            paper_mark((x, base - 3.0), 5.0, BLACK, &mut frame.primitives);
            y -= 12.0;
        }
        frame.sized((x + 5.0, y), &number.text, NUMBERS, Anchor::Start, 90.0);
    }
}
