//! Scripts of requests and calls, run on the simulated kernel and on the real one, step by step.

mod real;
mod simulated;

use crate::random::Random;
use std::io;
use std::time::{Duration, Instant};

/// Pages of the script's memory. Two mappings are registered, one is not, one may not be written;
/// pages between them are not mapped.
const PAGES: u64 = 56;
const MAPPINGS: [(u64, u64, bool, bool); 4] =
    [(0, 16, true, true), (17, 33, true, true), (34, 42, false, true), (43, 51, true, false)];

const MADV_GUARD_INSTALL: u64 = 102;
const MADV_GUARD_REMOVE: u64 = 103;
const ADVICE: [u64; 4] =
    [libc::MADV_DONTNEED as u64, libc::MADV_DONTNEED as u64, MADV_GUARD_INSTALL, MADV_GUARD_REMOVE];

/// One step. Pages are numbered from the beginning of the script's memory.
#[derive(Debug, Clone, Copy)]
enum Step {
    Copy {
        at: u64,
        pages: u64,
        protect: bool,
    },
    Zeros {
        at: u64,
        pages: u64,
    },
    Protect {
        at: u64,
        pages: u64,
        protect: bool,
    },
    Poison {
        at: u64,
    },
    Move {
        from: u64,
        to: u64,
        pages: u64,
        holes: bool,
    },
    /// Stores to a page, if nothing is in the way.
    Store {
        at: u64,
    },
    /// `MADV_DONTNEED`, or guards that are set or removed.
    Advise {
        at: u64,
        pages: u64,
        advice: u64,
    },
    /// Forks a child that ends at once.
    Fork,
    /// Maps over a range, which is registered anew.
    MapOver {
        at: u64,
        pages: u64,
    },
    /// Moves a range to another place and back, each of which is one mapping then.
    MoveAway {
        at: u64,
        pages: u64,
        stays: bool,
    },
}

/// What both kernels can do.
trait Machine {
    fn copy(&mut self, at: u64, pages: u64, fill: u8, protect: bool) -> String;
    fn zeros(&mut self, at: u64, pages: u64) -> String;
    fn protect(&mut self, at: u64, pages: u64, protect: bool) -> String;
    fn poison(&mut self, at: u64) -> String;
    fn move_pages(&mut self, from: u64, to: u64, pages: u64, holes: bool) -> String;
    /// Only called where nothing is in the way.
    fn store(&mut self, at: u64, value: u8);
    /// Makes a call that may raise events: what requests say meanwhile, the events, and the result.
    fn change(&mut self, step: Step) -> String;
    /// What the page table says: `-` nothing, `p` a page, `w` a protected one, `s` something else.
    fn state(&mut self, at: u64) -> char;
    /// The first byte of a page that is there.
    fn first_byte(&mut self, at: u64) -> u8;
}

/// `guards`: the real kernel has them (Linux 6.13).
fn draw(random: &mut Random, guards: bool) -> Step {
    let at = random.below(PAGES - 8);
    let pages = 1 + random.below(6);
    match random.below(100) {
        0..22 => Step::Copy { at, pages, protect: random.below(3) == 0 },
        22..28 => Step::Zeros { at, pages },
        28..40 => Step::Protect { at, pages, protect: random.below(2) == 0 },
        40..43 => Step::Poison { at },
        43..65 => {
            let (to, holes) = (random.below(PAGES - 8), random.below(2) == 0);
            Step::Move { from: at, to, pages, holes }
        }
        65..83 => Step::Store { at },
        83..91 => {
            let advice = ADVICE[random.below(if guards { 4 } else { 2 }) as usize];
            Step::Advise { at, pages, advice }
        }
        91..94 => Step::Fork,
        94..97 => Step::MapOver { at: 17 * random.below(2) + random.below(10), pages },
        _ => Step::MoveAway {
            at: 17 * random.below(2) + random.below(10),
            pages,
            stays: random.below(2) == 0,
        },
    }
}

/// Runs the script of a seed: a line for each step.
fn play(machine: &mut dyn Machine, seed: u64, steps: u64, guards: bool) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut lines = Vec::new();
    for number in 0..steps {
        let step = draw(&mut random, guards);
        let answer = match step {
            Step::Copy { at, pages, protect } => {
                machine.copy(at, pages, 1 + (number % 250) as u8, protect)
            }
            Step::Zeros { at, pages } => machine.zeros(at, pages),
            Step::Protect { at, pages, protect } => machine.protect(at, pages, protect),
            Step::Poison { at } => machine.poison(at),
            Step::Move { from, to, pages, holes } => machine.move_pages(from, to, pages, holes),
            Step::Store { at } => {
                let may_write = MAPPINGS.iter().any(|m| (m.0..m.1).contains(&at) && m.3);
                if may_write && machine.state(at) == 'p' {
                    machine.store(at, (number % 250) as u8);
                }
                String::new()
            }
            Step::Advise { .. } | Step::Fork | Step::MapOver { .. } | Step::MoveAway { .. } => {
                machine.change(step)
            }
        };
        let states: String = (0..PAGES).map(|at| machine.state(at)).collect();
        let bytes = (0..PAGES).filter(|at| "pw".contains(states.as_bytes()[*at as usize] as char));
        let bytes: Vec<u8> = bytes.map(|at| machine.first_byte(at)).collect();
        lines.push(format!("{step:?}: {answer}\n  {states} {bytes:?}"));
    }
    lines
}

/// How long a script is played again while the kernel moves pages of this machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Compares the kernels on the script of a seed.
///
/// The simulation knows no compaction and no reclaim, which another program can cause: a difference
/// counts if the kernel moved no page of the machine meanwhile, or did so for a whole minute.
///
/// # Errors
/// `Unsupported` where this machine has no userfaultfd for us; otherwise the first step that
/// differs.
pub fn compare(seed: u64, steps: u64) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = pages_moved_by_the_kernel()?;
        let Err(difference) = compare_once(seed, steps) else { return Ok(()) };
        if pages_moved_by_the_kernel()? == before || Instant::now() > deadline {
            return Err(difference);
        }
    }
}

/// The kernel's counts of pages that were migrated, that could not be, and that were swapped out,
/// since the machine started.
fn pages_moved_by_the_kernel() -> io::Result<Vec<String>> {
    const COUNTS: [&str; 3] = ["pgmigrate_success ", "pgmigrate_fail ", "pswpout "];
    let counts = std::fs::read_to_string("/proc/vmstat")?;
    let is_counted = |line: &&str| COUNTS.iter().any(|count| line.starts_with(count));
    Ok(counts.lines().filter(is_counted).map(str::to_owned).collect())
}

fn compare_once(seed: u64, steps: u64) -> io::Result<()> {
    let real = real::Real::new()?;
    let guards = real.has_guards();
    let real = real.play(seed, steps, guards);
    let simulated = simulated::play_in_simulation(seed, steps, guards);
    for (number, (ours, theirs)) in simulated.iter().zip(&real).enumerate() {
        if ours != theirs {
            let before = number.checked_sub(1).map_or("", |before| &real[before]);
            return Err(io::Error::other(format!(
                "seed {seed}, step {number}, after {before}\nsimulated {ours}\nreal      {theirs}"
            )));
        }
    }
    assert_eq!(simulated.len(), real.len());
    Ok(())
}
