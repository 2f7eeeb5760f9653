//! `casemate reproduce`: figures and claims of the papers, on our workloads.

pub mod args;
mod output;
mod traces;

use casemate_sim::config::nearest::meant;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use casemate_reproduce::data::{Figure, Paper};
use casemate_reproduce::papers::{self, Folder};
use casemate_reproduce::plan::{Plan, Wanted};
use casemate_reproduce::spec::Spec;
use casemate_reproduce::{assemble, compute, report};
use casemate_sim::experiment::store::Store;
use casemate_sim::results::provenance::{Casemate, TraceIdentity};
use serde_json::{Value, json};

use crate::exit_codes;
use crate::failure::Failure;
use crate::out::not_standard;
use crate::output::{self as stream, SCHEMA};
use crate::progress;
use crate::sim::execute::{Work, run_all};
use crate::sim::plan::Configuration;
use crate::sim::traces::Trace;
use crate::sys::signals;

use args::ReproduceArgs;

/// A paper and what is to be run for it.
struct Job {
    folder: Folder,
    spec: Spec,
    claims: casemate_reproduce::claims::Claims,
    wanted: Wanted,
    plan: Plan,
}

/// Does all of it.
pub fn reproduce(args: &ReproduceArgs) -> Result<u8> {
    signals::remember_stop().context("signals cannot be handled")?;
    if let Some(folder) = &args.out {
        not_standard(folder, "results are a folder; --json prints the claims")?;
    }
    let start = Instant::now();
    let jobs = jobs(args)?;
    let traces = traces::ensure(args, &jobs)?;
    say_how_long(args, &jobs);
    let out = out(args);
    let mut papers = Vec::new();
    let mut failures = Vec::new();
    for job in &jobs {
        let (paper, failed) = one(args, job, &traces)?;
        failures.extend(failed);
        if signals::stop_wanted() {
            break;
        }
        output::write(&out, &paper)?;
        papers.push(paper);
    }
    for failure in &failures {
        stream::stderr(&format!("casemate: {failure}\n"));
    }
    if signals::stop_wanted() {
        return Err(stopped());
    }
    output::write_all(&out, &papers)?;
    say(args, &papers, &failures, &out, start)?;
    Ok(if failures.is_empty() { 0 } else { exit_codes::NO })
}

fn stopped() -> anyhow::Error {
    Failure::no("stopped; the same command goes on from there").into()
}

fn jobs(args: &ReproduceArgs) -> Result<Vec<Job>> {
    let wanted = Wanted { quick: args.quick, figures: args.figure.clone() };
    let mut jobs = Vec::new();
    let folders = papers::of_name(&args.paper).map_err(|error| Failure::own(error.to_string()))?;
    for folder in folders {
        let (spec, claims) = folder.read()?;
        let plan = spec.plan(&wanted).with_context(|| format!("papers/{}", folder.slug))?;
        jobs.push(Job { folder, spec, claims, wanted: wanted.clone(), plan });
    }
    if jobs.iter().all(|job| job.spec.wanted(&wanted).is_empty()) {
        let known: Vec<&str> =
            jobs.iter().flat_map(|job| &job.spec.figures).map(|f| &*f.id).collect();
        let asked = args.figure.join(", ");
        let meant = meant(&asked, known.iter().copied());
        let sentence = format!("there is no figure {asked}{meant}; there are {}", known.join(", "));
        return Err(Failure::own(sentence).into());
    }
    Ok(jobs)
}

fn out(args: &ReproduceArgs) -> PathBuf {
    let default = if args.quick { "target/reproduce/quick" } else { "target/reproduce/full" };
    args.out.clone().unwrap_or_else(|| default.into())
}

/// Instructions a second that a core simulates on these traces: what `bench sim` prints, roughly.
const INSTRUCTIONS_PER_CORE_SECOND: u64 = 4_000_000;

fn say_how_long(args: &ReproduceArgs, jobs: &[Job]) {
    let runs: usize = jobs.iter().map(|job| job.plan.runs.len()).sum();
    let instructions: u64 = jobs.iter().map(|job| job.plan.instructions()).sum();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let each_second = INSTRUCTIONS_PER_CORE_SECOND * args.jobs.unwrap_or(cores).min(cores);
    progress::stage(&format!(
        "{runs} runs, {:.1} billion instructions: some {} minutes, less what {} has already",
        instructions as f64 / 1e9,
        (instructions / each_second).div_ceil(60),
        args.runs.display(),
    ));
}

