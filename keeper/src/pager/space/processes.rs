//! The processes that have the memory of a space, and the kernel's table of its pages.

use crate::pager::{Stop, asked};
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs;

/// The processes that have this memory.
#[derive(Default)]
pub struct Processes {
    /// Those of the program that are known to run in this space.
    pub pids: Vec<i32>,
    /// The agent's process number, also while its hand is at work. Of the processes that had this
    /// memory any may have executed another program since; an agent never does.
    pub(crate) agent: Option<i32>,
    /// Once there is an agent, opened as its own.
    pub(crate) pagemap: Option<Pagemap>,
}

impl Processes {
    /// A process that has this memory: the agent, or one of the program's.
    pub(crate) fn some_pid(&self) -> Option<i32> {
        self.agent.or_else(|| self.pids.iter().find_map(|&pid| procfs::living_thread(pid)))
    }

    /// Whether the kernel has a page there: in memory, in its own swap, or on its way to another
    /// frame. None if it cannot be asked, since no process of the space is known (any more).
    pub(crate) fn holds_page(&mut self, address: u64) -> Result<Option<bool>, Stop> {
        let Some(pagemap) = self.pagemap()? else { return Ok(None) };
        match pagemap.holds_page(address) {
            Ok(holds) => Ok(Some(holds)),
            // The address space is no more.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => {
                Err(Stop::Internal(format!("asking for the page at {address:#x}: {error}")))
            }
        }
    }

    /// The page table; none if no process of the space is known (any more).
    pub(in crate::pager) fn pagemap(&mut self) -> Result<Option<&Pagemap>, Stop> {
        if self.pagemap.is_none() {
            let Some(pid) = self.some_pid() else { return Ok(None) };
            // It stays that of this address space, whatever its processes execute.
            self.pagemap = asked::page_table(pid)?;
        }
        Ok(self.pagemap.as_ref())
    }
}
