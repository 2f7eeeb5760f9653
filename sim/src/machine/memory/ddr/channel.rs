//! A channel: its queues, its buses, and the next command on them.

use super::mapping::DdrLocation;
use super::queue::{Place, Queue};
use super::rank::Rank;
use super::transaction::{Arrival, Finished, RowState, Transaction};
use super::{Clock, Command, DdrConfig, DdrStatistics, Issued};
use crate::machine::Access;

/// A command that could come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Planned {
    issued: Issued,
    /// On behalf of which burst of the active queue, and its age; `None` for refreshes.
    on_behalf_of: Option<(Place, u64)>,
}

/// Of two commands, the lesser comes first: the earlier, then data, then what is for the older
/// burst.
fn precedence(at: Clock, command: Command, age: u64) -> (Clock, bool, u64) {
    (at, !command.is_column(), age)
}

impl Planned {
    fn of(burst: &Transaction, at: Clock, command: Command, place: Place) -> Self {
        let issued = Issued { at, command, location: burst.location };
        Planned { issued, on_behalf_of: Some((place, burst.age)) }
    }
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
    reads: Queue,
    writes: Queue,
    /// How many bursts arrived.
    arrived: u64,
    is_draining: bool,
    /// The command bus takes one command a clock.
    command_from: Clock,
    last_burst: Option<LastBurst>,
    /// The command to come; `None` when it must be found again.
    planned: Option<Planned>,
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
            reads: Queue::new(banks as usize),
            writes: Queue::new(banks as usize),
            arrived: 0,
            is_draining: false,
            command_from: 0,
            last_burst: None,
            planned: None,
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
        let burst = Transaction::new(arrival, bank, self.arrived);
        self.arrived += 1;
        let served_writes = self.serves_writes();
        match burst.access {
            Access::Write => {
                self.writes.push(burst);
                self.is_draining |= self.writes.len() as u64 >= self.config.write_high;
            }
            Access::Read
                if self.writes.of_bank(bank).iter().any(|one| one.burst == burst.burst) =>
            {
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
            self.planned = None;
        } else if self.may_go_next(&burst) {
            self.consider(&burst);
        }
        true
    }

    /// A burst that came into the active queue may change the plan. If it is the only one of its
    /// bank, it only has to be compared with what was planned: nothing else has changed that since.
    fn consider(&mut self, burst: &Transaction) {
        let is_first = self.active().of_bank(burst.bank).len() == 1;
        let planned = self.planned.filter(|_| is_first && self.config.scheduler.takes_every_bank());
        let Some(Planned { issued, on_behalf_of: Some((_, before)) }) = planned else {
            self.planned = None;
            return;
        };
        let (at, command) = self.next_of(burst);
        let precedes =
            precedence(at, command, burst.age) < precedence(issued.at, issued.command, before);
        if precedes && at < self.ranks[burst.location.rank as usize].refresh_due {
            // No later than what was planned, it comes before all refreshes too.
            let place = self.active().youngest_of(burst.bank);
            self.planned = Some(Planned::of(burst, at, command, place));
        }
    }

    /// Whether a new burst can change the plan: one of the other queue cannot, nor one that waits
    /// behind an older burst of its bank and whose row is not open.
    fn may_go_next(&self, burst: &Transaction) -> bool {
        let is_active = (burst.access == Access::Write) == self.serves_writes();
        let is_first = self.active().of_bank(burst.bank).len() == 1;
        let rank = &self.ranks[burst.location.rank as usize];
        let is_hit =
            || rank.open_row(burst.bank).is_some_and(|open| burst.location.row == open.number);
        is_active && (is_first || is_hit())
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

    fn active(&self) -> &Queue {
        if self.serves_writes() { &self.writes } else { &self.reads }
    }

    /// Finds the next command: the earliest; a refresh, then data, then the oldest of those that
    /// are equally early.
    fn plan(&self) -> Planned {
        let no_refresh_before = self.ranks.iter().map(|rank| rank.refresh_due).min();
        match self.next_for_bursts() {
            // Most commands come while no rank waits for its refresh, which need not be looked at.
            Some(planned)
                if no_refresh_before.is_some_and(|due| planned.issued.at < due)
                    || planned.issued.at < self.next_refresh().at =>
            {
                planned
            }
            _ => Planned { issued: self.next_refresh(), on_behalf_of: None },
        }
    }

    /// The next command for a burst; none where all wait for their ranks' refreshes.
    fn next_for_bursts(&self) -> Option<Planned> {
        let (queue, scheduler) = (self.active(), self.config.scheduler);
        let only = scheduler.only(queue.busy_banks());
        let mut best: Option<((Clock, bool, u64), Planned)> = None;
        for waiting in queue.busy_banks() {
            let rank = &self.ranks[waiting[0].location.rank as usize];
            let at = scheduler.candidate(waiting, rank.open_row(waiting[0].bank));
            let burst = &waiting[at];
            if only.is_some_and(|age| age != burst.age) {
                continue;
            }
            let (clock, command) = self.next_of(burst);
            let key = precedence(clock, command, burst.age);
            if clock < rank.refresh_due && best.is_none_or(|(before, _)| key < before) {
                let place = Place { bank: burst.bank.of_channel, at };
                best = Some((key, Planned::of(burst, clock, command, place)));
            }
        }
        Some(best?.1)
    }

    /// The next command that a burst needs, and when it may come if no refresh is due before.
    fn next_of(&self, burst: &Transaction) -> (Clock, Command) {
        let rank = &self.ranks[burst.location.rank as usize];
        let command = match (rank.open_row(burst.bank), burst.access) {
            (None, _) => Command::Activate,
            (Some(open), _) if open.number != burst.location.row => Command::Precharge,
            (_, Access::Read) => Command::Read,
            (_, Access::Write) => Command::Write,
        };
        let mut at =
            rank.allows_from(command, burst.bank).max(self.command_from).max(burst.arrived);
        if command.is_column() {
            at = at.max(self.bus_allows_from(burst.location.rank, burst.access));
        }
        (at, command)
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
            let allowed = rank.allows_from(command, rank.bank_of(&location)).max(self.command_from);
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
            Some((place, _)) if command.is_column() => self.finish(place, at, finished),
            Some((place, _)) => self.prepare(place, command),
        }
    }

    /// Notes that a burst did not find its row open.
    fn prepare(&mut self, place: Place, command: Command) {
        let queue = if self.serves_writes() { &mut self.writes } else { &mut self.reads };
        let burst = queue.get_mut(place);
        match (command, burst.row) {
            (Command::Precharge, _) => burst.row = RowState::Conflict,
            (_, RowState::Hit) => burst.row = RowState::Miss,
            _ => {}
        }
    }

    /// Takes a burst whose data is on its way out of the queue.
    fn finish(&mut self, place: Place, at: Clock, finished: &mut Vec<Finished>) {
        let burst = if self.serves_writes() {
            let burst = self.writes.remove(place);
            self.is_draining &= self.writes.len() as u64 > self.config.write_low;
            burst
        } else {
            self.reads.remove(place)
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
