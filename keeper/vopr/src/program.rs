//! The program under the pager: threads that load, store and call at random, and compare all that
//! they read.

use crate::kernel::{BROKEN_FILE, FILE, Kernel, Mapping, PAGE, REFUSED_FILE, Signal};
use crate::scheduler;
use crate::truth::WORDS;
use crate::world::Plan;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where agents' mappings begin, in pages; what lies above is none of the program's business.
const ABOVE: u64 = 0x1_0000_0000;
const RW: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;

/// What the program's threads did, together.
#[derive(Debug, Default)]
pub struct Tally {
    pub loads: AtomicU64,
    pub stores: AtomicU64,
    pub calls: AtomicU64,
    pub forks: AtomicU64,
    /// Processes of the program that run.
    pub processes: AtomicU64,
    /// Threads of the program that run.
    pub threads: AtomicU64,
}

/// One thread.
pub struct Thread {
    kernel: Arc<Kernel>,
    plan: Plan,
    tally: Arc<Tally>,
    tid: i32,
    mm: u32,
    next_value: u64,
    until: u64,
}

fn random(end: u64) -> u64 {
    scheduler::random(end)
}

impl Thread {
    pub fn new(plan: &Plan, tally: &Arc<Tally>, tid: i32, until: u64) -> Thread {
        let kernel = scheduler::kernel();
        let mm = kernel.lock().tasks[&tid].mm;
        let (plan, tally) = (plan.clone(), Arc::clone(tally));
        tally.threads.fetch_add(1, Relaxed);
        Thread { kernel, plan, tally, tid, mm, next_value: 0, until }
    }

    /// Runs until it is time, then reads all that there is, and exits.
    pub fn run(mut self) {
        while scheduler::now() < self.until {
            self.act();
            scheduler::progress();
        }
        for (range, mapping) in self.mappings() {
            for vpn in range {
                if mapping.rights.read {
                    self.load(vpn, random(WORDS as u64) as usize);
                    scheduler::progress();
                }
            }
        }
        self.kernel.lock().exit(self.tid);
        self.tally.threads.fetch_sub(1, Relaxed);
        scheduler::trace(|| "exits".to_owned());
    }

    fn act(&mut self) {
        let Some((range, _)) = self.some_mapping() else { return self.map() };
        match random(100) {
            0..30 => self.load(self.some_page(&range), random(WORDS as u64) as usize),
            30..70 => self.store(self.some_page(&range)),
            70..84 => self.stream(&range, false),
            84..94 => self.stream(&range, true),
            _ => self.change(&range),
        }
    }

    fn mappings(&self) -> Vec<(Range<u64>, Mapping)> {
        self.kernel.lock().mm(self.mm).parts(&(0..ABOVE))
    }

    fn some_mapping(&self) -> Option<(Range<u64>, Mapping)> {
        let mut mappings = self.mappings();
        if mappings.is_empty() {
            return None;
        }
        Some(mappings.swap_remove(random(mappings.len() as u64) as usize))
    }

    /// A page of a range; the first ones are touched more often.
    fn some_page(&self, range: &Range<u64>) -> u64 {
        let pages = range.end - range.start;
        range.start + if random(3) == 0 { random(pages.min(6)) } else { random(pages) }
    }

    fn some_part(&self, range: &Range<u64>, most: u64) -> Range<u64> {
        let start = range.start + random(range.end - range.start);
        start..(start + 1 + random(most)).min(range.end)
    }

    fn load(&self, vpn: u64, word: usize) {
        self.tally.loads.fetch_add(1, Relaxed);
        match self.kernel.load(self.tid, vpn, word) {
            Ok(Err(wrong)) => scheduler::end(Some(format!("a wrong byte: {wrong}"))),
            Ok(Ok(_)) | Err(Signal::Segv | Signal::Bus) => {}
        }
    }

    fn store(&mut self, vpn: u64) {
        self.tally.stores.fetch_add(1, Relaxed);
        self.next_value += 1;
        let value = (self.tid as u64) << 40 | self.next_value;
        // What is mapped no more, or may not be written, by then is another thread's doing.
        let _ = self.kernel.store(self.tid, vpn, random(WORDS as u64) as usize, value);
    }

    /// Upwards, downwards, or at equal distances either way.
    fn stream(&mut self, range: &Range<u64>, write: bool) {
        let step = if random(2) == 0 { 1 } else { 2 + random(4) };
        let part = self.some_part(range, 48 * step);
        let mut pages: Vec<u64> = part.step_by(step as usize).collect();
        if random(2) == 0 {
            pages.reverse();
        }
        for vpn in pages {
            if write {
                self.store(vpn);
            } else {
                self.load(vpn, 0);
            }
            scheduler::progress();
        }
    }

    fn change(&mut self, range: &Range<u64>) {
        if !self.plan.calls {
            return;
        }
        let mapped: u64 = self.mappings().iter().map(|(range, _)| range.end - range.start).sum();
        self.tally.calls.fetch_add(1, Relaxed);
        match random(21) {
            _ if self.plan.forks && random(6) == 0 => {
                if random(2) == 0 {
                    self.advise_forks(&self.some_part(range, 30));
                }
                self.fork();
            }
            _ if mapped < self.plan.pages / 2 => self.map(),
            0..3 if mapped > self.plan.pages => self.unmap(&self.some_part(range, 200)),
            0..3 => self.map(),
            3..9 => self.advise(&self.some_part(range, 30)),
            9..12 => self.remap(&self.some_part(range, 60)),
            12..14 => self.map_over(&self.some_part(range, 16)),
            14..17 if self.plan.rights => self.set_rights(&self.some_part(range, 16)),
            18 => self.set_break(),
            // Guards that are not announced are known of by no event (SPEC.md, section 12).
            19 if self.plan.announced => self.guard(&self.some_part(range, 12)),
            17 => self.advise_forks(&self.some_part(range, 30)),
            _ => self.unmap(&self.some_part(range, 4)),
        }
    }

