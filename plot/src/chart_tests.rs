use super::*;
use crate::font::points_wide;
use crate::frame::{LETTERS, PLOT_HEIGHT};
use crate::scatter::{self, Dot, Dots, Range};
use crate::scene::{Anchor, Colour, Primitive};

/// Corner, size and colour of bars, without those of the legend.
fn bars_of(scene: &Scene) -> Vec<(f64, f64, f64)> {
    let bar = |primitive: &Primitive| match primitive {
        Primitive::Rectangle { x, y, height, width, .. } if *width != 30.0 => {
            Some((*x, *y, *height))
        }
        _ => None,
    };
    scene.primitives.iter().filter_map(bar).collect()
}

fn texts_of(scene: &Scene) -> Vec<&str> {
    let mut texts = Vec::new();
    for primitive in &scene.primitives {
        if let Primitive::Text { text, .. } = primitive {
            texts.push(text.as_str());
        }
    }
    texts
}

fn words() -> Words {
    let (title, upright, level) = ("t".into(), "u".into(), "l".into());
    Words { title, upright, level, percent: true, ..Words::default() }
}

fn series(name: &str, values: &[f64]) -> Series {
    let points = values.iter().enumerate().map(|(i, value)| (format!("p{i}"), *value)).collect();
    Series { name: name.into(), points, ..Series::default() }
}

/// Diamonds: polygons of four corners, one of them straight above the middle.
fn diamonds(scene: &Scene) -> Vec<(f64, f64)> {
    let diamond = |primitive: &Primitive| match primitive {
        Primitive::Polygon { points, .. } if points.len() == 4 && points[0].0 == points[2].0 => {
            Some((points[0].0, points[1].1))
        }
        _ => None,
    };
    scene.primitives.iter().filter_map(diamond).collect()
}

#[test]
fn bars_are_as_high_as_their_values() {
    let all = [series("one", &[0.1, 0.2]), series("two", &[0.4, f64::NAN])];
    let bars = bars_of(&draw(&all, Form::Bars, &words()));
    // The axis ends at 0.4, so 0.4 is the whole height; a value that is no number has no bar.
    let heights: Vec<f64> =
        bars.iter().map(|(.., height)| (height * 100.0).round() / 100.0).collect();
    assert_eq!(heights, [PLOT_HEIGHT / 4.0, PLOT_HEIGHT / 2.0, PLOT_HEIGHT]);
    // All stand on one line.
    assert!(bars.windows(2).all(|two| (two[0].1 + two[0].2 - two[1].1 - two[1].2).abs() < 1e-9));
}

#[test]
fn a_bar_far_above_all_others_is_cut_and_says_its_number() {
    let values = [0.05, 0.03, 0.04, 3.12, 0.02, 0.05];
    let scene = draw(&[series("one", &values)], Form::Bars, &words());
    let bars = bars_of(&scene);
    // The others are as high as if it were not there.
    assert!((bars[0].2 - PLOT_HEIGHT).abs() < 1e-9, "{bars:?}");
    assert!((bars[1].2 - PLOT_HEIGHT * 0.6).abs() < 1e-9, "{bars:?}");
    assert!(bars[3].2 > PLOT_HEIGHT && bars[3].2 < PLOT_HEIGHT * 1.1, "{bars:?}");
    assert!(texts_of(&scene).contains(&"312 %"), "{:?}", texts_of(&scene));
    // Four times as high is not far.
    let scene = draw(&[series("one", &[0.05, 0.2, 0.05])], Form::Bars, &words());
    let bars = bars_of(&scene);
    assert!((bars[0].2 * 4.0 - bars[1].2).abs() < 1e-9, "{bars:?}");
}

#[test]
fn cut_bars_of_a_group_and_the_papers_value_all_say_their_numbers() {
    let one = series("one", &[0.05, 2.8, 0.03]);
    let paper = vec![("p1".to_owned(), 1.5), ("p2".to_owned(), 0.04)];
    let two = Series { paper, ..series("two", &[0.01, 3.1, 0.02]) };
    let scene = draw(&[one, two], Form::Bars, &words());
    for number in ["280 %", "310 %", "150 %", "paper"] {
        assert!(texts_of(&scene).contains(&number), "{number} {:?}", texts_of(&scene));
    }
    // Legend, beside its number, and on its bar.
    assert_eq!(diamonds(&scene).len(), 3);
}

