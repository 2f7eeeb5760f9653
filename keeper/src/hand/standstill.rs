//! Whole processes that stand still: all their threads, also those that sleep, for as long as the
//! run is locked. What they have in registers is taken from them meanwhile
//! ([`taken`](super::Taken)).
use super::InjectError;
use super::others::Others;
use super::taken::Taken;

/// The threads of the processes of a run, which were asked to stop. Dropping this resumes those
/// that have stopped.
#[derive(Default)]
pub struct Standstill {
    processes: Vec<Others>,
}

/// Threads that were asked to stop, and others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Still {
    /// Those that were asked to.
    pub threads: u64,
    /// Those of them that have not left the kernel.
    pub in_calls: u64,
    /// Those that were not asked, since the call that they sleep in would be seen to end early. One
    /// that goes on meanwhile waits for its first page.
    pub left_alone: u64,
}

impl Standstill {
    /// Asks all threads of these processes to stop, but for those that were asked before. Each with
    /// whether its calls are announced.
    ///
    /// # Errors
    /// If one may not be traced, or there are too many.
    pub fn stop(
        &mut self,
        processes: impl Iterator<Item = (i32, bool)>,
    ) -> Result<(), InjectError> {
        for (pid, is_heard) in processes {
            let known = self.processes.iter().position(|others| others.pid() == pid);
            let index = known.unwrap_or_else(|| {
                let new = if is_heard { Others::none_heard(pid) } else { Others::none(pid) };
                self.processes.push(new);
                self.processes.len() - 1
            });
            self.processes[index].stop_all()?;
        }
        Ok(())
    }

    /// Whether no thread is to go on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// How many there are, and how many of them stand still by now.
    pub fn look(&mut self) -> Still {
        let mut still = Still::default();
        for others in &mut self.processes {
            still.left_alone += others.left_alone();
            others.bury_ended();
            for (_, at_rest) in others.held() {
                still.threads += 1;
                still.in_calls += u64::from(!at_rest);
            }
        }
        still
    }

    /// Takes what threads that stand still have in registers. What is left there is no secret.
    #[must_use]
    pub fn take(&mut self) -> Taken {
        Taken::from(&mut self.processes)
    }

    /// Gives it back.
    pub fn give_back(&mut self, taken: Taken) {
        taken.give_back(&mut self.processes);
    }

    /// Resumes the threads. False while some have not stopped yet: call again.
    pub fn let_go(&mut self) -> bool {
        self.processes.retain_mut(|others| !others.let_go());
        self.processes.is_empty()
    }
}
