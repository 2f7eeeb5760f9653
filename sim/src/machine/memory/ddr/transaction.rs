//! A burst, from when it arrives until its data is on its way.

use super::Clock;
use super::mapping::DdrLocation;
use super::rank::Bank;
use crate::machine::Access;

/// A burst that arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The order of its request.
    pub(super) order: u64,
    /// The name of its request.
    pub(super) id: u64,
    pub(super) burst: u64,
    pub(super) location: DdrLocation,
    pub(super) access: Access,
    pub(super) at: Clock,
}

/// A burst that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    /// Its number among the channel's bursts: the less, the older.
    pub(super) age: u64,
    /// The order of its request.
    pub(super) order: u64,
    /// The name of its request.
    pub(super) id: u64,
    pub(super) burst: u64,
    pub(super) location: DdrLocation,
    pub(super) bank: Bank,
    pub(super) access: Access,
    pub(super) arrived: Clock,
    /// What had to be done to the bank before.
    pub(super) row: RowState,
}

/// How a burst finds its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    Hit,
    Miss,
    Conflict,
}

impl Transaction {
    pub(super) fn new(arrival: Arrival, bank: Bank, age: u64) -> Self {
        let Arrival { order, id, burst, location, access, at: arrived } = arrival;
        Transaction { age, order, id, burst, location, bank, access, arrived, row: RowState::Hit }
    }
}

/// A burst whose last byte is over at this clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) order: u64,
    pub(super) id: u64,
    pub(super) at: Clock,
}
