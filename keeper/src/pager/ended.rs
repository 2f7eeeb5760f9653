//! What is stored of spaces that have ended. To give up what is stored of a gigabyte takes a tenth
//! of a second: so it goes in parts, by the watcher, and by who needs the room at once.

use super::Stop;
use super::records::Records;
use super::space::Vpn;
use crate::budget::Budget;
use crate::sys::mutex::Mutex;
use casemate_pages::SpaceId;
use std::ops::Range;

/// A space that has ended, of which pages of `rest` may be stored still.
struct Rest {
    space: SpaceId,
    rest: Range<Vpn>,
}

/// All of them. Its lock is taken after that of a space and before that of the directory.
#[derive(Default)]
pub(crate) struct Ended(Mutex<Vec<Rest>>);

impl Ended {
    /// A space has ended, and nothing of it is in the Clear any more.
    pub fn add(&self, space: SpaceId) {
        self.0.lock().push(Rest { space, rest: 0..Vpn::MAX });
    }

    /// Whether nothing is stored of any.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Gives up some of it. Whether there was anything.
    pub(super) fn drop_some(&self, records: Records<'_>, budget: &Budget) -> Result<bool, Stop> {
        let mut all = self.0.lock();
        let Some(Rest { space, rest }) = all.last_mut() else { return Ok(false) };
        match records.drop_some(*space, rest)? {
            Some(released) => budget.sealed(0, released),
            None => drop(all.pop()),
        }
        Ok(true)
    }
}