    fn call(&self, number: i64, arguments: [u64; 6]) -> i64 {
        self.kernel.call(self.tid, number, arguments)
    }

    /// A place that is likely to be free.
    fn wish(&self) -> u64 {
        (0x1_0000 + random(64) * 64) * PAGE
    }

    fn map(&self) {
        let pages = 16 + random(120);
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        self.call(libc::SYS_mmap, [self.wish(), pages * PAGE, RW, flags, u64::MAX, 0]);
    }

    /// The heap grows or shrinks; what another thread made of it meanwhile decides.
    fn set_break(&self) {
        let end = self.call(libc::SYS_brk, [0; 6]) as u64;
        let end = if random(2) == 0 {
            end + random(40) * PAGE
        } else {
            end.saturating_sub(random(40) * PAGE)
        };
        self.call(libc::SYS_brk, [end, 0, 0, 0, 0, 0]);
    }

    fn map_over(&self, part: &Range<u64>) {
        let (at, len) = in_bytes(part);
        let fixed = (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64;
        let anonymous = libc::MAP_ANONYMOUS as u64;
        let (flags, file) = match random(6) {
            0..3 => (fixed | anonymous, u64::MAX),
            3 if self.plan.refused => (fixed, REFUSED_FILE),
            4 => (fixed, BROKEN_FILE),
            _ => (fixed, FILE),
        };
        self.call(libc::SYS_mmap, [at, len, RW, flags, file, 0]);
    }

    fn unmap(&self, part: &Range<u64>) {
        let (at, len) = in_bytes(part);
        self.call(libc::SYS_munmap, [at, len, 0, 0, 0, 0]);
    }

    fn advise(&self, part: &Range<u64>) {
        let (at, len) = in_bytes(part);
        self.call(libc::SYS_madvise, [at, len, libc::MADV_DONTNEED as u64, 0, 0, 0]);
    }

    fn guard(&self, part: &Range<u64>) {
        const MADV_GUARD_INSTALL: u64 = 102;
        let (at, len) = in_bytes(part);
        let advice = MADV_GUARD_INSTALL + random(2);
        self.call(libc::SYS_madvise, [at, len, advice, 0, 0, 0]);
    }

    fn advise_forks(&self, part: &Range<u64>) {
        const ADVICE: [i32; 4] =
            [libc::MADV_DONTFORK, libc::MADV_DOFORK, libc::MADV_WIPEONFORK, libc::MADV_KEEPONFORK];
        let (at, len) = in_bytes(part);
        let advice = ADVICE[random(4) as usize] as u64;
        self.call(libc::SYS_madvise, [at, len, advice, 0, 0, 0]);
    }

    fn remap(&self, part: &Range<u64>) {
        let (at, len) = in_bytes(part);
        let may_move = libc::MREMAP_MAYMOVE as u64;
        let fixed = may_move | libc::MREMAP_FIXED as u64;
        let stays = may_move | libc::MREMAP_DONTUNMAP as u64;
        let arguments = match random(6) {
            0 => [at, len, len + PAGE * random(20), may_move, 0, 0],
            1 => [at, len, PAGE, may_move, 0, 0],
            2 => [at, len, len, stays, 0, 0],
            _ => [at, len, len, fixed, self.wish(), 0],
        };
        self.call(libc::SYS_mremap, arguments);
    }

    fn set_rights(&self, part: &Range<u64>) {
        let (at, len) = in_bytes(part);
        let prot = [RW, RW, libc::PROT_READ as u64, 0][random(4) as usize];
        self.call(libc::SYS_mprotect, [at, len, prot, 0, 0, 0]);
    }

    fn fork(&self) {
        if self.tally.processes.load(Relaxed) > 3 {
            return;
        }
        let child = self.call(libc::SYS_fork, [0; 6]);
        let Ok(tid) = i32::try_from(child) else { return };
        if tid <= 0 {
            return;
        }
        self.tally.forks.fetch_add(1, Relaxed);
        self.tally.processes.fetch_add(1, Relaxed);
        let until = scheduler::now() + 2000 + random(6000);
        let mm = self.kernel.lock().tasks.get(&tid).map(|task| task.mm);
        let threads = 1 + mm.map_or(0, |_| random(3));
        let left = Arc::new(AtomicU64::new(threads));
        for i in 0..threads {
            let tid = match mm {
                Some(mm) if i > 0 => self.kernel.lock().new_task(mm, Some(tid), false),
                _ => tid,
            };
            let (plan, tally, left) =
                (self.plan.clone(), Arc::clone(&self.tally), Arc::clone(&left));
            scheduler::spawn(&format!("child-{tid}"), move || {
                Thread::new(&plan, &tally, tid, until).run();
                if left.fetch_sub(1, Relaxed) == 1 {
                    tally.processes.fetch_sub(1, Relaxed);
                }
            });
        }
    }
}

fn in_bytes(part: &Range<u64>) -> (u64, u64) {
    (part.start * PAGE, (part.end - part.start) * PAGE)
}
