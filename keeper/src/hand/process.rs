//! Reads from `/proc` the properties of a process that is to receive an agent.
use super::release;
use super::rest::Rest;
use crate::sys::procfs;
use std::fs;
use std::io;

/// One executable mapping.
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: String,
}

/// A thread's state, and its tracer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Status {
    pub(super) tracer: i32,
    pub(super) parent: i32,
    pub(super) filters: u32,
    /// In seccomp's strict mode: `read`, `write` and `exit`, and nothing else.
    pub(super) is_strict: bool,
    pub(super) state: u8,
}

impl Status {
    pub(super) fn read(pid: i32, tid: i32) -> io::Result<Status> {
        Ok(Status::parse(&procfs::text(format!("/proc/{pid}/task/{tid}/status"))?))
    }

    fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match key {
                "TracerPid" => status.tracer = value.parse().unwrap_or(0),
                "PPid" => status.parent = value.parse().unwrap_or(0),
                "Seccomp_filters" => status.filters = value.parse().unwrap_or(0),
                "Seccomp" => status.is_strict = value == "1",
                "State" => status.state = value.bytes().next().unwrap_or(b'?'),
                _ => {}
            }
        }
        status
    }
}

/// Seccomp filters that this process is under.
pub(super) fn own_filters() -> u32 {
    procfs::text("/proc/self/status").map_or(0, |text| Status::parse(&text).filters)
}

/// Whether a thread is one of this process.
pub(super) fn is_our_thread(tid: i32) -> bool {
    fs::exists(format!("/proc/self/task/{tid}")).unwrap_or(false)
}

/// The threads of a process, in the order of their numbers.
pub(super) fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let mut tids = procfs::numbers(format!("/proc/{pid}/task"))?;
    tids.sort_unstable();
    Ok(tids)
}

/// Chooses the thread to stop: the one for which a stop has the least effect.
pub(super) fn choose_thread(pid: i32) -> io::Result<Option<i32>> {
    let found = threads(pid)?.into_iter().filter(|tid| !release::is_followed(*tid));
    let found = found.map(|tid| (Rest::of(pid, tid), tid)).filter(|(rest, _)| *rest != Rest::Ended);
    Ok(found.min().map(|(_, tid)| tid))
}

/// Whether the thread and its future children are in the keeper's pid namespace.
pub(super) fn shares_pid_namespace(tid: i32) -> io::Result<bool> {
    let ours = procfs::link("/proc/self/ns/pid")?;
    let its = procfs::link(format!("/proc/{tid}/ns/pid"))?;
    // The link of `pid_for_children` is dangling while a new namespace has no first process.
    let children = procfs::link(format!("/proc/{tid}/ns/pid_for_children")).ok();
    if children.is_none() {
        // An exiting thread has no namespaces except its pid namespace.
        procfs::link(format!("/proc/{tid}/ns/uts"))?;
    }
    Ok(ours == its && children.as_ref() == Some(&its))
}

/// Whether the thread's process has a userfaultfd with events (`UFFD_FEATURE_EVENT_*`). Who changes
/// such memory waits until the event was read.
pub(super) fn reads_own_events(tid: i32) -> io::Result<bool> {
    for number in procfs::numbers(format!("/proc/{tid}/fd"))? {
        let asked = procfs::link(format!("/proc/{tid}/fd/{number}")).and_then(|to| {
            let is_one = to.as_os_str() == "anon_inode:[userfaultfd]";
            let info = || procfs::text(format!("/proc/{tid}/fdinfo/{number}"));
            Ok(is_one && has_events(&info()?))
        });
        match asked {
            Ok(false) => {}
            // It was closed meanwhile.
            Err(error) if procfs::says_ended(&error) => {}
            other => return other,
        }
    }
    Ok(false)
}

/// By what the kernel says of a userfaultfd: `API: VERSION:FEATURES:OPERATIONS`, in hexadecimal.
fn has_events(text: &str) -> bool {
    const EVENTS: u32 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;
    let features = text.lines().find_map(|line| line.strip_prefix("API:")?.split(':').nth(1));
    let features = features.and_then(|features| u32::from_str_radix(features.trim(), 16).ok());
    features.is_some_and(|features| features & EVENTS != 0)
}

/// Executable mappings, the vdso first.
pub(super) fn executable_mappings(tid: i32) -> io::Result<Vec<Mapping>> {
    let text = procfs::text(format!("/proc/{tid}/maps"))?;
    let mut mappings: Vec<Mapping> = text.lines().filter_map(executable).collect();
    mappings.sort_by_key(|m| m.name != "[vdso]");
    Ok(mappings)
}

fn executable(line: &str) -> Option<Mapping> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let name = fields.nth(3).unwrap_or("").to_owned();
    // The vsyscall page is not memory that can be read or entered at will.
    if !rights.starts_with('r') || rights.as_bytes().get(2) != Some(&b'x') || name == "[vsyscall]" {
        return None;
    }
    let number = |s| u64::from_str_radix(s, 16).ok();
    Some(Mapping { start: number(start)?, end: number(end)?, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_are_read() {
        let text = "State:\tS (sleeping)\nPPid:\t7\nTracerPid:\t0\nSeccomp_filters:\t2\n";
        let status = Status::parse(text);
        assert_eq!((status.state, status.parent, status.tracer), (b'S', 7, 0));
        assert_eq!(status.filters, 2);
    }

    #[test]
    fn maps_lines_are_read() {
        let vdso = executable("7ffd1000-7ffd3000 r-xp 00000000 00:00 0    [vdso]").unwrap();
        assert_eq!(
            (vdso.start, vdso.end, vdso.name.as_str()),
            (0x7ffd_1000, 0x7ffd_3000, "[vdso]")
        );
        assert!(executable("00400000-00401000 rw-p 00000000 00:00 0").is_none());
        let vsyscall = "ffffffffff600000-ffffffffff601000 r-xp 00000000 00:00 0  [vsyscall]";
        assert!(executable(vsyscall).is_none());
    }
}
