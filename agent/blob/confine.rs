//! Gives up the agent's rights once it has all that it needs. It starts with the program's rights,
//! and the program may drop its own later; but the agent's code is in memory that the program can
//! write. An attacker who takes over the program must gain nothing by taking over the agent too.
//!
//! Its user stays the same, since another one would change which processes may read the program's
//! memory. Instead a filter (`wire/confinement.rs`) leaves no call that names a file, a process or
//! a user.
use crate::calls;
use crate::wire::{Errno, confinement};

/// Needed to kill the program if it has changed its user.
const CAP_KILL: u32 = 5;
/// Stagings for locked memory are locked too, and under `mlockall` every mapping is: the kernel
/// then counts the program's locked pages against the limit.
const CAP_IPC_LOCK: u32 = 14;
const KEPT: u32 = 1 << CAP_KILL | 1 << CAP_IPC_LOCK;

/// Leaves the agent with the rights that its loop needs. `program` is the program's pidfd.
///
/// # Errors
/// If that cannot be done; then there must be no agent.
pub fn confine(program: i32) -> Result<(), Errno> {
    calls::keep_capabilities(KEPT)?;
    calls::gain_no_privileges()?;
    calls::set_filter(&confinement::filter(program))
}
