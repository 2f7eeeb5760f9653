//! `casemate plot`: results of `casemate sim`, or rows of a CSV file, as bars and lines, in SVG or
//! PNG.

pub mod args;
mod csv;

use std::path::Path;

use anyhow::Result;
use casemate_plot::chart::{self, Form, Words};
use casemate_plot::scene::Scene;
use casemate_plot::{MOST, Series, pdf, png, svg};
use casemate_sim::experiment::store;
use casemate_sim::results::compare::BASELINE;
use casemate_sim::results::series::{self, OVERHEAD, Wanted};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::out::Out;
use crate::output::{self, SCHEMA};
use args::{Kind, PlotArgs, SERIES};

/// The value of samples that is drawn if none is named.
const SAMPLED: &str = "ipc";

#[derive(Serialize)]
struct Report {
    schema: u32,
    file: String,
    series: usize,
    results: usize,
}

/// Draws results.
pub fn plot(args: &PlotArgs) -> Result<u8> {
    args.out.apart_from(&args.json)?;
    args.results.iter().try_for_each(|file| args.out.apart_from_input(file))?;
    let drawn = format_of(&args.out)?;
    let mut results: Vec<Value> = Vec::new();
    for path in &args.results {
        match csv::is_one(path) {
            true => results.extend(rows(path, args)?),
            false => results.extend(store::results(path)?),
        }
    }
    let wanted = wanted(args);
    let mut series = series::series(&results, &wanted)?;
    if wanted.value == OVERHEAD {
        // What all are compared with is no news.
        series.retain(|series| series.name != BASELINE || args.series != SERIES);
    }
    let form = match args.kind {
        Kind::Bars => Form::Bars,
        Kind::Lines => Form::Lines,
    };
    let drawn_as = |series: series::Series| Series {
        name: series.name,
        points: series.points,
        half_widths: series.half_widths,
        ..Series::default()
    };
    let series: Vec<Series> = series.into_iter().map(drawn_as).collect();
    fit_an_axis(&series)?;
    let scene = chart::draw(&series, form, &words(args, &wanted));
    let bytes = drawn(&scene)?;
    args.out.write(&bytes)?;
    let (file, series, results) = (args.out.to_string(), series.len(), results.len());
    match &args.json.to {
        Some(to) => output::json(to, &Report { schema: SCHEMA, file, series, results })?,
        None => args.out.say(&format!("{file}: {series} series of {results} results\n"))?,
    }
    Ok(0)
}

/// What is drawn if nothing else is said: overheads by trace, or samples of the IPC.
fn wanted(args: &PlotArgs) -> Wanted {
    let by = args.by.clone().or_else(|| (args.kind == Kind::Bars).then(|| "trace".to_owned()));
    // Samples have nothing to be compared with.
    let value = if by.is_some() { OVERHEAD } else { SAMPLED };
    let value = args.value.clone().unwrap_or_else(|| value.to_owned());
    Wanted { value, by, series: args.series.clone() }
}

/// Rows of a CSV file. It has none of the columns that are taken of results of `sim` if nothing is
/// said, but for one of schemes, perhaps.
fn rows(path: &Path, args: &PlotArgs) -> Result<Vec<Value>, Failure> {
    let rows = csv::rows(path, args.value.as_deref())?;
    let has_series = rows.iter().any(|row| row.get(args.series.as_str()).is_some());
    let flags = [
        ("--value", args.value.is_none()),
        ("--by", args.by.is_none()),
        ("--series", args.series == SERIES && !has_series),
    ];
    let missing = flags.into_iter().filter_map(|(flag, is_missing)| is_missing.then_some(flag));
    let missing: Vec<&str> = missing.collect();
    if missing.is_empty() {
        return Ok(rows);
    }
    Err(Failure::own(format!(
        "{}: which columns of a CSV file are drawn has to be said; give {} too",
        path.display(),
        missing.join(" and ")
    )))
}

/// Refuses values whose distances overflow.
fn fit_an_axis(series: &[Series]) -> Result<(), Failure> {
    let values = series.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
    match values.filter(|value| value.is_finite()).find(|value| value.abs() > MOST) {
        Some(value) => Err(Failure::no(format!(
            "the value {value:e} cannot be drawn; leave out what is farther from 0 than {MOST:e}"
        ))),
        None => Ok(()),
    }
}

/// What makes the bytes of a file of a drawing.
pub type MakeFile = fn(&Scene) -> Result<Vec<u8>>;

/// What makes a file of a drawing: the end of its name says which. Standard output gets SVG.
pub fn format_of(out: &Out) -> Result<MakeFile> {
    match out.path().map(|path| path.extension().and_then(|end| end.to_str())) {
        None | Some(Some("svg")) => Ok(|scene| Ok(svg::svg(scene).into_bytes())),
        Some(Some("png")) => Ok(|scene| Ok(png::png(scene)?)),
        Some(Some("pdf")) => Ok(|scene| Ok(pdf::pdf(scene)?)),
        Some(_) => {
            let sentence = format!("{out}: the name must end with .svg, .png or .pdf");
            Err(Failure::own(sentence).into())
        }
    }
}

fn words(args: &PlotArgs, wanted: &Wanted) -> Words {
    let is_overhead = wanted.value == OVERHEAD;
    let upright = if is_overhead {
        format!("overhead in cycles, against {BASELINE}")
    } else {
        in_words(&wanted.value)
    };
    let level = wanted.by.as_deref().map_or_else(|| "instructions".to_owned(), in_words);
    let is_simulated = !args.results.iter().any(|path| csv::is_one(path));
    let whose = if is_simulated { "Simulated: " } else { "" };
    let title = args.title.clone().unwrap_or_else(|| format!("{whose}{upright}, by {level}"));
    Words { title, upright, level, percent: is_overhead, ..Words::default() }
}

/// A key of results as an axis names it: its last two parts without what all keys of that kind
/// begin with, and its unit behind a comma.
fn in_words(key: &str) -> String {
    const KINDS: [&str; 4] = ["derived", "statistics", "config", "trace"];
    const UNITS: [&str; 6] = ["cycles", "bytes", "instructions", "ns", "blocks", "entries"];
    let parts: Vec<&str> = key.split('.').collect();
    let parts = match &parts[..] {
        [kind, rest @ ..] if KINDS.contains(kind) && !rest.is_empty() => rest,
        all => all,
    };
    let text = parts[parts.len().saturating_sub(2)..].join(" ").replace('_', " ");
    let text = if text == "ipc" { "instructions in a cycle".to_owned() } else { text };
    match text.rsplit_once(' ') {
        Some((what, unit)) if UNITS.contains(&unit) => format!("{what}, {unit}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn keys_are_written_in_words() {
        let keys = [
            ("config.l2.size_bytes", "l2 size, bytes"),
            ("derived.ipc", "instructions in a cycle"),
            ("last_level_miss_rate", "last level miss rate"),
            ("statistics.protection.traffic.nodes.reads", "nodes reads"),
            ("statistics.cycles", "cycles"),
            ("trace", "trace"),
            ("overhead", "overhead"),
        ];
        for (key, words) in keys {
            assert_eq!(in_words(key), words, "{key}");
        }
    }
}
