//! The rules of the controller that can be exchanged.

/// The rules in which the two policies differ, so that each can be exchanged alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Bursts that each bank's queue holds.
    pub bank_queue: usize,
    /// Writes that may wait for ever while there is nothing else to do.
    pub writes_left: usize,
    /// Writes get no command while a read is in a bank's queue, unless writes move.
    pub reads_first: bool,
    /// Banks take turns; or else the oldest burst is served first, data before all.
    pub takes_turns: bool,
    /// A rank is closed bank by bank before its refresh; or else by one command.
    pub closes_one_by_one: bool,
    /// The first rank is refreshed at tREFI / ranks; or else at tREFI.
    pub refreshes_early: bool,
    /// Writes to two ranks follow each other without an idle clock on the data bus. This one is of
    /// timing.
    pub joins_writes: bool,
}

impl Rules {
    /// DRAMsim3's.
    pub const DRAMSIM3: Rules = Rules {
        bank_queue: 8,
        writes_left: 8,
        reads_first: false,
        takes_turns: true,
        closes_one_by_one: true,
        refreshes_early: true,
        joins_writes: true,
    };
}
