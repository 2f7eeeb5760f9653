//! The outside judge of the Clear's bound: what the kernel says of a run's anonymous memory, a
//! thousand times a second.

use super::processes;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two looks.
const PERIOD: Duration = Duration::from_millis(1);
/// Looks between two lists of the processes.
const LOOKS_PER_LIST: u64 = 4;

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The most anonymous memory in RAM, all processes together.
    pub most_bytes: u64,
    /// The most of it that lies in mappings of no file. (Those of files cannot be registered with a
    /// userfaultfd, and what a program writes there stays where it is.)
    pub most_own_bytes: u64,
    /// When the first of these was, after the start.
    pub at: Duration,
    /// How many processes there were then.
    pub processes: usize,
    /// How many looks there were.
    pub looks: u64,
    /// The longest time between two looks, or between the last and the end.
    pub longest_gap: Duration,
    /// The time for which the machine's host had taken away processors that wanted to run. What
    /// is bounded by looks that come in time (SPEC.md, section 10) is not bounded then.
    pub stolen: Duration,
}

impl Seen {
    /// Whether a run that took so long was looked at all the time. A virtual processor that its
    /// host takes away takes the sampler with it, and the run goes on on another.
    pub fn is_of_all(&self, elapsed: Duration) -> bool {
        self.longest_gap < (elapsed / 4).max(Duration::from_millis(100))
    }

    /// What was seen here or there.
    pub fn or(self, other: Seen) -> Seen {
        let most_bytes = self.most_bytes.max(other.most_bytes);
        let most_own_bytes = self.most_own_bytes.max(other.most_own_bytes);
        Seen { most_bytes, most_own_bytes, stolen: self.stolen + other.stolen, ..self }
    }
}

/// Looks until it is told to end.
pub struct Sampler {
    end: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Sampler {
    /// Looks at a process and its descendants, but for those that run `casemate`, and for agents,
    /// which share the memory of a process that is counted.
    pub fn start(root: i32, casemate: &Path) -> Self {
        Self::start_sparing(0, root, casemate)
    }

    /// The same, but a look at which all processes have no more than `spared_bytes`, counting what
    /// they share for each of them, goes no further. To examine what they have takes milliseconds,
    /// on a processor that they do not get meanwhile: programs that grow would be held back by the
    /// judge, where the keeper is to do that.
    pub fn start_sparing(spared_bytes: u64, root: i32, casemate: &Path) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let over = end.clone();
        let casemate = fs::canonicalize(casemate).expect("casemate exists");
        let thread = std::thread::spawn(move || watch(spared_bytes, root, &casemate, &over));
        Sampler { end, thread }
    }

    /// Ends, and says what was seen.
    pub fn finish(self) -> Seen {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().expect("the sampler looks at what there is")
    }
}

/// The anonymous memory of a run at this moment, in bytes, as [`Seen::most_bytes`] counts it.
pub fn now(root: i32, casemate: &Path) -> u64 {
    let casemate = fs::canonicalize(casemate).expect("casemate exists");
    let processes = programs(root, &casemate);
    let resident_bytes = processes.iter().map(|pid| resident(*pid)).sum();
    twice(&apart(&processes), share).min(resident_bytes)
}

