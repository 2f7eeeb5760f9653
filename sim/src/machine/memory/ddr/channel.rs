//! A channel: its queues, its buses, and the next command on them.

use super::mapping::DdrLocation;
use super::rank::{Bank, Rank};
use super::scheduler::Candidates;
use super::{Clock, Command, DdrConfig, DdrStatistics, Issued};
use crate::machine::Access;

/// A burst that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    /// The order of its request.
    order: u64,
    /// The name of its request.
    id: u64,
    burst: u64,
    pub(super) location: DdrLocation,
    pub(super) bank: Bank,
    access: Access,
    arrived: Clock,
    /// What had to be done to the bank before.
    row: RowState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    Hit,
    Miss,
    Conflict,
}

impl Transaction {
    fn new(arrival: Arrival, bank: Bank) -> Self {
        let Arrival { order, id, burst, location, access, at: arrived } = arrival;
        Transaction { order, id, burst, location, bank, access, arrived, row: RowState::Hit }
    }
}

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

/// A burst whose last byte is over at this clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) order: u64,
    pub(super) id: u64,
    pub(super) at: Clock,
}

/// A command that could come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Planned {
    issued: Issued,
    /// On behalf of which burst of the active queue; `None` for refreshes.
    on_behalf_of: Option<usize>,
}

/// What the data bus did last.
#[derive(Clone, Copy, Debug)]
struct LastBurst {
    end: Clock,
    rank: u64,
    access: Access,
}

#[derive(Clone, Debug)]
pub(super) struct Channel {
    config: DdrConfig,
    ranks: Vec<Rank>,
    reads: Vec<Transaction>,
    writes: Vec<Transaction>,
    is_draining: bool,
    /// The command bus takes one command a clock.
    command_from: Clock,
    last_burst: Option<LastBurst>,
    /// The command to come; `None` when it must be found again.
    planned: Option<Planned>,
    candidates: Candidates,
    pub(super) record: Option<Vec<Issued>>,
    pub(super) statistics: DdrStatistics,
}

impl Channel {
    pub(super) fn new(config: &DdrConfig) -> Self {
        let organisation = &config.organisation;
        let banks = organisation.ranks * organisation.bank_groups * organisation.banks;
        let refi = config.timing.t_refi;
        // The ranks of a channel take turns, so that they are not all away at once.
        let first_refresh = |rank| refi + rank * refi / organisation.ranks;
        let ranks = (0..organisation.ranks).map(|i| Rank::new(organisation, first_refresh(i)));
        Channel {
            config: *config,
            ranks: ranks.collect(),
            reads: Vec::with_capacity(config.read_queue as usize),
            writes: Vec::with_capacity(config.write_queue as usize),
            is_draining: false,
            command_from: 0,
            last_burst: None,
            planned: None,
            candidates: Candidates::new(banks as usize),
            record: None,
            statistics: DdrStatistics::default(),
        }
    }

    /// How many bursts it can take.
    pub(super) fn room(&self, access: Access) -> u64 {
        let waiting = match access {
            Access::Read => self.reads.len(),
            Access::Write => self.writes.len(),
        };
        self.config.queued(access).saturating_sub(waiting as u64)
    }

    /// Takes a burst, for which there is room; whether it will go over the bus. A read of what
    /// waits to be written has it a clock later.
    pub(super) fn enqueue(&mut self, arrival: Arrival, finished: &mut Vec<Finished>) -> bool {
        let bank = self.ranks[arrival.location.rank as usize].bank_of(&arrival.location);
        let burst = Transaction::new(arrival, bank);
        let served_writes = self.serves_writes();
        match burst.access {
            Access::Write => {
                self.writes.push(burst);
                self.is_draining |= self.writes.len() as u64 >= self.config.write_high;
            }
            Access::Read if self.writes.iter().any(|write| write.burst == burst.burst) => {
                let Transaction { order, id, arrived, .. } = burst;
                finished.push(Finished { order, id, at: arrived + 1 });
                self.statistics.forwarded_reads += 1;
                return false;
            }
            Access::Read => self.reads.push(burst),
        }
        let changes_queues = served_writes != self.serves_writes();
        if changes_queues {
            // Bursts of the other queue could have had commands before, and got none.
            self.command_from = self.command_from.max(burst.arrived);
        }
        if changes_queues {
            self.planned = None;
        } else if self.may_go_next(&burst) {
            self.consider(&burst);
        }
        true
    }

