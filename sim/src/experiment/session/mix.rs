//! Mixes: under each configuration all programs at once, and each alone on the same machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::collector::Collector;
use super::{Entry, Outcome, Progress, Session, SessionError};
use crate::config::{ConfigurationError, Layer};
use crate::experiment::configurations::Configuration;
use crate::experiment::machine::MachineError;
use crate::experiment::mix::{self, MeasuredMix, MixLimits, Program};
use crate::experiment::run::{Measured, RunError};
use crate::experiment::simulated;
use crate::experiment::trace_file::TraceFile;
use crate::results::document::Document;
use crate::results::mix::Mix;
use crate::results::provenance::TraceIdentity;

/// The most programs of a mix: a core for each.
pub const MOST_PROGRAMS: usize = 8;

/// Why there is no such mix.
#[derive(Debug, thiserror::Error)]
pub enum MixError {
    /// There are too many programs, or none.
    #[error("a mix has 1 to {MOST_PROGRAMS} programs, a core for each; here are {found}")]
    Programs {
        /// How many there are.
        found: usize,
    },
    /// It is to be sampled.
    #[error("a mix is simulated in detail from beginning to end; leave {key} out")]
    Sampled {
        /// What asks for it.
        key: &'static str,
    },
    /// The protection unit cannot serve several programs at once.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A machine with so many cores is impossible.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}

/// What is to be run: a configuration, and all programs or one of them alone.
#[derive(Clone, Copy)]
struct Task {
    configuration: usize,
    alone: Option<usize>,
}

type Found = Result<MeasuredMix, RunError>;

impl Session<'_> {
    /// Runs programs, by their traces' numbers, at once and each alone, under all configurations.
    ///
    /// # Errors
    /// They make no mix.
    pub fn run_mix<P: Progress>(
        &self,
        traces: &[TraceFile],
        programs: &[usize],
        configurations: &[Configuration],
        begin: impl FnOnce(Option<u64>) -> P,
    ) -> Result<Outcome, MixError> {
        let programs: Vec<&TraceFile> = programs.iter().map(|number| &traces[*number]).collect();
        let identity = identity(&programs);
        let mut entries = Vec::new();
        for configuration in configurations {
            let configuration = with_cores(configuration, programs.len())?;
            let origin = programs[0].path.clone();
            entries.push(Entry::new(&configuration, &identity, None, &origin));
        }
        if let Some(store) = self.store.filter(|_| !self.force) {
            entries.iter_mut().for_each(|entry| entry.look_up(store));
        }
        let progress = begin(None);
        let tasks = tasks(&entries, traces.len());
        let found: Vec<Mutex<Option<Found>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let jobs =
            self.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let work = || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let of_task: Vec<&TraceFile> = match task.alone {
                    None => programs.clone(),
                    Some(number) => vec![&traces[number]],
                };
                let result = self.measure(&entries[task.configuration], &of_task, &progress);
                let at = tasks.iter().position(|one| std::ptr::eq(one, task)).unwrap_or(0);
                *found[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                progress.run_done();
            }
        };
        thread::scope(|scope| {
            (0..jobs.min(tasks.len())).for_each(|_| drop(scope.spawn(work)));
        });
        let found =
            found.into_iter().map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(self.gather(entries, &programs, traces, tasks.iter().copied().zip(found), progress))
    }

    fn measure(&self, entry: &Entry, programs: &[&TraceFile], progress: &dyn Progress) -> Found {
        let config = &entry.configuration.resolved;
        let mut machine = simulated::build_mixing(config)?;
        let skip = config.number("run.skip_instructions");
        let programs = programs.iter().enumerate();
        let mut programs: Vec<Program> = programs
            .map(|(number, trace)| Program::new(trace, skip, number, self.stop, progress))
            .collect();
        let length = config.number("run.length_instructions");
        let limits = MixLimits {
            warmup_instructions: config.number("run.warmup_instructions"),
            length_instructions: Some(length).filter(|length| *length > 0),
        };
        mix::measure(machine.as_mut(), &mut programs, limits)
    }

    /// Makes results of what was measured.
    fn gather<P: Progress>(
        &self,
        entries: Vec<Entry>,
        programs: &[&TraceFile],
        traces: &[TraceFile],
        found: impl Iterator<Item = (Task, Option<Found>)>,
        progress: P,
    ) -> Outcome {
        let collector = Collector::new(entries.clone(), self, self.store, progress);
        let mut by_configuration: Vec<Vec<(Option<usize>, MeasuredMix)>> =
            vec![Vec::new(); entries.len()];
        for (task, found) in found {
            let entry = &entries[task.configuration];
            match found {
                Some(Ok(measured)) => {
                    by_configuration[task.configuration].push((task.alone, measured));
                }
                Some(Err(error)) if !self.stop.load(Ordering::Relaxed) => {
                    let trace = match task.alone {
                        None => entry.trace.name.clone(),
                        Some(number) => traces[number].identity.name.clone(),
                    };
                    let scheme = entry.configuration.scheme().to_owned();
                    collector.fail(SessionError::Run { trace, scheme, error });
                }
                _ => {}
            }
        }
        for (id, measured) in by_configuration.into_iter().enumerate() {
            if let Some(document) = document(&entries[id], programs, traces, measured)
                && let Err(error) = collector.keep_document(id, &document)
            {
                collector.fail(error.into());
            }
        }
        collector.outcome()
    }
}

