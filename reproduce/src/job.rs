//! A paper that is to be reproduced: its runs are done, its figures made of them, its claims
//! judged.

use anyhow::{Context, Result};
use casemate_schemes::nearest::meant;
use casemate_sim::experiment::configurations::Configuration;
use casemate_sim::experiment::session::{Entry, Outcome, Progress, Session, SessionError};
use casemate_sim::experiment::trace_file::TraceFile;
use casemate_sim::results::provenance::{Casemate, TraceIdentity};
use serde_json::{Value, json};

use crate::claims::Claims;
use crate::data::{Figure, Paper};
use crate::papers::Folder;
use crate::plan::{Plan, Wanted};
use crate::spec::Spec;
use crate::traces::Traces;
use crate::{assemble, compute};

/// A paper and what is to be run for it.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its folder.
    pub folder: Folder,
    /// What its figures are.
    pub spec: Spec,
    /// What it claims.
    pub claims: Claims,
    /// What of it is wanted.
    pub wanted: Wanted,
    /// The runs for that.
    pub plan: Plan,
}

/// No paper has a figure that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no figure {asked}{meant}; there are {known}")]
pub struct NoSuchFigure {
    asked: String,
    meant: String,
    known: String,
}

impl Job {
    /// Reads a paper and plans its runs.
    ///
    /// # Errors
    /// A file of the paper is wrong, or names a figure, scheme or key that does not exist.
    pub fn read(folder: Folder, wanted: &Wanted) -> Result<Job> {
        let (spec, claims) = folder.read()?;
        let plan = spec.plan(wanted).with_context(|| format!("papers/{}", folder.slug))?;
        Ok(Job { folder, spec, claims, wanted: wanted.clone(), plan })
    }

    /// Whether any of the papers has a figure that is wanted.
    ///
    /// # Errors
    /// None has.
    pub fn check_figures(jobs: &[Job], wanted: &Wanted) -> Result<(), NoSuchFigure> {
        if jobs.iter().any(|job| !job.spec.wanted(wanted).is_empty()) {
            return Ok(());
        }
        let figures = jobs.iter().flat_map(|job| &job.spec.figures);
        let known: Vec<&str> = figures.map(|figure| &*figure.id).collect();
        let asked = wanted.figures.join(", ");
        let meant = meant(&asked, known.iter().copied());
        Err(NoSuchFigure { asked, meant, known: known.join(", ") })
    }

    /// Does the runs that are not done, and makes the paper's figures and claims of all of them;
    /// also why runs have no result. `commit` is that of this program.
    ///
    /// # Errors
    /// A workload has no trace, or a figure cannot be computed.
    pub fn reproduce<P: Progress>(
        &self,
        traces: &Traces,
        session: &Session,
        commit: &str,
        begin: impl FnOnce(Option<u64>) -> P,
    ) -> Result<(Paper, Vec<SessionError>)> {
        let Outcome { entries, failures } = self.run(traces, session, begin)?;
        let figures = self.figures(&entries)?;
        let stated = self.claims.of_figures(&self.wanted.figures);
        let mut claims: Vec<_> = stated
            .map(|claim| self.claims.judge(claim, &figures, |id| self.spec.is_counted(id)))
            .collect();
        if self.wanted.quick {
            // They explain what full runs measured.
            for claim in &mut claims {
                claim.finding.clear();
                claim.evidence.clear();
                claim.experiments.clear();
            }
        }
        let paper = Paper {
            slug: self.folder.slug.to_owned(),
            name: self.spec.name.clone(),
            title: self.spec.title.clone(),
            machine: self.spec.machine.clone(),
            remarks: self.remarks(),
            figures,
            claims,
            provenance: self.provenance(traces, commit),
        };
        Ok((paper, failures))
    }

    /// Does the runs that are not done: all of them, in the plan's order.
    fn run<P: Progress>(
        &self,
        traces: &Traces,
        session: &Session,
        begin: impl FnOnce(Option<u64>) -> P,
    ) -> Result<Outcome> {
        let names: Vec<&String> = traces.keys().collect();
        let list: Vec<TraceFile> = traces.values().cloned().collect();
        let configurations: Vec<Configuration> =
            self.plan.runs.iter().map(|run| run.config.clone().into()).collect();
        let number = |name: &String| names.iter().position(|known| *known == name);
        let mut runs = Vec::new();
        for (run, configuration) in self.plan.runs.iter().zip(&configurations) {
            let trace = number(&run.workload);
            let trace = trace.with_context(|| format!("{} has no trace", run.workload))?;
            runs.push((trace, configuration));
        }
        Ok(session.run(&list, &runs, begin))
    }

    /// All figures that are wanted, in the paper's order. Some are computed of others.
    fn figures(&self, entries: &[Entry]) -> Result<Vec<Figure>> {
        let wanted = self.spec.wanted(&self.wanted);
        let simulated = |at: &usize| {
            let plan = self.plan.figures.get(at)?;
            let result = |run: usize| entries.get(run)?.read();
            Some(assemble::figure(&self.spec.figures[*at], plan, &result))
        };
        let simulated: Vec<Option<Figure>> = wanted.iter().map(simulated).collect();
        let known: Vec<Figure> = simulated.iter().flatten().cloned().collect();
        let both = wanted.iter().zip(simulated);
        both.map(|(at, done)| match done {
            Some(figure) => Ok(figure),
            None => compute::figure(&self.spec.figures[*at], &known),
        })
        .collect()
    }

    fn remarks(&self) -> Vec<String> {
        let window = if self.wanted.quick { self.spec.quick_window } else { self.spec.window };
        let measured = match window.windows {
            0 => "in detail".to_owned(),
            windows => format!("of which {windows} windows are measured"),
        };
        let mut remarks = vec![format!(
            "Simulated: {} runs of {} million instructions, {measured}, after {} million of \
             warm-up, unless a figure says otherwise. A model's results.",
            self.plan.runs.len(),
            window.length as f64 / 1e6,
            window.warmup as f64 / 1e6,
        )];
        if window.windows > 0 {
            let intervals = "± is half of an interval of 95 % confidence, for where in the program \
                             one measures: what a model leaves out is not in it.";
            remarks.push(intervals.to_owned());
        }
        if self.wanted.quick {
            let quick = "With --quick: few workloads and a short window. It shows that all works, \
                         and no more.";
            remarks.push(quick.to_owned());
        }
        let run = self.plan.workloads();
        for workload in &self.spec.workloads {
            if run.contains(&&*workload.name) {
                remarks.push(format!("{}: stands for {}", workload.name, workload.stands_for));
            }
        }
        remarks
    }

    fn provenance(&self, traces: &Traces, commit: &str) -> Value {
        let run = self.plan.workloads();
        let identity = |trace: &TraceFile| {
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
            "commit": commit,
            "quick": self.wanted.quick,
            "traces": traces,
            "machine": self.plan.runs.first().map(|run| run.config.json()),
        })
    }
}
