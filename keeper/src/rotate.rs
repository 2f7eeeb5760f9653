//! The thread that rotates keys once in a while.

use crate::pager::Pager;
use crate::secrets;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the thread sleeps without looking whether the run has ended.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Starts the thread. An epoch begins every `period`, or once the one before the last has ended.
pub(crate) fn start(pager: &Arc<Pager>, period: Duration) -> io::Result<()> {
    let pager = Arc::clone(pager);
    secrets::spawn("rotate", move || {
        let mut due = Instant::now() + period;
        while pager.ending().is_none() {
            rest_until(&pager, due);
            due = Instant::now() + period;
            let mut rest = |pager: &Pager, time| rest_until(pager, Instant::now() + time);
            if let Err(stop) = pager.rotate(&mut rest) {
                pager.stop(stop);
            }
        }
    })?;
    Ok(())
}

/// Sleeps until then, or until the run ends.
fn rest_until(pager: &Pager, then: Instant) {
    while pager.ending().is_none() {
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        secrets::pass();
        std::thread::sleep(left.min(LONGEST_PAUSE));
        secrets::pass();
    }
}
