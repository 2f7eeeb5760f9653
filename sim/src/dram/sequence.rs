//! What a sequence of commands shows of the policy that chose them.

use crate::machine::memory::ddr::{Command, Issued, Organisation};

/// Counts over the commands of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Rows that were opened and closed without a read or a write between.
    pub unused_rows: u64,
    /// Writes that came after a read: how often the data bus turned to writes.
    pub turns_to_writes: u64,
    /// Commands that closed one bank or all of a rank.
    pub precharges: u64,
}

impl Sequence {
    /// Of a channel's commands, oldest first.
    #[must_use]
    pub fn of(commands: &[Issued], organisation: &Organisation) -> Self {
        let banks = (organisation.bank_groups * organisation.banks) as usize;
        let mut is_unused = vec![false; organisation.ranks as usize * banks];
        let (mut sequence, mut reads) = (Sequence::default(), false);
        for Issued { command, location, .. } in commands {
            let rank = location.rank as usize * banks;
            let bank = rank + (location.group * organisation.banks + location.bank) as usize;
            let closes = match command {
                Command::Precharge => bank..bank + 1,
                Command::PrechargeAll => rank..rank + banks,
                _ => 0..0,
            };
            sequence.precharges += u64::from(!closes.is_empty());
            for closed in &mut is_unused[closes] {
                sequence.unused_rows += u64::from(std::mem::take(closed));
            }
            match command {
                Command::Activate => is_unused[bank] = true,
                Command::Read | Command::Write => {
                    let writes = *command == Command::Write;
                    sequence.turns_to_writes += u64::from(writes && reads);
                    (is_unused[bank], reads) = (false, !writes);
                }
                _ => {}
            }
        }
        sequence
    }

    /// The counts of two channels together.
    #[must_use]
    pub fn plus(self, other: Sequence) -> Self {
        Sequence {
            unused_rows: self.unused_rows + other.unused_rows,
            turns_to_writes: self.turns_to_writes + other.turns_to_writes,
            precharges: self.precharges + other.precharges,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::memory::ddr::mapping::DdrLocation;

    #[test]
    fn unused_rows_and_turns_are_counted_by_hand() {
        let organisation = Organisation {
            channels: 1,
            ranks: 2,
            bank_groups: 1,
            banks: 2,
            rows: 8,
            row_bytes: 128,
            burst_bytes: 64,
        };
        let commands = [
            (Command::Activate, 0, 0),
            (Command::Activate, 0, 1),
            (Command::Activate, 1, 1),
            (Command::Write, 0, 0),
            (Command::Read, 0, 0),
            (Command::Write, 1, 1),
            (Command::Write, 1, 1),
            (Command::Precharge, 1, 1),
            (Command::PrechargeAll, 0, 0),
            (Command::Refresh, 0, 0),
        ];
        let issue = |(command, rank, bank): (Command, u64, u64)| Issued {
            at: 0,
            command,
            location: DdrLocation { rank, bank, ..DdrLocation::default() },
        };
        let found = Sequence::of(&commands.map(issue), &organisation);
        let expected = Sequence { unused_rows: 1, turns_to_writes: 1, precharges: 2 };
        assert_eq!(found, expected);
    }
}