fn watch(spared_bytes: u64, root: i32, casemate: &PathBuf, over: &AtomicBool) -> Seen {
    in_front();
    let (start, stolen) = (Instant::now(), stolen());
    let mut processes = Vec::new();
    let (mut seen, mut next, mut last) = (Seen::default(), start, start);
    let mut copies = Copies::default();
    while !over.load(Ordering::Relaxed) {
        let now = Instant::now();
        seen.longest_gap = seen.longest_gap.max(now - last);
        last = now;
        if seen.looks.is_multiple_of(LOOKS_PER_LIST) {
            processes = programs(root, casemate);
        }
        seen.looks += 1;
        // The cheap count first: it counts what processes share for each of them.
        let residents: Vec<(i32, u64)> =
            processes.iter().map(|pid| (*pid, resident(*pid))).collect();
        let resident_bytes = residents.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let is_spared = resident_bytes <= spared_bytes;
        // The kernel walks page by page: what leaves behind it and comes back before it counts
        // twice. What was resident at one moment does not.
        let own_bytes = copies.less(&residents);
        if own_bytes > seen.most_own_bytes {
            let mut look = || copies.look(&apart(&processes)).min(resident_bytes);
            let bytes = if is_spared { own_bytes } else { look() };
            seen.most_own_bytes = seen.most_own_bytes.max(bytes);
        }
        if resident_bytes > seen.most_bytes {
            let share = || twice(&apart(&processes), share).min(resident_bytes);
            let bytes = if is_spared { resident_bytes } else { share() };
            if bytes > seen.most_bytes {
                let (at, processes) = (now - start, processes.len());
                seen = Seen { most_bytes: bytes, at, processes, ..seen };
            }
        }
        // It goes before all others, who need a processor as well: it takes half of one at most.
        next = (next + PERIOD).max(Instant::now() + now.elapsed());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    seen.longest_gap = seen.longest_gap.max(last.elapsed());
    seen.stolen = self::stolen().saturating_sub(stolen);
    seen
}

/// The time that the host has taken from this machine's processors since the machine began, as the
/// kernel counts it, in hundredths of a second.
fn stolen() -> Duration {
    /// Of the line's first word and what follows it (proc_stat(5)).
    const STEAL: usize = 8;
    let text = processes::text("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks = line.split_ascii_whitespace().nth(STEAL).and_then(|ticks| ticks.parse().ok());
    Duration::from_millis(ticks.unwrap_or(0) * 10)
}

/// Ahead of the programs that keep the machine busy, if that is allowed: a sampler that is kept
/// waiting sees little.
fn in_front() {
    let priority = libc::sched_param { sched_priority: 2 };
    // SAFETY: changes the scheduling of this thread only. Without the right to it, it stays as it
    // was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &priority) };
}

/// The processes of the run that hold a program's memory, each by a thread that lives: its first
/// may have ended.
fn programs(root: i32, casemate: &PathBuf) -> Vec<i32> {
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(pid) = next.pop() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut speaker = None;
        for task in tasks {
            let tid = task.file_name().to_str().and_then(|name| name.parse().ok());
            speaker = speaker.or(tid.filter(|tid| processes::executable(*tid).is_some()));
            let children = processes::text(task.path().join("children")).unwrap_or_default();
            next.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        let Some(speaker) = speaker else { continue };
        if processes::executable(speaker).is_some_and(|path| path != *casemate)
            && !processes::agent(speaker)
        {
            found.push(speaker);
        }
    }
    found
}

/// Without those that share the memory of another.
fn apart(pids: &[i32]) -> Vec<i32> {
    const KCMP_VM: i32 = 1;
    let mut kept: Vec<i32> = Vec::new();
    let unique: BTreeSet<i32> = pids.iter().copied().collect();
    for pid in unique {
        // SAFETY: compares only. One that has ended has no memory, and is like no other.
        let same = |other: i32| unsafe { libc::syscall(libc::SYS_kcmp, pid, other, KCMP_VM, 0, 0) };
        if !kept.iter().any(|other| same(*other) == 0) {
            kept.push(pid);
        }
    }
    kept
}

/// What is shared counts in equal parts. While they are counted a page may go from one process and
/// another come into the next, and back; so they are counted again from the other end, and of each
/// the less is right.
fn twice(pids: &[i32], mut bytes: impl FnMut(i32) -> u64) -> u64 {
    let forth: Vec<u64> = pids.iter().map(|pid| bytes(*pid)).collect();
    if pids.len() < 2 {
        return forth.iter().sum();
    }
    pids.iter().zip(forth).rev().map(|(pid, before)| bytes(*pid).min(before)).sum()
}

/// Anonymous memory of processes that lies in mappings of files, when it was last looked at, and
/// all that the process had then. To look takes long.
#[derive(Default)]
struct Copies(HashMap<i32, (u64, u64)>);

impl Copies {
    /// At most so much of what is resident lies in mappings of no file.
    fn less(&mut self, residents: &[(i32, u64)]) -> u64 {
        let known = |&(pid, resident): &(i32, u64)| match self.0.get(&pid) {
            // With less it may be another program, and all of it its own.
            Some(&(copies, before)) if resident >= before => resident - copies.min(resident),
            _ => resident,
        };
        residents.iter().map(known).sum()
    }

    fn look(&mut self, pids: &[i32]) -> u64 {
        twice(pids, |pid| {
            let (own, copies) = by_mapping(pid);
            self.0.insert(pid, (copies, own + copies));
            own
        })
    }
}

/// Anonymous memory of a process in mappings of no file, and in others.
fn by_mapping(pid: i32) -> (u64, u64) {
    let text = processes::text(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let (mut is_own, mut own, mut copies) = (false, 0, 0);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let second = words.next().unwrap_or_default();
        let kib = || second.parse::<u64>().unwrap_or(0) << 10;
        match first {
            "Pss:" if is_own => own += kib(),
            "Anonymous:" if !is_own => copies += kib(),
            // Its range, rights, offset, device, inode and name.
            _ if !first.ends_with(':') => {
                let is_of_no_file = words.nth(2) == Some("0") || words.next() == Some("/dev/zero");
                is_own = second.ends_with('p') && is_of_no_file;
            }
            _ => {}
        }
    }
    (own, copies)
}

fn share(pid: i32) -> u64 {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss_Anon:")
}

fn resident(pid: i32) -> u64 {
    field(&format!("/proc/{pid}/status"), "RssAnon:")
}

/// A number of kB, in bytes; 0 for a process that has ended.
fn field(file: &str, key: &str) -> u64 {
    let text = processes::text(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}
