//! The floor: what a userfaultfd pager costs that does nothing at all.
//!
//! Every thread has a part of the region of its own, a userfaultfd for it, and a handler process
//! on the same processor, which answers every fault by copying a page that lies ready: no
//! cryptography, no bookkeeping, no eviction. Between the phases, outside the timed part, the
//! program gives all its pages back, so that every access is a miss.

use anyhow::{Context, Result, bail};
use casemate_keeper::PAGE_BYTES;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::load::{LoadArgs, contents, print};
use super::timer::{Phase, Timer};
use crate::sys::child::Child;
use crate::sys::region::Region;
use crate::sys::uffd::Uffd;
use casemate_core::random::Random;

/// A thread's part, with its handler.
struct Part {
    region: Region,
    order: Vec<usize>,
    cpu: CpuSet,
    _handler: Child,
}

/// What it goes through.
const PHASES: [Phase; 6] = [
    Phase::FirstWrite,
    Phase::SequentialRead,
    Phase::ReverseRead,
    Phase::StridedRead,
    Phase::RandomRead,
    Phase::RandomModify,
];

/// Goes through the phases.
pub fn run(args: &LoadArgs) -> Result<u8> {
    let pages = (args.bytes as usize / PAGE_BYTES / args.threads).max(1);
    let cpus = allowed_cpus()?;
    if cpus.len() < args.threads {
        bail!("the floor needs a processor for each of {} threads", args.threads);
    }
    let parts: Vec<Part> = (0..args.threads)
        .map(|thread| part(args, pages, cpus[thread], thread))
        .collect::<Result<_>>()?;
    let timer = Timer { threads: args.threads, accesses: pages * args.threads, seed: args.seed };
    for phase in PHASES {
        for part in &parts {
            part.region.discard().context("cannot give pages back")?;
        }
        let line = timer.time(phase, |i, _| {
            let (thread, page) = (i / pages, i % pages);
            let part = &parts[thread];
            if page == 0 {
                sched_setaffinity(None, &part.cpu).context("cannot pin a thread")?;
            }
            touch(part, phase, page);
            Ok(0)
        })?;
        print(&line)?;
    }
    Ok(0)
}

fn touch(part: &Part, phase: Phase, page: usize) {
    use std::sync::atomic::Ordering::Relaxed;
    let random = part.order[page] * PAGE_BYTES;
    match phase {
        Phase::FirstWrite => part.region.word(page * PAGE_BYTES).store(1, Relaxed),
        Phase::RandomModify => {
            part.region.word(random).fetch_add(1, Relaxed);
        }
        Phase::RandomRead => {
            part.region.word(random).load(Relaxed);
        }
        in_order => {
            let page = in_order.page(page, part.region.pages());
            part.region.word(page * PAGE_BYTES).load(Relaxed);
        }
    }
}

fn part(args: &LoadArgs, pages: usize, cpu: usize, thread: usize) -> Result<Part> {
    let region = Region::anonymous(pages * PAGE_BYTES).context("cannot map the region")?;
    region.no_huge_pages();
    let uffd = Uffd::open().context("cannot open a userfaultfd for the floor")?;
    uffd.api(0)?;
    uffd.register(&region, false)?;
    let content = contents(args.content, args.seed)[0];
    let mut only = CpuSet::new();
    only.set(cpu);
    let handler = Child::fork(|| {
        if sched_setaffinity(None, &only).is_err() {
            return 1;
        }
        loop {
            if uffd.serve(|address| uffd.copy(address, &content)).is_err() {
                return 1;
            }
        }
    })?;
    let mut order: Vec<usize> = (0..pages).collect();
    let mut rng = Random::new(args.seed ^ thread as u64);
    for i in (1..pages).rev() {
        order.swap(i, rng.index(i + 1));
    }
    Ok(Part { region, order, cpu: only, _handler: handler })
}

/// The processors that we may run on.
pub fn allowed_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask for the processors")?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}
