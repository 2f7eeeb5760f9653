//! Figures as drawings.

use casemate_plot::chart::{self, Form, Words};
use casemate_plot::scatter::{self, Dot, Dots};
use casemate_plot::scene::Scene;
use casemate_plot::{Series, scatter::Range};

use crate::data::{self, Chart, Figure};
use crate::spec::MEAN;
use crate::words::scheme;

/// The drawing of a figure; a table has none.
#[must_use]
pub fn scene(figure: &Figure) -> Option<Scene> {
    titled(figure, heading(figure))
}

/// The same for where its title stands beside it.
#[must_use]
pub fn scene_without_title(figure: &Figure) -> Option<Scene> {
    titled(figure, String::new())
}

fn titled(figure: &Figure, title: String) -> Option<Scene> {
    let words = words(figure, title);
    match figure.chart {
        Chart::Bars => Some(chart::draw(&series(figure), Form::Bars, &words)),
        Chart::Lines => Some(chart::draw(&series(figure), Form::Lines, &words)),
        Chart::Scatter => {
            let dots: Vec<Dots> = figure.series.iter().map(dots).collect();
            Some(scatter::draw(&dots, &ranges(figure), &words))
        }
        Chart::Table => None,
    }
}

fn words(figure: &Figure, title: String) -> Words {
    Words {
        title,
        upright: figure.upright.clone(),
        level: figure.level.clone(),
        percent: figure.percent,
        level_percent: figure.level_percent,
        base: figure.base,
        apart: Some(MEAN.to_owned()),
    }
}

/// Where the paper has a figure, and what it shows.
#[must_use]
pub fn heading(figure: &Figure) -> String {
    let Some(first) = figure.source.chars().next() else {
        return figure.title.clone();
    };
    // In sentences a source may be a "section"; here it begins one.
    let rest = &figure.source[first.len_utf8()..];
    format!("{}{rest}: {}", first.to_uppercase(), figure.title)
}

fn series(figure: &Figure) -> Vec<Series> {
    let one = |series: &data::Series| {
        let all = series.points.iter();
        // A place without a value keeps its room.
        let value = |point: &data::Point| (point.place.clone(), point.value.unwrap_or(f64::NAN));
        let half_width = |point: &data::Point| Some((point.place.clone(), point.half_width?));
        let range = |point: &data::Point| {
            point.rounds.as_ref()?;
            Some((point.place.clone(), point.estimate()?.interval()?))
        };
        let paper = |point: &data::Point| Some((point.place.clone(), point.paper?));
        Series {
            name: scheme(&series.name),
            points: all.clone().map(value).collect(),
            half_widths: all.clone().filter_map(half_width).collect(),
            ranges: all.clone().filter_map(range).collect(),
            paper: all.filter_map(paper).collect(),
        }
    };
    figure.series.iter().map(one).collect()
}

/// Dots that have both places.
fn dots(series: &data::Series) -> Dots {
    let dot = |point: &data::Point| {
        let (label, half_width) = (schemes(&point.place), point.half_width);
        Some(Dot { label, x: point.x?, y: point.value?, half_width, paper: point.paper })
    };
    Dots { name: series.name.clone(), dots: series.points.iter().filter_map(dot).collect() }
}

/// Names of schemes that share a dot, and other names as they are.
fn schemes(names: &str) -> String {
    names.split(", ").map(scheme).collect::<Vec<String>>().join(", ")
}

fn ranges(figure: &Figure) -> Vec<Range> {
    let range = |range: &data::Range| Range { name: range.name.clone(), x: range.x, y: range.y };
    figure.ranges.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{figure, point};
    use casemate_plot::scene::Primitive;

    fn texts(scene: &Scene) -> Vec<String> {
        let text = |primitive: &Primitive| match primitive {
            Primitive::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        scene.primitives.iter().filter_map(text).collect()
    }

    #[test]
    fn every_chart_says_what_its_figure_says_and_a_table_is_not_drawn() {
        for chart in [Chart::Bars, Chart::Lines, Chart::Scatter] {
            let figure = Figure { chart, ..figure() };
            let texts = texts(&scene(&figure).expect("it is drawn"));
            for wanted in ["Figure 6: slow <& slower>", "overhead", "workload", "paper"] {
                assert!(texts.iter().any(|text| text == wanted), "{chart:?} {wanted} {texts:?}");
            }
            assert!(texts.iter().any(|text| text == "gcc"), "{chart:?} {texts:?}");
        }
        assert!(scene(&Figure { chart: Chart::Table, ..figure() }).is_none());
    }

    #[test]
    fn a_heading_begins_with_a_capital() {
        let of = |source: &str| heading(&Figure { source: source.to_owned(), ..figure() });
        let title = figure().title;
        assert_eq!(of("section 3.1"), format!("Section 3.1: {title}"));
        assert_eq!(of(""), title);
    }

    #[test]
    fn without_a_paper_nothing_is_said_of_it() {
        let mut figure = figure();
        for point in figure.series.iter_mut().flat_map(|series| &mut series.points) {
            point.paper = None;
        }
        figure.series[0].points.push(point("empty", None, None));
        let texts = texts(&scene(&figure).expect("it is drawn"));
        assert!(!texts.iter().any(|text| text == "paper"));
        // A place without any value is named all the same.
        assert!(texts.iter().any(|text| text == "empty"));
    }
}