    /// The last burst of the active queue may change the plan. If it is the first of its bank, it
    /// only has to be compared with what was planned, which nothing else has changed since.
    fn consider(&mut self, burst: &Transaction) {
        let at = self.active().len() - 1;
        let is_first = self.candidates.of_bank(burst.bank).is_none();
        let planned = self.planned.filter(|_| is_first && self.config.scheduler.takes_every_bank());
        let Some(Planned { issued, on_behalf_of: Some(before) }) = planned else {
            self.planned = None;
            return;
        };
        self.candidates.add(burst.bank, at);
        let key = |next: &Issued, at: usize| (next.at, !next.command.is_column(), at);
        if let Some(next) = self.next_of(burst)
            && key(&next, at) < key(&issued, before)
        {
            // No later than what was planned, it comes before all refreshes too.
            self.planned = Some(Planned { issued: next, on_behalf_of: Some(at) });
        }
    }

    /// Whether a new burst can change the plan: one of the other queue cannot, nor one that waits
    /// behind an older burst of its bank and whose row is not open.
    fn may_go_next(&self, burst: &Transaction) -> bool {
        let is_active = (burst.access == Access::Write) == self.serves_writes();
        let is_first = self.candidates.of_bank(burst.bank).is_none();
        let rank = &self.ranks[burst.location.rank as usize];
        is_active && (is_first || rank.open_row(burst.bank) == Some(burst.location.row))
    }

    /// Issues every command whose clock is before `end`.
    pub(super) fn run_until(&mut self, end: Clock, finished: &mut Vec<Finished>) {
        loop {
            let planned = match self.planned {
                Some(planned) => planned,
                None => self.plan(),
            };
            self.planned = Some(planned);
            debug_assert_eq!(planned, self.plan(), "a plan that was kept is still the plan");
            if planned.issued.at >= end {
                return;
            }
            self.planned = None;
            self.issue(&planned, finished);
        }
    }

    /// A lower bound of the next command's clock, if a burst waits.
    pub(super) fn next_for_a_request(&self) -> Option<Clock> {
        if self.reads.is_empty() && self.writes.is_empty() {
            return None;
        }
        Some(self.planned.map_or(self.command_from, |planned| planned.issued.at))
    }

    /// The clock of the next command, refreshes among them, if it was found.
    pub(super) fn next_planned(&self) -> Option<Clock> {
        self.planned.map(|planned| planned.issued.at)
    }

    /// Reads go first, until there are many writes or nothing else to do.
    fn serves_writes(&self) -> bool {
        self.is_draining || self.reads.is_empty()
    }

    fn active(&self) -> &[Transaction] {
        if self.serves_writes() { &self.writes } else { &self.reads }
    }

    /// Finds the next command: the earliest; a refresh, then data, then the oldest of those that
    /// are equally early.
    fn plan(&mut self) -> Planned {
        let mut candidates = std::mem::take(&mut self.candidates);
        self.config.scheduler.candidates(self.active(), &self.ranks, &mut candidates);
        let queue = self.active();
        let bursts = candidates.places().filter_map(|at| Some((self.next_of(&queue[at])?, at)));
        let best = bursts.min_by_key(|(next, at)| (next.at, !next.command.is_column(), *at));
        self.candidates = candidates;
        let no_refresh_before = self.ranks.iter().map(|rank| rank.refresh_due).min();
        match best {
            // Most commands come while no rank waits for its refresh, which need not be looked at.
            Some((issued, at))
                if no_refresh_before.is_some_and(|due| issued.at < due)
                    || issued.at < self.next_refresh().at =>
            {
                Planned { issued, on_behalf_of: Some(at) }
            }
            _ => Planned { issued: self.next_refresh(), on_behalf_of: None },
        }
    }

