//! All policies in several sizes of memory, and what their faults and looks take.

use casemate_replacement::catalogue::{ALL, Named};
use serde::Serialize;

use super::{Counts, FaultSets, ReferenceString, optimum, replay};

/// How long the parts of paging take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// A hard fault: a page is evicted, another verified and decrypted.
    pub hard_ns: u64,
    /// A soft fault: a page that was unmapped is mapped again.
    pub soft_ns: u64,
    /// One accessed bit looked at.
    pub read_ns: u64,
    /// One accessed bit cleared.
    pub clear_ns: u64,
}

impl Costs {
    /// On a virtual machine with two processors and Linux 6.18: a hard fault is a random read that
    /// misses, a soft one the bare handler beside it (both of `casemate bench pager`); a prototype
    /// read bits with a BPF iterator, and cleared those of single pages by
    /// `process_madvise(MADV_COLD)`.
    pub const MEASURED: Costs =
        Costs { hard_ns: 18_000, soft_ns: 9_000, read_ns: 9, clear_ns: 1_200 };

    /// The time of all of it. First touches are hard faults, too.
    #[must_use]
    pub fn time_ns(&self, counts: &Counts) -> u64 {
        (counts.first_touches + counts.page_ins) * self.hard_ns
            + counts.soft_faults * self.soft_ns
            + counts.bits_read * self.read_ns
            + counts.bits_cleared * self.clear_ns
    }
}

/// A policy in one size of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The policy's name; [`OPTIMUM`] is the bound.
    pub policy: &'static str,
    /// Pages of memory.
    pub capacity_pages: usize,
    /// What it did.
    #[serde(flatten)]
    pub counts: Counts,
    /// What that takes by the costs.
    pub time_ns: u64,
}

/// The name of the bound that no policy can pass.
pub const OPTIMUM: &str = "optimum";

/// Runs all policies, the optimum first. `done` is told each cell before it is computed.
pub fn study(
    string: &ReferenceString,
    capacities: &[usize],
    costs: &Costs,
    fault_sets: FaultSets,
    mut done: impl FnMut(&'static str, usize),
) -> Vec<Cell> {
    let mut cells = Vec::new();
    let policies = std::iter::once(None).chain(ALL.iter().map(Some));
    for policy in policies {
        let name = policy.map_or(OPTIMUM, |named: &Named| named.name);
        for &capacity_pages in capacities {
            done(name, capacity_pages);
            let counts = match policy {
                Some(policy) => replay(string, policy, capacity_pages, fault_sets),
                None => Counts {
                    first_touches: u64::from(string.pages()),
                    page_ins: optimum(string, capacity_pages),
                    ..Counts::default()
                },
            };
            let time_ns = costs.time_ns(&counts);
            cells.push(Cell { policy: name, capacity_pages, counts, time_ns });
        }
    }
    cells
}