#[test]
fn the_papers_value_is_marked_at_its_height() {
    let paper = vec![("p0".to_owned(), 0.1), ("p1".to_owned(), 0.4)];
    for form in [Form::Bars, Form::Lines] {
        let all = [Series { paper: paper.clone(), ..series("one", &[0.2, 0.3]) }];
        let marks = diamonds(&draw(&all, form, &words()));
        // The first is the legend's. 0.4 is the top of the axis, 0.1 a quarter of it.
        assert_eq!(marks.len(), 3, "{marks:?}");
        assert!((marks[1].1 - marks[2].1 - PLOT_HEIGHT * 0.75).abs() < 1e-9, "{marks:?}");
        let none = draw(&[series("one", &[0.2, 0.3])], form, &words());
        assert!(diamonds(&none).is_empty() && !texts_of(&none).contains(&"paper"));
    }
}

/// 0.2 ± 0.1 and 0.3 ± 0.1: the axis ends at 0.4, so both are half as high as the frame. The same
/// from 0.1 to 0.3 and from 0.2 to 0.4, about values that are not in the middle.
#[test]
fn intervals_are_as_high_as_they_are() {
    let half_widths = vec![("p0".to_owned(), 0.1), ("p1".to_owned(), 0.1)];
    let ranges = vec![("p0".to_owned(), (0.1, 0.3)), ("p1".to_owned(), (0.2, 0.4))];
    let even = [Series { half_widths, ..series("one", &[0.2, 0.3]) }];
    let uneven = [Series { ranges, ..series("one", &[0.12, 0.38]) }];
    let both = [(Form::Bars, &even), (Form::Lines, &even), (Form::Bars, &uneven)];
    for (form, all) in both.into_iter().chain([(Form::Lines, &uneven)]) {
        let scene = draw(all, form, &words());
        let whisker = |primitive: &Primitive| match primitive {
            Primitive::Strokes { segments, width, .. } if *width == 1.2 && segments.len() == 3 => {
                Some((segments[0].0.1, segments[0].1.1))
            }
            _ => None,
        };
        let found: Vec<(f64, f64)> = scene.primitives.iter().filter_map(whisker).collect();
        // The first is the legend's.
        let [_, one, two] = found[..] else { panic!("{form:?} {found:?}") };
        for (from, to) in [one, two] {
            assert!((to - from - PLOT_HEIGHT / 2.0).abs() < 1e-9, "{form:?} {found:?}");
        }
        assert!((one.0 - two.0 - PLOT_HEIGHT / 4.0).abs() < 1e-9, "{form:?} {found:?}");
        let none = draw(&[series("one", &[0.2, 0.3])], form, &words());
        assert_eq!(none.primitives.iter().filter_map(whisker).count(), 0);
        assert!(!texts_of(&none).contains(&"95 % interval"));
    }
}

#[test]
fn few_bars_have_their_numbers_and_many_have_not() {
    let few = draw(&[series("one", &[0.123, 0.2, 0.15])], Form::Bars, &words());
    assert!(texts_of(&few).contains(&"12.3"), "{:?}", texts_of(&few));
    let many = draw(&[series("one", &[0.123; 13])], Form::Bars, &words());
    assert!(!texts_of(&many).contains(&"12.3"));
}

/// Texts with the middle at which they stand.
fn placed(scene: &Scene) -> Vec<(&str, f64)> {
    let text = |primitive: &Primitive| match primitive {
        Primitive::Text { text, at, .. } => Some((text.clone(), at.0)),
        _ => None,
    };
    let found = scene.primitives.iter().filter_map(text);
    texts_of(scene).into_iter().zip(found).map(|(text, (_, x))| (text, x)).collect()
}

#[test]
fn a_bar_without_height_has_its_zero_and_an_empty_group_one() {
    let filled = [0.5; 5];
    let with = |first: [f64; 3]| [&first[..], &filled].concat();
    let all = [series("one", &with([0.0, 0.0, 0.9])), series("two", &with([0.5, 0.0, 0.0001]))];
    let scene = draw(&all, Form::Bars, &words());
    let bars = bars_of(&scene);
    let zeros: Vec<(&str, f64)> = placed(&scene)
        .into_iter()
        .filter(|(text, _)| text.trim_start_matches('≈') == "0")
        .collect();
    let middle = |bar: usize| bars[bar].0 + bar_width(&scene) / 2.0;
    // Bars come series by series, eight of each.
    let expected =
        [("0", middle(0)), ("0", f64::midpoint(middle(1), middle(9))), ("≈0", middle(10))];
    assert_eq!(zeros.len(), 3, "{zeros:?}");
    for (found, expected) in zeros.iter().zip(expected) {
        assert!(
            found.0 == expected.0 && (found.1 - expected.1).abs() < 0.01,
            "{zeros:?} {expected:?}"
        );
    }
}

