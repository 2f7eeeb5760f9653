//! What a sequence of commands shows of the policy that chose them.

use std::collections::HashMap;

use crate::machine::Access;
use crate::machine::memory::ddr::{Clock, Command, Issued, Organisation};

/// Counts over the commands of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Rows that were opened and closed without a read or a write between.
    pub unused_rows: UnusedRows,
    /// Writes that came after a read: how often the data bus turned to writes.
    pub turns_to_writes: u64,
    /// Commands that closed one bank or all of a rank.
    pub precharges: u64,
    /// The sum, over pairs of reads with writes between them, of the clocks from the first to the
    /// second, squared.
    pub write_gaps_squared: u64,
}

/// Rows that were opened in vain: for the burst that came to the row in the end, and closed for the
/// one that came to the bank next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnusedRows {
    /// All of them, whatever for.
    pub all: u64,
    /// Opened for a write, and closed for a read.
    pub of_writes_for_reads: u64,
    /// Opened for a read, and closed for a write.
    pub of_reads_for_writes: u64,
    /// Closed with all of their rank, for a refresh.
    pub for_refreshes: u64,
}

/// Why the row of a bank was closed.
#[derive(Clone, Copy)]
enum Closed {
    /// For this burst, or for none that was seen.
    For(Option<Access>),
    WithItsRank,
}

impl Sequence {
    /// Of a channel's commands, oldest first.
    #[must_use]
    pub fn of(commands: &[Issued], organisation: &Organisation) -> Self {
        let mut sequence =
            Sequence { unused_rows: UnusedRows::of(commands, organisation), ..Sequence::default() };
        // The last read, and whether a write came since.
        let (mut last_read, mut has_written): (Option<Clock>, bool) = (None, false);
        for Issued { at, command, .. } in commands {
            match command {
                Command::Precharge | Command::PrechargeAll => sequence.precharges += 1,
                Command::Write => {
                    let turns = last_read.is_some() && !has_written;
                    sequence.turns_to_writes += u64::from(turns);
                    has_written = true;
                }
                Command::Read => {
                    let gap = last_read.filter(|_| has_written).map_or(0, |last| at - last);
                    sequence.write_gaps_squared += gap * gap;
                    (last_read, has_written) = (Some(*at), false);
                }
                Command::Activate | Command::Refresh => {}
            }
        }
        sequence
    }

    /// How long a read waits on average that comes at any of so many clocks and is served by the
    /// next read command, if writes come before that: half of the gap that it comes in.
    #[must_use]
    pub fn wait_for_writes_clocks(&self, clocks: Clock) -> f64 {
        self.write_gaps_squared as f64 / 2.0 / clocks.max(1) as f64
    }

    /// The counts of two channels together.
    #[must_use]
    pub fn plus(self, other: Sequence) -> Self {
        let (one, two) = (self.unused_rows, other.unused_rows);
        Sequence {
            unused_rows: UnusedRows {
                all: one.all + two.all,
                of_writes_for_reads: one.of_writes_for_reads + two.of_writes_for_reads,
                of_reads_for_writes: one.of_reads_for_writes + two.of_reads_for_writes,
                for_refreshes: one.for_refreshes + two.for_refreshes,
            },
            turns_to_writes: self.turns_to_writes + other.turns_to_writes,
            precharges: self.precharges + other.precharges,
            write_gaps_squared: self.write_gaps_squared + other.write_gaps_squared,
        }
    }
}

