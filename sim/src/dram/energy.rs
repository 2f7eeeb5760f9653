//! Energy of the commands that were issued and of the time between them, from a datasheet's
//! currents.
//!
//! The method is that of Micron's technical note TN-41-01: a command costs what its current is
//! above the standby current, for as long as it lasts; beside that, a rank draws one standby
//! current while a row of it is open, and another while none is. mA times V times ns is pJ.

use crate::machine::memory::ddr::{Clock, Command, Issued, Organisation, Timing};

/// What a device draws, in mA, and its voltage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Currents {
    /// VDD, in volts.
    pub vdd: f64,
    /// IDD0: rows are opened and closed, one in tRC.
    pub idd0: f64,
    /// IDD2N: no row is open.
    pub idd2n: f64,
    /// IDD3N: a row is open.
    pub idd3n: f64,
    /// IDD4R: reads without a gap.
    pub idd4r: f64,
    /// IDD4W: writes without a gap.
    pub idd4w: f64,
    /// IDD5B, IDD5AB in DDR4: refreshes without a gap.
    pub idd5b: f64,
    /// Devices of a rank that work together.
    pub devices: f64,
}

/// How often each command was issued on a channel, and how long its ranks had a row open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCounts {
    /// ACT.
    pub activates: u64,
    /// RD.
    pub reads: u64,
    /// WR.
    pub writes: u64,
    /// Reads from a row that another burst had used since it was opened.
    pub read_row_hits: u64,
    /// Writes into such a row.
    pub write_row_hits: u64,
    /// REF, each of one rank.
    pub refreshes: u64,
    /// Clocks in which a rank had a row open, all ranks together.
    pub active_clocks: Clock,
    /// Clocks in which it had none.
    pub idle_clocks: Clock,
}

impl CommandCounts {
    /// Counts the commands of a channel, oldest first, that were issued before clock `end`.
    #[must_use]
    pub fn of(commands: &[Issued], organisation: &Organisation, end: Clock) -> Self {
        let ranks = organisation.ranks as usize;
        let banks = (organisation.bank_groups * organisation.banks) as usize;
        let mut rows = vec![OpenRows::new(banks); ranks];
        let mut counts = CommandCounts::default();
        for issued in commands.iter().filter(|issued| issued.at < end) {
            let rank = &mut rows[issued.location.rank as usize];
            let bank = (issued.location.group * organisation.banks + issued.location.bank) as usize;
            match issued.command {
                Command::Activate => {
                    counts.activates += 1;
                    rank.open(bank, issued.at);
                }
                Command::Precharge => rank.close(bank, issued.at),
                Command::PrechargeAll => (0..banks).for_each(|bank| rank.close(bank, issued.at)),
                Command::Read => {
                    counts.reads += 1;
                    counts.read_row_hits += u64::from(rank.uses(bank));
                }
                Command::Write => {
                    counts.writes += 1;
                    counts.write_row_hits += u64::from(rank.uses(bank));
                }
                Command::Refresh => counts.refreshes += 1,
            }
        }
        for rank in &mut rows {
            (0..banks).for_each(|bank| rank.close(bank, end));
            counts.active_clocks += rank.active_clocks;
        }
        counts.idle_clocks = organisation.ranks * end - counts.active_clocks;
        counts
    }

    /// The counts of two channels together.
    #[must_use]
    pub fn plus(self, other: CommandCounts) -> Self {
        CommandCounts {
            activates: self.activates + other.activates,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            read_row_hits: self.read_row_hits + other.read_row_hits,
            write_row_hits: self.write_row_hits + other.write_row_hits,
            refreshes: self.refreshes + other.refreshes,
            active_clocks: self.active_clocks + other.active_clocks,
            idle_clocks: self.idle_clocks + other.idle_clocks,
        }
    }