fn bar_width(scene: &Scene) -> f64 {
    let width = |primitive: &Primitive| match primitive {
        Primitive::Rectangle { width, .. } if *width != 30.0 => Some(*width),
        _ => None,
    };
    scene.primitives.iter().find_map(width).expect("there is a bar")
}

/// Half a group is between the mean and the others, so three groups take the room of three and a
/// half.
#[test]
fn the_mean_stands_apart() {
    let all = [series("one", &[0.1, 0.2, 0.15])];
    let apart = Words { apart: Some("p2".into()), ..words() };
    let bars = bars_of(&draw(&all, Form::Bars, &apart));
    let (near, far) = (bars[1].0 - bars[0].0, bars[2].0 - bars[1].0);
    assert!((far / near - 1.5).abs() < 1e-9, "{bars:?}");
    let bars = bars_of(&draw(&all, Form::Bars, &words()));
    assert!((bars[2].0 - 2.0 * bars[1].0 + bars[0].0).abs() < 1e-9, "{bars:?}");
}

#[test]
fn bars_hang_from_what_is_one_without_protection() {
    // With the number below the lower bar 0.44 / 8 = 0.055, so steps of 0.1, down to 0.5.
    let all = [series("none", &[1.0, 1.0]), series("one", &[0.6, 0.8])];
    let scene = draw(&all, Form::Bars, &Words { base: 1.0, ..words() });
    let bars = bars_of(&scene);
    // What is one everywhere is a line, and the others' bars begin at the top.
    assert_eq!(bars.len(), 2, "{bars:?}");
    assert!((bars[0].1 - bars[1].1).abs() < 1e-9, "{bars:?}");
    assert!((bars[0].2 - 2.0 * bars[1].2).abs() < 1e-9, "{bars:?}");
    assert!((bars[0].2 - 0.8 * PLOT_HEIGHT).abs() < 1e-9, "{bars:?}");
    assert!(texts_of(&scene).contains(&"none"));
}

#[test]
fn sizes_stand_in_their_order_and_other_names_as_they_come() {
    let at = |places: &[&str], form| {
        let points = places.iter().map(|place| ((*place).to_owned(), 1.0)).collect();
        let one = Series { name: "one".into(), points, ..Series::default() };
        let scene = draw(&[one], form, &words());
        let mut texts = placed(&scene);
        texts.retain(|(text, _)| places.contains(text));
        texts.sort_by(|a, b| a.1.total_cmp(&b.1));
        texts.into_iter().map(|(text, _)| text.to_owned()).collect::<Vec<String>>()
    };
    for form in [Form::Bars, Form::Lines] {
        assert_eq!(at(&["16M", "64K", "1M"], form), ["64K", "1M", "16M"], "{form:?}");
        assert_eq!(at(&["gzip", "64K", "gcc"], form), ["gzip", "64K", "gcc"], "{form:?}");
    }
    let all = [series("1M", &[1.0]), series("64K", &[2.0])];
    let scene = draw(&all, Form::Bars, &words());
    let bars = bars_of(&scene);
    assert!(bars[0].2 > bars[1].2, "64K is the first: {bars:?}");
}

#[test]
fn of_broken_bars_the_higher_ends_higher() {
    let values = [0.05, 0.03, 0.04, 0.02, 0.05, 0.03];
    let far = |value: f64| Series { points: vec![("p3".into(), value)], ..series("far", &[]) };
    let scene = draw(&[series("one", &values), far(1.0), far(3.0)], Form::Bars, &words());
    let bars = bars_of(&scene);
    let ends: Vec<f64> = bars[6..].iter().map(|bar| bar.1).collect();
    assert!(ends[1] < ends[0] && ends[0] < bars[0].1, "{bars:?}");
    // An interval is said with the number.
    let half_widths = vec![("p3".to_owned(), 0.5)];
    let scene =
        draw(&[series("one", &values), Series { half_widths, ..far(3.0) }], Form::Bars, &words());
    assert!(texts_of(&scene).contains(&"300±50.0 %"), "{:?}", texts_of(&scene));
}

