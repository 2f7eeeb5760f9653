//! `casemate plot`: results of `casemate sim` as bars and lines, in SVG or PNG.

pub mod args;
mod series;

use anyhow::{Context, Result};
use casemate_plot::chart::{self, Form, Words};
use casemate_plot::{png, svg};
use casemate_sim::experiment::store;
use serde_json::Value;

use crate::failure::Failure;
use crate::output;
use args::{Kind, PlotArgs};
use series::{OVERHEAD, Wanted};

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