impl UnusedRows {
    /// From the last command to the first: what a row was opened for shows later.
    fn of(commands: &[Issued], organisation: &Organisation) -> Self {
        let banks = (organisation.bank_groups * organisation.banks) as usize;
        let mut unused = UnusedRows::default();
        // Of each bank the next burst, and why its row is closed that no burst was seen of.
        let mut next: Vec<Option<Access>> = vec![None; organisation.ranks as usize * banks];
        let mut closed: Vec<Option<Closed>> = vec![None; next.len()];
        let mut next_of_row = HashMap::new();
        for Issued { command, location, .. } in commands.iter().rev() {
            let rank = location.rank as usize * banks;
            let bank = rank + (location.group * organisation.banks + location.bank) as usize;
            match command {
                Command::Precharge => closed[bank] = Some(Closed::For(next[bank])),
                Command::PrechargeAll => closed[rank..rank + banks].fill(Some(Closed::WithItsRank)),
                Command::Activate => {
                    let opened_for = next_of_row.get(&(bank, location.row)).copied();
                    if let Some(why) = closed[bank].take() {
                        unused.count(opened_for, why);
                    }
                }
                Command::Read | Command::Write => {
                    let is_read = *command == Command::Read;
                    let access = if is_read { Access::Read } else { Access::Write };
                    (next[bank], closed[bank]) = (Some(access), None);
                    next_of_row.insert((bank, location.row), access);
                }
                Command::Refresh => {}
            }
        }
        unused
    }

    fn count(&mut self, opened_for: Option<Access>, closed: Closed) {
        self.all += 1;
        match (opened_for, closed) {
            (_, Closed::WithItsRank) => self.for_refreshes += 1,
            (Some(Access::Write), Closed::For(Some(Access::Read))) => self.of_writes_for_reads += 1,
            (Some(Access::Read), Closed::For(Some(Access::Write))) => self.of_reads_for_writes += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::memory::ddr::mapping::DdrLocation;

    const ORGANISATION: Organisation = Organisation {
        channels: 1,
        ranks: 2,
        bank_groups: 1,
        banks: 2,
        rows: 8,
        row_bytes: 128,
        burst_bytes: 64,
    };

    fn issue((at, command, rank, bank, row): (Clock, Command, u64, u64, u64)) -> Issued {
        Issued { at, command, location: DdrLocation { rank, bank, row, ..DdrLocation::default() } }
    }

    #[test]
    fn unused_rows_and_turns_are_counted_by_hand() {
        let commands = [
            (0, Command::Activate, 0, 0, 0),
            (1, Command::Activate, 0, 1, 0),
            (2, Command::Activate, 1, 1, 0),
            (3, Command::Write, 0, 0, 0),
            (10, Command::Read, 0, 0, 0),
            (12, Command::Write, 1, 1, 0),
            (14, Command::Write, 1, 1, 0),
            (20, Command::Precharge, 1, 1, 0),
            (22, Command::PrechargeAll, 0, 0, 0),
            (24, Command::Refresh, 0, 0, 0),
        ];
        let found = Sequence::of(&commands.map(issue), &ORGANISATION);
        let unused_rows = UnusedRows { all: 1, for_refreshes: 1, ..UnusedRows::default() };
        let expected =
            Sequence { unused_rows, turns_to_writes: 1, precharges: 2, write_gaps_squared: 0 };
        assert_eq!(found, expected);
    }

    /// Row 1 is opened for a write, and a read of row 2 comes first; then row 3 for a read, and the
    /// write comes first.
    #[test]
    fn rows_are_opened_for_what_comes_to_them_in_the_end() {
        let commands = [
            (0, Command::Activate, 0, 0, 1),
            (10, Command::Precharge, 0, 0, 0),
            (20, Command::Activate, 0, 0, 2),
            (30, Command::Read, 0, 0, 2),
            (40, Command::Precharge, 0, 0, 0),
            (50, Command::Activate, 0, 0, 3),
            (60, Command::Precharge, 0, 0, 0),
            (70, Command::Activate, 0, 0, 1),
            (80, Command::Write, 0, 0, 1),
            (90, Command::Precharge, 0, 0, 0),
            (100, Command::Activate, 0, 0, 3),
            (110, Command::Read, 0, 0, 3),
        ];
        let found = Sequence::of(&commands.map(issue), &ORGANISATION);
        let unused_rows =
            UnusedRows { all: 2, of_writes_for_reads: 1, of_reads_for_writes: 1, for_refreshes: 0 };
        let expected = Sequence {
            unused_rows,
            turns_to_writes: 1,
            precharges: 4,
            write_gaps_squared: 80 * 80,
        };
        assert_eq!(found, expected);
        assert_eq!(found.wait_for_writes_clocks(160).to_bits(), 20_f64.to_bits());
    }
}
