//! The pager's `crate::checks` here: a canary leaves one out.

use crate::canary::Canary;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Vanished,
    Unmapped,
    Shielded,
}

pub(crate) fn is_made(check: Check) -> bool {
    match check {
        Check::Vanished => !Canary::BelievesMoves.is_put_back(),
        Check::Unmapped => !Canary::BelievesUnmaps.is_put_back(),
        Check::Shielded => !Canary::FillsUnshielded.is_put_back(),
    }
}
