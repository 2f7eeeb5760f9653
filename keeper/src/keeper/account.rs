//! The account of a run that has ended.

use super::Run;
use crate::config::PAGE_BYTES;
use crate::outcome::{Ending, Outcome, Statistics};
use crate::secrets;
use crate::sys::process;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Run {
    /// How the run ended, and its statistics.
    pub(super) fn outcome(&self, front: &OwnedFd, started: Instant) -> Outcome {
        let ending = self.ending(front);
        self.pager.note_peaks();
        Outcome { ending, started: true, statistics: self.statistics(started) }
    }

    fn ending(&self, front: &OwnedFd) -> Ending {
        let pager = &self.pager;
        let fallback =
            || Ending::KeeperFailed { what: "the run ended without a reason".to_owned() };
        let ending = pager.ending().cloned().unwrap_or_else(fallback);
        let ending = pager.noted_violation().unwrap_or(ending);
        let ending = match &self.deferred {
            Some(deferred) => deferred.finish(pager, ending, front),
            None => ending,
        };
        match (ending, secrets::roots_account().1) {
            (Ending::KeeperFailed { what }, Some(why)) => {
                Ending::KeeperFailed { what: format!("{what}: {why}") }
            }
            (ending, _) => ending,
        }
    }

    fn statistics(&self, started: Instant) -> Statistics {
        let pager = &self.pager;
        let c = &pager.counts;
        let kept = pager.budget.kept();
        let store = pager.store.stats();
        let roots = secrets::roots_account().0;
        let page = PAGE_BYTES as u64;
        Statistics {
            elapsed_s: started.elapsed().as_secs_f64(),
            processes_seen: c.processes_seen.load(Relaxed),
            processes_armed: c.processes_armed.load(Relaxed),
            standstills: c.standstills.load(Relaxed),
            look_late_us_peak: c.look_late_us_peak.load(Relaxed),
            late_look: self.findings.late_look.lock().clone(),
            starvations: c.starvations.load(Relaxed),
            faults: c.faults.load(Relaxed),
            programs: pager.quotas.uses(),
            pages_in: c.pages_in.load(Relaxed),
            pages_out: c.pages_out.load(Relaxed),
            zero_fills: c.zero_fills.load(Relaxed),
            file_fills: c.file_fills.load(Relaxed),
            data_mappings_replaced: c.data_mappings_replaced.load(Relaxed),
            zero_evictions: c.zero_evictions.load(Relaxed),
            clean_evictions: c.clean_evictions.load(Relaxed),
            idle_evictions: c.idle_evictions.load(Relaxed),
            uncounted_moves: c.uncounted_moves.load(Relaxed),
            calls_announced: c.calls_announced.load(Relaxed),
            unannounced_changes: c.unannounced_changes.load(Relaxed),
            processes_unannounced: c.processes_unannounced.load(Relaxed),
            processes_unannounced_why: pager.unannounced.get().cloned().unwrap_or_default(),
            userfaults_refused: c.userfaults_refused.load(Relaxed),
            listeners_refused: c.listeners_refused.load(Relaxed),
            grown_without_agent: c.grown_without_agent.load(Relaxed),
            filled_without_room: c.filled_without_room.load(Relaxed),
            reconciled_pages: c.reconciled_pages.load(Relaxed),
            grace_hits: c.grace_hits.load(Relaxed),
            readahead_pages: c.readahead_pages.load(Relaxed),
            readahead_hits: c.readahead_hits.load(Relaxed),
            readahead_misses: c.readahead_misses.load(Relaxed),
            fault_latency: c.fault_latency(),
            protected_bytes_peak: c.protected_pages_peak.load(Relaxed) * page,
            unprotected_bytes_peak: c.unprotected_pages_peak.load(Relaxed) * page,
            unprotectable_bytes_peak: c.unprotectable_pages_peak.load(Relaxed) * page,
            unprotected_largest: self.findings.unprotected_largest.lock().clone(),
            clear_bytes_peak: kept.peak * page,
            clear_bytes_limit: kept.greatest * page,
            clear_bytes_limit_least: kept.least * page,
            clear_bytes_limit_last: kept.last * page,
            clear_bytes_excess_peak: kept.excess * page,
            forked_unshared_pages: c.forked_unshared_pages.load(Relaxed),
            excess_uncounted_bytes_peak: c.excess_uncounted_pages_peak.load(Relaxed) * page,
            excess_moving_bytes_peak: c.excess_moving_pages_peak.load(Relaxed) * page,
            clear_size_changes: kept.changes,
            crypt_bytes_peak: store.crypt_peak,
            swap_bytes_peak: store.swap_peak,
            swap_pages_out: store.swap_pages_out,
            swap_pages_in: store.swap_pages_in,
            metadata_bytes_peak: c.metadata_bytes_peak.load(Relaxed),
            trusted_bytes: self.trusted_bytes,
            key_memory: format!("{:?}", self.key_memory),
            violations: c.violations.load(Relaxed),
            checks: c.checks.load(Relaxed),
            checked_lines: c.checked_lines.load(Relaxed),
            check_us_peak: c.check_us_peak.load(Relaxed),
            output_bytes_given_up: c.output_bytes_given_up.load(Relaxed),
            output_trouble: self.deferred.as_ref().and_then(|deferred| deferred.trouble()),
            output: self.deferred.as_ref().and_then(|deferred| deferred.written()),
            healed_pages: c.healed_pages.load(Relaxed),
            healed_bits: c.healed_bits.load(Relaxed),
            resealed_pages: c.resealed_pages.load(Relaxed),
            key_rotations: c.key_rotations.load(Relaxed),
            page_keys_derived: pager.page_keys().keys_derived(),
            root_reveals: roots.reveals,
            root_reveal_us_peak: roots.slowest.as_micros() as u64,
            failing_frames: pager.healing.failing_again(),
            scrubbed_pages: c.scrubbed_pages.load(Relaxed),
            keeper_cpu_s: process::own_cpu_seconds(),
            profile: pager.profiler.sum(),
        }
    }
}
