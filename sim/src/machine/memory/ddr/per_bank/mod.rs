//! A channel under another controller's policy, clock by clock: DRAMsim3's, for comparisons.
//!
//! When a command is allowed is `Rank`'s and `DataBus`'s to say, as for every channel; which of
//! the allowed ones comes is decided by the rules of its `controller.cc`, `command_queue.cc` and
//! `refresh.cc`:
//!
//! - In each clock one burst moves from the queue of reads, or of writes, into its bank's queue,
//!   where reads and writes are in one order.
//! - Writes move when their queue is full, or has more than eight and no bank has anything to do.
//!   Then all that are there move, one after the other, before the next read does.
//! - Banks take turns. The next command is that of the first bank, from the one after the last
//!   command's, that has an allowed one.
//! - In a bank, the oldest burst whose command is allowed comes first. A row is closed only for the
//!   oldest of all, and not before its fourth use while another burst waits for that row.
//! - Ranks are refreshed in turn, every tREFI / ranks. A rank whose refresh is due gets nothing
//!   else: its banks are closed one by one, each as soon as it may be.
//! - Reads of one block that wait together are answered together; so are a read of what waits to be
//!   written, at once, and two writes of one block, by one.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::Rules;

use std::collections::{HashMap, HashSet, VecDeque};

use super::bus::DataBus;
use super::mapping::DdrLocation;
use super::rank::{Bank, Rank};
use super::{Clock, Command, DdrConfig, Issued};
use crate::machine::{Access, ConfigError};

/// Uses of a row after which it may be closed although another burst waits for it.
const ROW_USES: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    age: u64,
    burst: u64,
    location: DdrLocation,
    bank: Bank,
    access: Access,
}

/// A read that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When it was taken.
    pub taken: Clock,
    /// When the last of its data came.
    pub at: Clock,
}

/// The channel at work.
#[derive(Clone, Debug)]
pub struct PerBank {
    config: DdrConfig,
    rules: Rules,
    ranks: Vec<Rank>,
    bus: DataBus,
    reads: Vec<Waiting>,
    writes: Vec<Waiting>,
    /// Writes that are to move before the next read does.
    draining: usize,
    banks: Vec<Vec<Waiting>>,
    in_banks: usize,
    reads_in_banks: usize,
    /// The bank that had the last command.
    turn: usize,
    next_refreshed: u64,
    /// Ranks whose refresh is due.
    due: VecDeque<u64>,
    unanswered: HashMap<u64, Vec<Clock>>,
    unwritten: HashSet<u64>,
    now: Clock,
    taken: u64,
    writes_taken: u64,
    commands: Vec<Issued>,
    answered: Vec<Answered>,
}

impl PerBank {
    /// An idle channel at clock 0.
    ///
    /// # Errors
    /// A number is impossible; the parameter is named.
    pub fn new(config: DdrConfig, rules: Rules) -> Result<Self, ConfigError> {
        config.check()?;
        let organisation = &config.organisation;
        let banks = organisation.ranks * organisation.bank_groups * organisation.banks;
        Ok(PerBank {
            config,
            rules,
            ranks: (0..organisation.ranks)
                .map(|_| Rank::new(organisation, Clock::MAX / 2))
                .collect(),
            bus: DataBus::new(rules.joins_writes),
            reads: Vec::new(),
            writes: Vec::new(),
            draining: 0,
            banks: vec![Vec::new(); banks as usize],
            in_banks: 0,
            reads_in_banks: 0,
            turn: 0,
            next_refreshed: 0,
            due: VecDeque::new(),
            unanswered: HashMap::new(),
            unwritten: HashSet::new(),
            now: 0,
            taken: 0,
            writes_taken: 0,
            commands: Vec::new(),
            answered: Vec::new(),
        })
    }

    /// The clock that is to come.
    #[must_use]
    pub fn now(&self) -> Clock {
        self.now
    }

    /// The commands, oldest first.
    #[must_use]
    pub fn commands(&self) -> &[Issued] {
        &self.commands
    }

    /// The reads that were answered, in the order of their last commands.
    #[must_use]
    pub fn answered(&self) -> &[Answered] {
        &self.answered
    }

