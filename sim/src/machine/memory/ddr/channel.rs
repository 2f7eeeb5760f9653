//! A channel: its queues, its buses, and the next command on them.

use super::bus::DataBus;
use super::command::PerCommand;
use super::mapping::DdrLocation;
use super::queue::{Next, Place, Queue};
use super::rank::Rank;
use super::transaction::{Arrival, Finished, RowState, Transaction};
use super::{Clock, Command, DdrConfig, DdrStatistics, Issued, Scheduler};
use crate::machine::Access;

/// Where plans are checked, it is those behind each burst of so many.
const CHECKED_PLANS: u64 = 97;

/// A command that could come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Planned {
    issued: Issued,
    /// On behalf of which burst of the active queue, and its age; `None` for refreshes.
    on_behalf_of: Option<(Place, u64)>,
}

/// Of two commands, the lesser comes first: the earlier, then data, then what is for the older
/// burst. No clock has more than 63 bits.
fn precedence(at: Clock, command: Command, age: u64) -> u128 {
    (u128::from(at) << 1 | u128::from(!command.is_column())) << 64 | u128::from(age)
}

impl Planned {
    fn of(burst: &Transaction, at: Clock, command: Command, place: Place) -> Self {
        let issued = Issued { at, command, location: burst.location };
        Planned { issued, on_behalf_of: Some((place, burst.age)) }
    }
}

/// What a command for a burst of the active queue waits for beside its rank: the channel's buses.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The rank whose data was on the bus last.
    last_rank: u64,
    /// From when on they allow commands to another rank, and to that one.
    from: [PerCommand; 2],
}

impl Limits {
    /// The first clock at which a command may come if no refresh is due before.
    #[inline]
    fn allow_from(&self, rank: &Rank, next: &Next) -> Clock {
        let buses = self.from[usize::from(next.rank == self.last_rank)][next.command];
        next.from.max(rank.spacing_allows_from(next.command, next.bank)).max(buses)
    }
}

/// What the bursts of a bank, oldest first, need next.
fn next_of_bank(ranks: &[Rank], scheduler: Scheduler, waiting: &[Transaction]) -> Next {
    let rank = &ranks[waiting[0].location.rank as usize];
    let at = scheduler.candidate(waiting, rank.open_row(waiting[0].bank));
    let burst = &waiting[at];
    let command = rank.next_command(burst.bank, burst.location.row, burst.access);
    let from = rank.bank_allows_from(command, burst.bank).max(burst.arrived);
    Next { command, from, at, age: burst.age, bank: burst.bank, rank: burst.location.rank }
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
    bus: DataBus,
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
            bus: DataBus::default(),
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
            if cfg!(any(test, debug_assertions)) && self.arrived.is_multiple_of(CHECKED_PLANS) {
                assert_eq!(planned, self.planned_afresh(), "what was kept is still the plan");
            }
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
    fn plan(&mut self) -> Planned {
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

    /// The same with nothing that was found before.
    fn planned_afresh(&self) -> Planned {
        let mut afresh = self.clone();
        afresh.reads.all_banks_changed();
        afresh.writes.all_banks_changed();
        afresh.plan()
    }

    /// The next command for a burst; none where all wait for their ranks' refreshes.
    fn next_for_bursts(&mut self) -> Option<Planned> {
        let scheduler = self.config.scheduler;
        let only = scheduler.only(self.active().busy_banks());
        let (limits, serves_writes) = (self.limits(), self.serves_writes());
        let Channel { ranks, reads, writes, .. } = self;
        let queue = if serves_writes { writes } else { reads };
        let find = |waiting: &[Transaction]| next_of_bank(ranks, scheduler, waiting);
        let mut best: Option<(u128, Clock, Next)> = None;
        for next in queue.next_of_banks(find) {
            if only.is_some_and(|age| age != next.age) {
                continue;
            }
            let rank = &ranks[next.rank as usize];
            let clock = limits.allow_from(rank, &next);
            let key = precedence(clock, next.command, next.age);
            if best.is_none_or(|(before, ..)| key < before) && clock < rank.refresh_due {
                best = Some((key, clock, next));
            }
        }
        let (_, clock, next) = best?;
        let place = Place { bank: next.bank.of_channel, at: next.at };
        Some(Planned::of(queue.get(place), clock, next.command, place))
    }

    fn limits(&self) -> Limits {
        let access = if self.serves_writes() { Access::Write } else { Access::Read };
        let (last_rank, timing) = (self.bus.last_rank(), &self.config.timing);
        let from = [last_rank + 1, last_rank].map(|rank| {
            let bus_from = self.bus.allows_from(rank, access, timing);
            let column = bus_from.max(self.command_from);
            PerCommand::of(self.command_from, column)
        });
        Limits { last_rank, from }
    }

    /// The next command that a burst of the active queue needs, and when it may come if no refresh
    /// is due before.
    fn next_of(&self, burst: &Transaction) -> (Clock, Command) {
        let next = next_of_bank(&self.ranks, self.config.scheduler, std::slice::from_ref(burst));
        let rank = &self.ranks[next.rank as usize];
        (self.limits().allow_from(rank, &next), next.command)
    }

    /// The next command of the rank that is refreshed next.
    fn next_refresh(&self) -> Issued {
        let next = self.ranks.iter().enumerate().map(|(i, rank)| {
            let location = DdrLocation { rank: i as u64, ..DdrLocation::default() };
            let open = rank.has_open_row();
            let command = if open { Command::PrechargeAll } else { Command::Refresh };
            let allowed = rank.all_allow_from(command).max(self.command_from);
            Issued { at: allowed.max(rank.refresh_due), command, location }
        });
        // There is at least one rank.
        let never =
            Issued { at: Clock::MAX, command: Command::Refresh, location: DdrLocation::default() };
        next.min_by_key(|issued| issued.at).unwrap_or(never)
    }

    fn issue(&mut self, planned: &Planned, finished: &mut Vec<Finished>) {
        let Issued { at, command, location } = planned.issued;
        let rank = &mut self.ranks[location.rank as usize];
        rank.note(command, &location, at, &self.config.timing);
        let bank = rank.bank_of(&location);
        self.command_from = at + 1;
        for queue in [&mut self.reads, &mut self.writes] {
            match planned.on_behalf_of {
                Some(_) => queue.bank_changed(bank),
                None => queue.all_banks_changed(),
            }
        }
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
        let end = self.bus.note(at, burst.location.rank, burst.access, &self.config.timing);
        finished.push(Finished { order: burst.order, id: burst.id, at: end });
        self.statistics.bus_busy_clocks += self.config.timing.burst;
        *match burst.row {
            RowState::Hit => &mut self.statistics.row_hits,
            RowState::Miss => &mut self.statistics.row_misses,
            RowState::Conflict => &mut self.statistics.row_conflicts,
        } += 1;
    }
}
