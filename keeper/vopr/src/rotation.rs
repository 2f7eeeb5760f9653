//! The thread that rotates keys.

use crate::kernel::Wait;
use crate::pager::Pager;
use crate::scheduler;
use std::sync::Arc;

/// Rotates keys again and again.
pub fn rotate(pager: &Arc<Pager>) {
    loop {
        scheduler::sleep(Wait::Bell(0).into(), Some(50 + scheduler::random(300)));
        let mut rest = |_: &Pager, _| {
            scheduler::sleep(Wait::Bell(0).into(), Some(1 + scheduler::random(60)));
        };
        if let Err(stop) = pager.rotate(&mut rest) {
            return pager.stop(stop);
        }
    }
}
