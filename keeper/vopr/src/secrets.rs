//! What the announcer takes from `crate::secrets`: threads. There are no secrets here.

use std::io;

pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    crate::scheduler::spawn(name, work);
    Ok(())
}

/// No run is locked here.
pub(crate) fn pass() {}
