//! The stagings of an agent: the mappings that pages leave the program by.

use super::{Action, Hand, HandError, Op, STAGING_PAGES, StagingKind, sys};
use casemate_agent::PAGE_BYTES;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

impl Hand {
    /// Makes the staging of this kind, if there is none yet. `register` puts a range (first byte,
    /// bytes) under the program's userfaultfd; `idle` as in [`Hand::run`].
    ///
    /// # Errors
    /// The agent's error, `ESRCH` if it is gone.
    pub fn make_staging(
        &mut self,
        kind: StagingKind,
        register: &mut dyn FnMut(u64, u64) -> io::Result<()>,
        idle: &mut dyn FnMut(),
    ) -> io::Result<()> {
        if self.stagings[kind.id() as usize].is_some() {
            return Ok(());
        }
        let make = Action::MakeStaging { staging: kind.id(), pages: STAGING_PAGES, kind };
        let start = self.run_one(make, idle)?;
        let bytes = STAGING_PAGES * PAGE_BYTES;
        let way_out = start + bytes;
        let registered = register(start, bytes)
            .and_then(|()| sys::uffd_register_missing(self.staging_uffd.as_fd(), way_out, bytes));
        if let Err(error) = registered {
            let _ = self.run_one(Action::UnmapStaging { staging: kind.id() }, idle);
            return Err(error);
        }
        self.stagings[kind.id() as usize] = Some(start..start + 2 * bytes);
        Ok(())
    }

    /// Address of page `index` of the half of a staging where pages enter. None without that
    /// staging.
    #[must_use]
    pub fn staging_page(&self, kind: StagingKind, index: usize) -> Option<u64> {
        let range = self.stagings[kind.id() as usize].as_ref()?;
        Some(range.start + index as u64 * PAGE_BYTES)
    }

    /// Whether the staging of this kind exists.
    #[must_use]
    pub fn has_staging(&self, kind: StagingKind) -> bool {
        self.stagings[kind.id() as usize].is_some()
    }

    /// Serves threads that wait for pages of a staging: `mlockall` of the program fills every
    /// mapping it finds. The pages become zeros, and are dropped again before the staging is used
    /// next.
    pub fn serve_staging(&mut self) {
        let waiting = sys::uffd_missing(self.staging_uffd.as_fd());
        for address in waiting {
            let within = |range: &&Range<u64>| range.contains(&address);
            if let Some(range) = self.stagings.iter().flatten().find(within) {
                let way_out = range.start + (range.end - range.start) / 2..range.end;
                sys::uffd_fill_zeros(self.staging_uffd.as_fd(), way_out);
                self.soiled = true;
            }
        }
    }

    /// Readable while a thread waits for a page of a staging.
    #[must_use]
    pub fn staging_descriptor(&self) -> BorrowedFd<'_> {
        self.staging_uffd.as_fd()
    }

    /// Notes that pages of a staging's first half were filled.
    pub fn soil(&mut self) {
        self.soiled = true;
    }

    /// Empties the stagings that [`Hand::serve_staging`] filled.
    ///
    /// # Errors
    /// [`HandError::Gone`] if the agent died.
    pub fn clean_stagings(&mut self) -> Result<(), HandError> {
        if !std::mem::take(&mut self.soiled) {
            return Ok(());
        }
        let ops: Vec<Op> = StagingKind::ALL
            .into_iter()
            .filter(|kind| self.has_staging(*kind))
            .map(|kind| Action::DropStaging {
                staging: kind.id(),
                index: 0,
                pages: STAGING_PAGES,
                all: true,
            })
            .map(Op::from)
            .collect();
        self.run(&ops, &mut || {}).map(drop)
    }
}
