//! What the watcher finds that the account of a run says, whichever way the run ends.

use crate::outcome::{LateLook, UnprotectedMemory};
use crate::sys::mutex::Mutex;

/// See the fields of [`crate::outcome::Statistics`].
#[derive(Default)]
pub(crate) struct Findings {
    pub unprotected_largest: Mutex<Vec<UnprotectedMemory>>,
    pub late_look: Mutex<LateLook>,
}
