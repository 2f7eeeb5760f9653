//! What the agent gives up once it has all it needs. It began with the rights that the program had
//! at that moment, and the program may drop its own later; but the agent's code lies in memory that
//! the program can write. So an attacker who takes the program over must gain nothing by taking the
//! agent too.
//!
//! Its user stays as it was, for another one would change which processes may look into the
//! program's memory. A filter makes that user worthless instead (`wire/confinement.rs`): no call is
//! left that names a file, a process or a user.
use crate::calls;
use crate::wire::{Errno, confinement};

/// The program may have changed its user when it must be killed.
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
