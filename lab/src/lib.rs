//! What is done with schemes besides running them: attacks on them, what they cost, what an
//! operating system, a maker of processors and a certifier need of them.
//!
//! No I/O, no clock, and threads only in [`attack::selection`], which runs a part of the matrix on
//! all processors. Nothing here can be reached from a protected program's run.
//!
//! 1. [`attack`]: strikes on units, and the matrix of what must come of them;
//! 2. [`virtual_memory`]: processes, pages and swap above a unit, and what its seeds allow;
//! 3. [`storage`]: what each scheme costs in memory, beside the papers' figures;
//! 4. [`processor_key`], [`distribution`]: a processor's own keys, and programs that only it can
//!    read;
//! 5. [`certified`]: programs whose results it signs, if their memory was not tampered with;
//! 6. [`exposure`]: keys in memory that decays when its power is cut, and who searches for them;
//! 7. [`tables`]: what documents say of the schemes.

pub mod attack;
pub mod certified;
pub mod distribution;
pub mod exposure;
pub mod processor_key;
pub mod storage;
pub mod tables;
pub mod virtual_memory;
