//! fork: pages are shared until they are written, and a userfaultfd has a child of its own.

use super::{Kernel, Mm, Pte, Raw, State};
use crate::scheduler;
use std::collections::BTreeMap;

impl State {
    /// A copy of an address space, as fork makes it, and the userfaultfds that are told, each with
    /// its child.
    fn copy_mm(&mut self, mm: u32) -> (u32, Vec<(usize, usize)>) {
        let child = self.new_mm();
        let mappings = self.mm(mm).mappings.clone();
        let mut copied = Mm {
            truth: self.mm(mm).truth.copied(),
            heap_pages: self.mm(mm).heap_pages,
            ..Mm::default()
        };
        let mut told: BTreeMap<usize, usize> = BTreeMap::new();
        for (start, mut mapping) in mappings {
            let range = start..mapping.end;
            if mapping.not_forked {
                copied.truth.clear(&range);
                continue;
            }
            mapping.uffd = mapping.uffd.filter(|&uffd| self.uffds[uffd].has_events).map(|uffd| {
                *told.entry(uffd).or_insert_with(|| {
                    self.announce_event(uffd);
                    self.new_uffd(child, true)
                })
            });
            if mapping.wiped_on_fork {
                copied.truth.clear(&range);
            } else {
                self.share(mm, range, &mut copied);
            }
            copied.mappings.insert(start, mapping);
        }
        self.mms.insert(child, copied);
        (child, told.into_iter().collect())
    }

    fn share(&mut self, mm: u32, range: std::ops::Range<u64>, child: &mut Mm) {
        let ptes: Vec<(u64, Pte)> = self.mm(mm).ptes.range(range).map(|(v, p)| (*v, *p)).collect();
        for (vpn, mut pte) in ptes {
            if let Pte::Page { frame, exclusive, .. } = &mut pte {
                *exclusive = false;
                self.frames[*frame].maps += 1;
            }
            self.mm(mm).ptes.insert(vpn, pte);
            child.ptes.insert(vpn, pte);
        }
    }
}

impl Kernel {
    /// Forks: the child's process number. It runs once its events are read.
    pub(super) fn fork(&self, tid: i32, mm: u32) -> i64 {
        scheduler::point();
        let (child, told) = self.write(mm, |state| {
            let (copy, told) = state.copy_mm(mm);
            (state.new_task(copy, None, false), told)
        });
        scheduler::trace(|| format!("{tid} forks {child}"));
        for (uffd, copy) in told {
            self.raise(uffd, Raw::Fork { uffd: copy });
        }
        child.into()
    }
}