    /// The next command that a burst needs; none if its rank has to be refreshed before.
    fn next_of(&self, burst: &Transaction) -> Option<Issued> {
        let (location, rank) = (burst.location, &self.ranks[burst.location.rank as usize]);
        let command = match (rank.open_row(burst.bank), burst.access) {
            (None, _) => Command::Activate,
            (Some(row), _) if row != location.row => Command::Precharge,
            (_, Access::Read) => Command::Read,
            (_, Access::Write) => Command::Write,
        };
        let mut at = rank.allows_from(command, &location).max(self.command_from).max(burst.arrived);
        if command.is_column() {
            at = at.max(self.bus_allows_from(location.rank, burst.access));
        }
        (at < rank.refresh_due).then_some(Issued { at, command, location })
    }

    /// The first clock of a column command whose data finds the data bus free.
    fn bus_allows_from(&self, rank: u64, access: Access) -> Clock {
        let Some(last) = self.last_burst else { return 0 };
        let turns = last.rank != rank || last.access != access;
        let free = last.end + if turns { self.config.timing.turnaround } else { 0 };
        free.saturating_sub(self.latency(access))
    }

    /// From a column command to its first data.
    fn latency(&self, access: Access) -> u64 {
        match access {
            Access::Read => self.config.timing.cl,
            Access::Write => self.config.timing.cwl,
        }
    }

    /// The next command of the rank that is refreshed next.
    fn next_refresh(&self) -> Issued {
        let next = self.ranks.iter().enumerate().map(|(i, rank)| {
            let location = DdrLocation { rank: i as u64, ..DdrLocation::default() };
            let open = rank.has_open_row();
            let command = if open { Command::PrechargeAll } else { Command::Refresh };
            let allowed = rank.allows_from(command, &location).max(self.command_from);
            Issued { at: allowed.max(rank.refresh_due), command, location }
        });
        // There is at least one rank.
        let never =
            Issued { at: Clock::MAX, command: Command::Refresh, location: DdrLocation::default() };
        next.min_by_key(|issued| issued.at).unwrap_or(never)
    }

    fn issue(&mut self, planned: &Planned, finished: &mut Vec<Finished>) {
        let Issued { at, command, location } = planned.issued;
        self.ranks[location.rank as usize].note(command, &location, at, &self.config.timing);
        self.command_from = at + 1;
        if let Some(record) = &mut self.record {
            record.push(planned.issued);
        }
        match planned.on_behalf_of {
            None => self.statistics.refreshes += u64::from(command == Command::Refresh),
            Some(index) if command.is_column() => self.finish(index, at, finished),
            Some(index) => self.prepare(index, command),
        }
    }

    /// Notes that a burst did not find its row open.
    fn prepare(&mut self, index: usize, command: Command) {
        let writes = self.serves_writes();
        let burst = if writes { &mut self.writes[index] } else { &mut self.reads[index] };
        match (command, burst.row) {
            (Command::Precharge, _) => burst.row = RowState::Conflict,
            (_, RowState::Hit) => burst.row = RowState::Miss,
            _ => {}
        }
    }

    /// Takes a burst whose data is on its way out of the queue.
    fn finish(&mut self, index: usize, at: Clock, finished: &mut Vec<Finished>) {
        let burst = if self.serves_writes() {
            let burst = self.writes.remove(index);
            self.is_draining &= self.writes.len() as u64 > self.config.write_low;
            burst
        } else {
            self.reads.remove(index)
        };
        let end = at + self.latency(burst.access) + self.config.timing.burst;
        self.last_burst = Some(LastBurst { end, rank: burst.location.rank, access: burst.access });
        finished.push(Finished { order: burst.order, id: burst.id, at: end });
        self.statistics.bus_busy_clocks += self.config.timing.burst;
        *match burst.row {
            RowState::Hit => &mut self.statistics.row_hits,
            RowState::Miss => &mut self.statistics.row_misses,
            RowState::Conflict => &mut self.statistics.row_conflicts,
        } += 1;
    }
}
