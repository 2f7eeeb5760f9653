//! Loads and stores, and the faults that they meet.

use super::uffd::Fault;
use super::{Kernel, PAGE, Pte, State, Wait};
use crate::scheduler;
use crate::truth::OFFSETS;

/// How an access ends that cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Segv,
    Bus,
}

enum Touch {
    Frame(usize),
    Zeros,
    Asks { uffd: usize, protected: bool },
    Migrates,
    Fails(Signal),
}

impl State {
    /// What the processor and the kernel make of one access.
    fn touch(&mut self, mm: u32, vpn: u64, write: bool) -> Touch {
        let Some((_, mapping)) = self.mm(mm).find(vpn) else { return Touch::Fails(Signal::Segv) };
        let (rights, uffd) = (mapping.rights, mapping.uffd);
        if write && !rights.write || !write && !rights.read {
            return Touch::Fails(Signal::Segv);
        }
        match (self.mm(mm).ptes.get(&vpn).copied(), uffd) {
            (None, Some(uffd)) => Touch::Asks { uffd, protected: false },
            (None, None) if write => self.own(mm, vpn, None),
            (None, None) => {
                self.mm(mm).ptes.insert(vpn, Pte::Zero { protected: false });
                Touch::Zeros
            }
            (Some(Pte::Poison), _) => Touch::Fails(Signal::Bus),
            (Some(Pte::Guard), _) => Touch::Fails(Signal::Segv),
            (Some(Pte::Zero { .. }), _) if !write => Touch::Zeros,
            (Some(Pte::Page { frame, .. }), _) if self.frames[frame].migrating => Touch::Migrates,
            (Some(Pte::Page { frame, .. }), _) if !write => Touch::Frame(frame),
            (
                Some(Pte::Zero { protected: true } | Pte::Page { protected: true, .. }),
                Some(uffd),
            ) => Touch::Asks { uffd, protected: true },
            (Some(Pte::Zero { .. }), _) => self.own(mm, vpn, None),
            (Some(Pte::Page { frame, exclusive: true, .. }), _) => Touch::Frame(frame),
            (Some(Pte::Page { frame, .. }), _) => self.own(mm, vpn, Some(frame)),
        }
    }

    /// A page that is about to be written gets a frame of its own: a copy of `shared`, or zeros.
    fn own(&mut self, mm: u32, vpn: u64, shared: Option<usize>) -> Touch {
        let of_file = self.mm(mm).find(vpn).is_some_and(|(_, mapping)| mapping.of_file);
        let frame = match shared {
            Some(frame) if self.frames[frame].maps == 1 => frame,
            Some(shared) => {
                let data = *self.frames[shared].data;
                self.unmap_frame(shared);
                self.new_frame(Some(&data), of_file)
            }
            None => self.new_frame(None, of_file),
        };
        let pte = Pte::Page { frame, protected: false, exclusive: true };
        self.mm(mm).ptes.insert(vpn, pte);
        Touch::Frame(frame)
    }
}

impl Kernel {
    /// Touches a page as thread `tid` does; `with` sees its frame, none for the page of zeros, in
    /// the moment of the access.
    fn access<T>(
        &self,
        tid: i32,
        vpn: u64,
        write: bool,
        mut with: impl FnMut(&mut State, u32, Option<usize>) -> T,
    ) -> Result<T, Signal> {
        loop {
            scheduler::point();
            let mut state = self.lock();
            let Some(mm) = state.tasks.get(&tid).map(|task| task.mm) else {
                drop(state);
                scheduler::end_thread();
            };
            match state.touch(mm, vpn, write) {
                Touch::Frame(frame) => return Ok(with(&mut state, mm, Some(frame))),
                Touch::Zeros => return Ok(with(&mut state, mm, None)),
                Touch::Fails(signal) => return Err(signal),
                Touch::Migrates => {
                    drop(state);
                    scheduler::sleep(Wait::Migration.into(), Some(50));
                }
                Touch::Asks { uffd, protected } => {
                    let number = state.number();
                    let fault = Fault { number, tid, vpn, write, protected };
                    scheduler::trace(|| format!("asks {fault:x?} of uffd {uffd}"));
                    state.uffds[uffd].pending.push_back(fault);
                    drop(state);
                    self.has_message(uffd);
                    self.await_fault(tid, uffd, number);
                }
            }
        }
    }

    fn await_fault(&self, tid: i32, uffd: usize, number: u64) {
        loop {
            {
                let state = self.lock();
                if !state.uffds[uffd].is_waiting(number) || !state.tasks.contains_key(&tid) {
                    return;
                }
            }
            scheduler::sleep(Wait::Fault(number).into(), None);
        }
    }

    /// Loads a word and compares it with what must be there. An `Err` of a string is a wrong one.
    pub fn load(&self, tid: i32, vpn: u64, word: usize) -> Result<Result<u64, String>, Signal> {
        self.access(tid, vpn, false, |state, mm, frame| {
            let at = OFFSETS[word] as usize;
            let value = frame.map_or(0, |frame| {
                let bytes = &state.frames[frame].data[at..at + 8];
                u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
            });
            scheduler::trace(|| format!("loads {value:#x} of {vpn:#x}.{word}"));
            let allowed = state.mm(mm).truth.loaded(vpn, word, value);
            allowed.map(|()| value).map_err(|expected| {
                format!("page {vpn:#x}, word {word}: got {value:#x}, expected {expected}")
            })
        })
    }

    /// Stores a word.
    pub fn store(&self, tid: i32, vpn: u64, word: usize, value: u64) -> Result<(), Signal> {
        self.access(tid, vpn, true, |state, mm, frame| {
            let at = OFFSETS[word] as usize;
            let frame = frame.expect("a page that is written has a frame");
            state.frames[frame].data[at..at + 8].copy_from_slice(&value.to_le_bytes());
            scheduler::trace(|| format!("stores {value:#x} to {vpn:#x}.{word}"));
            state.mm(mm).truth.stored(vpn, word, value);
        })
    }

    /// Reads a page as an agent does, without judging it.
    pub fn read_page(&self, tid: i32, address: u64, into: &mut [u8; 4096]) -> Result<(), Signal> {
        self.access(tid, address / PAGE, false, |state, _, frame| match frame {
            Some(frame) => *into = *state.frames[frame].data,
            None => *into = [0; 4096],
        })
    }

    /// Touches a page to make it writable (`MADV_POPULATE_WRITE`).
    pub fn populate(&self, tid: i32, vpn: u64) -> Result<(), Signal> {
        self.access(tid, vpn, true, |_, _, _| {})
    }
}
