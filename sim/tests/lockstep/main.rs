//! Loads of programs against what comes through protection units.

mod canaries;
#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod made_up;
mod real;
