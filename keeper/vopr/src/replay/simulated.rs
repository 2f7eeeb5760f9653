//! The simulated side.

use super::{MAPPINGS, Machine, PAGES, Step};
use crate::kernel::{Kernel, Nature, PAGE, Pte};
use crate::scheduler;
use crate::sys::uffd::{Message, Refusal, Userfault};
use std::sync::{Arc, Mutex};

const BASE: u64 = 0x1_0000;
/// Where ranges are moved away to.
const AWAY: u64 = 0x2_0000;

struct Simulated {
    kernel: Arc<Kernel>,
    mm: u32,
    tid: i32,
    uffd: Userfault,
}

/// Plays the script of a seed on a simulated kernel that counts all its moves.
pub fn play_in_simulation(seed: u64, steps: u64, guards: bool) -> Vec<String> {
    let kernel = Arc::new(Kernel::new(Nature { batch: 64, ..Nature::default() }, None));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let finished = scheduler::run(seed, false, kernel, move || {
        let mut machine = Simulated::new();
        let played = super::play(&mut machine, seed, steps, guards);
        *told.lock().expect("no thread panicked with it") = played;
        scheduler::end(None);
    });
    assert_eq!(finished.failure, None);
    let lines = lines.lock().expect("no thread panicked with it");
    lines.clone()
}

fn bytes_of(at: u64, pages: u64) -> (u64, u64) {
    ((BASE + at) * PAGE, pages * PAGE)
}

impl Simulated {
    fn new() -> Self {
        let kernel = scheduler::kernel();
        let mm = kernel.lock().new_mm();
        let tid = kernel.lock().new_task(mm, None, false);
        let uffd = Userfault::new(kernel.lock().new_uffd(mm, true));
        let this = Simulated { kernel, mm, tid, uffd };
        for (start, end, registered, write) in MAPPINGS {
            let (at, len) = bytes_of(start, end - start);
            let prot = if write { 3 } else { 1 };
            this.call(libc::SYS_mmap, [at, len, prot, libc::MAP_FIXED as u64, 0, 0]);
            if registered {
                this.uffd.register(at, len).expect("a mapping");
            }
        }
        this
    }

    fn call(&self, number: i64, arguments: [u64; 6]) -> i64 {
        self.kernel.perform(self.tid, number, arguments)
    }

    /// Makes a call in another thread and reads its events.
    fn call_told(&self, number: i64, arguments: [u64; 6], log: &mut String) -> i64 {
        let result = Arc::new(Mutex::new(None));
        let (kernel, tid, told) = (Arc::clone(&self.kernel), self.tid, Arc::clone(&result));
        scheduler::spawn("caller", move || {
            let answer = kernel.perform(tid, number, arguments);
            *told.lock().expect("no thread panicked with it") = Some(answer);
        });
        loop {
            if let Some(answer) = *result.lock().expect("no thread panicked with it") {
                return answer;
            }
            scheduler::give_way();
            if self.kernel.can_read(self.uffd.number()) {
                let probed = self.uffd.zero(0x1000, PAGE).1;
                assert_eq!(probed, Err(Refusal::EventPending), "an event is unread");
                let mut messages = Vec::new();
                self.uffd.read(&mut messages).expect("it can be read");
                messages.iter().for_each(|message| *log += &name(message));
            }
        }
    }
}

/// A message without the addresses of this machine.
fn name(message: &Message) -> String {
    let at = |address: u64| match address / PAGE {
        page if page >= AWAY => format!("away {}", page - AWAY),
        page => format!("{}", page - BASE),
    };
    match message {
        Message::Fork(_) => "fork ".to_owned(),
        Message::Remap { from, to, len } => {
            format!("remap {} to {}, {len:#x} ", at(*from), at(*to))
        }
        Message::Remove { start, end } => format!("remove {}, {:#x} ", at(*start), end - start),
        Message::Unmap { start, end } => format!("unmap {}, {:#x} ", at(*start), end - start),
        other => format!("{other:?} "),
    }
}

impl Machine for Simulated {
    fn copy(&mut self, at: u64, pages: u64, fill: u8, protect: bool) -> String {
        let bytes = vec![fill; (pages * PAGE) as usize];
        format!("{:?}", self.uffd.copy(bytes_of(at, 1).0, &bytes, protect))
    }

    fn zeros(&mut self, at: u64, pages: u64) -> String {
        let (at, len) = bytes_of(at, pages);
        format!("{:?}", self.uffd.zero(at, len))
    }

    fn protect(&mut self, at: u64, pages: u64, protect: bool) -> String {
        let (at, len) = bytes_of(at, pages);
        format!("{:?}", self.uffd.protect(at, len, protect))
    }

    fn poison(&mut self, at: u64) -> String {
        let (at, len) = bytes_of(at, 1);
        format!("{:?}", self.uffd.poison(at, len))
    }

    fn move_pages(&mut self, from: u64, to: u64, pages: u64, holes: bool) -> String {
        let (from, len) = bytes_of(from, pages);
        let to = bytes_of(to, 1).0;
        format!("{:?}", self.kernel.move_pages(self.uffd.number(), to, from, len, holes))
    }

    fn store(&mut self, at: u64, value: u8) {
        let word = u64::from_le_bytes([value; 8]);
        self.kernel.store(self.tid, BASE + at, 0, word).expect("nothing is in the way");
    }

    fn change(&mut self, step: Step) -> String {
        let mut log = String::new();
        let result = match step {
            Step::Advise { at, pages, advice } => {
                let (at, len) = bytes_of(at, pages);
                let arguments = [at, len, advice, 0, 0, 0];
                self.call_told(libc::SYS_madvise, arguments, &mut log)
            }
            Step::Fork => {
                let child = self.call_told(libc::SYS_fork, [0; 6], &mut log);
                self.kernel.lock().exit(child as i32);
                0
            }
            Step::MapOver { at, pages } => {
                let (at, len) = bytes_of(at, pages);
                let arguments = [at, len, 3, libc::MAP_FIXED as u64, 0, 0];
                self.call_told(libc::SYS_mmap, arguments, &mut log);
                self.uffd.register(at, len).map_or(-1, |()| 0)
            }
            Step::MoveAway { at, pages, stays } => {
                let (at, len) = bytes_of(at, pages);
                let away = AWAY * PAGE;
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let there = if stays { flags | libc::MREMAP_DONTUNMAP } else { flags };
                let there = [at, len, len, there as u64, away, 0];
                let gone = self.call_told(libc::SYS_mremap, there, &mut log);
                let back = [away, len, len, flags as u64, at, 0];
                match gone {
                    0.. => self.call_told(libc::SYS_mremap, back, &mut log).min(0),
                    error => error,
                }
            }
            _ => 0,
        };
        format!("{log}{result}")
    }

    fn state(&mut self, at: u64) -> char {
        match self.kernel.lock().mm(self.mm).ptes.get(&(BASE + at)) {
            None => '-',
            Some(Pte::Page { protected: true, .. } | Pte::Zero { protected: true }) => 'w',
            Some(Pte::Page { .. } | Pte::Zero { .. }) => 'p',
            Some(Pte::Poison | Pte::Guard) => 's',
        }
    }

    fn first_byte(&mut self, at: u64) -> u8 {
        let mut page = [0; 4096];
        let read = self.kernel.read_page(self.tid, (BASE + at) * PAGE, &mut page);
        read.expect("it is there");
        page[0]
    }
}

const _: () = assert!(PAGES < AWAY - BASE);