#[test]
fn series_differ_without_colour() {
    let all: Vec<Series> = (0..6).map(|i| series(&i.to_string(), &[1.0, 2.0])).collect();
    let scene = draw(&all, Form::Bars, &words());
    // All but the first are hatched, in the legend and in both bars.
    let hatched = |primitive: &&Primitive| matches!(primitive, Primitive::Strokes { .. });
    assert_eq!(scene.primitives.iter().filter(hatched).count(), 5 * 3);
    let scene = draw(&all, Form::Lines, &words());
    let plain = |line: &&Primitive| matches!(line, Primitive::Line { width, .. } if *width == 2.4);
    // The first and the last are drawn through, there and in the legend.
    assert_eq!(scene.primitives.iter().filter(plain).count(), 2 * 2);
}

#[test]
fn dots_have_their_names_and_areas_are_where_their_ends_are() {
    let dot = |label: &str, x, y| Dot { label: label.into(), x, y, half_width: None, paper: None };
    let dots = vec![dot("a", 1.0, 10.0), dot("b", 9.0, 20.0), dot("c", f64::NAN, 1.0)];
    let ranges = [Range { name: "r".into(), x: (0.0, 10.0), y: (0.0, f64::INFINITY) }];
    let series = [Dots { name: "s".into(), dots }];
    let scene = scatter::draw(&series, &ranges, &Words { percent: false, ..words() });
    let texts = texts_of(&scene);
    assert!(["a", "b", "r"].iter().all(|text| texts.contains(text)), "{texts:?}");
    assert!(!texts.contains(&"c"));
    let at = |wanted| {
        let dot = |primitive: &Primitive| match primitive {
            Primitive::Dot { at, .. } => Some(*at),
            _ => None,
        };
        scene.primitives.iter().filter_map(dot).nth(wanted).expect("it is drawn")
    };
    let area = bars_of(&scene)[0];
    // From zero, and 8 of 10 between the dots. From below to the top of the frame.
    let unit = (at(1).0 - at(0).0) / 8.0;
    assert!((at(0).0 - area.0 - unit).abs() < 1e-6, "{area:?} {:?}", at(0));
    assert!((area.2 - PLOT_HEIGHT).abs() < 1e-6, "{area:?}");
    assert!(at(1).1 < at(0).1);
}

#[test]
fn an_area_that_a_dot_would_hide_is_a_spot() {
    let dot = |x, y| Dot { label: "a".into(), x, y, half_width: None, paper: None };
    let series = [Dots { name: "s".into(), dots: vec![dot(0.0, 1.0), dot(100.0, 9.0)] }];
    // On axes to 106 and to 9.5: 2 of the first is less than a thirtieth, and 4 is not.
    for (width, is_spot) in [(2.0, true), (4.0, false)] {
        let ranges = [Range { name: "r".into(), x: (50.0, 50.0 + width), y: (5.0, 5.1) }];
        let scene = scatter::draw(&series, &ranges, &Words { percent: false, ..words() });
        assert_eq!(diamonds(&scene).len(), if is_spot { 2 } else { 0 }, "{width}");
        assert_eq!(bars_of(&scene).len(), usize::from(!is_spot), "{width}");
        assert!(texts_of(&scene).contains(&"r"));
    }
}

/// Texts with their point, size and anchor.
fn written(scene: &Scene) -> Vec<(String, (f64, f64), f64, Anchor)> {
    let text = |primitive: &Primitive| match primitive {
        Primitive::Text { text, at, size, anchor, degrees, .. } if *degrees == 0.0 => {
            Some((text.clone(), *at, *size, *anchor))
        }
        _ => None,
    };
    scene.primitives.iter().filter_map(text).collect()
}

/// From left to right, of the text that says this.
fn reach(scene: &Scene, wanted: &str) -> (f64, f64) {
    let all = written(scene);
    let (text, at, size, anchor) = all.iter().find(|(text, ..)| text == wanted).expect(wanted);
    let wide = points_wide(text, *size);
    match anchor {
        Anchor::Start => (at.0, at.0 + wide),
        Anchor::Middle => (at.0 - wide / 2.0, at.0 + wide / 2.0),
        Anchor::End => (at.0 - wide, at.0),
    }
}

