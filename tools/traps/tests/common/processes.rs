//! Looks at processes from outside: which descends from which, and where they hang.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The text of a file of `/proc`: names in it are bytes of any kind.
pub fn text(path: impl AsRef<Path>) -> std::io::Result<String> {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A line of `/proc/PID/stat`: parent and process group.
fn stat(pid: i32) -> Option<(i32, i32)> {
    let text = text(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// All process ids.
pub fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Is there such a process, and is it not merely waiting to be reaped? A first thread that has
/// ended waits for the others.
pub fn alive(pid: i32) -> bool {
    threads(pid).iter().any(|thread| {
        let stat = text(thread.join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    })
}

/// The folders of a process's threads.
fn threads(pid: i32) -> Vec<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    tasks.filter_map(|task| Some(task.ok()?.path())).collect()
}

/// `root` and every process that descends from it, is in its process group, or carries `tag` in its
/// environment.
pub fn family(root: i32, tag: &str) -> Vec<i32> {
    let table: BTreeMap<i32, (i32, i32)> =
        all().into_iter().filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut found: BTreeSet<i32> = table
        .iter()
        .filter(|(pid, (_, group))| **pid == root || *group == root || tagged(**pid, tag))
        .map(|(pid, _)| *pid)
        .collect();
    loop {
        let more: Vec<i32> = table
            .iter()
            .filter(|(pid, (parent, _))| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return found.into_iter().collect();
        }
        found.extend(more);
    }
}

fn tagged(pid: i32, tag: &str) -> bool {
    if tag.is_empty() {
        return false;
    }
    // That of a thread that has ended is empty.
    threads(pid).iter().any(|thread| {
        let environment = std::fs::read(thread.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == tag.as_bytes())
    })
}

/// The program that a process runs.
pub fn executable(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The largest resident set that a process had since its last exec.
pub fn peak_bytes(pid: i32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

/// The resident set of a process.
pub fn resident_bytes(pid: i32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

fn status_bytes(pid: i32, label: &str) -> u64 {
    let status = text(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The keeper of a run: the process below `casemate run` that runs the same program.
pub fn keeper(run: i32, casemate: &Path) -> Option<i32> {
    let casemate = std::fs::canonicalize(casemate).ok()?;
    family(run, "").into_iter().find(|pid| {
        let is_keeper = read(format!("/proc/{pid}/comm")).trim() == "casemate-keeper";
        let runs = || executable(*pid).is_some_and(|path| path == casemate);
        *pid != run && alive(*pid) && is_keeper && runs()
    })
}

/// Is this an agent? It shares the memory and the executable of the program that it serves.
pub fn agent(pid: i32) -> bool {
    read(format!("/proc/{pid}/comm")).trim() == "casemate-agent"
}

/// The processes of a run that run `program`; agents, which share its executable, are not among
/// them.
pub fn running(run: i32, tag: &str, program: &Path) -> Vec<i32> {
    let program = std::fs::canonicalize(program).expect("the program exists");
    family(run, tag)
        .into_iter()
        .filter(|pid| alive(*pid) && executable(*pid).is_some_and(|path| path == program))
        .filter(|pid| !agent(*pid))
        .collect()
}

/// Where every thread of these processes stands, for the report of a hang.
pub fn dump(pids: &[i32]) -> String {
    let mut out = String::new();
    for pid in pids {
        let words = read(format!("/proc/{pid}/cmdline")).replace('\0', " ");
        let _ = writeln!(out, "== process {pid}: {words}");
        let status = read(format!("/proc/{pid}/status"));
        let wanted = ["State:", "PPid:", "TracerPid:", "VmRSS:", "Threads:", "SigBlk:", "Seccomp:"];
        for line in status.lines().filter(|line| wanted.iter().any(|w| line.starts_with(w))) {
            let _ = writeln!(out, "   {line}");
        }
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.filter_map(Result::ok) {
            let at = task.path();
            let at = at.display();
            let _ = writeln!(
                out,
                "   -- thread {} {}: wchan {} syscall {}",
                task.file_name().display(),
                read(format!("{at}/comm")).trim(),
                read(format!("{at}/wchan")),
                read(format!("{at}/syscall")).trim()
            );
            for line in read(format!("{at}/stack")).lines() {
                let _ = writeln!(out, "      {line}");
            }
        }
    }
    out
}

fn read(path: String) -> String {
    text(path).unwrap_or_else(|error| format!("({error})"))
}
