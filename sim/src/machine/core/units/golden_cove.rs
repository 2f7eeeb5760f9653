//! About the units of Intel's Golden Cove: five integer ALUs, an integer multiplier that divides as
//! well, two floating-point adders, two multipliers (fused multiply-add), a divider. A quotient of
//! 64-bit integers is as uops.info measured it on Alder Lake's P-cores (14 cycles, one in 10); the
//! other latencies and intervals are chosen, about those of cores of the kind.

use super::{Execution, Table};

pub(super) const TABLE: Table = Table {
    units: [5, 1, 2, 2, 1],
    executions: [
        Execution::new(0, 1, 1),
        Execution::new(1, 3, 1),
        Execution::new(1, 14, 10),
        Execution::new(2, 3, 1),
        Execution::new(3, 4, 1),
        Execution::new(4, 14, 4),
        Execution::new(4, 18, 6),
    ],
};
