//! The thread that rotates keys once in a while.

use crate::pager::Pager;
use crate::secrets;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts the thread. An epoch begins every `period`, or once the one before the last has ended.
pub(crate) fn start(pager: &Arc<Pager>, period: Duration) -> io::Result<()> {
    let pager = Arc::clone(pager);
    secrets::spawn("rotate", move || {
        let mut due = Instant::now() + period;
        while pager.ending().is_none() {
            secrets::rest_until(due, || pager.ending().is_some());
            due = Instant::now() + period;
            let mut rest = |pager: &Pager, time| {
                secrets::rest_until(Instant::now() + time, || pager.ending().is_some());
            };
            if let Err(stop) = pager.rotate(&mut rest) {
                pager.stop(stop);
            }
        }
    })?;
    Ok(())
}
