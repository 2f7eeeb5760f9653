//! Which parts of an address name the channel, the rank, the bank, the row and the column.

use super::config::Organisation;
use crate::machine::error::ConfigError;

/// A part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Which channel.
    Channel,
    /// Which rank of it.
    Rank,
    /// Which bank group of it.
    BankGroup,
    /// Which bank of it.
    Bank,
    /// Which row of it.
    Row,
    /// Which burst of it.
    Column,
}

/// The fields of a burst's number, from the one that changes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping(pub [Field; 6]);

/// Where a burst is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DdrLocation {
    /// Which channel.
    pub channel: u64,
    /// Which rank of it.
    pub rank: u64,
    /// Which bank group of it.
    pub group: u64,
    /// Which bank of it.
    pub bank: u64,
    /// Which row of it.
    pub row: u64,
}

impl Mapping {
    /// A stream of blocks goes round the channels, then round the bank groups (so that tCCD_S, not
    /// tCCD_L, is between them), and stays in the open rows as long as it can.
    pub const OPEN_ROW: Mapping = Mapping([
        Field::Channel,
        Field::BankGroup,
        Field::Column,
        Field::Bank,
        Field::Rank,
        Field::Row,
    ]);

    /// A stream of blocks goes round everything before it comes back to a row.
    pub const SPREAD: Mapping = Mapping([
        Field::Channel,
        Field::BankGroup,
        Field::Bank,
        Field::Rank,
        Field::Column,
        Field::Row,
    ]);

    /// A stream of blocks stays in one row until it ends, then goes on in another bank group: from
    /// the top row, channel, rank, bank, bank group, column, as DRAMsim3 has it by default.
    pub const WHOLE_ROWS: Mapping = Mapping([
        Field::Column,
        Field::BankGroup,
        Field::Bank,
        Field::Rank,
        Field::Channel,
        Field::Row,
    ]);

    /// Checks that every field is named.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let fields = Mapping::OPEN_ROW.0;
        if fields.iter().all(|field| self.0.contains(field)) {
            return Ok(());
        }
        Err(ConfigError::Unknown {
            parameter: "mapping",
            value: format!("{:?}", self.0),
            known: "the orders that name channel, rank, bank group, bank, row and column once each",
        })
    }

    pub(super) fn location(&self, organisation: &Organisation, burst: u64) -> DdrLocation {
        let (mut location, mut rest) = (DdrLocation::default(), burst);
        let mut next = |count: u64| {
            // Nearly always; and a division takes as long as all the rest.
            if count.is_power_of_two() {
                let part = rest & (count - 1);
                rest >>= count.trailing_zeros();
                return part;
            }
            let part = rest % count;
            rest /= count;
            part
        };
        for field in self.0 {
            match field {
                Field::Channel => location.channel = next(organisation.channels),
                Field::Rank => location.rank = next(organisation.ranks),
                Field::BankGroup => location.group = next(organisation.bank_groups),
                Field::Bank => location.bank = next(organisation.banks),
                Field::Row => location.row = next(organisation.rows),
                Field::Column => {
                    next(organisation.row_bytes / organisation.burst_bytes);
                }
            }
        }
        location
    }
}
