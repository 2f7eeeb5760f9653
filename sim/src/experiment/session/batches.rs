//! What is to be done of a session, in batches, and how much that is.

use super::Entry;
use crate::experiment::batch::Batch;
use crate::experiment::trace_file::TraceFile;

/// What is still to be done, in batches that share a trace from the same instruction on.
pub(super) fn batches(
    traces: &[TraceFile],
    entries: &[Entry],
    trace_of: &[usize],
    jobs: usize,
) -> Vec<Batch> {
    let mut batches = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        let is_open = |id: &usize| trace_of[*id] == number && !entries[*id].is_done();
        let mut todo: Vec<usize> = (0..entries.len()).filter(is_open).collect();
        let skip = |id: &usize| entries[*id].configuration.resolved.number("run.skip_instructions");
        todo.sort_by_key(|id| (skip(id), *id));
        for same in todo.chunk_by(|a, b| skip(a) == skip(b)) {
            for runs in same.chunks(jobs) {
                let (trace, skip) = (trace.clone(), skip(&runs[0]));
                batches.push(Batch {
                    open: Box::new(move || Ok(trace.open(skip)?)),
                    runs: runs.iter().map(|id| entries[*id].run(*id)).collect(),
                });
            }
        }
    }
    batches
}

/// Instructions that all runs will read together, if all traces say how many they have.
pub(super) fn total(traces: &[TraceFile], entries: &[Entry], trace_of: &[usize]) -> Option<u64> {
    let mut total = 0_u64;
    for (entry, trace) in entries.iter().zip(trace_of).filter(|(entry, _)| !entry.is_done()) {
        let config = &entry.configuration.resolved;
        let limits = entry.limits();
        let left =
            traces[*trace].instructions?.saturating_sub(config.number("run.skip_instructions"));
        let wanted = limits.length_instructions.map(|length| limits.warmup_instructions + length);
        total += wanted.map_or(left, |wanted| wanted.min(left));
    }
    Some(total)
}
