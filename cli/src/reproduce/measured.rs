//! `casemate reproduce cryptkeeper`: a paper that is measured on this machine. What was measured is
//! kept beside the report, so that it can be judged again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use casemate_reproduce::data::Paper;
use casemate_reproduce::measured::Measurements;
use casemate_reproduce::measured::paper::paper;
use casemate_reproduce::measured::spec::Spec;
use casemate_reproduce::papers::Folder;
use casemate_reproduce::{files, report};
use casemate_schemes::nearest::meant;
use serde_json::json;

use super::args::ReproduceArgs;
use super::measure::measure;
use super::out;
use crate::failure::Failure;
use crate::out::not_standard;
use crate::output::{self, SCHEMA};
use crate::sys::signals;

/// Measures, or judges again what was measured.
pub fn reproduce(args: &ReproduceArgs, folder: Folder) -> Result<u8> {
    if let Some(flag) = args.of_simulations() {
        return Err(Failure::own(format!(
            "{flag} is about simulations, and {} is measured: leave it out",
            args.paper
        ))
        .into());
    }
    if let Some(folder) = &args.out {
        not_standard(folder, "results are a folder; --json prints the claims")?;
    }
    let (spec, claims) = folder.read_measured()?;
    check_figures(&spec, &args.figure)?;
    let out = out(args);
    let known = files::results(&out, folder.slug).join(files::MEASUREMENTS);
    let measured = if args.redraw {
        read(&known, args)?
    } else {
        let results = files::results(&out, folder.slug);
        fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
        // What is measured ends its own processes, and removes what it has set up.
        signals::remember_stop()
            .and_then(|()| signals::end_children_on_stop(libc::SIGTERM))
            .context("signals cannot be handled")?;
        let measured = measure(&spec, &args.figure, args.quick)?;
        let notes = measured.sessions.iter().flat_map(|session| &session.notes);
        notes.for_each(|note| output::stderr(&format!("casemate: {note}\n")));
        if known.exists() { measured.with(read(&known, args)?) } else { measured }
    };
    let whole = paper(folder.slug, (&spec, &claims), &measured, &[]);
    files::write_measured(&out, &whole, &measured)?;
    say(args, &paper(folder.slug, (&spec, &claims), &measured, &args.figure), &measured, &out)?;
    Ok(0)
}

fn check_figures(spec: &Spec, named: &[String]) -> Result<()> {
    let known: Vec<&str> = spec.figures.iter().map(|figure| &*figure.id).collect();
    let Some(name) = named.iter().find(|name| !known.contains(&&***name)) else { return Ok(()) };
    let meant = meant(name, known.iter().copied());
    let known = known.join(", ");
    Err(Failure::own(format!("there is no figure {name}{meant}; there are {known}")).into())
}

fn read(path: &Path, args: &ReproduceArgs) -> Result<Measurements> {
    let text = fs::read(path).map_err(|error| {
        Failure::own(format!(
            "{}: {error}; --out DIR says where results are, and casemate reproduce {} --out DIR \
             makes them",
            path.display(),
            args.paper
        ))
    })?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

fn say(args: &ReproduceArgs, paper: &Paper, measured: &Measurements, out: &Path) -> Result<()> {
    if let Some(to) = &args.json.to {
        let notes: Vec<&String> = measured.sessions.iter().flat_map(|of| &of.notes).collect();
        return output::json(
            to,
            &json!({
                "schema": SCHEMA, "quick": measured.quick,
                "papers": [{ "paper": paper.slug, "claims": paper.claims }],
                "failures": notes,
            }),
        );
    }
    output::stdout(&report::claims_text(&[paper]))?;
    let page: PathBuf = files::page(&files::results(out, &paper.slug));
    output::stdout(&format!("{}\n", page.display()))
}
