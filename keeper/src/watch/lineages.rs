//! Which processes may descend by forks from one that was armed. Only these can have memory that a
//! space's userfaultfd has registered; what another process has registered is its own business.

use crate::sys::procfs;
use std::collections::HashSet;
use std::ops::Range;

type Arguments = [Range<u64>; 2];

/// Where the arguments and environments of armed programs lie. A fork copies these addresses, and
/// an `execve` chooses others.
#[derive(Default)]
pub(super) struct Lineages {
    armed: HashSet<Arguments>,
    /// Whether an armed program's addresses could not be read: it may have any.
    any_unknown: bool,
}

impl Lineages {
    /// Notes that the process of a living thread is armed with a userfaultfd of its own.
    pub fn begin(&mut self, thread: i32) {
        self.begin_at(procfs::arguments_and_environment(thread));
    }

    fn begin_at(&mut self, arguments: Arguments) {
        self.any_unknown |= !are_known(&arguments);
        self.armed.insert(arguments);
    }

    /// Notes where an armed process has its arguments now: it may have moved them (`PR_SET_MM`).
    pub fn renew(&mut self, thread: i32) {
        let arguments = procfs::arguments_and_environment(thread);
        // Of one that has ended meanwhile nothing can be read.
        if are_known(&arguments) {
            self.armed.insert(arguments);
        }
    }

    /// Whether nothing was armed yet.
    pub fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }

    /// Whether the process of a living thread may descend from an armed one without an `execve` in
    /// between.
    pub fn may_include(&self, thread: i32) -> bool {
        !self.armed.is_empty() && self.may_include_at(&procfs::arguments_and_environment(thread))
    }

    fn may_include_at(&self, arguments: &Arguments) -> bool {
        self.any_unknown || !are_known(arguments) || self.armed.contains(arguments)
    }
}

/// The kernel shows zeros of a thread that has ended, and to those who may not trace it.
fn are_known(arguments: &Arguments) -> bool {
    arguments.iter().all(|range| range.start > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const UNKNOWN: Arguments = [0..0, 0..0];

    #[test]
    fn a_lineage_is_told_by_addresses_and_in_doubt_may_include() {
        let [first, second] = [[0x1000..0x1010, 0x1010..0x1020], [0x1000..0x1018, 0x1018..0x1020]];
        let mut lineages = Lineages::default();
        assert!(!lineages.may_include(std::process::id() as i32), "nothing is armed");
        lineages.begin_at(first.clone());
        assert!(lineages.may_include_at(&first));
        assert!(!lineages.may_include_at(&second));
        assert!(lineages.may_include_at(&UNKNOWN));
        lineages.begin_at(UNKNOWN);
        assert!(lineages.may_include_at(&second));
    }

    #[test]
    fn a_process_that_ended_makes_no_other_suspect() {
        let mut lineages = Lineages::default();
        lineages.begin(std::process::id() as i32);
        lineages.renew(i32::MAX);
        assert!(!lineages.may_include_at(&[0x1000..0x1010, 0x1010..0x1020]));
    }

    #[test]
    fn a_forked_process_is_included_and_one_that_executed_is_not() {
        let mut lineages = Lineages::default();
        lineages.begin(std::process::id() as i32);
        assert!(lineages.may_include(std::process::id() as i32));
        let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        // While it executes, its addresses are not known yet.
        let begun = Instant::now();
        let executed = || !lineages.may_include(other.id() as i32);
        while !executed() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        let executed = executed();
        other.kill().expect("it is ours");
        other.wait().expect("it is ours");
        assert!(executed);
    }
}
