//! CAP_SYS_PTRACE: held, and raised for one call only.

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

/// Runs `what` with CAP_SYS_PTRACE in force if it is permitted, and lowers it again.
pub fn with_sys_ptrace<T>(what: impl FnOnce() -> T) -> io::Result<T> {
    let before = capabilities(None)?;
    if before.effective.contains(CapabilitySet::SYS_PTRACE)
        || !before.permitted.contains(CapabilitySet::SYS_PTRACE)
    {
        return Ok(what());
    }
    let mut raised = before;
    raised.effective |= CapabilitySet::SYS_PTRACE;
    set_capabilities(None, raised)?;
    let result = what();
    set_capabilities(None, before)?;
    Ok(result)
}
