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

/// Whether the program was started.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// From now on, the program runs if the keeper ends.
pub(crate) fn program_has_started() {
    HAS_STARTED.store(true, SeqCst);
}

/// From now on, a panic of any thread is the run's outcome.
pub(crate) fn end_the_keeper(report: File) {
    std::panic::set_hook(Box::new(move |panic| {
        let outcome = Outcome {
            ending: Ending::KeeperFailed { what: sentence(panic) },
            started: HAS_STARTED.load(SeqCst),
            statistics: Statistics::default(),
        };
        // Where it cannot be written the front process says that the keeper ended early.
        let _ = (&report).write_all(&serde_json::to_vec(&outcome).unwrap_or_default());
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
    use std::io::Read;

    /// In a process of its own, where another thread panics while the first one holds on: what it
    /// wrote, and how it ended.
    fn after_a_panic(has_started: bool) -> (Outcome, i32) {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        // SAFETY: the child only starts a thread and sleeps until the process ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            end_the_keeper(std::os::fd::OwnedFd::from(writer).into());
            if has_started {
                program_has_started();
            }
            let work = || assert_eq!(1 + 1, 3, "arithmetic");
            let _thread = std::thread::Builder::new().name("handler-7".to_owned()).spawn(work);
            loop {
                std::thread::park();
            }
        }
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it is written");
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        (serde_json::from_str(&text).expect("an outcome"), libc::WEXITSTATUS(status))
    }

    #[test]
    fn a_panic_of_any_thread_ends_the_process_with_its_reason() {
        for has_started in [false, true] {
            let (outcome, code) = after_a_panic(has_started);
            assert_eq!((outcome.started, code), (has_started, 1));
            let Ending::KeeperFailed { what } = outcome.ending else {
                panic!("{:?}", outcome.ending)
            };
            for part in ["handler-7", "panics.rs", "arithmetic"] {
                assert!(what.contains(part), "{what}");
            }
        }
    }
}
