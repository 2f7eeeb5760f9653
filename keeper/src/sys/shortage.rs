//! A shortage of descriptors, of watches or of the kernel's memory ends the run.
//!
//! Most of what the keeper reads under `/proc` says whether a process has ended, what is mapped
//! and what is in RAM. A file that cannot be opened for want of a descriptor says none of that, and
//! a caller that took it for an ended process would serve wrong pages, or none. So the answer is
//! told here first: the run ends before the caller draws a conclusion, and a handler serves nothing
//! after the end has come. What is needed to end it, descriptors above all, was set aside before.

use super::own_limits::in_words;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Descriptors that are set aside: as many as killing all processes of a run has open at once, and
/// a few for threads that are in the midst of something.
const SPARE: usize = 16;

/// What ends the run.
type Ends = Box<dyn Fn(String) + Send + Sync>;

static ENDS: OnceLock<Ends> = OnceLock::new();
static SET_ASIDE: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Descriptors that are not used before they are dropped.
#[derive(Debug)]
pub struct Spare(Vec<OwnedFd>);

impl Spare {
    /// Sets them aside.
    ///
    /// # Errors
    /// If there are not as many.
    pub fn set_aside() -> io::Result<Spare> {
        let (one, _) = io::pipe()?;
        let more = (1..SPARE).map(|_| one.try_clone().map(OwnedFd::from));
        let mut all = more.collect::<io::Result<Vec<_>>>()?;
        all.push(one.into());
        Ok(Spare(all))
    }
}

/// From now on the first shortage is told to `ends`, and gives back what is `spare`. Once a
/// process.
pub fn ends_the_run(spare: Spare, ends: impl Fn(String) + Send + Sync + 'static) {
    *SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner) = spare.0;
    // Cannot fail: a process has one run.
    let _ = ENDS.set(Box::new(ends));
}

/// Passes an answer of the kernel's on, which was asked for `what`. If it was refused for want of
/// descriptors or of memory, the run ends.
pub(crate) fn told<T>(what: impl Display, answer: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &answer
        && is_one(error)
        && let Some(ends) = ENDS.get()
    {
        ends(format!("{what}: {}", in_words(error)));
        SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    answer
}

fn is_one(error: &io::Error) -> bool {
    // The last one: watches of descriptors (`fs.epoll.max_user_watches`).
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOSPC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_none_of_what_an_ended_process_answers() {
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOSPC] {
            assert!(is_one(&io::Error::from_raw_os_error(number)));
        }
        for number in [libc::ENOENT, libc::ESRCH, libc::EACCES, libc::EPERM, libc::EINTR] {
            assert!(!is_one(&io::Error::from_raw_os_error(number)));
        }
    }

    #[test]
    fn as_many_are_set_aside_as_are_promised() {
        let open = || std::fs::read_dir("/proc/self/fd").expect("a table").count();
        let spare = Spare::set_aside().expect("descriptors");
        assert_eq!(spare.0.len(), SPARE);
        assert!(open() > SPARE);
    }
}
