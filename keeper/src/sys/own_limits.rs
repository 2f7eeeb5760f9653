//! Resource limits of the front process and the keeper. The keeper needs several descriptors for
//! each process of the run, and memory, threads and files of its own; these must not reduce what
//! the program may use.

use std::io;

/// The limits that are raised, with the shell's names for them.
const LIMITS: [(u32, &str); 7] = [
    (libc::RLIMIT_NOFILE, "open files, `ulimit -n`"),
    (libc::RLIMIT_NPROC, "processes of this user, `ulimit -u`"),
    (libc::RLIMIT_AS, "bytes of address space, `ulimit -v`"),
    (libc::RLIMIT_DATA, "bytes of private memory, `ulimit -d`"),
    (libc::RLIMIT_FSIZE, "bytes of a file, `ulimit -f`"),
    (libc::RLIMIT_MEMLOCK, "bytes of locked memory, `ulimit -l`"),
    (libc::RLIMIT_CPU, "seconds of processor time, `ulimit -t`"),
];

/// The limits that a process had before its soft ones were raised.
pub struct Limits(Vec<(u32, libc::rlimit64)>);

impl Limits {
    /// Raises the soft limits of this process, and of what it forks, to the hard ones.
    #[must_use]
    pub fn raise() -> Limits {
        let raised = LIMITS.into_iter().filter_map(|(which, _)| {
            let before = get(which)?;
            let most = libc::rlimit64 { rlim_cur: before.rlim_max, ..before };
            (before.rlim_cur != before.rlim_max && set(which, &most)).then_some((which, before))
        });
        Limits(raised.collect())
    }

    /// Restores them for the calling process. Safe between fork and exec.
    pub fn restore(&self) {
        for (which, before) in &self.0 {
            set(*which, before);
        }
    }
}

/// An error in words, with the limit that may have caused it, which cannot be raised further.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    let suspects: &[u32] = match error.raw_os_error() {
        Some(libc::EMFILE) => &[libc::RLIMIT_NOFILE],
        Some(libc::EAGAIN) => &[libc::RLIMIT_NPROC],
        Some(libc::ENOMEM) => &[libc::RLIMIT_AS, libc::RLIMIT_DATA],
        Some(libc::EFBIG) => &[libc::RLIMIT_FSIZE],
        _ => &[],
    };
    let met = LIMITS.into_iter().filter(|(which, _)| suspects.contains(which)).filter_map(
        |(which, name)| {
            let most = get(which)?.rlim_max;
            (most != libc::RLIM64_INFINITY).then(|| format!("the hard limit is {most} {name}"))
        },
    );
    let met: Vec<String> = met.collect();
    match met.is_empty() {
        true => error.to_string(),
        false => format!("{error}; {}", met.join(" and ")),
    }
}

fn get(which: u32) -> Option<libc::rlimit64> {
    let mut now = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: one live block is filled.
    let result = unsafe { libc::prlimit64(0, which, std::ptr::null(), &raw mut now) };
    (result == 0).then_some(now)
}

fn set(which: u32, limit: &libc::rlimit64) -> bool {
    // SAFETY: one live block is read.
    unsafe { libc::prlimit64(0, which, limit, std::ptr::null_mut()) == 0 }
}
