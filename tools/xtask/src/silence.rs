//! Ends what says nothing any more: a test that hangs must fail, not take the whole run along.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is killed when nothing is said any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// All processes below the one that was started: cargo goes on with its next test program.
    Below,
    /// That one too.
    All,
}

/// How long nothing has been said.
pub struct Silence {
    start: Instant,
    heard_millis: AtomicU64,
    over: AtomicBool,
}

impl Silence {
    /// From now on.
    pub fn new() -> Self {
        Silence {
            start: Instant::now(),
            heard_millis: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Something was said.
    pub fn heard(&self) {
        self.heard_millis.store(self.now(), Ordering::Relaxed);
    }

    /// Nothing more is to be watched.
    pub fn over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Until it is over, kills the descendants of `parent`, and itself if it is to, whenever
    /// nothing has been said for `limit`. Says how often it had to.
    pub fn watch(&self, parent: u32, which: Victims, limit: Duration) -> u64 {
        let mut times = 0;
        while !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(200).min(limit));
            let silent = self.now().saturating_sub(self.heard_millis.load(Ordering::Relaxed));
            if u128::from(silent) >= limit.as_millis() {
                times += 1;
                let mut victims = descendants(parent);
                if which == Victims::All {
                    // First, or it goes on when the one that it waits for is killed.
                    victims.insert(0, parent);
                }
                eprintln!("xtask: nothing was said for {limit:?}; killed: {}", names(&victims));
                kill(&victims);
                self.heard();
            }
        }
        times
    }
}

/// All processes below one.
pub fn descendants(parent: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        if let Some(parent) = fields.split(' ').nth(1).and_then(|field| field.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![parent];
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(&below);
        next.extend(below);
    }
    found
}

fn names(pids: &[u32]) -> String {
    let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    pids.iter().map(|pid| format!("{} ({pid})", name(pid).trim())).collect::<Vec<_>>().join(", ")
}

/// Kills them, by number.
pub fn kill(pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    // One that has ended meanwhile is no failure.
    let _ = Command::new("kill").arg("-KILL").args(pids.iter().map(u32::to_string)).status();
}
