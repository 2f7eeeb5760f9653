//! One run of a session.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::experiment::batch::Run;
use crate::experiment::configurations::Configuration;
use crate::experiment::run::Limits;
use crate::experiment::simulated;
use crate::experiment::store::{self, Store, StoreError};
use crate::results::compare;
use crate::results::provenance::{Casemate, Provenance, TraceIdentity};

/// One run that is asked for, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The configuration.
    pub configuration: Configuration,
    /// The trace.
    pub trace: TraceIdentity,
    /// Where it is: the file, or the program that runs.
    pub origin: String,
    /// How many instructions the trace has, if that is known.
    pub trace_instructions: Option<u64>,
    /// The result, if there is one in memory: see [`read`](Self::read).
    pub result: Option<Value>,
    /// Where it was written.
    pub folder: Option<PathBuf>,
    /// Whether it was there before.
    pub reused: bool,
}

impl Entry {
    pub(super) fn new(
        configuration: &Configuration,
        trace: &TraceIdentity,
        trace_instructions: Option<u64>,
        origin: &Path,
    ) -> Self {
        Entry {
            configuration: configuration.clone(),
            trace: trace.clone(),
            origin: origin.display().to_string(),
            trace_instructions,
            result: None,
            folder: None,
            reused: false,
        }
    }

    /// Whether there is a result.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.result.is_some() || self.folder.is_some()
    }

    /// The result, wherever it is.
    #[must_use]
    pub fn read(&self) -> Option<Value> {
        self.result.clone().or_else(|| store::result(self.folder.as_ref()?).ok())
    }

    /// What of the trace is simulated.
    pub(super) fn limits(&self) -> Limits {
        Limits::of(&self.configuration.resolved, self.trace_instructions)
    }

    pub(super) fn provenance(&self) -> Provenance {
        Provenance {
            casemate: Casemate::this(),
            trace: self.trace.clone(),
            config: self.configuration.resolved.json(),
        }
    }

    /// The run, as the driver takes it.
    pub(super) fn run(&self, id: usize) -> Run {
        let config = self.configuration.resolved.clone();
        Run { id, limits: self.limits(), build: Box::new(move || simulated::build(&config)) }
    }

    /// Takes the result from a store, if it is there.
    pub(super) fn look_up(&mut self, store: &Store) {
        let found = store.find(self.configuration.scheme(), &self.provenance());
        if let Some((result, folder)) = found {
            (self.result, self.folder, self.reused) = (Some(result), Some(folder), true);
        }
    }

    /// Writes the result, if there is one that was not written.
    pub(super) fn keep(&mut self, store: &Store) -> Result<(), StoreError> {
        if let Some(result) = self.result.as_ref().filter(|_| self.folder.is_none()) {
            let (scheme, config) = (self.configuration.scheme(), &self.configuration.resolved);
            self.folder = Some(store.write(scheme, &self.provenance(), result, &config.toml())?);
        }
        Ok(())
    }

    /// What its cycles are compared with: of the runs of the same machine and trace the one without
    /// protection, or else the first. Nothing is compared with itself.
    #[must_use]
    pub fn baseline<'a>(&self, entries: &'a [Entry]) -> Option<&'a Entry> {
        let result = self.result.as_ref()?;
        let same = |other: &&Entry| {
            other.result.as_ref().is_some_and(|other| compare::is_same_run(result, other))
        };
        let mut candidates = entries.iter().filter(same);
        let first = candidates.clone().next();
        let unprotected =
            candidates.find(|other| other.configuration.scheme() == compare::BASELINE);
        unprotected.or(first).filter(|other| !std::ptr::eq(*other, self))
    }
}
