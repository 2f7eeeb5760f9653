//! Keys of segments that nothing was sealed or opened under for a while leave memory.

use super::spawn;
use crate::pager::Pager;
use crate::secret::points;
use crate::sys::poll::{self, Bell};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A key that was not used for so long is idle.
const IDLE: Duration = Duration::from_secs(10);
/// Looks in that time.
const LOOKS: u32 = 2;

/// Rung when keys are derived.
static DERIVED: OnceLock<Bell> = OnceLock::new();

/// Keys were derived: some may be idle in a while.
pub(super) fn stir() {
    if let Some(bell) = DERIVED.get() {
        bell.ring();
    }
}

/// Starts the thread. It sleeps while no key is kept.
pub(crate) fn start(pager: &Arc<Pager>) -> io::Result<()> {
    let pager = Arc::clone(pager);
    let bell = Bell::new()?;
    // Fails if it was started before, and the other thread hears it then.
    let _ = DERIVED.set(bell);
    stir();
    spawn("idle keys", move || {
        let Some(bell) = DERIVED.get() else { return };
        let mut moments = VecDeque::new();
        while pager.ending().is_none() {
            // An interruption ends the wait.
            points::pass();
            poll::readable(bell, None);
            points::pass();
            bell.silence();
            while forget(&pager, &mut moments) > 0 {
                rest(IDLE / LOOKS);
            }
        }
    })?;
    Ok(())
}

/// Forgets what was not used since the moment a while ago. Returns how many keys are left.
fn forget(pager: &Pager, moments: &mut VecDeque<u64>) -> usize {
    moments.push_back(pager.page_keys().tick());
    if moments.len() <= LOOKS as usize {
        return pager.page_keys().keys_kept();
    }
    let moment = moments.pop_front().unwrap_or_default();
    let left = pager.page_keys().forget_unused_since(moment);
    if left == 0 {
        moments.clear();
    }
    left
}

/// Sleeps for so long, at points.
fn rest(time: Duration) {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        points::pass();
        if left.is_zero() {
            return;
        }
        // Interrupted when the points are closed.
        poll::any_readable(std::iter::empty(), left);
    }
}
