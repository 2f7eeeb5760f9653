//! The clock that the pager goes by. The simulator has its own in this place, which a seed decides.

pub use std::time::Instant;
