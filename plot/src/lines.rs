//! Lines over a level axis of places.

use super::chart::Words;
use super::frame::{Frame, Key, PLOT_HEIGHT};
use super::reading::{size_of, whole};
use super::scale::Scale;
use super::scene::{BLACK, Point, Scene};
use super::style::{Style, paper_mark};
use super::{Series, whisker};

/// Lines with more points have no markers.
const MARKED: usize = 40;
/// Axes of numbers with more places are marked at round ones.
const LABELLED: usize = 12;
/// Between the frame and the first and last point.
const INSET: f64 = 12.0;

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

/// What is between the axes. How much room the labels take.
fn inside(frame: &mut Frame, series: &[Series], places: &[String]) -> f64 {
    let numbers: Option<Vec<f64>> = places.iter().map(|place| size_of(place)).collect();
    // Places that are no numbers are equally far from each other, in their order.
    let scale = numbers.as_deref().map(Scale::across);
    let (left, width) = (frame.left + INSET, frame.width() - 2.0 * INSET);
    let x = |place: &str| match (&scale, size_of(place)) {
        (Some(scale), Some(number)) => left + scale.place(number) * width,
        _ => {
            let at = places.iter().position(|known| known == place).unwrap_or(0);
            left + width * (at as f64 + 0.5) / places.len().max(1) as f64
        }
    };
    let at = |frame: &Frame, points: &[(String, f64)]| -> Vec<Point> {
        let finite = points.iter().filter(|(_, value)| value.is_finite());
        finite.map(|(place, value)| (x(place), frame.y(*value))).collect()
    };
    frame.floor(frame.heights.least.max(0.0));
    for (i, series) in series.iter().enumerate() {
        let mut points = at(frame, &series.points);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let style = Style::of(i);
        style.line(&points, &mut frame.primitives);
        for (place, ends) in series.intervals().filter(|_| points.len() <= MARKED) {
            whisker::draw(frame, x(place), ends, INSET, BLACK);
        }
        if points.len() <= MARKED {
            points.iter().for_each(|at| style.mark(*at, &mut frame.primitives));
        }
        for at in at(frame, &series.paper) {
            paper_mark(at, 6.5, style.pen(), &mut frame.primitives);
        }
    }
    let labels: Vec<(f64, String)> = match &scale {
        Some(scale) if places.len() > LABELLED => {
            let label = |tick: f64| (left + scale.place(tick) * width, scale.mark(tick, false));
            scale.ticks().into_iter().map(label).collect()
        }
        Some(_) => places.iter().map(|place| (x(place), number(place))).collect(),
        None => places.iter().map(|place| (x(place), place.clone())).collect(),
    };
    let nearest = labels.windows(2).map(|two| (two[1].0 - two[0].0).abs()).fold(width, f64::min);
    frame.labels(&labels, nearest)
}

/// A place that is a number, as people read it.
fn number(place: &str) -> String {
    let whole_number = place.parse().ok().filter(|number: &f64| number.fract() == 0.0);
    whole_number.map_or(place.to_owned(), whole)
}
