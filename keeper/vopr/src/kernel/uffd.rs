//! userfaultfd: messages, and the requests that fill, protect and wake.

use super::{Kernel, PAGE, Pte, State, Wait};
use crate::scheduler;
use std::collections::VecDeque;
use std::ops::Range;

/// A thread that waits for a page.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub number: u64,
    pub tid: i32,
    pub vpn: u64,
    pub write: bool,
    pub protected: bool,
}

/// A message, as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw {
    Missing { address: u64, write: bool, tid: i32 },
    Protected { address: u64, tid: i32 },
    Fork { uffd: usize },
    Remap { from: u64, to: u64, len: u64 },
    Remove { start: u64, end: u64 },
    Unmap { start: u64, end: u64 },
}

/// An event whose caller waits until it is read.
#[derive(Debug)]
pub struct Event {
    pub number: u64,
    pub message: Raw,
}

/// A userfaultfd.
#[derive(Debug)]
pub struct Uffd {
    pub mm: u32,
    /// Events are raised: it is a program's, not a staging's.
    pub has_events: bool,
    /// Faults that were not read yet.
    pub pending: VecDeque<Fault>,
    /// Faults that were read.
    pub waiting: Vec<Fault>,
    pub events: VecDeque<Event>,
    /// Calls whose event is not over (`mmap_changing`).
    pub changing: u32,
    /// Requests under way, for whose end an event waits (`map_changing_lock`).
    pub busy: u32,
    /// Something was queued since an edge-triggered poll was last told.
    pub edge: bool,
    /// A handler polls it.
    pub heard: bool,
}

impl Uffd {
    pub fn is_waiting(&self, number: u64) -> bool {
        self.pending.iter().chain(&self.waiting).any(|fault| fault.number == number)
    }
}

/// What a page is filled with.
#[derive(Debug, Clone, Copy)]
pub enum Fill<'a> {
    Copy { bytes: &'a [u8], protect: bool },
    Zeros,
    Poison,
}

impl State {
    pub fn new_uffd(&mut self, mm: u32, has_events: bool) -> usize {
        self.uffds.push(Uffd {
            mm,
            has_events,
            pending: VecDeque::new(),
            waiting: Vec::new(),
            events: VecDeque::new(),
            changing: 0,
            busy: 0,
            edge: false,
            heard: false,
        });
        self.uffds.len() - 1
    }

    /// Why a request is refused before it begins: an error number.
    fn may_begin(&mut self, uffd: usize) -> Result<(), i32> {
        let (changing, mm) = (self.uffds[uffd].changing, self.uffds[uffd].mm);
        if changing > 0 {
            return Err(libc::EAGAIN);
        }
        if self.mm(mm).users == 0 { Err(libc::ESRCH) } else { Ok(()) }
    }
}

impl Kernel {
    /// Tells the threads that poll a userfaultfd.
    pub fn has_message(&self, uffd: usize) {
        self.lock().uffds[uffd].edge = true;
        scheduler::wake(Wait::Epoll.into());
        scheduler::wake(Wait::Beside(uffd).into());
    }

    /// Runs a request under the lock of the address space, if it may begin.
    pub(super) fn request<T>(
        &self,
        uffd: usize,
        work: impl FnOnce() -> Result<T, i32>,
    ) -> Result<T, i32> {
        scheduler::point();
        let mm = {
            let mut state = self.lock();
            state.may_begin(uffd)?;
            state.uffds[uffd].mm
        };
        self.begin_reading(mm);
        let begun = {
            let mut state = self.lock();
            let may = state.may_begin(uffd);
            state.uffds[uffd].busy += 1;
            may
        };
        let result = begun.and_then(|()| work());
        self.lock().uffds[uffd].busy -= 1;
        self.end_reading(mm);
        result
    }

    /// `UFFDIO_COPY`, `UFFDIO_ZEROPAGE`, `UFFDIO_POISON`: bytes done, and the error number that
    /// ended it.
    pub fn fill(&self, uffd: usize, start: u64, len: u64, what: Fill<'_>) -> (u64, i32) {
        let mut done = 0;
        let result = self.request(uffd, || {
            let mm = self.lock().uffds[uffd].mm;
            let range = start / PAGE..(start + len) / PAGE;
            while done < len {
                if done > 0 {
                    scheduler::point();
                }
                let mut state = self.lock();
                let found = state.mm(mm).find(range.start);
                let fits = found.is_some_and(|(_, m)| m.end >= range.end && m.uffd.is_some());
                if !fits {
                    return Err(libc::ENOENT);
                }
                let vpn = range.start + done / PAGE;
                let is_taken = match (state.mm(mm).ptes.get(&vpn), what) {
                    (None, _) => false,
                    // Linux copies over such marks.
                    (Some(Pte::Poison | Pte::Guard), Fill::Copy { .. }) => false,
                    (Some(_), _) => true,
                };
                if is_taken {
                    return Err(libc::EEXIST);
                }
                let pte = match what {
                    Fill::Zeros => Pte::Zero { protected: false },
                    Fill::Poison => Pte::Poison,
                    Fill::Copy { bytes, protect } => {
                        let at = done as usize;
                        let page = bytes[at..at + 4096].try_into().expect("a page");
                        let frame = state.new_frame(Some(page), false);
                        Pte::Page { frame, protected: protect, exclusive: true }
                    }
                };
                state.mm(mm).ptes.insert(vpn, pte);
                done += PAGE;
            }
            Ok(())
        });
        let error = match result {
            Ok(()) => 0,
            // The kernel counts, and reports that it did not do all.
            Err(_) if done > 0 => libc::EAGAIN,
            Err(error) => error,
        };
        let kind = match what {
            Fill::Copy { protect, .. } => format!("copy, protected {protect}"),
            other => format!("{other:?}"),
        };
        scheduler::trace(|| {
            format!("fills {start:#x}+{len:#x} ({kind}): {done:#x}, error {error}")
        });
        (done, error)
    }

