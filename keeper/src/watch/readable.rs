//! What of a run's programs is in RAM while the run is locked, by their page tables.

use super::family::Family;
use crate::config::PAGE_BYTES;
use crate::sys::pagemap::Pagemap;
use crate::sys::process;
use crate::sys::procfs::{self, Described};
use std::io;

/// Pages that can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Readable {
    /// Private anonymous memory of the programs.
    pub private_pages: u64,
    /// Pages of files, copies of them, and shared memory.
    pub outside_pages: u64,
}

impl Readable {
    /// Of all processes of a family. Memory that several have counts once.
    pub fn of(family: &Family) -> Self {
        let mut sum = Readable::default();
        let mut counted: Vec<i32> = Vec::new();
        for process in family.processes.values().filter(|process| !process.has_ended()) {
            // The first may have ended: it has no memory.
            let Some(thread) = procfs::living_thread(process.pid) else { continue };
            if !counted.iter().any(|&other| process::same_memory(thread, other)) {
                let asked = sum.count(thread, process.space.is_some());
                if asked.is_err_and(|error| !procfs::says_ended(&error)) {
                    // What cannot be looked at may all be readable.
                    sum.private_pages += process.resident.anon_pages.max(1);
                }
                counted.push(thread);
            }
        }
        sum
    }

    fn count(&mut self, thread: i32, has_agent: bool) -> io::Result<()> {
        let (mappings, table) = (procfs::described(thread)?, Pagemap::open(thread)?);
        for found in &mappings {
            let mapping = &found.mapping;
            // The kernel's own (`[vdso]`, `[vvar]`) are no memory of the program.
            if mapping.name.starts_with("[v") || has_agent && is_agents(found) {
                continue;
            }
            let is_private = mapping.private && mapping.inode == 0;
            table.for_each_resident(mapping.range.clone(), &mut |run, is_of_file| {
                let pages = (run.end - run.start) / PAGE_BYTES as u64;
                match is_private && !is_of_file {
                    true => self.private_pages += pages,
                    false => self.outside_pages += pages,
                }
            })?;
        }
        Ok(())
    }
}

/// Whether it is memory of an agent. What the program itself has of that kind is under the pager.
fn is_agents(found: &Described) -> bool {
    found.is_unforked_and_undumped && !found.has_userfault
}
