//! `casemate reproduce`: figures and claims of the papers, on our workloads; of Cryptkeeper, on
//! this machine.

pub mod args;
mod measure;
mod measured;
mod redraw;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use casemate_reproduce::data::Paper;
use casemate_reproduce::job::Job;
use casemate_reproduce::plan::{Instructions, Wanted};
use casemate_reproduce::{files, papers, report, traces};
use casemate_sim::experiment::session::Session;
use casemate_sim::experiment::store::Store;
use serde_json::{Value, json};

use crate::exit_codes;
use crate::failure::Failure;
use crate::out::not_standard;
use crate::output::{self, SCHEMA};
use crate::progress::{self, Progress};
use crate::sys::signals;

use args::ReproduceArgs;

/// Instructions a second that a core simulates on these traces in detail, and without time: what
/// `bench sim` prints, roughly.
const IN_DETAIL_PER_CORE_SECOND: u64 = 4_000_000;
const WARMING_PER_CORE_SECOND: u64 = 20_000_000;

/// Does all of it.
pub fn reproduce(args: &ReproduceArgs) -> Result<u8> {
    if let Some(folder) = papers::measured(&args.paper) {
        return measured::reproduce(args, folder);
    }
    if args.redraw {
        return redraw::redraw(args);
    }
    signals::remember_stop().context("signals cannot be handled")?;
    if let Some(folder) = &args.out {
        not_standard(folder, "results are a folder; --json prints the claims")?;
    }
    let start = Instant::now();
    let jobs = jobs(args)?;
    let casemate = std::env::current_exe().context("this program's file cannot be named")?;
    let told = &mut |line: &str| progress::stage(line);
    let traces = traces::ensure(&jobs, &casemate, args.traces(), signals::stop_flag(), told)?;
    let Some(traces) = traces else { return Err(stopped()) };
    say_how_long(args, &jobs);
    let (out, store) = (out(args), Store::open(args.runs())?);
    let session = Session {
        store: Some(&store),
        jobs: args.jobs.map(|jobs| jobs as usize),
        force: false,
        leaves_results: true,
        stop: signals::stop_flag(),
    };
    let (mut papers, mut failures) = (Vec::new(), Vec::new());
    for job in &jobs {
        let start = Instant::now();
        let slug = job.folder.slug;
        progress::stage(&format!("{slug}: {} runs", job.plan.runs.len()));
        let commit = env!("CASEMATE_COMMIT");
        let (paper, failed) = job.reproduce(&traces, &session, commit, Progress::new)?;
        progress::stage(&format!("{slug}: {} s", start.elapsed().as_secs()));
        failures.extend(failed.iter().map(ToString::to_string));
        if signals::stop_wanted() {
            break;
        }
        files::write(&out, &paper)?;
        papers.push(paper);
    }
    for failure in &failures {
        output::stderr(&format!("casemate: {failure}\n"));
    }
    if signals::stop_wanted() {
        return Err(stopped());
    }
    files::write_all(&out, &papers)?;
    say(args, &papers, &failures, &out, start)?;
    Ok(if failures.is_empty() { 0 } else { exit_codes::NO })
}

fn stopped() -> anyhow::Error {
    Failure::no("stopped; the same command goes on from there").into()
}

fn jobs(args: &ReproduceArgs) -> Result<Vec<Job>> {
    let wanted = Wanted { quick: args.quick, figures: args.figure.clone() };
    let folders = papers::of_name(&args.paper).map_err(|error| Failure::own(error.to_string()))?;
    let read = folders.into_iter().map(|folder| Job::read(folder, &wanted));
    let jobs = read.collect::<Result<Vec<Job>>>()?;
    Job::check_figures(&jobs, &wanted).map_err(|error| Failure::own(error.to_string()))?;
    Ok(jobs)
}

fn out(args: &ReproduceArgs) -> PathBuf {
    let default = if args.quick { "target/reproduce/quick" } else { "target/reproduce/full" };
    args.out.clone().unwrap_or_else(|| default.into())
}

fn say_how_long(args: &ReproduceArgs, jobs: &[Job]) {
    let runs: usize = jobs.iter().map(|job| job.plan.runs.len()).sum();
    let instructions = jobs.iter().map(|job| job.plan.instructions());
    let all = instructions.fold(Instructions::default(), Instructions::and);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let of_one = all.in_detail / IN_DETAIL_PER_CORE_SECOND + all.warming / WARMING_PER_CORE_SECOND;
    progress::stage(&format!(
        "{runs} runs, {:.1} billion instructions in detail and {:.1} between windows: some {} \
         minutes, less what {} has already",
        all.in_detail as f64 / 1e9,
        all.warming as f64 / 1e9,
        (of_one / args.jobs.unwrap_or(cores).min(cores)).div_ceil(60),
        args.runs().display(),
    ));
}

fn say(
    args: &ReproduceArgs,
    papers: &[Paper],
    failures: &[String],
    out: &Path,
    start: Instant,
) -> Result<()> {
    if let Some(to) = &args.json.to {
        let claims = |paper: &Paper| json!({ "paper": paper.slug, "claims": paper.claims });
        let claims: Vec<Value> = papers.iter().map(claims).collect();
        return output::json(
            to,
            &json!({
                "schema": SCHEMA, "quick": args.quick, "papers": claims, "failures": failures,
            }),
        );
    }
    let all: Vec<&Paper> = papers.iter().collect();
    output::stdout(&report::claims_text(&all))?;
    output::stdout(&format!(
        "{} s; {}\n",
        start.elapsed().as_secs(),
        out.join("report.html").display(),
    ))
}
