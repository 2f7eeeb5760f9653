//! `UFFDIO_MOVE`. Linux 6.18 takes neighbours in batches, and begins a batch anew when one of them
//! is being migrated: those that it had moved by then are not counted.

use super::{Kernel, Mapping, PAGE, Pte, State, Wait};
use crate::scheduler;

/// What a move is told.
#[derive(Clone, Copy)]
struct Move {
    mm: u32,
    to: u64,
    from: u64,
    pages: u64,
    /// Pages that are not there are passed over.
    holes: bool,
}

enum Batch {
    /// So many pages are done.
    Done(u64),
    /// It begins anew, whatever it has moved.
    Again,
    Failed(i32),
}

impl State {
    fn move_batch(&mut self, how: Move, done: u64) -> Batch {
        let most = 1 + scheduler::random(self.nature.batch.max(1));
        let begins_anew =
            self.nature.uncounted > 0 && scheduler::random(self.nature.uncounted) == 0;
        for i in 0..most.min(how.pages - done) {
            let (from, to) = (how.from + done + i, how.to + done + i);
            let so_far = |error| if i == 0 { Batch::Failed(error) } else { Batch::Done(i) };
            if self.mm(how.mm).ptes.contains_key(&to) {
                return so_far(libc::EEXIST);
            }
            let moved = match self.mm(how.mm).ptes.get(&from).copied() {
                None if i > 0 => return Batch::Done(i),
                None if how.holes => return Batch::Done(1),
                None => return Batch::Failed(libc::ENOENT),
                Some(Pte::Poison | Pte::Guard) => return so_far(libc::EFAULT),
                Some(Pte::Page { frame, .. }) if self.frames[frame].migrating => {
                    // Those before this one have been moved.
                    return Batch::Again;
                }
                Some(Pte::Page { exclusive: false, .. }) => return so_far(libc::EBUSY),
                Some(Pte::Page { frame, .. }) if self.is_pinned(frame) => {
                    return so_far(libc::EBUSY);
                }
                Some(Pte::Page { frame, .. }) => {
                    self.frames[frame].moved = true;
                    Pte::Page { frame, protected: false, exclusive: true }
                }
                Some(Pte::Zero { .. }) => Pte::Zero { protected: false },
            };
            let ptes = &mut self.mm(how.mm).ptes;
            ptes.remove(&from);
            ptes.insert(to, moved);
            if begins_anew && i + 1 < most && scheduler::random(most) == 0 {
                return Batch::Again;
            }
        }
        Batch::Done(most.min(how.pages - done))
    }

    fn is_pinned(&self, frame: usize) -> bool {
        let one_in = self.nature.pinned;
        one_in > 0 && !self.frames[frame].moved && scheduler::random(one_in) == 0
    }

    /// Both sides in one mapping each, of the same rights, the target under this userfaultfd.
    fn may_move(&mut self, uffd: usize, how: Move) -> Result<(), i32> {
        let whole = |found: Option<(u64, &Mapping)>, start: u64| {
            let (_, mapping) = found.ok_or(libc::ENOENT)?;
            let fits = start + how.pages <= mapping.end;
            if fits { Ok(mapping.clone()) } else { Err(libc::EINVAL) }
        };
        let target = whole(self.mm(how.mm).find(how.to), how.to);
        let source = whole(self.mm(how.mm).find(how.from), how.from);
        let (target, source) = match (target, source) {
            (Err(libc::ENOENT), _) | (_, Err(libc::ENOENT)) => return Err(libc::ENOENT),
            (target, source) => (target?, source?),
        };
        if target.rights != source.rights || !source.rights.write || target.uffd != Some(uffd) {
            return Err(libc::EINVAL);
        }
        Ok(())
    }
}

impl Kernel {
    /// Moves pages: bytes counted as moved, or minus an error number, and the error number.
    pub fn move_pages(&self, uffd: usize, to: u64, from: u64, len: u64, holes: bool) -> (i64, i32) {
        let mut done = 0;
        let result = self.request(uffd, || {
            let mm = self.lock().uffds[uffd].mm;
            let how = Move { mm, to: to / PAGE, from: from / PAGE, pages: len / PAGE, holes };
            self.lock().may_move(uffd, how)?;
            while done < how.pages {
                let batch = self.lock().move_batch(how, done);
                match batch {
                    Batch::Done(pages) => done += pages,
                    Batch::Again => drop(scheduler::sleep(Wait::Migration.into(), Some(3))),
                    Batch::Failed(error) => return Err(error),
                }
                scheduler::point();
            }
            Ok(())
        });
        let outcome = match result {
            Ok(()) => (len as i64, 0),
            Err(_) if done > 0 => ((done * PAGE) as i64, libc::EAGAIN),
            Err(error) => (-i64::from(error), error),
        };
        scheduler::trace(|| format!("moves {from:#x}+{len:#x} to {to:#x}: {outcome:x?}"));
        outcome
    }
}
