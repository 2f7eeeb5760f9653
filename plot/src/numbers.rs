//! Numbers in a plot of bars: above them, above those that are broken, and where there is nothing.

use super::bars::Rows;
use super::font::points_wide;
use super::frame::{Frame, NUMBERS, WIDTH};
use super::reading::{per_cent, reading};
use super::scene::{Anchor, BLACK};
use super::style::paper_mark;

/// Up to so many bars have their number above them.
pub const NUMBERED: usize = 12;
/// Between two turned numbers.
const TURNED_STEP: f64 = 17.0;
/// A bar that is lower, in points, cannot be seen.
const UNSEEN: f64 = 1.0;
/// What a number below a bar takes of the axis.
pub const BELOW: f64 = NUMBERS + 7.0;
/// Numbers are not smaller than this part of their usual size.
const SMALLEST: f64 = 0.75;

/// A number above a bar that is broken.
struct Number {
    bar: f64,
    paper: bool,
    text: String,
}

/// A value as text, with half of its interval if that is known.
fn number(value: f64, half_width: Option<f64>, percent: bool) -> String {
    let in_thousands = value.abs() >= 1e5 && !percent;
    let text = |number: f64| match (percent, in_thousands) {
        (true, _) => per_cent(number),
        (false, true) => format!("{:.0}k", number / 1e3),
        (false, false) => reading(number),
    };
    match half_width.filter(|half| half.is_finite() && *half > 0.0) {
        Some(half) => format!("{}±{}", text(value).trim_end_matches(" %"), text(half)),
        None => text(value),
    }
}

/// The numbers of the bars of a place that are broken, and of the paper's values there.
fn broken_numbers(rows: &Rows, place: &str, percent: bool) -> Vec<Number> {
    let mut numbers = Vec::new();
    for (i, series) in rows.series.iter().enumerate() {
        for (paper, points) in [(false, &series.points), (true, &series.paper)] {
            let far = |(at, value): &&(String, f64)| at == place && rows.is_broken(*value);
            let Some((_, value)) = points.iter().find(far) else { continue };
            let half = series.interval(place).filter(|_| !paper).map(|ends| ends.1 - value);
            let (bar, text) = (rows.middle(i, place), number(*value, half, percent));
            numbers.push(Number { bar, paper, text });
        }
    }
    numbers
}

/// Whether it stands upright: it is the only one of its place.
fn is_upright(numbers: &[Number]) -> bool {
    matches!(numbers, [Number { paper: false, .. }])
}

/// How high the numbers above broken bars are, in points; 0 if none is.
pub fn broken_height(rows: &Rows, percent: bool) -> f64 {
    let height = |place: &String| {
        let numbers = broken_numbers(rows, place, percent);
        if is_upright(&numbers) {
            return NUMBERS;
        }
        let wide = |n: &Number| points_wide(&n.text, NUMBERS) + if n.paper { 14.0 } else { 0.0 };
        numbers.iter().map(wide).fold(0.0, f64::max)
    };
    rows.places.iter().map(height).fold(0.0, f64::max)
}

