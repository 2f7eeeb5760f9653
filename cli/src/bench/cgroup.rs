//! A memory cgroup with a limit, of either version: made for the benchmark, and always removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// A cgroup with a limit on memory, files' pages included. Dropping it removes it.
pub struct Cgroup {
    /// Its folder.
    pub path: PathBuf,
    /// Where the memory controller was switched on for it.
    subtree: Option<PathBuf>,
}

impl Cgroup {
    /// Makes it.
    ///
    /// # Errors
    /// One sentence that says why this machine or user cannot; nothing is left behind.
    pub fn with_limit(limit: u64) -> Result<Self> {
        let name = format!("casemate-bench-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory");
        let second = Path::new("/sys/fs/cgroup");
        if first.join("memory.limit_in_bytes").exists() {
            let group = Self::create(first.join(name), None)?;
            write(&group.path.join("memory.limit_in_bytes"), &limit.to_string())?;
            Ok(group)
        } else if second.join("cgroup.controllers").exists() {
            let subtree = second.join("cgroup.subtree_control");
            let is_off = fs::read_to_string(&subtree).is_ok_and(|text| !text.contains("memory"));
            if is_off {
                write(&subtree, "+memory")?;
            }
            let group = Self::create(second.join(name), is_off.then_some(subtree))?;
            write(&group.path.join("memory.max"), &limit.to_string())?;
            Ok(group)
        } else {
            bail!("not measured: no memory cgroup is mounted at /sys/fs/cgroup");
        }
    }

    /// What it is charged for files' pages, in bytes: for those that were not in memory before its
    /// processes asked for them. They stay charged when its processes have ended.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn file_bytes(&self) -> Result<u64> {
        let path = self.path.join("memory.stat");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("not measured: cannot read {}", path.display()))?;
        file_bytes_in(&text).with_context(|| format!("no files in {}", path.display()))
    }

    /// Whether the kernel has killed one of its processes for want of memory.
    #[must_use]
    pub fn has_killed(&self) -> bool {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).ok();
        let text = read("memory.events").or_else(|| read("memory.oom_control"));
        text.and_then(|text| kills_in(&text)).is_some_and(|kills| kills > 0)
    }

    fn create(path: PathBuf, subtree: Option<PathBuf>) -> Result<Self> {
        if let Err(error) = fs::create_dir(&path) {
            switch_off(subtree.as_deref());
            let what = format!("not measured: cannot create the cgroup {}", path.display());
            return Err(anyhow::Error::new(error).context(what));
        }
        Ok(Cgroup { path, subtree })
    }
}

/// Of `memory.stat` of either version.
fn file_bytes_in(text: &str) -> Option<u64> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
    value("total_cache ").or_else(|| value("file "))
}

/// Of `memory.events`, or `memory.oom_control` of the first version.
fn kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
}

fn switch_off(subtree: Option<&Path>) {
    if let Some(subtree) = subtree {
        report(fs::write(subtree, "-memory"), "take the memory controller out");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process has ended, but the kernel may need a moment to let go of it.
        let mut removed = fs::remove_dir(&self.path);
        for _ in 0..50 {
            if removed.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            removed = fs::remove_dir(&self.path);
        }
        report(removed, &format!("remove the cgroup {}", self.path.display()));
        switch_off(self.subtree.as_deref());
    }
}

/// Moves this process into a cgroup.
///
/// # Errors
/// The cgroup is gone, or not this user's.
pub fn join(group: &Path) -> Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
        .with_context(|| format!("cannot join the cgroup {}", group.display()))
}

/// Writes one of the kernel's files.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)
        .with_context(|| format!("not measured: cannot write {text} to {}", path.display()))
}

/// What cannot be undone must at least be known.
pub fn report(result: std::io::Result<()>, what: &str) {
    if let Err(error) = result {
        crate::output::stderr(&format!("casemate: cannot {what} again: {error}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_found_in_either_version() {
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Some(3));
        assert_eq!(kills_in("low 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n"), Some(1));
        assert_eq!(kills_in("oom_kill_disable 0\n"), None);
    }

    #[test]
    fn files_are_found_in_either_version() {
        let first = "cache 4096\nrss 8192\ntotal_cache 12288\ntotal_rss 1\n";
        assert_eq!(file_bytes_in(first), Some(12288));
        let second = "anon 4096\nfile 8192\nfile_mapped 4096\n";
        assert_eq!(file_bytes_in(second), Some(8192));
        assert_eq!(file_bytes_in("anon 4096\n"), None);
    }
}
