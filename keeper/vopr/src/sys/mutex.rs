//! The pager's locks here: every acquisition is a switch point.

pub use crate::locks::Mutex;
