//! Banks and what joins them: from which clock on each command is allowed.
//!
//! Every command moves the marks of what it forbids for a while. A mark is the first clock at
//! which the command it names is allowed again.

use super::command::PerCommand;
use super::mapping::DdrLocation;
use super::{Clock, Command, Organisation, Timing};
use crate::machine::Access;

#[derive(Clone, Copy, Debug, Default)]
struct BankState {
    open_row: Option<Row>,
    activate_from: Clock,
    column_from: Clock,
    precharge_from: Clock,
}

/// An open row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) number: u64,
    /// Column commands since it was opened.
    pub(super) uses: u64,
}

/// A bank by its numbers within the rank and within the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bank {
    group: usize,
    of_rank: usize,
    pub(super) of_channel: usize,
}

/// A rank: its banks, bank groups, and what all of them share.
#[derive(Clone, Debug)]
pub(super) struct Rank {
    banks: Vec<BankState>,
    /// What distances within each bank group (JEDEC's `_L`) allow from when on.
    groups: Vec<PerCommand>,
    /// The same of distances within the rank (`_S`), tFAW among them.
    all: PerCommand,
    /// When each of the last four activations leaves the window of tFAW, oldest at `oldest`.
    window_ends: [Clock; 4],
    oldest: usize,
    /// The clock at which the next refresh is due.
    pub(super) refresh_due: Clock,
    banks_of_a_group: usize,
}

impl Rank {
    pub(super) fn new(organisation: &Organisation, first_refresh: Clock) -> Self {
        let groups = organisation.bank_groups as usize;
        let banks_of_a_group = organisation.banks as usize;
        Rank {
            banks: vec![BankState::default(); groups * banks_of_a_group],
            groups: vec![PerCommand::default(); groups],
            all: PerCommand::default(),
            window_ends: [0; 4],
            oldest: 0,
            refresh_due: first_refresh,
            banks_of_a_group,
        }
    }

    /// The numbers of a location's bank.
    pub(super) fn bank_of(&self, location: &DdrLocation) -> Bank {
        let of_group = location.group as usize * self.banks_of_a_group;
        let of_rank = of_group + location.bank as usize;
        let of_channel = location.rank as usize * self.banks.len() + of_rank;
        Bank { group: location.group as usize, of_rank, of_channel }
    }

    pub(super) fn open_row(&self, bank: Bank) -> Option<Row> {
        self.banks[bank.of_rank].open_row
    }

    pub(super) fn has_open_row(&self) -> bool {
        self.banks.iter().any(|bank| bank.open_row.is_some())
    }

    /// The command that a burst to a row of a bank needs next.
    pub(super) fn next_command(&self, bank: Bank, row: u64, access: Access) -> Command {
        match (self.open_row(bank), access) {
            (None, _) => Command::Activate,
            (Some(open), _) if open.number != row => Command::Precharge,
            (_, Access::Read) => Command::Read,
            (_, Access::Write) => Command::Write,
        }
    }

    /// The first clock at which a bank by itself allows a command for one of its bursts.
    pub(super) fn bank_allows_from(&self, command: Command, bank: Bank) -> Clock {
        let bank = &self.banks[bank.of_rank];
        match command {
            Command::Activate => bank.activate_from,
            Command::Read | Command::Write => bank.column_from,
            Command::Precharge | Command::PrechargeAll | Command::Refresh => bank.precharge_from,
        }
    }

    /// The first clock at which the rank allows a command.
    pub(super) fn allows_from(&self, command: Command, bank: Bank) -> Clock {
        match command {
            Command::PrechargeAll | Command::Refresh => self.all_allow_from(command),
            _ => self.bank_allows_from(command, bank).max(self.spacing_allows_from(command, bank)),
        }
    }

    /// The first clock at which what the bank shares with others allows it a command.
    pub(super) fn spacing_allows_from(&self, command: Command, bank: Bank) -> Clock {
        self.groups[bank.group][command].max(self.all[command])
    }

    /// The first clock at which all banks allow to be closed, or to be refreshed.
    pub(super) fn all_allow_from(&self, command: Command) -> Clock {
        match command {
            Command::PrechargeAll => self.latest(|bank| bank.precharge_from),
            _ => self.latest(|bank| bank.activate_from),
        }
    }

    fn latest(&self, mark: impl Fn(&BankState) -> Clock) -> Clock {
        self.banks.iter().map(mark).max().unwrap_or(0)
    }

    /// Takes note of a command that was issued at `at`.
    pub(super) fn note(
        &mut self,
        command: Command,
        location: &DdrLocation,
        at: Clock,
        timing: &Timing,
    ) {
        match command {
            Command::Activate => self.note_activate(location, at, timing),
            Command::Read => self.note_read(location, at, timing),
            Command::Write => self.note_write(location, at, timing),
            Command::Precharge => {
                let index = self.bank_of(location).of_rank;
                close(&mut self.banks[index], at + timing.t_rp);
            }
            Command::PrechargeAll => {
                self.banks.iter_mut().for_each(|bank| close(bank, at + timing.t_rp));
            }
            Command::Refresh => {
                self.banks.iter_mut().for_each(|bank| close(bank, at + timing.t_rfc));
                self.refresh_due += timing.t_refi;
            }
        }
    }

    fn note_activate(&mut self, location: &DdrLocation, at: Clock, timing: &Timing) {
        let index = self.bank_of(location).of_rank;
        let bank = &mut self.banks[index];
        bank.open_row = Some(Row { number: location.row, uses: 0 });
        bank.column_from = at + timing.t_rcd;
        bank.precharge_from = at + timing.t_ras;
        self.window_ends[self.oldest] = at + timing.t_faw;
        self.oldest = (self.oldest + 1) % 4;
        self.groups[location.group as usize][Command::Activate] = at + timing.t_rrd_l;
        self.all[Command::Activate] = self.window_ends[self.oldest].max(at + timing.t_rrd_s);
    }

    fn note_read(&mut self, location: &DdrLocation, at: Clock, timing: &Timing) {
        let index = self.bank_of(location).of_rank;
        let bank = &mut self.banks[index];
        bank.use_row();
        raise(&mut bank.precharge_from, at + timing.t_rtp);
        let group = &mut self.groups[location.group as usize];
        raise(&mut group[Command::Read], at + timing.t_ccd_l);
        raise(&mut self.all[Command::Read], at + timing.t_ccd_s);
        // From a read to a write it is the data bus that needs time, which the channel sees to.
    }

    fn note_write(&mut self, location: &DdrLocation, at: Clock, timing: &Timing) {
        let index = self.bank_of(location).of_rank;
        let data_end = at + timing.cwl + timing.burst;
        let bank = &mut self.banks[index];
        bank.use_row();
        raise(&mut bank.precharge_from, data_end + timing.t_wr);
        let group = &mut self.groups[location.group as usize];
        raise(&mut group[Command::Write], at + timing.t_ccd_l);
        raise(&mut group[Command::Read], data_end + timing.t_wtr_l);
        raise(&mut self.all[Command::Write], at + timing.t_ccd_s);
        raise(&mut self.all[Command::Read], data_end + timing.t_wtr_s);
    }
}

impl BankState {
    fn use_row(&mut self) {
        if let Some(row) = &mut self.open_row {
            row.uses += 1;
        }
    }
}

fn raise(mark: &mut Clock, to: Clock) {
    *mark = to.max(*mark);
}

/// Closes a bank, which can be opened again from `activate_from` on. A bank that waits longer for
/// another reason keeps waiting.
fn close(bank: &mut BankState, activate_from: Clock) {
    bank.open_row = None;
    raise(&mut bank.activate_from, activate_from);
}