    /// What all of it took, in pJ.
    #[must_use]
    pub fn energy_pj(&self, currents: &Currents, timing: &Timing, clock_ns: f64) -> f64 {
        let Currents { vdd, idd0, idd2n, idd3n, idd4r, idd4w, idd5b, devices } = *currents;
        let clocks = |clocks: u64| clocks as f64;
        let (ras, rp) = (clocks(timing.t_ras), clocks(timing.t_rp));
        let activate = idd0 * (ras + rp) - (idd3n * ras + idd2n * rp);
        let charge = clocks(self.activates) * activate
            + clocks(self.reads * timing.burst) * (idd4r - idd3n)
            + clocks(self.writes * timing.burst) * (idd4w - idd3n)
            + clocks(self.refreshes * timing.t_rfc) * (idd5b - idd3n)
            + clocks(self.active_clocks) * idd3n
            + clocks(self.idle_clocks) * idd2n;
        charge * vdd * devices * clock_ns
    }
}

/// Which banks of a rank have a row open.
#[derive(Clone)]
struct OpenRows {
    /// For each bank, whether its open row was used.
    used: Vec<Option<bool>>,
    open: usize,
    since: Clock,
    active_clocks: Clock,
}

impl OpenRows {
    fn new(banks: usize) -> Self {
        OpenRows { used: vec![None; banks], open: 0, since: 0, active_clocks: 0 }
    }

    fn open(&mut self, bank: usize, at: Clock) {
        if self.used[bank].replace(false).is_none() {
            if self.open == 0 {
                self.since = at;
            }
            self.open += 1;
        }
    }

    fn close(&mut self, bank: usize, at: Clock) {
        if self.used[bank].take().is_some() {
            self.open -= 1;
            if self.open == 0 {
                self.active_clocks += at - self.since;
            }
        }
    }

    /// Whether the open row was used before; it is from now on.
    fn uses(&mut self, bank: usize) -> bool {
        self.used[bank].replace(true) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::memory::ddr::mapping::DdrLocation;

    const TWO_BANKS: Organisation = Organisation {
        channels: 1,
        ranks: 1,
        bank_groups: 1,
        banks: 2,
        rows: 8,
        row_bytes: 128,
        burst_bytes: 64,
    };

    fn issued(at: Clock, command: Command, bank: u64) -> Issued {
        Issued { at, command, location: DdrLocation { bank, ..DdrLocation::default() } }
    }

    /// Bank 0 is open from 10 to 60, bank 1 from 40 to 70, both closed by one command at the end.
    #[test]
    fn commands_and_open_clocks_are_counted_by_hand() {
        let commands = [
            issued(10, Command::Activate, 0),
            issued(20, Command::Read, 0),
            issued(30, Command::Read, 0),
            issued(40, Command::Activate, 1),
            issued(50, Command::Write, 1),
            issued(60, Command::Precharge, 0),
            issued(70, Command::PrechargeAll, 0),
            issued(80, Command::Refresh, 0),
            issued(200, Command::Activate, 0),
        ];
        let counts = CommandCounts::of(&commands, &TWO_BANKS, 100);
        let expected = CommandCounts {
            activates: 2,
            reads: 2,
            writes: 1,
            read_row_hits: 1,
            write_row_hits: 0,
            refreshes: 1,
            active_clocks: 60,
            idle_clocks: 40,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn energy_is_current_times_voltage_times_time() {
        let currents = Currents {
            vdd: 2.0,
            idd0: 50.0,
            idd2n: 30.0,
            idd3n: 40.0,
            idd4r: 140.0,
            idd4w: 90.0,
            idd5b: 240.0,
            devices: 8.0,
        };
        let timing = Timing { burst: 4, t_ras: 30, t_rp: 10, t_rfc: 100, ..Timing::DDR3_1600K };
        let energy = |counts: CommandCounts| counts.energy_pj(&currents, &timing, 1.25);
        let none = CommandCounts::default();
        // A row: 50 mA for 40 clocks, of which standby alone takes 40 mA for 30 and 30 mA for 10.
        assert_eq!(energy(CommandCounts { activates: 1, ..none }), 500.0 * 20.0);
        assert_eq!(energy(CommandCounts { reads: 1, ..none }), 400.0 * 20.0);
        assert_eq!(energy(CommandCounts { writes: 1, ..none }), 200.0 * 20.0);
        assert_eq!(energy(CommandCounts { refreshes: 1, ..none }), 20_000.0 * 20.0);
        assert_eq!(energy(CommandCounts { active_clocks: 1, ..none }), 40.0 * 20.0);
        assert_eq!(energy(CommandCounts { idle_clocks: 1, ..none }), 30.0 * 20.0);
    }
}
