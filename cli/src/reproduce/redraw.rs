//! `casemate reproduce --redraw`: figures drawn again from their tables.

use std::path::Path;

use anyhow::Result;
use casemate_reproduce::{papers, published};
use serde_json::json;

use super::args::ReproduceArgs;
use super::out;
use crate::failure::Failure;
use crate::out::not_standard;
use crate::output::{self, SCHEMA};

/// Draws them, and says how many.
pub fn redraw(args: &ReproduceArgs) -> Result<u8> {
    if let Some(folder) = &args.out {
        not_standard(folder, "figures are drawn beside their tables, in a folder")?;
    }
    let folder = out(args);
    let papers = papers::of_name(&args.paper).map_err(|error| Failure::own(error.to_string()))?;
    let mut drawn = Vec::new();
    for paper in papers {
        let figures = published::redraw(&folder, paper, &args.figure)?;
        drawn.extend(figures.into_iter().map(|id| (paper.slug, id)));
    }
    if drawn.is_empty() {
        return Err(Failure::own(nothing(args, &folder)).into());
    }
    if let Some(to) = &args.json.to {
        let figure = |(paper, id): &(&str, String)| json!({ "paper": paper, "figure": id });
        let drawn: Vec<_> = drawn.iter().map(figure).collect();
        output::json(to, &json!({ "schema": SCHEMA, "drawn": drawn }))?;
        return Ok(0);
    }
    let count = drawn.len();
    let figures = if count == 1 { "figure" } else { "figures" };
    output::stdout(&format!("{count} {figures} drawn again in {}\n", folder.display()))?;
    Ok(0)
}

fn nothing(args: &ReproduceArgs, folder: &Path) -> String {
    let (folder, paper) = (folder.display(), &args.paper);
    let wanted = match &args.figure[..] {
        [] => "figure".to_owned(),
        ids => format!("drawn figure {}", ids.join(", ")),
    };
    format!(
        "{folder} has no table of a {wanted}; --out DIR says where results are, and \
         casemate reproduce {paper} --out DIR makes them"
    )
}