fn at_sizes(name: &str, values: &[f64]) -> Series {
    let place = |i: usize| format!("{:.1} GB/s", 0.8 * f64::from(1 << i));
    let points = values.iter().enumerate().map(|(i, value)| (place(i), *value)).collect();
    Series { name: name.into(), points, ..Series::default() }
}

/// "0.8 GB/s" is below the left end of the level axis, and "0 %" beside it.
#[test]
fn labels_of_places_do_not_reach_below_those_of_heights() {
    let scene = draw(&[at_sizes("one", &[0.2, 0.4, 0.8, 1.0])], Form::Lines, &words());
    let (_, height) = reach(&scene, "0 %");
    let (place, _) = reach(&scene, "0.8 GB/s");
    assert!(place > height, "{place} {height}");
    assert!(reach(&scene, "6.4 GB/s").1 < scene.width);
}

/// What hides another is drawn beside it, and its interval in its colour.
#[test]
fn lines_that_would_hide_each_other_stand_beside_each_other() {
    let with = |name: &str, value: f64, half: f64| {
        let all = at_sizes(name, &[value; 4]);
        let half_widths = all.points.iter().map(|(at, _)| (at.clone(), half)).collect();
        Series { half_widths, ..all }
    };
    let whiskers = |first: f64, second: f64| {
        let all = [with("one", first, 0.1), with("two", second, 0.1)];
        let scene = draw(&all, Form::Lines, &words());
        let whisker = |primitive: &Primitive| match primitive {
            Primitive::Strokes { segments, width, colour } if *width == 1.2 => {
                Some((segments[0].0.0, *colour))
            }
            _ => None,
        };
        // The first is the legend's.
        scene.primitives.iter().filter_map(whisker).skip(1).collect::<Vec<(f64, Colour)>>()
    };
    let apart = whiskers(0.2, 0.8);
    assert!((apart[0].0 - apart[4].0).abs() < 1e-9, "{apart:?}");
    assert_ne!(apart[0].1, apart[4].1);
    let beside = whiskers(0.4, 0.5);
    for place in 0..4 {
        assert!(beside[4 + place].0 - beside[place].0 > 5.0, "{beside:?}");
    }
}

#[test]
fn numbers_below_bars_that_hang_are_in_the_frame() {
    let scene =
        draw(&[series("one", &[0.687, 0.9, 0.95])], Form::Bars, &Words { base: 1.0, ..words() });
    let all = written(&scene);
    let at = |wanted: &str| all.iter().find(|(text, ..)| text == wanted).expect(wanted).1.1;
    assert!(at("68.7") < at("p0") - LETTERS, "{all:?}");
    let bars = bars_of(&scene);
    assert!(at("68.7") > bars[0].1 + bars[0].2, "{bars:?}");
    // One that is hardly below zero opens no room there.
    let scene = draw(&[series("one", &[0.8, -0.0001, 0.2])], Form::Bars, &words());
    assert!((bars_of(&scene)[0].2 - PLOT_HEIGHT).abs() < 1e-9, "{:?}", bars_of(&scene));
}

#[test]
fn a_group_of_hidden_bars_says_what_they_hang_from() {
    let all = [
        series("one", &[1.0, 0.6, 0.9999, 0.5, 0.9, 0.9, 0.9]),
        series("two", &[1.0, 1.0, 1.0, 0.9, 0.9, 0.9, 0.9]),
    ];
    let scene = draw(&all, Form::Bars, &Words { base: 1.0, ..words() });
    let middle = |wanted: &str| {
        let (left, right) = reach(&scene, wanted);
        f64::midpoint(left, right)
    };
    assert!((middle("100") - middle("p0")).abs() < 0.01);
    assert!((middle("≈100") - middle("p2")).abs() < 0.01);
    let marks = texts_of(&scene).iter().filter(|text| text.ends_with("100")).count();
    assert_eq!(marks, 2, "{:?}", texts_of(&scene));
}

/// Where the letters are wide, names are nearer to each other rather than in one line more.
#[test]
fn a_legend_has_as_few_lines_as_it_can() {
    let names = ["base", "AISE+MT", "AISE+BMT"];
    let paper = vec![("p0".to_owned(), 0.1)];
    let half_widths = vec![("p0".to_owned(), 0.1)];
    let all = names.map(|name| Series {
        paper: paper.clone(),
        half_widths: half_widths.clone(),
        ..series(name, &[0.1, 0.2])
    });
    let scene = draw(&all, Form::Bars, &words());
    let all = written(&scene);
    let y = |wanted: &str| all.iter().find(|(text, ..)| text == wanted).expect(wanted).1.1;
    assert_eq!(y("95 % interval"), y("base"));
    assert!(reach(&scene, "95 % interval").1 < scene.width);
}

