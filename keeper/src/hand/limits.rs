//! Resource limits of a program that an injection could exceed: raised while a thread of it makes
//! the injection's calls, and restored before the program continues. The agent starts with the
//! raised limits, and keeps them.
mod cgroup;

use crate::sys::procfs;
use std::io;

/// The limits, with the kernel's names and the shell's commands for them.
const LIMITS: [(u32, &str); 4] = [
    (libc::RLIMIT_AS, "RLIMIT_AS (address space, `ulimit -v`)"),
    (libc::RLIMIT_DATA, "RLIMIT_DATA (private memory, `ulimit -d`)"),
    (libc::RLIMIT_NPROC, "RLIMIT_NPROC (processes of its user, `ulimit -u`)"),
    (libc::RLIMIT_NOFILE, "RLIMIT_NOFILE (open files, `ulimit -n`)"),
];
/// Descriptors beyond the limit: those of the agent, and one of the program's for a moment.
const DESCRIPTORS: u64 = 16;

/// Mappings that an agent adds to those of its program.
const AGENTS_MAPPINGS: usize = 8;

/// Limits of a process that are raised while this value exists.
pub(super) struct Raised {
    pid: i32,
    /// Each changed limit: which one, its old value, its new value.
    changed: Vec<(u32, libc::rlimit64, libc::rlimit64)>,
}

impl Raised {
    /// Raises the limits that this keeper may raise: as root all of them, otherwise the soft ones
    /// up to the hard ones.
    pub(super) fn of(pid: i32) -> Raised {
        let changed = LIMITS.into_iter().filter_map(|(which, _)| {
            let before = exchange(pid, which, None).ok()?;
            let wishes = wishes(which, before);
            let set = |wish: &libc::rlimit64| exchange(pid, which, Some(wish)).is_ok();
            wishes
                .into_iter()
                .filter(|wish| wish.rlim_cur > before.rlim_cur)
                .find(set)
                .map(|now| (which, before, now))
        });
        Raised { pid, changed: changed.collect() }
    }

    /// The limits that may have made a call fail, in words; none if no limit can be the reason.
    pub(super) fn met_by(pid: i32, error: &io::Error) -> Option<String> {
        let suspects: &[u32] = match error.raw_os_error()? {
            libc::ENOMEM => {
                if let Some(full) = full_of_mappings(pid) {
                    return Some(full);
                }
                &[libc::RLIMIT_AS, libc::RLIMIT_DATA]
            }
            libc::EAGAIN => {
                if let Some(full) = cgroup::full(pid) {
                    return Some(full);
                }
                &[libc::RLIMIT_NPROC]
            }
            libc::EMFILE => &[libc::RLIMIT_NOFILE],
            _ => return None,
        };
        // Other users' limits can be read, though perhaps not by prlimit.
        let text = procfs::text(format!("/proc/{pid}/limits")).ok()?;
        let is_low = |which: u32| suspects.contains(&which) && is_finite(&text, which);
        let names: Vec<&str> =
            LIMITS.into_iter().filter(|(which, _)| is_low(*which)).map(|(_, name)| name).collect();
        (!names.is_empty())
            .then(|| format!("its {}, which this keeper may not raise", names.join(" or ")))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        for (which, before, ours) in &self.changed {
            // The program's threads may have set their own meanwhile.
            let is_ours = |now: libc::rlimit64| {
                (now.rlim_cur, now.rlim_max) == (ours.rlim_cur, ours.rlim_max)
            };
            if exchange(self.pid, *which, None).is_ok_and(is_ours) {
                // A process that has ended needs none.
                let _ = exchange(self.pid, *which, Some(before));
            }
        }
    }
}

