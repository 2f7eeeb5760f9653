//! A panic in any thread of the keeper ends the keeper.
//!
//! Unwinding would let go of locks in the middle of a change, and the other threads would go on
//! with what was half changed. The front process has the keeper's descriptors too, so no program
//! learns anything from them before it is killed.

use crate::outcome::{Ending, Outcome, Statistics};
use std::fs::File;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Whether the program was started.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);
/// Whether some thread writes the run's outcome, or has.
static IS_REPORTED: AtomicBool = AtomicBool::new(false);

/// How long a thread that panics leaves the process to one that writes the outcome.
const PATIENCE: Duration = Duration::from_secs(10);

/// From now on, the program runs if the keeper ends.
pub(crate) fn program_has_started() {
    HAS_STARTED.store(true, SeqCst);
}

/// Takes the report for the thread that asks: whatever panics later is no outcome any more. Whether
/// it was free.
pub(crate) fn take_the_report() -> bool {
    !IS_REPORTED.swap(true, SeqCst)
}

/// From now on, a panic of any thread of this process is the run's outcome.
pub(crate) fn end_the_keeper(report: File) {
    let keeper = std::process::id();
    std::panic::set_hook(Box::new(move |panic| {
        // A process that was forked and has not become another program yet reports nothing.
        if std::process::id() == keeper {
            if take_the_report() {
                let outcome = Outcome {
                    ending: Ending::KeeperFailed { what: sentence(panic) },
                    started: HAS_STARTED.load(SeqCst),
                    statistics: Statistics::default(),
                };
                // Where it cannot be written the front process says that the keeper ended early.
                let _ = (&report).write_all(&serde_json::to_vec(&outcome).unwrap_or_default());
            } else {
                std::thread::sleep(PATIENCE);
            }
        }
        // SAFETY: _exit runs no destructor, so no lock is let go.
        unsafe { libc::_exit(1) }
    }));
}

fn sentence(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("without a name");
    let place =
        panic.location().map_or_else(String::new, |at| format!(", {}:{}", at.file(), at.line()));
    let payload = panic.payload();
    let literal = payload.downcast_ref::<&str>().copied();
    let made = || payload.downcast_ref::<String>().map(String::as_str);
    let what = literal.or_else(made).unwrap_or("no message");
    format!("its thread {name} panicked (an error of casemate's{place}): {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    /// Where the process of [`panics_in_another_thread`] reports to, and whether its program was
    /// started.
    const REPORT: &str = "CASEMATE_TEST_PANIC_REPORT";
    const STARTED: &str = "CASEMATE_TEST_PANIC_STARTED";

    #[test]
    #[ignore = "ends its process: the test below starts it in one of its own"]
    fn panics_in_another_thread() {
        let Some(report) = std::env::var_os(REPORT) else { return };
        end_the_keeper(File::create(report).expect("a file of the test"));
        if std::env::var_os(STARTED).is_some() {
            program_has_started();
        }
        // Two at once, of which one reports.
        for name in ["handler-7", "handler-8"] {
            let work = || assert_eq!(1 + 1, 3, "arithmetic");
            let _thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        }
        loop {
            std::thread::park();
        }
    }

    fn after_a_panic(has_started: bool) -> (Outcome, Option<i32>) {
        let name = format!("casemate-panic-{}-{has_started}", std::process::id());
        let report: PathBuf = std::env::temp_dir().join(name);
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["--exact", "panics::tests::panics_in_another_thread", "--ignored"]);
        command.env(REPORT, &report);
        if has_started {
            command.env(STARTED, "1");
        }
        let done = command.output().expect("it starts");
        let text = std::fs::read(&report).expect("it is written");
        let _ = std::fs::remove_file(&report);
        (serde_json::from_slice(&text).expect("one outcome"), done.status.code())
    }

    #[test]
    fn a_panic_of_any_thread_ends_the_process_with_its_reason() {
        for has_started in [false, true] {
            let (outcome, code) = after_a_panic(has_started);
            assert_eq!((outcome.started, code), (has_started, Some(1)));
            let Ending::KeeperFailed { what } = outcome.ending else {
                panic!("{:?}", outcome.ending)
            };
            for part in ["handler-", "panics.rs", "arithmetic"] {
                assert!(what.contains(part), "{what}");
            }
        }
    }
}