/// The numbers of the bars of a place that are broken: one stands upright, several lie.
pub fn broken(frame: &mut Frame, rows: &Rows, place: &str) {
    let numbers = broken_numbers(rows, place, frame.percent);
    let base = frame.top - rows.broken_room() - 5.0;
    if is_upright(&numbers) {
        let Number { bar, text, .. } = &numbers[0];
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

/// The number above each bar that is whole, or below one that hangs. Whether there was room.
pub fn above(frame: &mut Frame, rows: &Rows) -> bool {
    let text = |value: f64| number(value, None, frame.percent).trim_end_matches(" %").to_owned();
    let all = rows.series.iter().flat_map(|series| &series.points);
    let widest = all.map(|(_, v)| points_wide(&text(*v), NUMBERS)).fold(0.0, f64::max);
    // Letters that touch cannot be read.
    let size = NUMBERS * (rows.pitch() / (widest + 4.0)).min(1.0);
    if size < NUMBERS * SMALLEST {
        return false;
    }
    let mut texts = Vec::new();
    for (i, series) in rows.series.iter().enumerate() {
        let whole = series.points.iter().filter(|(_, value)| rows.is_whole(*value));
        // Nothing is said of what has its zero already.
        for (place, value) in whole.filter(|(_, value)| *value != rows.base) {
            let (least, most) = series.interval(place).unwrap_or((*value, *value));
            let paper =
                series.paper.iter().find(|(at, value)| at == place && rows.is_whole(*value));
            let mark = paper.map(|(_, paper)| frame.y(*paper));
            let mut y = if *value < rows.base {
                frame.y(least.min(rows.base)) + size + 2.0
            } else {
                frame.y(most.max(rows.base)).max(frame.top) - 5.0
            };
            // Not over the diamond, if that is near.
            if let Some(mark) = mark.filter(|mark| (y - size - 9.0..y + 10.0).contains(mark)) {
                y = if *value < rows.base { y.max(mark + size + 9.0) } else { y.min(mark - 9.0) };
            }
            texts.push(((rows.middle(i, place), y), text(*value)));
        }
    }
    for (at, text) in texts {
        frame.over(at, &text, size, Anchor::Middle);
    }
    true
}

/// A zero where a bar has no height, so that nothing looks forgotten: one for a group that has none
/// at all. Bars that are only low have theirs already if they are `numbered`.
pub fn zeros(frame: &mut Frame, rows: &Rows, numbered: bool) {
    if rows.base != 0.0 {
        return all_hidden(frame, rows);
    }
    let floor = frame.y(0.0);
    for (at, place) in rows.places.iter().enumerate() {
        let mut unseen = Vec::new();
        let mut seen = 0;
        for (i, series) in rows.series.iter().enumerate() {
            let value = series.points.iter().find(|(known, v)| known == place && v.is_finite());
            let Some((_, value)) = value else { continue };
            let is_low = rows.is_whole(*value)
                && (frame.y(*value) - floor).abs() < UNSEEN
                && (*value == 0.0 || !numbered);
            let mark = if *value == 0.0 { "0" } else { "≈0" };
            if !is_low {
                seen += 1;
                continue;
            }
            let most = series.interval(place).map_or(0.0, |(_, most)| most.max(0.0));
            let paper = series.paper.iter().find(|(known, v)| known == place && rows.is_whole(*v));
            let paper = paper.map_or(floor, |(_, paper)| frame.y(*paper));
            let near = (floor - 22.0..floor + 8.0).contains(&paper) && paper < floor;
            let lift = if near { floor - paper + 6.0 } else { 0.0 };
            unseen.push((rows.middle(i, place), frame.y(most).min(floor - lift) - 3.0, mark));
        }
        let high = unseen.iter().map(|(_, y, _)| *y).fold(floor, f64::min);
        let one = seen == 0 && rows.series.len() > 1;
        if one && let Some((.., mark)) = unseen.iter().max_by_key(|(.., mark)| mark.len()) {
            frame.over((rows.group_middle(at), high), mark, NUMBERS, Anchor::Middle);
            continue;
        }
        for (x, y, mark) in unseen {
            let size = NUMBERS * (rows.pitch() / (points_wide(mark, NUMBERS) + 1.0)).min(1.0);
            // Where there is no room for more, it is zero as far as can be seen.
            let (mark, size) =
                if size < NUMBERS * SMALLEST { ("0", NUMBERS) } else { (mark, size) };
            if points_wide("0", NUMBERS) < rows.pitch() + 2.0 {
                frame.over((x, y), mark, size, Anchor::Middle);
            }
        }
    }
}

/// What bars hang from, below a group in which none can be seen: nothing looks forgotten then.
fn all_hidden(frame: &mut Frame, rows: &Rows) {
    let ceiling = frame.y(rows.base);
    let mut marks = Vec::new();
    for (at, place) in rows.places.iter().enumerate() {
        let points = rows.series.iter().flat_map(|series| &series.points);
        let here = points.filter(|(known, value)| known == place && value.is_finite());
        let values: Vec<f64> = here.map(|(_, value)| *value).collect();
        let is_hidden = |value: &f64| (frame.y(*value) - ceiling).abs() < UNSEEN;
        if values.is_empty() || !values.iter().all(is_hidden) {
            continue;
        }
        let about = if values.iter().all(|value| *value == rows.base) { "" } else { "≈" };
        let base = number(rows.base, None, frame.percent);
        marks.push((rows.group_middle(at), format!("{about}{}", base.trim_end_matches(" %"))));
    }
    let widest = marks.iter().map(|(_, mark)| points_wide(mark, NUMBERS)).fold(0.0, f64::max);
    let size = NUMBERS * (rows.group() / (widest + 4.0)).min(1.0);
    if size < NUMBERS * SMALLEST {
        return;
    }
    for (x, mark) in marks {
        frame.over((x, ceiling + size + 2.0), &mark, size, Anchor::Middle);
    }
}
