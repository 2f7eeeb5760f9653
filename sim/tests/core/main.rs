//! Cores: hand-computed cycles, on both sides of every limit.
//!
//! "On both sides" here: the same program on a machine whose limit is just not reached, and just
//! reached; and equality of cycles, which is not ready at *t* - 1 and ready at *t*.

#[path = "../common/machine.rs"]
mod machine;

mod branches;
mod forwarding;
mod memory;
mod order;
mod ports;
mod several;
mod units;
mod width;
