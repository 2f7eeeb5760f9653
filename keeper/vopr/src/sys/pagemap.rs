//! `sys::pagemap` over the simulated kernel.

use crate::canary::Canary;
use crate::kernel::{PAGE, Pte, State};
use crate::scheduler;
use std::io;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    Anonymous,
    Other,
}

/// Of one address space.
#[derive(Debug)]
pub struct Pagemap(u32);

impl Pagemap {
    pub fn open(pid: i32) -> io::Result<Self> {
        let state = scheduler::kernel();
        let task = state.lock().tasks.get(&pid).cloned();
        task.map(|task| Pagemap(task.mm)).ok_or(io::ErrorKind::NotFound.into())
    }

    pub fn is_write_protected(&self, address: u64) -> io::Result<bool> {
        scheduler::point();
        let kernel = scheduler::kernel();
        let mut state = kernel.lock();
        Ok(matches!(
            state.mm(self.0).ptes.get(&(address / PAGE)),
            Some(Pte::Page { protected: true, .. } | Pte::Zero { protected: true })
        ))
    }

    pub fn holds_page(&self, address: u64) -> io::Result<bool> {
        scheduler::point();
        let kernel = scheduler::kernel();
        let mut state = kernel.lock();
        if state.mm(self.0).users == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(match state.mm(self.0).ptes.get(&(address / PAGE)).copied() {
            Some(Pte::Page { frame, .. }) if state.frames[frame].migrating => {
                !Canary::MigrationIsAbsence.is_put_back()
            }
            Some(Pte::Page { .. } | Pte::Zero { .. } | Pte::Poison | Pte::Guard) => true,
            None => false,
        })
    }

    pub fn for_each_exclusive(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        for address in range.step_by(PAGE as usize) {
            scheduler::point();
            let kernel = scheduler::kernel();
            let mut state = kernel.lock();
            let pte = state.mm(self.0).ptes.get(&(address / PAGE)).copied();
            let is_exclusive =
                matches!(pte, Some(Pte::Page { frame, .. }) if state.frames[frame].maps == 1);
            drop(state);
            if is_exclusive {
                visit(address);
            }
        }
        Ok(())
    }

    pub fn for_each_present(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        let is_present = |state: &State, pte: Pte| match pte {
            Pte::Page { frame, .. } => !state.frames[frame].migrating,
            _ => false,
        };
        self.scan(range, &is_present, visit)
    }

    pub fn anonymous_pages(&self, range: Range<u64>) -> io::Result<u64> {
        let mut pages = 0;
        self.for_each_present(range, &mut |run| pages += (run.end - run.start) / PAGE)?;
        Ok(pages)
    }

    /// Of mappings of files only, none of which is replaced here.
    pub fn exclusive_pages(&self, _range: Range<u64>) -> io::Result<u64> {
        Ok(0)
    }

    pub fn for_each_zero(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        self.scan(range, &|_, pte| matches!(pte, Pte::Zero { .. }), visit)
    }

    pub fn for_each_guard(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        self.scan(range, &|_, pte| pte == Pte::Guard, visit)
    }

    pub fn for_each_kind(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>, PageKind),
    ) -> io::Result<()> {
        let is_anonymous = |state: &State, pte: Pte| match pte {
            Pte::Page { frame, .. } => !state.frames[frame].migrating,
            _ => false,
        };
        let mut kinds = Vec::new();
        self.scan(range.clone(), &|_, pte| pte != Pte::Guard, &mut |run| {
            kinds.push((run, PageKind::Other));
        })?;
        self.scan(range, &is_anonymous, &mut |run| {
            let found = kinds.iter_mut().find(|(other, _)| *other == run);
            found.into_iter().for_each(|(_, kind)| *kind = PageKind::Anonymous);
        })?;
        kinds.into_iter().for_each(|(run, kind)| visit(run, kind));
        Ok(())
    }

    fn scan(
        &self,
        range: Range<u64>,
        which: &dyn Fn(&State, Pte) -> bool,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        scheduler::point();
        let kernel = scheduler::kernel();
        let mut state = kernel.lock();
        if state.mm(self.0).users == 0 {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let pages = range.start / PAGE..range.end / PAGE;
        let ptes: Vec<(u64, Pte)> =
            state.mm(self.0).ptes.range(pages).map(|(vpn, pte)| (*vpn, *pte)).collect();
        let found = ptes.into_iter().filter(|(_, pte)| which(&state, *pte)).map(|(vpn, _)| vpn);
        let found: Vec<u64> = found.collect();
        drop(state);
        found.into_iter().for_each(|vpn| visit(vpn * PAGE..(vpn + 1) * PAGE));
        Ok(())
    }
}
