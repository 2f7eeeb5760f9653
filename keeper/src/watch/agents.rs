//! Which processes are the keeper's own: agents, and those that end a program if the keeper dies.

use crate::sys::process;
use crate::sys::procfs;
use std::collections::HashMap;

/// The name of agents, and of the processes that avenge the keeper. A program can take it too.
const NAME: &str = "casemate-agent";

/// Agents by their pids, each with the time of its start: another process may get its number.
#[derive(Default)]
pub(super) struct Agents(HashMap<i32, u64>);

impl Agents {
    /// Whether a process is one, given `known` ones: it was [noted](Self::note), or has the name,
    /// and is among the known ones, or was at an earlier time, or has the keeper's memory.
    pub fn include(&mut self, pid: i32, known: &[i32]) -> bool {
        let Some((name, start)) = procfs::name_and_start(pid) else { return false };
        if self.0.get(&pid) == Some(&start) {
            return true;
        }
        if name != NAME {
            return false;
        }
        if known.contains(&pid) {
            self.0.insert(pid, start);
            return true;
        }
        process::same_memory(pid, std::process::id() as i32)
    }

    /// Takes note of one that was made just now, before it has its name: it may be given up before
    /// a census sees it, and live on for a moment. False if the agent has ended by now, as `lives`
    /// says: its number may be another process's.
    pub fn note(&mut self, pid: i32, lives: impl FnOnce() -> bool) -> bool {
        let Some((_, start)) = procfs::name_and_start(pid) else { return false };
        let is_one = lives();
        if is_one {
            self.0.insert(pid, start);
        }
        is_one
    }

    /// Forgets those that do not live.
    pub fn retain(&mut self, lives: impl Fn(i32) -> bool) {
        self.0.retain(|pid, _| lives(*pid));
    }

    /// Whether it has the name of one.
    pub fn is_named_so(pid: i32) -> bool {
        procfs::name(pid).is_some_and(|name| name == NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    /// A process that sleeps, under another name.
    struct Sleeper {
        folder: PathBuf,
        process: Child,
    }

    impl Sleeper {
        fn begin(name: &str) -> Self {
            let unique = format!("casemate-name-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(unique);
            std::fs::create_dir_all(&folder).expect("a folder");
            let program = folder.join(name);
            std::os::unix::fs::symlink("/bin/sleep", &program).expect("a link");
            let process = Command::new(program).arg("60").spawn().expect("it sleeps");
            let sleeper = Sleeper { folder, process };
            // The parent goes on when the new program has its memory, just before it has its name.
            let until = Instant::now() + Duration::from_secs(30);
            while procfs::name(sleeper.pid()).is_none_or(|its| its != name) {
                assert!(Instant::now() < until, "it is never called {name}");
                std::thread::yield_now();
            }
            sleeper
        }

        fn pid(&self) -> i32 {
            self.process.id() as i32
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.process.kill().and_then(|()| self.process.wait()).expect("it is ours");
            std::fs::remove_dir_all(&self.folder).expect("it is ours");
        }
    }

    #[test]
    fn a_program_that_takes_the_name_is_no_agent() {
        let named = Sleeper::begin(NAME);
        let pid = named.pid();
        assert!(Agents::is_named_so(pid));
        let mut agents = Agents::default();
        assert!(!agents.include(pid, &[]), "by its name alone");
        assert!(agents.include(pid, &[pid]));
        agents.retain(|_| true);
        assert!(agents.include(pid, &[]), "its program has ended since");
        agents.0.insert(pid, 1);
        assert!(!agents.include(pid, &[]), "another process had its number");
        assert!(agents.include(pid, &[pid]));
        agents.retain(|_| false);
        assert!(!agents.include(pid, &[]), "forgotten");
        assert!(agents.note(pid, || true));
        assert!(agents.include(pid, &[]), "noted when it was made");
    }

    #[test]
    fn an_agent_is_known_before_it_has_its_name() {
        let (agent, stranger) = (Sleeper::begin("nameless"), Sleeper::begin("stranger"));
        let mut agents = Agents::default();
        assert!(!agents.note(stranger.pid(), || false), "the agent has ended, and this its number");
        assert!(!agents.include(stranger.pid(), &[]));
        assert!(agents.note(agent.pid(), || true));
        assert!(agents.include(agent.pid(), &[]), "without its name");
        let pid = agent.pid();
        drop(agent);
        assert!(!agents.note(pid, || true), "there is nothing to note");
    }

    #[test]
    fn a_name_with_brackets_and_its_start_are_read() {
        let named = Sleeper::begin("a) R (b");
        let (name, start) = procfs::name_and_start(named.pid()).expect("it lives");
        assert_eq!(name, "a) R (b");
        let own = procfs::name_and_start(std::process::id() as i32).expect("we live").1;
        assert!(own > 0 && start >= own, "{own}, {start}");
    }
}