/// The result of a configuration, if all of its runs are done.
fn document(
    entry: &Entry,
    programs: &[&TraceFile],
    traces: &[TraceFile],
    measured: Vec<(Option<usize>, MeasuredMix)>,
) -> Option<Document> {
    let of = |which: Option<usize>| measured.iter().find(|(alone, _)| *alone == which);
    let (_, mixed) = of(None)?;
    let mut parts = Vec::new();
    for (program, part) in programs.iter().zip(&mixed.parts) {
        let number = traces.iter().position(|trace| trace.identity == program.identity)?;
        let (_, alone) = of(Some(number))?;
        parts.push((program.identity.name.as_str(), *part, *alone.parts.first()?));
    }
    let MeasuredMix { warmup, region, whole, .. } = mixed.clone();
    let run = Measured { warmup, region, samples: Vec::new(), sampled: None, whole };
    let document = Document::new(entry.configuration.scheme(), entry.provenance(), run);
    Some(Document { mix: Some(Mix::of(&parts)), ..document })
}

/// The mix, and each of its traces alone, of all configurations that have no result.
fn tasks(entries: &[Entry], traces: usize) -> Vec<Task> {
    let open = entries.iter().enumerate().filter(|(_, entry)| !entry.is_done());
    let of = |(configuration, _)| {
        let alone = (0..traces).map(Some);
        std::iter::once(None).chain(alone).map(move |alone| Task { configuration, alone })
    };
    open.flat_map(of).collect()
}

/// A configuration with a core for each program.
fn with_cores(configuration: &Configuration, programs: usize) -> Result<Configuration, MixError> {
    if !(1..=MOST_PROGRAMS).contains(&programs) {
        return Err(MixError::Programs { found: programs });
    }
    let resolved = &configuration.resolved;
    let sampled = ["run.sample_windows", "run.every_instructions"];
    if let Some(key) = sampled.into_iter().find(|key| resolved.number(key) > 0) {
        return Err(MixError::Sampled { key });
    }
    if resolved.text("run.sample_points") != crate::config::simpoints::NONE {
        return Err(MixError::Sampled { key: "run.sample_points" });
    }
    let mut layer = Layer::default();
    layer.set("--mix", "core.cores", &programs.to_string())?;
    let resolved = resolved.with(&layer)?;
    resolved.check()?;
    if programs > 1 {
        simulated::check_mix(&resolved)?;
    }
    Ok(Configuration { resolved, varied: configuration.varied.clone() })
}

/// What results say of a mix: the names of its traces, and a hash over their names and hashes.
fn identity(programs: &[&TraceFile]) -> TraceIdentity {
    let names: Vec<String> = programs.iter().map(|one| one.identity.name.clone()).collect();
    let mut hasher = blake3::Hasher::new();
    let mut is_whole = true;
    for program in programs {
        let hash = program.identity.blake3.as_deref();
        is_whole &= hash.is_some();
        hasher.update(format!("{}\n{}\n", program.identity.name, hash.unwrap_or("")).as_bytes());
    }
    TraceIdentity {
        name: names.join("+"),
        format: "mix".to_owned(),
        blake3: is_whole.then(|| hasher.finalize().to_hex().to_string()),
        arguments: names,
        ..TraceIdentity::default()
    }
}
