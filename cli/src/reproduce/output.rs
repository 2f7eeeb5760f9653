//! Writes what came out: for each paper tables, plots, claims and provenance, and a report of all.

use std::path::Path;

use anyhow::{Context, Result};
use casemate_plot::{png, svg};
use casemate_reproduce::data::Paper;
use casemate_reproduce::{draw, report};

use crate::output::replace;

/// Writes `OUT/PAPER/results`. What an earlier run left of figures that are gone is taken away.
pub fn write(out: &Path, paper: &Paper) -> Result<()> {
    let folder = out.join(&paper.slug).join("results");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        replace(&path, bytes).with_context(|| format!("{}: cannot be written", path.display()))
    };
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
    file("provenance.json", provenance.as_bytes())
}

/// Writes `OUT/report.html` and `OUT/claims.csv`, of all papers.
pub fn write_all(out: &Path, papers: &[Paper]) -> Result<()> {
    let all: Vec<&Paper> = papers.iter().collect();
    for (name, text) in
        [("report.html", report::html(&all)), ("claims.csv", report::claims_csv(&all))]
    {
        let path = out.join(name);
        replace(&path, text.as_bytes())
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(())
}
