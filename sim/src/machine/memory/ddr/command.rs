//! What goes over the command bus.

use super::Clock;
use super::mapping::DdrLocation;

/// A command of JESD79-3F and JESD79-4, named as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// ACT: opens a row of a bank.
    Activate,
    /// PRE: closes a bank.
    Precharge,
    /// PREA: closes all banks of a rank.
    PrechargeAll,
    /// RD: a burst from the open row.
    Read,
    /// WR: a burst into the open row.
    Write,
    /// REF: refreshes a rank, whose banks are closed.
    Refresh,
}

impl Command {
    /// Whether it moves data.
    #[must_use]
    pub fn is_column(self) -> bool {
        matches!(self, Command::Read | Command::Write)
    }
}

/// A command that was issued, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The clock at which it was on the command bus.
    pub at: Clock,
    /// Which.
    pub command: Command,
    /// To whom. Of commands to a rank, only `channel` and `rank` mean something.
    pub location: DdrLocation,
}