/// In words that a process has as many mappings as the kernel allows; none if it has fewer.
fn full_of_mappings(pid: i32) -> Option<String> {
    let most: usize = procfs::text("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()?;
    let mappings = procfs::text(format!("/proc/{pid}/maps")).ok()?.lines().count();
    (mappings + AGENTS_MAPPINGS > most)
        .then(|| format!("its mappings: {mappings}, and vm.max_map_count is {most}"))
}

/// Whether a soft limit is a number in what `/proc/PID/limits` says.
fn is_finite(text: &str, which: u32) -> bool {
    let name = match which {
        libc::RLIMIT_AS => "Max address space",
        libc::RLIMIT_DATA => "Max data size",
        libc::RLIMIT_NPROC => "Max processes",
        _ => "Max open files",
    };
    let soft =
        |line: &str| line.strip_prefix(name)?.split_ascii_whitespace().next().map(str::to_owned);
    text.lines().find_map(soft).is_some_and(|soft| soft != "unlimited")
}

/// What a limit should be, the best first.
fn wishes(which: u32, before: libc::rlimit64) -> [libc::rlimit64; 2] {
    let (all, max) = match which {
        // The kernel has no infinity for these.
        libc::RLIMIT_NOFILE => {
            let enough = before.rlim_cur.saturating_add(DESCRIPTORS);
            (enough, before.rlim_max.max(enough))
        }
        _ => (libc::RLIM64_INFINITY, libc::RLIM64_INFINITY),
    };
    let most = all.min(before.rlim_max);
    [
        libc::rlimit64 { rlim_cur: all, rlim_max: max },
        libc::rlimit64 { rlim_cur: most, rlim_max: before.rlim_max },
    ]
}

/// Returns a limit, and sets it to `new` if that is given.
fn exchange(pid: i32, which: u32, new: Option<&libc::rlimit64>) -> io::Result<libc::rlimit64> {
    let mut old = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `new` is null or a live block, `old` is one.
    let result = unsafe { libc::prlimit64(pid, which, new, &raw mut old) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(old) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_raised_and_put_back() {
        let child = std::process::Command::new("sleep").arg("30").spawn();
        let mut child = child.expect("a child");
        let pid = child.id() as i32;
        let low = |which, max| {
            let low = libc::rlimit64 { rlim_cur: 3, rlim_max: max };
            exchange(pid, which, Some(&low)).expect("a limit may be lowered");
        };
        low(libc::RLIMIT_NPROC, 3);
        low(libc::RLIMIT_NOFILE, 100);
        let now = |which| exchange(pid, which, None).expect("the child lives");
        let raised = Raised::of(pid);
        assert!(now(libc::RLIMIT_NOFILE).rlim_cur >= 3 + DESCRIPTORS);
        drop(raised);
        assert_eq!(
            (now(libc::RLIMIT_NOFILE).rlim_cur, now(libc::RLIMIT_NOFILE).rlim_max),
            (3, 100)
        );
        assert_eq!((now(libc::RLIMIT_NPROC).rlim_cur, now(libc::RLIMIT_NPROC).rlim_max), (3, 3));
        let full = io::Error::from_raw_os_error(libc::EAGAIN);
        assert!(Raised::met_by(pid, &full).is_some_and(|text| text.contains("RLIMIT_NPROC")));
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }

    #[test]
    fn a_process_with_all_the_mappings_that_it_may_have_is_known() {
        const MAP: &str = "import ctypes\n\
            call = ctypes.CDLL(None).syscall\n\
            call.restype = ctypes.c_long\n\
            call.argtypes = [ctypes.c_long] * 7\n\
            at = call(9, 0, 1 << 33, 0, 0x4022, -1, 0)\n\
            while call(10, at, 4096, 1, 0, 0, 0) == 0: at += 8192\n\
            print('full', flush=True)\n\
            input()";
        use std::io::BufRead;
        let mut python = std::process::Command::new("python3");
        let piped = std::process::Stdio::piped;
        let child = python.args(["-c", MAP]).stdin(piped()).stdout(piped()).spawn();
        let Ok(mut child) = child else {
            eprintln!("skipped: no python3");
            return;
        };
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        std::io::BufReader::new(out).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "full\n");
        let error = io::Error::from_raw_os_error(libc::ENOMEM);
        let full = Raised::met_by(child.id() as i32, &error).expect("a limit is met");
        assert!(full.contains("vm.max_map_count"), "{full}");
        let own = Raised::met_by(std::process::id() as i32, &error);
        assert!(own.is_none_or(|limit| !limit.contains("max_map_count")));
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }
}
