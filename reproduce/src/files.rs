//! What came out as files: for each paper tables, plots, claims and provenance, and a report of
//! all.

use std::path::Path;

use anyhow::{Context, Result};
use casemate_plot::{png, svg};
use casemate_sim::experiment::store::replace;

use crate::data::Paper;
use crate::{draw, report};

/// Writes `OUT/PAPER/results`.
///
/// # Errors
/// The system refuses, or a picture cannot be made.
pub fn write(out: &Path, paper: &Paper) -> Result<()> {
    let folder = out.join(&paper.slug).join("results");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let file = |name: &str, bytes: &[u8]| replace(&folder.join(name), bytes);
    for figure in &paper.figures {
        let name = format!("figure-{}", figure.id);
        file(&format!("{name}.csv"), report::csv(figure).as_bytes())?;
        if let Some(scene) = draw::scene(figure) {
            file(&format!("{name}.svg"), svg::svg(&scene).as_bytes())?;
            file(&format!("{name}.png"), &png::png(&scene)?)?;
        }
    }
    file("claims.csv", report::claims_csv(&[paper]).as_bytes())?;
    file("report.md", report::markdown(paper).as_bytes())?;
    let provenance = serde_json::to_string_pretty(&paper.provenance)? + "\n";
    Ok(file("provenance.json", provenance.as_bytes())?)
}

/// Writes `OUT/report.html` and `OUT/claims.csv`, of all papers.
///
/// # Errors
/// The system refuses.
pub fn write_all(out: &Path, papers: &[Paper]) -> Result<()> {
    let all: Vec<&Paper> = papers.iter().collect();
    replace(&out.join("report.html"), report::html(&all).as_bytes())?;
    Ok(replace(&out.join("claims.csv"), report::claims_csv(&all).as_bytes())?)
}
