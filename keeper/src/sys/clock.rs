//! The pager's clock. The simulator compiles another module in this place, whose time depends on
//! its seed.

pub use std::time::Instant;
