//! Quotas: what each process of a program may have of the Clear, and when its pages are idle
//! (Cryptkeeper section VI.A, a policy per program).

use crate::config::{PAGE_BYTES, ProgramRule};
use crate::outcome::ProgramUse;
use crate::sys::procfs;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The quotas of a run, in the order in which they are tried.
#[derive(Debug, Default)]
pub struct Quotas(Vec<Arc<Quota>>);

/// What a rule gives each process of its program, and what these took.
#[derive(Debug)]
pub struct Quota {
    rule: ProgramRule,
    processes: AtomicU64,
    peak_pages: AtomicU64,
}

impl Quotas {
    /// One for each rule.
    pub fn of(rules: &[ProgramRule]) -> Self {
        Quotas(rules.iter().cloned().map(Quota::of).map(Arc::new).collect())
    }

    /// Whether no program has one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any says when pages are idle.
    pub fn any_idle(&self) -> bool {
        self.0.iter().any(|quota| quota.idle().is_some())
    }

    /// That of process `pid`, by the file that it executes: the first whose rule names it. If the
    /// kernel does not say what that is, the smallest.
    pub fn of_process(&self, pid: i32) -> Option<Arc<Quota>> {
        if self.is_empty() {
            return None;
        }
        let quota = match procfs::executable(pid) {
            Ok(file) => self.0.iter().find(|quota| names(&quota.rule, &file)),
            Err(_) if procfs::has_ended(pid) => None,
            Err(_) => self.0.iter().min_by_key(|quota| quota.most_pages()),
        };
        quota.cloned()
    }

    /// What was seen of each.
    pub fn uses(&self) -> Vec<ProgramUse> {
        let page = PAGE_BYTES as u64;
        let used = |quota: &Arc<Quota>| ProgramUse {
            program: quota.rule.program.to_string_lossy().escape_debug().to_string(),
            processes: quota.processes.load(Relaxed),
            clear_bytes_limit: quota.rule.clear_bytes,
            clear_bytes_peak: quota.peak_pages.load(Relaxed) * page,
        };
        self.0.iter().map(used).collect()
    }
}

impl Quota {
    fn of(rule: ProgramRule) -> Self {
        Quota { rule, processes: AtomicU64::new(0), peak_pages: AtomicU64::new(0) }
    }

    /// The most pages of plaintext that a process may have; `u64::MAX`: as many as the run.
    pub fn most_pages(&self) -> u64 {
        self.rule.clear_bytes.map_or(u64::MAX, |bytes| bytes / PAGE_BYTES as u64)
    }

    /// Pages of plaintext that the pager may hold of a process that had `outside` that it cannot
    /// hold (copies of file pages) when they were last counted. A 32nd is kept free for those that
    /// come until they are counted again. Half is for what the pager holds in any case: the program
    /// needs it.
    pub fn most_held(&self, outside: u64) -> u64 {
        let most = self.most_pages();
        (most - most / 32).saturating_sub(outside).max(most / 2)
    }

    /// The time after which pages are idle; none: as in the run.
    pub fn idle(&self) -> Option<Duration> {
        self.rule.idle
    }

    /// A process of its program came under the pager.
    pub fn begins(&self) {
        self.processes.fetch_add(1, Relaxed);
    }

    /// A process of its program has so many pages of plaintext.
    pub fn note(&self, pages: u64) {
        if pages > self.peak_pages.load(Relaxed) {
            self.peak_pages.fetch_max(pages, Relaxed);
        }
    }
}

/// Whether a rule names the file that a process executes. The kernel marks one that was removed
/// since.
fn names(rule: &ProgramRule, file: &Path) -> bool {
    let is_named = |bytes: &[u8]| {
        let path = Path::new(OsStr::from_bytes(bytes));
        let is_path = rule.path.as_deref() == Some(path);
        is_path || rule.name.is_some() && rule.name.as_deref() == path.file_name()
    };
    let bytes = file.as_os_str().as_bytes();
    is_named(bytes) || bytes.strip_suffix(b" (deleted)").is_some_and(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::path::PathBuf;

    fn rule(name: Option<&str>, path: Option<&str>, mib: u64) -> ProgramRule {
        ProgramRule {
            program: "p".into(),
            name: name.map(OsString::from),
            path: path.map(PathBuf::from),
            clear_bytes: Some(mib << 20),
            idle: None,
        }
    }

    #[test]
    fn a_program_is_named_by_its_file_or_by_its_path() {
        let named = |rule: &ProgramRule, file: &str| names(rule, Path::new(file));
        let by_name = rule(Some("agent"), None, 2);
        assert!(named(&by_name, "/usr/bin/agent") && named(&by_name, "/agent (deleted)"));
        assert!(!named(&by_name, "/usr/bin/agents") && !named(&by_name, "/agent/x"));
        let by_path = rule(None, Some("/usr/bin/agent"), 2);
        assert!(named(&by_path, "/usr/bin/agent") && named(&by_path, "/usr/bin/agent (deleted)"));
        assert!(!named(&by_path, "/bin/agent") && !named(&by_path, "agent"));
        // A name that is looked up in PATH may be that of a link.
        let both = rule(Some("python3"), Some("/usr/bin/python3.11"), 2);
        assert!(named(&both, "/opt/python3") && named(&both, "/usr/bin/python3.11"));
    }

    #[test]
    fn the_first_rule_that_names_a_process_decides() {
        let own = std::env::current_exe().expect("a path");
        let own = own.to_str().expect("plain");
        let rules =
            [rule(Some("other"), None, 2), rule(None, Some(own), 3), rule(None, Some(own), 4)];
        let quotas = Quotas::of(&rules);
        let pid = std::process::id() as i32;
        assert_eq!(quotas.of_process(pid).map(|quota| quota.most_pages()), Some(768));
        assert!(Quotas::of(&rules[..1]).of_process(pid).is_none());
    }

    #[test]
    fn what_cannot_be_held_counts_up_to_a_half() {
        let quota = Quota::of(rule(None, None, 4));
        let held = [0, 100, 480, 10_000].map(|outside| quota.most_held(outside));
        assert_eq!(held, [992, 892, 512, 512]);
        let none = Quota::of(ProgramRule { clear_bytes: None, ..rule(None, None, 4) });
        assert!(none.most_held(10_000) > u64::MAX / 2);
    }
}
