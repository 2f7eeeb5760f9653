//! What came out as files: for each paper tables, plots, claims and provenance, and a report of
//! all.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use casemate_plot::{png, svg};
use casemate_sim::experiment::store::replace;

use crate::data::{Figure, Paper};
use crate::measured::Measurements;
use crate::{draw, report};

/// Writes `OUT/PAPER/results`.
///
/// # Errors
/// The system refuses, or a picture cannot be made.
pub fn write(out: &Path, paper: &Paper) -> Result<()> {
    let folder = results(out, &paper.slug);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let file = |name: &str, bytes: &[u8]| replace(&folder.join(name), bytes);
    for figure in &paper.figures {
        file(&table_name(&figure.id), report::csv(figure).as_bytes())?;
        write_drawing(&folder, figure)?;
    }
    file("claims.csv", report::claims_csv(&[paper]).as_bytes())?;
    file("report.md", report::markdown(paper).as_bytes())?;
    let provenance = serde_json::to_string_pretty(&paper.provenance)? + "\n";
    Ok(file("provenance.json", provenance.as_bytes())?)
}

/// Where a paper's results are.
#[must_use]
pub fn results(out: &Path, slug: &str) -> PathBuf {
    out.join(slug).join("results")
}

/// The file of a figure's numbers, by the figure's short name.
#[must_use]
pub fn table_name(id: &str) -> String {
    format!("figure-{id}.csv")
}

/// Writes a figure's drawings into a folder, if it has any.
///
/// # Errors
/// The system refuses, or a picture cannot be made.
pub fn write_drawing(folder: &Path, figure: &Figure) -> Result<()> {
    let Some(scene) = draw::scene(figure) else { return Ok(()) };
    let name = format!("figure-{}", figure.id);
    replace(&folder.join(format!("{name}.svg")), svg::svg(&scene).as_bytes())?;
    Ok(replace(&folder.join(format!("{name}.png")), &png::png(&scene)?)?)
}

/// The file of what benchmarks gave, in the results of a paper that is measured.
pub const MEASUREMENTS: &str = "measurements.json";

/// Writes the results of a paper that is measured, with a page of it alone: the pages and claims in
/// `OUT` itself are of those that are simulated.
///
/// # Errors
/// The system refuses, or a picture cannot be made.
pub fn write_measured(out: &Path, paper: &Paper, measured: &Measurements) -> Result<()> {
    write(out, paper)?;
    let folder = results(out, &paper.slug);
    let text = serde_json::to_string_pretty(measured)? + "\n";
    replace(&folder.join(MEASUREMENTS), text.as_bytes())?;
    Ok(replace(&page(&folder), report::html(&[paper]).as_bytes())?)
}

/// Writes `OUT/report.html` and `OUT/claims.csv`, of all papers.
///
/// # Errors
/// The system refuses.
pub fn write_all(out: &Path, papers: &[Paper]) -> Result<()> {
    let all: Vec<&Paper> = papers.iter().collect();
    replace(&page(out), report::html(&all).as_bytes())?;
    Ok(replace(&out.join("claims.csv"), report::claims_csv(&all).as_bytes())?)
}

/// The report of all papers as a page.
#[must_use]
pub fn page(out: &Path) -> PathBuf {
    out.join("report.html")
}
