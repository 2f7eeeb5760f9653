//! Functional units: how long an operation takes, and how many of a kind go on at a time.

mod golden_cove;
mod simplescalar;

use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
use crate::machine::Cycle;
use crate::trace::Operation;

/// Which units a core has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitsName {
    /// As many as are wanted, each operation of one cycle. For traces that do not tell operations.
    Ideal,
    /// SimpleScalar's by default.
    Simplescalar,
    /// Those of a desktop core of the early 2020s.
    GoldenCove,
}

/// How an operation is executed.
#[derive(Clone, Copy, Debug)]
struct Execution {
    /// Index of its kind of unit.
    unit: usize,
    /// From its beginning to its result.
    latency_cycles: u64,
    /// From its beginning to the next on the same unit.
    interval_cycles: u64,
}

/// Kinds of units, and what each operation takes of them.
#[derive(Clone, Copy, Debug)]
struct Table {
    /// How many there are of each kind.
    units: [u64; KINDS],
    /// By [`Operation`].
    executions: [Execution; Operation::ALL.len()],
}

/// The most kinds of units.
const KINDS: usize = 5;

impl Execution {
    const fn new(unit: usize, latency_cycles: u64, interval_cycles: u64) -> Execution {
        Execution { unit, latency_cycles, interval_cycles }
    }
}

/// Units at work.
#[derive(Clone, Debug)]
pub(super) struct Units {
    /// None: each operation takes a cycle.
    busy: Option<Box<Busy>>,
    wait_cycles: u64,
}

#[derive(Clone, Debug)]
struct Busy {
    units: [Option<Calendar>; KINDS],
    executions: [Execution; Operation::ALL.len()],
}

impl Units {
    pub(super) fn new(name: UnitsName) -> Units {
        let table = match name {
            UnitsName::Ideal => None,
            UnitsName::Simplescalar => Some(&simplescalar::TABLE),
            UnitsName::GoldenCove => Some(&golden_cove::TABLE),
        };
        let busy = table.map(|table| {
            let units = table.units.map(Calendar::new);
            Box::new(Busy { units, executions: table.executions })
        });
        Units { busy, wait_cycles: 0 }
    }

    /// Executes an operation whose operands are there at `earliest`, on the unit of its kind that
    /// is free first; when its result is there.
    #[inline(always)]
    pub(super) fn execute(&mut self, operation: Operation, earliest: Cycle) -> Cycle {
        match &mut self.busy {
            None => earliest + 1,
            Some(busy) => {
                let Execution { unit, latency_cycles, interval_cycles } =
                    busy.executions[operation as usize];
                let begins = match &mut busy.units[unit] {
                    Some(unit) => unit.take(earliest, interval_cycles),
                    None => earliest,
                };
                self.wait_cycles += begins - earliest;
                begins + latency_cycles
            }
        }
    }

    /// Executes the operation of an instruction whose loads are there at `loaded`; when its result
    /// is there. A simple one is part of the load.
    #[inline(always)]
    pub(super) fn execute_loaded(&mut self, operation: Operation, loaded: Cycle) -> Cycle {
        if operation == Operation::Simple || self.busy.is_none() {
            loaded
        } else {
            self.execute(operation, loaded)
        }
    }

    /// By how many cycles operations began late; `None` if units are ideal.
    pub(super) fn wait_cycles(&self) -> Option<u64> {
        self.busy.as_ref().map(|_| self.wait_cycles)
    }
}
