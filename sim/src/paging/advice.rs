//! How much memory a program should have: what it pays for less.

use serde::Serialize;

use super::{Costs, Distances, PageNumbers};
use crate::trace::Instruction;

/// What a program does, as far as advice needs it.
#[derive(Clone, Debug, Default)]
pub struct Advice {
    distances: Distances,
    pages: u32,
    instructions: u64,
}

/// A size of memory and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Pages of memory.
    pub capacity_pages: usize,
    /// Pages that come in again, by LRU.
    pub page_ins: u64,
    /// Their time over the program's own, 0.05 for 5 %.
    pub slowdown: f64,
}

impl Advice {
    /// Takes an instruction. `numbers` are those of its program.
    pub fn take(&mut self, instruction: &Instruction, numbers: &mut PageNumbers) {
        self.instructions += instruction.instructions();
        numbers.take(instruction, |page| self.distances.refer(page));
        self.pages = numbers.count();
    }

    /// Pages that it stores to.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Instructions that it executes.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// What `capacity_pages` cost, where the program's own instructions take `instruction_ns` each.
    #[must_use]
    pub fn point(&self, capacity_pages: usize, costs: &Costs, instruction_ns: f64) -> Point {
        let page_ins = self.distances.page_ins(capacity_pages);
        let own_ns = self.instructions as f64 * instruction_ns;
        let slowdown = match page_ins {
            0 => 0.0,
            _ => page_ins as f64 * costs.hard_ns as f64 / own_ns,
        };
        Point { capacity_pages, page_ins, slowdown }
    }

    /// The least memory with which the program is slower by no more than `slowdown`.
    #[must_use]
    pub fn least(&self, slowdown: f64, costs: &Costs, instruction_ns: f64) -> Point {
        // More memory never has more page-ins under LRU.
        let (mut least, mut enough) = (1, (self.pages as usize).max(1));
        while least < enough {
            let middle = least.midpoint(enough);
            match self.point(middle, costs, instruction_ns).slowdown <= slowdown {
                true => enough = middle,
                false => least = middle + 1,
            }
        }
        self.point(enough, costs, instruction_ns)
    }
}
