//! Series as a drawing: bars in groups, or lines.

use super::Series;
use super::font;
use super::scale::{Scale, short, whole};
use super::scene::{Anchor, BLACK, GREY, Point, SERIES, Scene, Shape};

/// Points.
const WIDTH: f64 = 860.0;
const PLOT_HEIGHT: f64 = 320.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 24.0;
const TITLE: f64 = 17.0;
const LETTERS: f64 = 13.0;
const LEGEND_LINE: f64 = 21.0;

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Bars,
    Lines,
}

/// What the drawing says.
#[derive(Clone, Debug)]
pub struct Words {
    pub title: String,
    pub upright: String,
    pub level: String,
    /// Whether values are shares of one.
    pub percent: bool,
}

/// Where the plot's frame is.
struct Frame {
    top: f64,
    places: Vec<String>,
    heights: Scale,
    percent: bool,
    shapes: Vec<Shape>,
}

/// Draws series.
pub fn draw(series: &[Series], form: Form, words: &Words) -> Scene {
    let values: Vec<f64> = series.iter().flat_map(|s| s.points.iter().map(|(_, v)| *v)).collect();
    let mut places: Vec<String> = Vec::new();
    for (place, _) in series.iter().flat_map(|series| &series.points) {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    let mut shapes = Vec::new();
    let title = Shape::Text {
        at: (WIDTH / 2.0, 28.0),
        text: words.title.clone(),
        size: TITLE,
        anchor: Anchor::Middle,
        degrees: 0.0,
    };
    shapes.push(title);
    let top = legend(series, form, 44.0, &mut shapes) + 14.0;
    let heights = Scale::from_zero(&values);
    let mut frame = Frame { top, places, heights, percent: words.percent, shapes };
    frame.axis(&words.upright);
    let below = match form {
        Form::Bars => frame.bars(series),
        Form::Lines => frame.lines(series),
    };
    let bottom = frame.bottom() + below + 26.0;
    frame.text((LEFT + frame.width() / 2.0, bottom), &words.level, Anchor::Middle, 0.0);
    Scene { width: WIDTH, height: bottom + 16.0, shapes: frame.shapes }
}

/// Names with their colours, in as many lines as they need. Where it ends.
fn legend(series: &[Series], form: Form, top: f64, shapes: &mut Vec<Shape>) -> f64 {
    let (mut x, mut y) = (LEFT, top);
    for (i, series) in series.iter().enumerate() {
        let width = 40.0 + text_width(&series.name);
        if x + width > WIDTH - RIGHT && x > LEFT {
            (x, y) = (LEFT, y + LEGEND_LINE);
        }
        let colour = SERIES[i % SERIES.len()];
        shapes.push(match form {
            Form::Bars => Shape::Rectangle { x, y: y + 1.0, width: 14.0, height: 12.0, colour },
            Form::Lines => {
                Shape::Line { points: vec![(x, y + 7.0), (x + 16.0, y + 7.0)], width: 2.5, colour }
            }
        });
        shapes.push(Shape::Text {
            at: (x + 21.0, y + 12.0),
            text: series.name.clone(),
            size: LETTERS,
            anchor: Anchor::Start,
            degrees: 0.0,
        });
        x += width;
    }
    y + LEGEND_LINE
}

/// How wide a text is, in points: as the picture's letters are; those of browsers are no wider.
fn text_width(text: &str) -> f64 {
    font::width(text) * LETTERS * 0.7 / font::CAPITAL_HEIGHT
}

impl Frame {
    fn bottom(&self) -> f64 {
        self.top + PLOT_HEIGHT
    }

    fn width(&self) -> f64 {
        WIDTH - LEFT - RIGHT
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - self.heights.place(value) * PLOT_HEIGHT
    }

    fn text(&mut self, at: Point, text: &str, anchor: Anchor, degrees: f64) {
        self.shapes.push(Shape::Text { at, text: text.to_owned(), size: LETTERS, anchor, degrees });
    }

    fn line(&mut self, points: Vec<Point>, width: f64, colour: [u8; 3]) {
        self.shapes.push(Shape::Line { points, width, colour });
    }

    /// The upright axis with its grid.
    fn axis(&mut self, name: &str) {
        let decimals = self.heights.decimals();
        for tick in self.heights.ticks() {
            let y = self.y(tick);
            self.line(vec![(LEFT, y), (WIDTH - RIGHT, y)], 0.8, GREY);
            let text = if self.percent {
                format!("{:.*} %", decimals.saturating_sub(2), tick * 100.0)
            } else {
                short(tick, decimals)
            };
            self.text((LEFT - 8.0, y + 4.5), &text, Anchor::End, 0.0);
        }
        self.text((22.0, self.top + PLOT_HEIGHT / 2.0), name, Anchor::Middle, 90.0);
        self.line(vec![(LEFT, self.top), (LEFT, self.bottom())], 1.2, BLACK);
    }

    /// A group of bars for each place. How much room its labels take.
    fn bars(&mut self, series: &[Series]) -> f64 {
        let group = self.width() / self.places.len().max(1) as f64;
        let bar = group * 0.8 / series.len().max(1) as f64;
        let zero = self.y(0.0);
        for (i, series) in series.iter().enumerate() {
            for (place, value) in series.points.iter().filter(|(_, value)| value.is_finite()) {
                let at = self.places.iter().position(|known| known == place).unwrap_or(0);
                let x = LEFT + group * (at as f64 + 0.1) + bar * i as f64;
                let (top, bottom) = (self.y(*value).min(zero), self.y(*value).max(zero));
                let colour = SERIES[i % SERIES.len()];
                self.shapes.push(Shape::Rectangle {
                    x,
                    y: top,
                    width: bar * 0.92,
                    height: bottom - top,
                    colour,
                });
            }
        }
        self.line(vec![(LEFT, zero), (WIDTH - RIGHT, zero)], 1.2, BLACK);
        let at = |i: usize| LEFT + group * (i as f64 + 0.5);
        let labels =
            self.places.iter().enumerate().map(|(i, place)| (at(i), place.clone())).collect();
        self.labels(labels, group)
    }

    /// A line for each series. How much room the labels take.
    fn lines(&mut self, series: &[Series]) -> f64 {
        let numbers: Option<Vec<f64>> = self.places.iter().map(|p| p.parse().ok()).collect();
        let count = self.places.len();
        // Places that are no numbers are equally far from each other, in their order.
        let scale = numbers.as_deref().map(Scale::across);
        let (left, width) = (LEFT + 12.0, self.width() - 24.0);
        let x = |place: &str, places: &[String]| match (&scale, place.parse()) {
            (Some(scale), Ok(number)) => left + scale.place(number) * width,
            _ => {
                let at = places.iter().position(|known| known == place).unwrap_or(0);
                left + width * (at as f64 + 0.5) / count.max(1) as f64
            }
        };
        for (i, series) in series.iter().enumerate() {
            let finite = series.points.iter().filter(|(_, value)| value.is_finite());
            let mut points: Vec<Point> =
                finite.map(|(place, value)| (x(place, &self.places), self.y(*value))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let colour = SERIES[i % SERIES.len()];
            if points.len() <= 40 {
                let dot = |at: &Point| Shape::Dot { at: *at, radius: 3.5, colour };
                self.shapes.extend(points.iter().map(dot));
            }
            self.line(points, 2.0, colour);
        }
        let zero = self.y(0.0);
        self.line(vec![(LEFT, zero), (WIDTH - RIGHT, zero)], 1.2, BLACK);
        let labels: Vec<(f64, String)> = match &scale {
            Some(scale) if count > 12 => {
                let decimals = scale.decimals();
                let label = |tick: f64| (left + scale.place(tick) * width, short(tick, decimals));
                scale.ticks().into_iter().map(label).collect()
            }
            Some(_) => {
                let label = |p: &String| (x(p, &self.places), p.parse().map_or(p.clone(), whole));
                self.places.iter().map(label).collect()
            }
            None => self.places.iter().map(|p| (x(p, &self.places), p.clone())).collect(),
        };
        let room = width / labels_most(&labels);
        self.labels(labels, room)
    }

    /// Labels below the frame, turned if they are wider than their room. How much room they take below.
    fn labels(&mut self, labels: Vec<(f64, String)>, room: f64) -> f64 {
        let widest = labels.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max);
        let turned = widest > room - 6.0;
        let bottom = self.bottom();
        for (x, text) in &labels {
            if turned {
                self.text((x + 4.0, bottom + 16.0), text, Anchor::End, 35.0);
            } else {
                self.text((*x, bottom + 18.0), text, Anchor::Middle, 0.0);
            }
        }
        if turned { 20.0 + widest * 35_f64.to_radians().sin() } else { 20.0 }
    }
}

fn labels_most(labels: &[(f64, String)]) -> f64 {
    labels.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars_of(scene: &Scene) -> Vec<(f64, f64, f64)> {
        let bar = |shape: &Shape| match shape {
            // Those of the legend have a height of their own.
            Shape::Rectangle { x, y, height, .. } if *height != 12.0 => Some((*x, *y, *height)),
            _ => None,
        };
        scene.shapes.iter().filter_map(bar).collect()
    }

    fn words() -> Words {
        Words { title: "t".into(), upright: "u".into(), level: "l".into(), percent: true }
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let points =
            |values: [f64; 2]| vec![("x".to_owned(), values[0]), ("y".to_owned(), values[1])];
        let series = [
            Series { name: "one".into(), points: points([0.1, 0.2]) },
            Series { name: "two".into(), points: points([0.4, f64::NAN]) },
        ];
        let bars = bars_of(&draw(&series, Form::Bars, &words()));
        // The axis ends at 0.4, so 0.4 is the whole height; a value that is no number has no bar.
        let heights: Vec<f64> =
            bars.iter().map(|(.., height)| (height * 100.0).round() / 100.0).collect();
        assert_eq!(heights, [PLOT_HEIGHT / 4.0, PLOT_HEIGHT / 2.0, PLOT_HEIGHT]);
        // All stand on one line.
        assert!(
            bars.windows(2).all(|two| (two[0].1 + two[0].2 - two[1].1 - two[1].2).abs() < 1e-9)
        );
    }

    #[test]
    fn nothing_is_drawn_off_the_drawing() {
        let many: Vec<Series> = (0..30)
            .map(|i| Series {
                name: format!("a scheme with a long name {i}"),
                points: (0..40).map(|j| (format!("trace number {j}"), f64::from(i * j))).collect(),
            })
            .collect();
        let none: [Series; 0] = [];
        for series in [&many[..], &none] {
            for form in [Form::Bars, Form::Lines] {
                let scene = draw(series, form, &words());
                for shape in &scene.shapes {
                    let points = match shape {
                        Shape::Rectangle { x, y, width, height, .. } => {
                            vec![(*x, *y), (x + width, y + height)]
                        }
                        Shape::Line { points, .. } => points.clone(),
                        Shape::Dot { at, .. } | Shape::Text { at, .. } => vec![*at],
                    };
                    let inside = |(x, y): &Point| {
                        (0.0..=scene.width).contains(x) && (0.0..=scene.height).contains(y)
                    };
                    assert!(points.iter().all(inside), "{shape:?}");
                }
            }
        }
    }
}