    /// How many writes it took; each is answered at once.
    #[must_use]
    pub fn writes_taken(&self) -> u64 {
        self.writes_taken
    }

    /// Whether a request can be taken before the clock that is to come.
    #[must_use]
    pub fn has_room(&self, access: Access) -> bool {
        let waiting = match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        };
        (waiting.len() as u64) < self.config.queued(access)
    }

    /// Takes a request for the burst of that number, for which there is room.
    pub fn take(&mut self, burst: u64, access: Access) {
        let location = self.config.location(burst);
        let bank = self.ranks[location.rank as usize].bank_of(&location);
        self.taken += 1;
        let waiting = Waiting { age: self.taken, burst, location, bank, access };
        self.writes_taken += u64::from(access == Access::Write);
        match access {
            Access::Write if self.unwritten.insert(burst) => self.writes.push(waiting),
            Access::Write => {}
            Access::Read if self.unwritten.contains(&burst) => {
                self.answered.push(Answered { taken: self.now, at: self.now + 1 });
            }
            Access::Read => {
                let together = self.unanswered.entry(burst).or_default();
                together.push(self.now);
                if together.len() == 1 {
                    self.reads.push(waiting);
                }
            }
        }
    }

    /// Lets a clock pass.
    pub fn tick(&mut self) {
        let interval = self.refresh_interval();
        let first = if self.rules.refreshes_early { interval } else { self.config.timing.t_refi };
        if self.now >= first && self.now.is_multiple_of(interval) {
            self.due.push_back(self.next_refreshed);
            self.next_refreshed = (self.next_refreshed + 1) % self.config.organisation.ranks;
        }
        if let Some((command, location)) = self.for_refresh() {
            self.issue(command, location);
        } else if let Some((bank, at, command)) = self.for_bursts() {
            self.turn = bank;
            self.issue(command, self.banks[bank][at].location);
            if command.is_column() {
                self.finish(bank, at);
            }
        }
        self.move_one();
        self.now += 1;
    }

    /// Passes the clocks before `end` in which nothing happens.
    pub fn skip_until(&mut self, end: Clock) {
        let is_idle = self.in_banks == 0 && self.reads.is_empty() && self.due.is_empty();
        if is_idle && self.writes.len() <= self.rules.writes_left {
            let refresh = self.now.next_multiple_of(self.refresh_interval());
            self.now = self.now.max(end.min(refresh));
        }
    }

    fn refresh_interval(&self) -> Clock {
        (self.config.timing.t_refi / self.config.organisation.ranks).max(1)
    }

    /// The command that brings the rank whose refresh is due nearer to it.
    fn for_refresh(&self) -> Option<(Command, DdrLocation)> {
        let number = *self.due.front()?;
        let rank = &self.ranks[number as usize];
        let rank_only = DdrLocation { rank: number, ..DdrLocation::default() };
        let allowed = |command, location: &DdrLocation| {
            rank.allows_from(command, rank.bank_of(location)) <= self.now
        };
        if !rank.has_open_row() {
            let command = Command::Refresh;
            return allowed(command, &rank_only).then_some((command, rank_only));
        }
        if !self.rules.closes_one_by_one {
            let command = Command::PrechargeAll;
            return allowed(command, &rank_only).then_some((command, rank_only));
        }
        let organisation = &self.config.organisation;
        let banks = (0..organisation.bank_groups * organisation.banks).map(|i| {
            let (group, bank) = (i / organisation.banks, i % organisation.banks);
            DdrLocation { group, bank, ..rank_only }
        });
        let mut open = banks.filter(|at| rank.open_row(rank.bank_of(at)).is_some());
        Some((Command::Precharge, open.find(|at| allowed(Command::Precharge, at))?))
    }

    /// The next command for a burst, of which bank, and of which of its bursts.
    fn for_bursts(&self) -> Option<(usize, usize, Command)> {
        if self.in_banks == 0 {
            return None;
        }
        let count = self.banks.len();
        let turns = (1..=count).map(|step| (self.turn + step) % count);
        let mut allowed = turns.filter_map(|bank| self.of_bank(bank));
        if self.rules.takes_turns {
            return allowed.next();
        }
        allowed.min_by_key(|(bank, at, command)| (!command.is_column(), self.banks[*bank][*at].age))
    }

    /// The next command for a burst of a bank.
    fn of_bank(&self, bank: usize) -> Option<(usize, usize, Command)> {
        let waiting = &self.banks[bank];
        if self.due.front() == Some(&waiting.first()?.location.rank) {
            return None;
        }
        if !self.holds_writes() {
            return (0..waiting.len()).find_map(|at| Some((bank, at, self.allowed(waiting, at)?)));
        }
        let is_read = |at: &usize| waiting[*at].access == Access::Read;
        let places: Vec<usize> = (0..waiting.len()).filter(is_read).collect();
        let reads: Vec<Waiting> = places.iter().map(|at| waiting[*at]).collect();
        (0..reads.len()).find_map(|at| Some((bank, places[at], self.allowed(&reads, at)?)))
    }

    /// Whether writes that are in banks' queues have to wait for reads.
    fn holds_writes(&self) -> bool {
        self.rules.reads_first && self.draining == 0 && self.reads_in_banks > 0
    }

    /// The command that a burst of a bank needs, if it is allowed now.
    fn allowed(&self, waiting: &[Waiting], at: usize) -> Option<Command> {
        let Waiting { burst, location, bank, access, .. } = waiting[at];
        let (rank, timing) = (&self.ranks[location.rank as usize], &self.config.timing);
        let open = rank.open_row(bank);
        let command = rank.next_command(bank, location.row, access);
        let mut from = rank.allows_from(command, bank);
        if command.is_column() {
            from = from.max(self.bus.allows_from(location.rank, access, timing));
        }
        let may_come = match command {
            Command::Precharge => {
                let is_wanted = open
                    .is_some_and(|row| waiting.iter().any(|one| one.location.row == row.number));
                at == 0 && (!is_wanted || open.is_some_and(|row| row.uses >= ROW_USES))
            }
            Command::Write => {
                let reads = |one: &Waiting| one.access == Access::Read && one.burst == burst;
                !waiting[..at].iter().any(reads)
            }
            _ => true,
        };
        (may_come && from <= self.now).then_some(command)
    }

    fn issue(&mut self, command: Command, location: DdrLocation) {
        let rank = &mut self.ranks[location.rank as usize];
        rank.note(command, &location, self.now, &self.config.timing);
        self.commands.push(Issued { at: self.now, command, location });
        if command == Command::Refresh {
            self.due.pop_front();
        }
    }

    /// Takes a burst whose data is on its way out of its bank's queue.
    fn finish(&mut self, bank: usize, at: usize) {
        let Waiting { burst, location, access, .. } = self.banks[bank].remove(at);
        self.in_banks -= 1;
        self.reads_in_banks -= usize::from(access == Access::Read);
        let end = self.bus.note(self.now, location.rank, access, &self.config.timing);
        match access {
            Access::Write => {
                self.unwritten.remove(&burst);
            }
            Access::Read => {
                let together = self.unanswered.remove(&burst).unwrap_or_default();
                self.answered.extend(together.into_iter().map(|taken| Answered { taken, at: end }));
            }
        }
    }

    /// Moves a burst into its bank's queue.
    fn move_one(&mut self) {
        let writes = self.writes.len();
        let is_full = writes as u64 >= self.config.queued(Access::Write);
        if self.draining == 0 && (is_full || writes > self.rules.writes_left && self.in_banks == 0)
        {
            self.draining = writes;
        }
        let is_draining = self.draining > 0;
        let (banks, bank_queue) = (&self.banks, self.rules.bank_queue);
        let queue = if is_draining { &mut self.writes } else { &mut self.reads };
        let has_room = |one: &Waiting| banks[one.bank.of_channel].len() < bank_queue;
        let Some(at) = queue.iter().position(has_room) else { return };
        if is_draining && self.unanswered.contains_key(&queue[at].burst) {
            self.draining = 0;
            return;
        }
        let moved = queue.remove(at);
        self.draining -= usize::from(is_draining);
        self.banks[moved.bank.of_channel].push(moved);
        self.in_banks += 1;
        self.reads_in_banks += usize::from(!is_draining);
    }
}
