//! What `/proc` says of a process that has a space. That it has ended is an answer; every other
//! refusal leaves open what its memory holds, and ends the run.

use super::Stop;
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs::{self, Mapping};
use std::io;

/// Its page table; none if it has ended.
pub(in crate::pager) fn page_table(pid: i32) -> Result<Option<Pagemap>, Stop> {
    unless_ended(pid, "page table", Pagemap::open(pid))
}

/// Its mappings; none if it has ended.
pub(in crate::pager) fn mappings(pid: i32) -> Result<Vec<Mapping>, Stop> {
    Ok(unless_ended(pid, "mappings", procfs::mappings(pid))?.unwrap_or_default())
}

fn unless_ended<T>(pid: i32, what: &str, answer: io::Result<T>) -> Result<Option<T>, Stop> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if procfs::says_ended(&error) => Ok(None),
        Err(error) => {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "; if the program closes itself to its user (PR_SET_DUMPABLE), run `casemate \
                     setup` again, or without --allow-unprotected"
                }
                _ => "",
            };
            Err(Stop::Internal(format!(
                "the {what} of process {pid} cannot be read: {error}{hint}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_is_no_answer() {
        let asked = |number| {
            unless_ended(7, "mappings", Err::<(), _>(io::Error::from_raw_os_error(number)))
        };
        assert!(matches!(asked(libc::ESRCH), Ok(None)));
        assert!(matches!(asked(libc::ENOENT), Ok(None)));
        for number in [libc::EACCES, libc::EMFILE, libc::ENOMEM, libc::EIO] {
            assert!(matches!(asked(number), Err(Stop::Internal(_))), "{number}");
        }
    }
}
