//! Results and failures of the runs of a session, as they come.

use std::error::Error;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Entry, Outcome, Progress, Session, SessionError};
use crate::experiment::batch::Listener;
use crate::experiment::run::{Measured, RunError};
use crate::experiment::store::{Store, StoreError};
use crate::results::document::Document;

/// Hears of runs, and keeps their results.
pub(super) struct Collector<'a, P> {
    entries: Mutex<Vec<Entry>>,
    failures: Mutex<Vec<SessionError>>,
    session: &'a Session<'a>,
    /// Where results are written, if they are.
    store: Option<&'a Store>,
    progress: P,
}

impl<'a, P: Progress> Collector<'a, P> {
    pub(super) fn new(
        entries: Vec<Entry>,
        session: &'a Session<'a>,
        store: Option<&'a Store>,
        progress: P,
    ) -> Self {
        let (entries, failures) = (Mutex::new(entries), Mutex::new(Vec::new()));
        Collector { entries, failures, session, store, progress }
    }

    pub(super) fn outcome(self) -> Outcome {
        let entries = self.entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failures = self.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        Outcome { entries, failures }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self, error: SessionError) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let sentence = error.to_string();
        if failures.iter().all(|known| known.to_string() != sentence) {
            failures.push(error);
        }
    }

    fn keep(&self, id: usize, measured: Measured) -> Result<(), StoreError> {
        let entry = self.entries()[id].clone();
        let document = Document::new(entry.configuration.scheme(), entry.provenance(), measured);
        self.keep_document(id, &document)
    }

    /// Keeps the result of a run.
    pub(super) fn keep_document(&self, id: usize, document: &Document) -> Result<(), StoreError> {
        let mut entry = self.entries()[id].clone();
        entry.result = Some(document.json());
        if let Some(store) = self.store {
            entry.keep(store)?;
        }
        if self.session.leaves_results && entry.folder.is_some() {
            entry.result = None;
        }
        self.entries()[id] = entry;
        Ok(())
    }
}

impl<P: Progress> Listener for Collector<'_, P> {
    fn decoded(&self, instructions: u64, runs: usize) {
        self.progress.decoded(instructions.saturating_mul(runs as u64));
    }

    fn done(&self, id: usize, outcome: Result<Measured, RunError>) {
        match outcome {
            Ok(measured) => {
                if let Err(error) = self.keep(id, measured) {
                    self.fail(error.into());
                }
            }
            // A run that is given up finds its trace at an end: that is not reported as a failure.
            Err(_) if self.session.stop.load(Ordering::Relaxed) => {}
            Err(error) => {
                let entry = self.entries()[id].clone();
                let scheme = entry.configuration.scheme().to_owned();
                self.fail(SessionError::Run { trace: entry.trace.name, scheme, error });
            }
        }
        self.progress.run_done();
    }

    fn broken(&self, ids: &[usize], error: Box<dyn Error + Send + Sync>) {
        let why = error.to_string();
        let origin = ids.first().map(|id| self.entries()[*id].origin.clone());
        let sentence = match origin {
            Some(origin) if !why.starts_with(&format!("{origin}: ")) => format!("{origin}: {why}"),
            _ => why,
        };
        self.fail(SessionError::Trace(sentence));
    }
}