/// One paper, and what failed.
fn one(
    args: &ReproduceArgs,
    job: &Job,
    traces: &BTreeMap<String, Trace>,
) -> Result<(Paper, Vec<String>)> {
    let start = Instant::now();
    progress::stage(&format!("{}: {} runs", job.folder.slug, job.plan.runs.len()));
    let (results, failures) = run(args, job, traces)?;
    let figures = figures(job, &results)?;
    let stated = job.claims.of_figures(&job.wanted.figures);
    let mut claims: Vec<_> = stated.map(|claim| claim.judge(&figures)).collect();
    if job.wanted.quick {
        // They explain what full runs measured.
        for claim in &mut claims {
            claim.finding.clear();
            claim.evidence.clear();
        }
    }
    let paper = Paper {
        slug: job.folder.slug.to_owned(),
        name: job.spec.name.clone(),
        title: job.spec.title.clone(),
        machine: job.spec.machine.clone(),
        remarks: remarks(job),
        figures,
        claims,
        provenance: provenance(job, traces),
    };
    progress::stage(&format!("{}: {} s", job.folder.slug, start.elapsed().as_secs()));
    Ok((paper, failures))
}

/// All figures that are wanted, in the paper's order. Some are computed of others.
fn figures(job: &Job, results: &[Option<Value>]) -> Result<Vec<Figure>> {
    let wanted = job.spec.wanted(&job.wanted);
    let simulated = |at: &usize| {
        let plan = job.plan.figures.get(at)?;
        Some(assemble::figure(&job.spec.figures[*at], plan, results))
    };
    let simulated: Vec<Option<Figure>> = wanted.iter().map(simulated).collect();
    let known: Vec<Figure> = simulated.iter().flatten().cloned().collect();
    let both = wanted.iter().zip(simulated);
    both.map(|(at, done)| match done {
        Some(figure) => Ok(figure),
        None => compute::figure(&job.spec.figures[*at], &known),
    })
    .collect()
}

/// Does the runs that are not done: their results, in the plan's order.
fn run(
    args: &ReproduceArgs,
    job: &Job,
    traces: &BTreeMap<String, Trace>,
) -> Result<(Vec<Option<Value>>, Vec<String>)> {
    let names: Vec<&String> = traces.keys().collect();
    let list: Vec<Trace> = traces.values().cloned().collect();
    let configuration = |run: &casemate_reproduce::plan::Run| Configuration {
        resolved: run.config.clone(),
        varied: Vec::new(),
    };
    let configurations: Vec<Configuration> = job.plan.runs.iter().map(configuration).collect();
    let number = |name: &String| names.iter().position(|known| *known == name);
    let mut runs = Vec::new();
    for (run, configuration) in job.plan.runs.iter().zip(&configurations) {
        let trace = number(&run.workload);
        runs.push((
            trace.with_context(|| format!("{} has no trace", run.workload))?,
            configuration,
        ));
    }
    let store = Some(Store::open(&args.runs)?);
    let done = run_all(&list, &runs, Work { store, jobs: args.jobs, force: false });
    let (entries, failures) = done.into_parts();
    Ok((entries.into_iter().map(|entry| entry.result).collect(), failures))
}

fn remarks(job: &Job) -> Vec<String> {
    let window = if job.wanted.quick { job.spec.quick_window } else { job.spec.window };
    let mut remarks = vec![format!(
        "Simulated: {} runs of {} million instructions after {} million of warm-up. A model's results.",
        job.plan.runs.len(),
        window.length as f64 / 1e6,
        window.warmup as f64 / 1e6,
    )];
    if job.wanted.quick {
        remarks.push(
            "With --quick: few workloads and a short window. It shows that all works, and no more."
                .to_owned(),
        );
    }
    let run = job.plan.workloads();
    for workload in job.spec.workloads.iter().filter(|workload| run.contains(&&*workload.name)) {
        remarks.push(format!("{}: stands for {}", workload.name, workload.stands_for));
    }
    remarks
}

fn provenance(job: &Job, traces: &BTreeMap<String, Trace>) -> Value {
    let run = job.plan.workloads();
    let identity = |trace: &Trace| {
        let mut identity = trace.identity.clone();
        // Our own program lies wherever it was built.
        if let Some((_, name)) = identity.program.rsplit_once("/casemate-workload") {
            identity.program = format!("casemate-workload{name}");
        }
        identity
    };
    let traces: Vec<TraceIdentity> = traces
        .iter()
        .filter(|(name, _)| run.contains(&&***name))
        .map(|(_, trace)| identity(trace))
        .collect();
    json!({
        "casemate": Casemate::this(),
        "commit": env!("CASEMATE_COMMIT"),
        "quick": job.wanted.quick,
        "traces": traces,
        "machine": job.plan.runs.first().map(|run| run.config.json()),
    })
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
        return stream::json(
            to,
            &json!({
                "schema": SCHEMA, "quick": args.quick, "papers": claims, "failures": failures,
            }),
        );
    }
    let all: Vec<&Paper> = papers.iter().collect();
    stream::stdout(&report::claims_text(&all))?;
    stream::stdout(&format!(
        "{} s; {}\n",
        start.elapsed().as_secs(),
        out.join("report.html").display(),
    ))
}
