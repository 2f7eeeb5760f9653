//! Whether devices may store to the memory of a process, beside its page table.

use super::{Mapping, link, numbers, says_ended, status_field, text, threads};
use crate::sys::process;
use std::io;

/// Whether devices may store to the memory of a process without a call that is heard: pages are
/// pinned, or some thread has a descriptor by which they could be (a ring of io_uring, a file
/// opened with `O_DIRECT`), or there are contexts of `io_setup`. Also true where that cannot be
/// told.
pub fn may_pin(pid: i32, mappings: &[Mapping]) -> bool {
    let pins_none = status_field(pid, "VmPin").is_some_and(|kb| kb.starts_with("0 "));
    let is_ring = |mapping: &Mapping| {
        mapping.name.starts_with("/[aio]") || mapping.name.starts_with("anon_inode:[io_uring]")
    };
    !pins_none || mappings.iter().any(is_ring) || has_pinning_descriptor(pid).unwrap_or(true)
}

/// Threads may have tables of descriptors of their own.
fn has_pinning_descriptor(pid: i32) -> io::Result<bool> {
    let mut looked_at: Option<i32> = None;
    for tid in threads(pid) {
        if looked_at.is_some_and(|other| process::same_descriptors(other, tid)) {
            continue;
        }
        match has_one_that_pins(&format!("/proc/{pid}/task/{tid}")) {
            Ok(false) => {}
            Err(error) if says_ended(&error) => continue,
            found => return found,
        }
        looked_at = Some(tid);
    }
    Ok(false)
}

fn has_one_that_pins(thread: &str) -> io::Result<bool> {
    for fd in numbers(format!("{thread}/fd"))? {
        let target = match link(format!("{thread}/fd/{fd}")) {
            Ok(target) => target,
            // It was closed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let target = target.as_os_str().as_encoded_bytes();
        if target == b"anon_inode:[io_uring]"
            || target.starts_with(b"/") && is_direct(&format!("{thread}/fdinfo/{fd}"))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a descriptor was opened with `O_DIRECT`. One that was closed meanwhile is not.
fn is_direct(description: &str) -> io::Result<bool> {
    let text = match text(description) {
        Ok(text) => text,
        Err(error) if says_ended(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    Ok(flags.is_none_or(|flags| flags & libc::O_DIRECT != 0))
}
