//! Keeps the memory of this process from others.

use anyhow::{Context, Result};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities};

/// Says that [`this_process`] came before.
#[derive(Clone, Copy, Debug)]
pub struct Hidden(());

/// From now on no other process of this user reads this one's memory, no core is written, and,
/// where as much as is needed may be locked, nothing of it is swapped.
pub fn this_process() -> Result<Hidden> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .context("cannot keep other processes from this one's memory")?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).context("cannot turn off core dumps")?;
    // Under a limit, memory could not be had any more once what is had is locked.
    if may_lock_all() {
        let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
        // Some machines do without (a seccomp filter of a container, for example).
        let _ = mlockall(all);
    }
    Ok(Hidden(()))
}

fn may_lock_all() -> bool {
    let may_exceed =
        |sets: rustix::thread::CapabilitySets| sets.effective.contains(CapabilitySet::IPC_LOCK);
    getrlimit(Resource::Memlock).current.is_none() || capabilities(None).is_ok_and(may_exceed)
}
