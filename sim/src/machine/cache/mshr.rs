//! Miss status holding registers: misses that wait for memory, those of one block merged.

use crate::machine::error::{ConfigError, within};

/// The registers of one cache. `W` is what waits: a load of the core, an MSHR of the cache above.
#[derive(Clone, Debug)]
pub struct Mshrs<W> {
    registers: usize,
    waiters_per_register: usize,
    /// Few enough to be searched.
    busy: Vec<Register<W>>,
    /// Lists of waiters that were given back, so that a miss allocates nothing.
    spare: Vec<Vec<W>>,
    merged: u64,
    refused: u64,
}

#[derive(Clone, Debug)]
struct Register<W> {
    block: u64,
    waiters: Vec<W>,
}

/// What became of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It is the first of its block: ask memory.
    First,
    /// Memory was asked already; it waits with the others.
    Merged,
    /// All registers are busy, or the block's can take no more: try again after an answer.
    Refused,
}

impl<W> Mshrs<W> {
    /// Idle registers.
    ///
    /// # Errors
    /// Either number is 0 or above 65,536; the parameter is named.
    pub fn new(registers: usize, waiters_per_register: usize) -> Result<Self, ConfigError> {
        within("mshr_registers", registers as u64, 1, 1 << 16)?;
        within("mshr_waiters_per_register", waiters_per_register as u64, 1, 1 << 16)?;
        Ok(Mshrs {
            registers,
            waiters_per_register,
            busy: Vec::with_capacity(registers),
            spare: Vec::new(),
            merged: 0,
            refused: 0,
        })
    }

    /// Enters a miss of `block` on behalf of `waiter`.
    pub fn enter(&mut self, block: u64, waiter: W) -> Entered {
        if let Some(register) = self.busy.iter_mut().find(|register| register.block == block) {
            if register.waiters.len() == self.waiters_per_register {
                self.refused += 1;
                return Entered::Refused;
            }
            register.waiters.push(waiter);
            self.merged += 1;
            return Entered::Merged;
        }
        if self.busy.len() == self.registers {
            self.refused += 1;
            return Entered::Refused;
        }
        let mut waiters = self.spare.pop().unwrap_or_default();
        waiters.push(waiter);
        self.busy.push(Register { block, waiters });
        Entered::First
    }

    /// Memory answered: appends all that waited for the block to `answered`, in the order in which
    /// they came, and frees the register. `false` if no register is the block's.
    pub fn answer(&mut self, block: u64, answered: &mut Vec<W>) -> bool {
        let Some(at) = self.busy.iter().position(|register| register.block == block) else {
            return false;
        };
        let mut register = self.busy.swap_remove(at);
        answered.append(&mut register.waiters);
        self.spare.push(register.waiters);
        true
    }

    /// Whether memory was asked for the block.
    #[must_use]
    pub fn is_pending(&self, block: u64) -> bool {
        self.busy.iter().any(|register| register.block == block)
    }

    /// How many registers are busy.
    #[must_use]
    pub fn busy_registers(&self) -> usize {
        self.busy.len()
    }

    /// How many registers are free.
    #[must_use]
    pub fn free_registers(&self) -> usize {
        self.registers - self.busy.len()
    }

    /// How many misses waited with an earlier one.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.merged
    }

    /// How many misses found no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