    /// Whether `UFFDIO_CONTINUE` tells that the address space is no more.
    pub fn is_gone(&self, uffd: usize) -> bool {
        self.request(uffd, || Err::<(), i32>(libc::EINVAL)) == Err(libc::ESRCH)
    }

    /// `UFFDIO_WRITEPROTECT`.
    pub fn protect(&self, uffd: usize, start: u64, len: u64, protect: bool) -> Result<(), i32> {
        let result = self.request(uffd, || {
            let mut state = self.lock();
            let mm = state.uffds[uffd].mm;
            let range = start / PAGE..(start + len) / PAGE;
            let parts = state.mm(mm).parts(&range);
            let mut result = Err(libc::ENOENT);
            for (part, mapping) in parts {
                if mapping.uffd.is_none() {
                    return Err(libc::ENOENT);
                }
                result = Ok(());
                for (_, pte) in state.mm(mm).ptes.range_mut(part) {
                    if let Pte::Zero { protected } | Pte::Page { protected, .. } = pte {
                        *protected = protect;
                    }
                }
            }
            result
        });
        scheduler::trace(|| format!("protects {start:#x}+{len:#x} {protect}: {result:?}"));
        result
    }

    /// `UFFDIO_REGISTER`, for missing and for protected pages.
    pub fn register(&self, uffd: usize, start: u64, len: u64) -> Result<(), i32> {
        scheduler::point();
        let mm = self.lock().uffds[uffd].mm;
        let range = start / PAGE..(start + len) / PAGE;
        let result = self.write(mm, |state| {
            if state.mm(mm).users == 0 {
                return Err(libc::ENOMEM);
            }
            let parts = state.mm(mm).parts(&range);
            if parts.is_empty() {
                return Err(libc::EINVAL);
            }
            if parts.iter().any(|(_, m)| m.uffd.is_some_and(|other| other != uffd)) {
                return Err(libc::EBUSY);
            }
            state.mm(mm).change(&range, |mapping| mapping.uffd = Some(uffd));
            Ok(())
        });
        scheduler::trace(|| format!("registers {start:#x}+{len:#x}: {result:?}"));
        result
    }

    /// `UFFDIO_WAKE`.
    pub fn wake(&self, uffd: usize, start: u64, len: u64) {
        scheduler::point();
        let range: Range<u64> = start / PAGE..(start + len).div_ceil(PAGE);
        let mut woken = Vec::new();
        {
            let mut state = self.lock();
            let uffd = &mut state.uffds[uffd];
            let mut keep = |fault: &Fault| {
                let is_in = range.contains(&fault.vpn);
                woken.extend(is_in.then_some(fault.number));
                !is_in
            };
            uffd.pending.retain(&mut keep);
            uffd.waiting.retain(&mut keep);
        }
        scheduler::trace(|| format!("wakes {start:#x}+{len:#x}: {}", woken.len()));
        for number in woken {
            scheduler::wake(Wait::Fault(number).into());
        }
    }

    /// read(2): faults first, then events, as many as fit.
    pub fn read(&self, uffd: usize, most: usize) -> Vec<Raw> {
        scheduler::point();
        let (mut messages, mut over) = (Vec::new(), Vec::new());
        {
            let mut state = self.lock();
            let uffd = &mut state.uffds[uffd];
            while messages.len() < most {
                if let Some(fault) = uffd.pending.pop_front() {
                    uffd.waiting.push(fault);
                    let address = fault.vpn * PAGE;
                    messages.push(match fault.protected {
                        true => Raw::Protected { address, tid: fault.tid },
                        false => Raw::Missing { address, write: fault.write, tid: fault.tid },
                    });
                } else if let Some(event) = uffd.events.pop_front() {
                    over.push(event.number);
                    messages.push(event.message);
                } else {
                    break;
                }
            }
        }
        if !messages.is_empty() {
            scheduler::trace(|| format!("reads of uffd {uffd}: {messages:x?}"));
        }
        for number in over {
            scheduler::wake(Wait::Event(number).into());
        }
        messages
    }

    /// Begins to poll a userfaultfd: what waits already is told of.
    pub fn hear(&self, uffd: usize) {
        let is_waiting = self.can_read(uffd);
        let mut state = self.lock();
        state.uffds[uffd].heard = true;
        state.uffds[uffd].edge |= is_waiting;
        drop(state);
        scheduler::wake(Wait::Epoll.into());
    }

    /// A userfaultfd with something new, waited for.
    pub fn poll(&self) -> usize {
        loop {
            scheduler::point();
            let mut state = self.lock();
            if let Some(uffd) = state.uffds.iter().position(|uffd| uffd.heard && uffd.edge) {
                state.uffds[uffd].edge = false;
                return uffd;
            }
            drop(state);
            scheduler::sleep(Wait::Epoll.into(), None);
        }
    }

    /// Whether a message waits.
    pub fn can_read(&self, uffd: usize) -> bool {
        let state = self.lock();
        let uffd = &state.uffds[uffd];
        !uffd.pending.is_empty() || !uffd.events.is_empty()
    }
}
