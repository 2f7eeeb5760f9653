//! What goes over the command bus.

use std::ops::{Index, IndexMut};

use super::Clock;
use super::mapping::DdrLocation;

/// A command of JESD79-3F and JESD79-4, named as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// ACT: opens a row of a bank.
    Activate,
    /// RD: a burst from the open row.
    Read,
    /// WR: a burst into the open row.
    Write,
    /// PRE: closes a bank.
    Precharge,
    /// PREA: closes all banks of a rank.
    PrechargeAll,
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

/// A clock for each command that a burst may need: the first four of [`Command`]. A table, since
/// the next command is anything but foreseeable, and a branch would be guessed wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerCommand([Clock; 4]);

impl PerCommand {
    /// One clock for those that move data and one for the others.
    pub(super) fn of(others: Clock, column: Clock) -> PerCommand {
        PerCommand([others, column, column, others])
    }
}

impl Index<Command> for PerCommand {
    type Output = Clock;

    #[inline]
    fn index(&self, command: Command) -> &Clock {
        &self.0[command as usize]
    }
}

impl IndexMut<Command> for PerCommand {
    #[inline]
    fn index_mut(&mut self, command: Command) -> &mut Clock {
        &mut self.0[command as usize]
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
