//! `casemate plot`: results of `casemate sim` as bars and lines, in SVG or PNG.

mod series;

use std::path::PathBuf;

use anyhow::{Context, Result};
use casemate_plot::chart::{self, Form, Words};
use casemate_plot::{png, svg};
use casemate_sim::experiment::store;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;
use series::{OVERHEAD, Wanted};

/// `casemate plot`.
#[derive(Debug, Args)]
pub struct PlotArgs {
    /// Folders that `casemate sim -o` wrote, or result.json files
    #[arg(value_name = "RESULTS", required = true)]
    pub results: Vec<PathBuf>,
    /// The drawing: FILE.svg or FILE.png
    #[arg(long, short, value_name = "FILE", default_value = "plot.svg")]
    pub output: PathBuf,
    /// How to draw
    #[arg(long, value_enum, default_value_t = Kind::Bars)]
    pub kind: Kind,
    /// What is on the upright axis: overhead, or the name of a column of runs.csv
    #[arg(long, value_name = "KEY", default_value = OVERHEAD)]
    pub value: String,
    /// What is on the level axis [default: trace for bars, the samples of --every for lines]
    #[arg(long, value_name = "KEY")]
    pub by: Option<String>,
    /// What each colour stands for
    #[arg(long, value_name = "KEY", default_value = "scheme")]
    pub series: String,
    /// What stands above it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// The kinds of drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A group of bars for each place
    Bars,
    /// A line for each series
    Lines,
}

/// Draws results.
pub fn plot(args: &PlotArgs) -> Result<u8> {
    let drawn = match args.output.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => |scene: &_| Ok(svg::svg(scene).into_bytes()),
        Some("png") => png::png,
        _ => {
            let name = args.output.display();
            return Err(Failure::own(format!("{name}: the name must end with .svg or .png")).into());
        }
    };
    let mut results: Vec<Value> = Vec::new();
    for path in &args.results {
        results.extend(store::results(path)?);
    }
    let by = args.by.clone().or_else(|| (args.kind == Kind::Bars).then(|| "trace".to_owned()));
    let wanted = Wanted { value: args.value.clone(), by, series: args.series.clone() };
    let mut series = series::series(&results, &wanted)?;
    if args.value == OVERHEAD {
        // What all are compared with is no news.
        series.retain(|series| series.name != "none" || args.series != "scheme");
    }
    let form = match args.kind {
        Kind::Bars => Form::Bars,
        Kind::Lines => Form::Lines,
    };
    let scene = chart::draw(&series, form, &words(args, &wanted));
    let bytes = drawn(&scene)?;
    output::replace(&args.output, &bytes)
        .with_context(|| format!("{}: the drawing cannot be written", args.output.display()))?;
    output::stdout(&format!(
        "{}: {} series of {} results\n",
        args.output.display(),
        series.len(),
        results.len()
    ))?;
    Ok(0)
}

fn words(args: &PlotArgs, wanted: &Wanted) -> Words {
    let upright = if args.value == OVERHEAD {
        "overhead in cycles, against none".to_owned()
    } else {
        args.value.clone()
    };
    let level = wanted.by.clone().unwrap_or_else(|| "instructions".to_owned());
    let title = args.title.clone().unwrap_or_else(|| format!("Simulated: {upright}, by {level}"));
    Words { title, upright, level, percent: args.value == OVERHEAD }
}
