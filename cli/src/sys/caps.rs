//! The capabilities that `setup` grants: held, and raised for one call only.

use std::io;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// What this process may do with CAP_SYS_PTRACE.
#[derive(Clone, Copy, Debug)]
pub struct SysPtrace {
    /// In force.
    pub effective: bool,
    /// May be put in force.
    pub permitted: bool,
    /// Not taken away from every program here (as container engines do).
    pub bounding: bool,
}

/// Looks.
pub fn sys_ptrace() -> SysPtrace {
    let sets = capabilities(None).ok();
    SysPtrace {
        effective: sets.is_some_and(|s| s.effective.contains(CapabilitySet::SYS_PTRACE)),
        permitted: sets.is_some_and(|s| s.permitted.contains(CapabilitySet::SYS_PTRACE)),
        bounding: rustix::thread::capability_is_in_bounding_set(CapabilitySet::SYS_PTRACE)
            .unwrap_or(true),
    }
}

/// Whether a keeper can open what `/proc` shows to its owner alone: that takes CAP_DAC_READ_SEARCH,
/// which is all that an ordinary user's keeper keeps; root's keeps CAP_DAC_OVERRIDE, too.
pub fn may_read_all() -> bool {
    let mut either = CapabilitySet::DAC_READ_SEARCH;
    either.set(CapabilitySet::DAC_OVERRIDE, rustix::process::geteuid().is_root());
    capabilities(None).is_ok_and(|sets| sets.permitted.intersects(either))
}

/// Runs `what` with CAP_SYS_PTRACE in force if it is permitted, and lowers it again.
pub fn with_sys_ptrace<T>(what: impl FnOnce() -> T) -> io::Result<T> {
    with(CapabilitySet::SYS_PTRACE, what)
}

/// Runs `what` with CAP_DAC_READ_SEARCH in force if it is permitted, and lowers it again. Of a
/// process whose binary has capabilities, `/proc` shows some files to root alone.
pub fn with_dac_read_search<T>(what: impl FnOnce() -> T) -> io::Result<T> {
    with(CapabilitySet::DAC_READ_SEARCH, what)
}

fn with<T>(capability: CapabilitySet, what: impl FnOnce() -> T) -> io::Result<T> {
    let before = capabilities(None)?;
    if before.effective.contains(capability) || !before.permitted.contains(capability) {
        return Ok(what());
    }
    let mut raised = before;
    raised.effective |= capability;
    set_capabilities(None, raised)?;
    let result = what();
    set_capabilities(None, before)?;
    Ok(result)
}
