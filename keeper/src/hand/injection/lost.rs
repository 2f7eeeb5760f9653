//! An agent whose program was killed while it made it, before the keeper knew the agent's number.
use super::super::image::Region;
use super::super::{meeting, sys};
use super::steps::identify;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// For how long no process is seen with the program's memory before there is no such agent: a list
/// of processes that changes while it is read can miss some.
const UNSEEN: Duration = Duration::from_millis(200);
/// After that an agent to which the keeper does not speak has ended by itself.
const PATIENCE: Duration = Duration::from_secs(11);

/// Such an agent. The process that makes it has the program's memory, goes on when the program is
/// killed, and notes the agent's number there. So has the agent itself.
#[derive(Debug)]
pub struct LostAgent {
    region: Region,
    magic: u64,
    since: Instant,
}

/// What a look at processes found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing yet.
    Nothing,
    /// The agent of this number, which was ended.
    Ended(i32),
    /// There is none.
    NoAgent,
}

impl LostAgent {
    pub(super) fn of(region: Region, magic: u64) -> Self {
        LostAgent { region, magic, since: Instant::now() }
    }

    /// Looks for it by way of these processes, and ends it.
    pub fn look(&mut self, processes: &[i32]) -> Found {
        let bootstrap = self.region.bootstrap();
        let has_memory = |pid: &&i32| sys::read_u64(**pid, bootstrap).ok() == Some(self.magic);
        let Some(&holder) = processes.iter().find(has_memory) else {
            return self.nothing_until(UNSEEN);
        };
        let noted = sys::read_u64(holder, bootstrap + 8).map_or(0, |word| (word >> 32) as i32);
        if noted > 0
            && let Ok(pidfd) = identify(noted, Some(self.region), self.magic)
        {
            meeting::end(pidfd.as_fd());
            return Found::Ended(noted);
        }
        if noted < 0 { Found::NoAgent } else { self.nothing_until(PATIENCE) }
    }

    fn nothing_until(&self, patience: Duration) -> Found {
        if self.since.elapsed() > patience { Found::NoAgent } else { Found::Nothing }
    }
}
