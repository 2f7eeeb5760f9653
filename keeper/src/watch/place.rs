//! The watcher's processor: another one than a program runs on, as long as one is idle.
//!
//! A real-time thread is woken where it slept, also if a program runs there by then and the
//! processor beside it is idle. A program that fits would lose a fiftieth of its time to looks.

use crate::sys::sched;
use std::time::{Duration, Instant};

/// The time between two looks for a better one. A program that has a processor stays there as a
/// rule.
const PAUSE: Duration = Duration::from_millis(10);
/// The most processes that are asked where their first threads run.
const MOST_ASKED: usize = 8;

/// Where the watcher runs.
pub(super) struct Place {
    looked: Instant,
}

impl Place {
    /// For the calling thread.
    pub fn of_this_thread() -> Self {
        Place { looked: Instant::now() }
    }

    /// Leaves a processor on which one of `threads` runs, if so few threads are `runnable` in all,
    /// the calling one among them, that another processor is idle. Often called.
    pub fn see_to(&mut self, runnable: Option<u32>, threads: impl Iterator<Item = i32>) {
        if self.looked.elapsed() < PAUSE {
            return;
        }
        self.looked = Instant::now();
        let cpus = sched::allowed_cpus();
        let is_any_idle = runnable.is_some_and(|all| all as usize <= cpus.len());
        if !is_any_idle || cpus.len() < 2 {
            return;
        }
        let taken: Vec<usize> =
            threads.take(MOST_ASKED).filter_map(sched::cpu_of_running).collect();
        if let Some(cpu) = better(&cpus, &taken, sched::own_cpu()) {
            // Without it the thread stays where it is.
            let _ = sched::move_self(cpu, &cpus);
        }
    }
}

/// Another processor than `own`, if that is taken and another is not.
fn better(cpus: &[usize], taken: &[usize], own: usize) -> Option<usize> {
    let free = || cpus.iter().copied().find(|cpu| !taken.contains(cpu));
    if taken.contains(&own) { free() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_left_only_for_one_that_no_program_runs_on() {
        assert_eq!(better(&[0, 1], &[0], 0), Some(1));
        assert_eq!(better(&[0, 1], &[1], 1), Some(0));
        assert_eq!(better(&[0, 1], &[0], 1), None);
        assert_eq!(better(&[0, 1], &[0, 1], 0), None);
        assert_eq!(better(&[2, 5, 7], &[2, 5], 5), Some(7));
        assert_eq!(better(&[0, 1], &[], 0), None);
    }

    #[test]
    fn a_thread_that_has_moved_may_run_anywhere() {
        let cpus = sched::allowed_cpus();
        for &cpu in &cpus {
            sched::pin_self(cpu).expect("it is allowed there");
            assert_eq!(sched::own_cpu(), cpu);
            assert_eq!(sched::cpu_of_running(sched::own_tid()), Some(cpu));
            sched::move_self(cpu, &cpus).expect("it is allowed there");
            assert_eq!(sched::allowed_cpus(), cpus);
        }
        assert_eq!(sched::cpu_of_running(-1), None);
    }
}
