//! The units that SimpleScalar's `sim-outorder` has by default: four integer ALUs, an integer
//! multiplier and divider, four floating-point adders, a floating-point multiplier and divider
//! (`-res:ialu 4 -res:imult 1 -res:fpalu 4 -res:fpmult 1`; latencies of `sim-outorder.c`).

use super::{Execution, Table};

pub(super) const TABLE: Table = Table {
    units: [4, 1, 4, 1, 0],
    executions: [
        Execution::new(0, 1, 1),
        Execution::new(1, 3, 1),
        Execution::new(1, 20, 19),
        Execution::new(2, 2, 1),
        Execution::new(3, 4, 1),
        Execution::new(3, 12, 12),
        Execution::new(3, 24, 24),
    ],
};