#[test]
fn a_series_without_a_value_takes_no_room() {
    let scene = draw(&[series("one", &[0.1]), series("none", &[f64::NAN])], Form::Bars, &words());
    assert!(texts_of(&scene).contains(&"one") && !texts_of(&scene).contains(&"none"));
    assert_eq!(bars_of(&scene), bars_of(&draw(&[series("one", &[0.1])], Form::Bars, &words())));
}

/// Caps of neighbours would make one line of two intervals.
#[test]
fn caps_of_intervals_do_not_touch() {
    let all: Vec<Series> = (0..4)
        .map(|i| {
            let values = series(&i.to_string(), &[0.5; 12]);
            let half_widths = values.points.iter().map(|(at, _)| (at.clone(), 0.1)).collect();
            Series { half_widths, ..values }
        })
        .collect();
    let scene = draw(&all, Form::Bars, &words());
    let cap = |primitive: &Primitive| match primitive {
        Primitive::Strokes { segments, width, .. } if *width == 1.2 && segments.len() == 3 => {
            Some((segments[1].0.0, segments[1].1.0))
        }
        _ => None,
    };
    let mut caps: Vec<(f64, f64)> = scene.primitives.iter().filter_map(cap).skip(1).collect();
    caps.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(caps.len(), 48);
    assert!(caps.windows(2).all(|two| two[1].0 - two[0].1 > 2.0), "{caps:?}");
}

/// A line that an area without width is has dashes once.
#[test]
fn an_area_without_width_is_a_line() {
    let dot = |x, y| Dot { label: "a".into(), x, y, half_width: None, paper: None };
    let series = [Dots { name: "s".into(), dots: vec![dot(1.0, 1.0), dot(100.0, 9.0)] }];
    let ranges = [Range { name: "r".into(), x: (50.0, 50.0), y: (0.0, f64::INFINITY) }];
    let scene = scatter::draw(&series, &ranges, &Words { percent: false, ..words() });
    let dashes = |primitive: &Primitive| match primitive {
        Primitive::Strokes { segments, .. } => Some(segments.clone()),
        _ => None,
    };
    let dashes: Vec<_> = scene.primitives.iter().filter_map(dashes).flatten().collect();
    let length: f64 = dashes.iter().map(|(from, to)| (to.1 - from.1).abs()).sum();
    assert!((length / PLOT_HEIGHT - 5.0 / 8.0).abs() < 0.02, "{length}");
}

#[test]
fn nothing_is_drawn_off_the_drawing() {
    let many: Vec<Series> = (0..30)
        .map(|i| Series {
            name: format!("a scheme with a long name {i}"),
            points: (0..40).map(|j| (format!("trace number {j}"), f64::from(i * j))).collect(),
            half_widths: (0..40)
                .map(|j| (format!("trace number {j}"), f64::from(j * 99)))
                .collect(),
            paper: (0..40).map(|j| (format!("trace number {j}"), f64::from(j * j * j))).collect(),
            ranges: Vec::new(),
        })
        .collect();
    let far = [series("one", &[3000.0, 1.0, 2.0]), series("two", &[2000.0, 1.0, 2.0])];
    let none: [Series; 0] = [];
    for series in [&many[..], &far, &none] {
        for form in [Form::Bars, Form::Lines] {
            let scene = draw(series, form, &words());
            for primitive in &scene.primitives {
                let points = match primitive {
                    Primitive::Rectangle { x, y, width, height, .. } => {
                        vec![(*x, *y), (x + width, y + height)]
                    }
                    Primitive::Line { points, .. } | Primitive::Polygon { points, .. } => {
                        points.clone()
                    }
                    Primitive::Strokes { segments, .. } => {
                        segments.iter().flat_map(|(a, b)| [*a, *b]).collect()
                    }
                    Primitive::Dot { at, .. } | Primitive::Text { at, .. } => vec![*at],
                };
                let inside = |(x, y): &(f64, f64)| {
                    (0.0..=scene.width).contains(x) && (0.0..=scene.height).contains(y)
                };
                assert!(points.iter().all(inside), "{primitive:?}");
            }
        }
    }
}
