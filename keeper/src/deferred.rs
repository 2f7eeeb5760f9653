//! Deferred verification: records are verified by a log hash, which is checked from time to time
//! (LHash, section 4.2), and the program's output may be held until a check has passed.

use crate::config::CheckEvery;
use crate::event_counts::{add, peak};
use crate::held_output::{HeldOutput, Mark};
use crate::outcome::{Ending, OutputDigest};
use crate::pager::{Pager, Stop};
use crate::secrets;
use crate::sys::process;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often it is looked whether so many pages came in, or whether a check is wanted at once.
const LOOK: Duration = Duration::from_millis(2);
/// How long a reader that takes nothing is waited for, if the program did not end by itself or is
/// to be locked.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks, and what waits for them.
pub(crate) struct Deferred {
    every: CheckEvery,
    output: Option<Arc<HeldOutput>>,
    is_wanted: AtomicBool,
}

impl Deferred {
    /// Starts the thread that checks, and those that hold the output.
    pub fn start(
        pager: &Arc<Pager>,
        every: CheckEvery,
        output: Option<Arc<HeldOutput>>,
    ) -> io::Result<Arc<Self>> {
        let is_wanted = AtomicBool::new(false);
        let deferred = Arc::new(Deferred { every, output, is_wanted });
        if let Some(output) = &deferred.output {
            let lets = Arc::clone(&deferred);
            // Cannot fail: the pager is new, so the cell is empty.
            let _ = pager.lets_out.set(Box::new(move || lets.let_output_out()));
            let wants = Arc::clone(&deferred);
            output.start(move || wants.is_wanted.store(true, Relaxed))?;
        }
        let (pager, checks) = (Arc::clone(pager), Arc::clone(&deferred));
        secrets::spawn("check", move || {
            while pager.ending().is_none() {
                checks.wait(&pager);
                let mark = checks.output.as_ref().map(|output| output.mark());
                if pager.ending().is_none()
                    && let Err(stop) = checks.check(&pager, mark)
                {
                    pager.stop(stop);
                }
            }
        })?;
        Ok(deferred)
    }

    /// Waits until a check is due, or the run ends.
    fn wait(&self, pager: &Pager) {
        let begun = Instant::now();
        let before = pager.counts.pages_in.load(Relaxed);
        let is_due = || match self.every {
            CheckEvery::Time(time) => begun.elapsed() >= time,
            CheckEvery::PagesIn(pages) => pager.counts.pages_in.load(Relaxed) - before >= pages,
            CheckEvery::Exit => false,
        };
        while !is_due() && pager.ending().is_none() && !self.is_wanted.swap(false, Relaxed) {
            let look = match self.every {
                CheckEvery::Time(time) => LOOK.max(time.saturating_sub(begun.elapsed())),
                CheckEvery::PagesIn(_) => LOOK,
                CheckEvery::Exit => Duration::from_secs(1),
            };
            let until = Instant::now() + look;
            secrets::rest_until(until, || pager.ending().is_some() || self.is_wanted.load(Relaxed));
        }
    }

    /// Has all that the program has written checked and written, while it stands still. False if
    /// that takes too long, as with a reader that takes nothing.
    fn let_output_out(&self) -> bool {
        let Some(output) = &self.output else { return true };
        let until = Instant::now() + PATIENCE;
        loop {
            output.mark_all();
            if !output.holds_any() {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            self.is_wanted.store(true, Relaxed);
            std::thread::sleep(LOOK);
        }
    }

    /// Verifies what was believed so far, and lets go what was read of the output before `mark`.
    fn check(&self, pager: &Pager, mark: Option<Mark>) -> Result<(), Stop> {
        let begun = Instant::now();
        let lines = pager.check_log()?;
        add(&pager.counts.checks, 1);
        add(&pager.counts.checked_lines, lines);
        peak(&pager.counts.check_us_peak, begun.elapsed().as_micros() as u64);
        // A page that did not verify was left to the program's SIGBUS: what it writes since is
        // not to be believed.
        match (&self.output, mark) {
            (Some(output), _) if pager.noted_violation().is_some() => output.give_up(),
            (Some(output), Some(mark)) => output.release(mark),
            _ => {}
        }
        Ok(())
    }

    /// Why released output could not be written, if that is so.
    pub fn trouble(&self) -> Option<String> {
        self.output.as_ref().and_then(|output| output.trouble())
    }

    /// What was written of the held output.
    pub fn written(&self) -> Option<[OutputDigest; 2]> {
        self.output.as_ref().and_then(|output| output.digests())
    }

    /// The last check, when the run ends: another ending if it does not pass. What is held is
    /// written if it does, else given up. A run that is locked cannot be checked: its keys are
    /// sealed, and it holds no output.
    pub fn finish(self: &Arc<Self>, pager: &Arc<Pager>, ending: Ending, front: &OwnedFd) -> Ending {
        let mark = self.output.as_ref().map(|output| output.mark_all());
        let ending = match (self.check_last(pager, mark), &ending) {
            (Ok(()), _) | (_, Ending::Violation { .. }) => ending,
            (Err(Stop::Violation(what)), _) => {
                add(&pager.counts.violations, 1);
                Ending::Violation { what }
            }
            // What was not checked is not known to be right.
            (Err(stop), _) => Ending::KeeperFailed { what: stop.to_string() },
        };
        if let Some(output) = &self.output {
            let is_its_own = matches!(ending, Ending::Exited { .. });
            let waits = |idle| !process::has_ended(front) && (is_its_own || idle < PATIENCE);
            add(&pager.counts.output_bytes_given_up, output.finish(waits));
        }
        ending
    }

    /// Checks on a thread that may work with keys.
    fn check_last(self: &Arc<Self>, pager: &Arc<Pager>, mark: Option<Mark>) -> Result<(), Stop> {
        if secrets::are_sealed() {
            return Ok(());
        }
        let (says, said) = std::sync::mpsc::channel();
        let (checks, checked) = (Arc::clone(self), Arc::clone(pager));
        let failed = |error| Stop::Internal(format!("starting the last check: {error}"));
        secrets::spawn("last-check", move || {
            secrets::pass();
            // An error means that the receiver has gone.
            let _ = says.send(checks.check(&checked, mark));
        })
        .map_err(failed)?;
        loop {
            match said.recv_timeout(LOOK) {
                Ok(checked) => return checked,
                Err(RecvTimeoutError::Timeout) if secrets::are_sealed() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Stop::Internal("the last check was not made".to_owned()));
                }
            }
        }
    }
}
