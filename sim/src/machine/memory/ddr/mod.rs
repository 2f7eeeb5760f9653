//! DDR memory by banks: row buffers, the timing of JEDEC's standards, refresh, a scheduler.
//!
//! In reading order:
//!
//! - [`timing`]: the parameters by their names in JESD79-3F (DDR3) and JESD79-4 (DDR4), presets;
//! - [`config`]: channels, ranks, banks, queues; the clock ratio;
//! - [`mapping`]: which bits of an address name what;
//! - [`command`]: what goes over the command bus;
//! - `rank`: when a command is allowed, and what it forbids afterwards;
//! - `transaction`, `queue`: bursts, and where they wait, by banks;
//! - [`scheduler`]: which request is served next, one short file for each policy;
//! - `bus`: when the data bus is free;
//! - `channel`: the queues, and the next command of a channel;
//! - [`per_bank`]: a channel under DRAMsim3's policy, for comparisons.
//!
//! Nothing ticks. A channel computes the clock of its next command from its state, so idle time
//! costs nothing, and a request costs as many steps as it needs commands.

mod bus;
mod channel;
pub mod command;
pub mod config;
pub mod mapping;
pub mod per_bank;
mod queue;
mod rank;
pub mod scheduler;
pub mod timing;
mod transaction;

pub use command::{Command, Issued};
pub use config::{ClockRatio, DdrConfig, Organisation};
pub use scheduler::Scheduler;
pub use timing::Timing;

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::answers::Answers;
use super::{Completion, MAX_REQUEST_BYTES, Memory, Refused, Request, Traffic};
use crate::machine::{Access, ConfigError, Cycle};
use channel::Channel;
use transaction::{Arrival, Finished};

/// A clock of the memory, from 0: the unit of JEDEC's nCK.
pub type Clock = u64;

/// What the banks did. Of requests that took several bursts, each burst counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DdrStatistics {
    /// Bursts whose row was open.
    pub row_hits: u64,
    /// Bursts whose bank was closed.
    pub row_misses: u64,
    /// Bursts for which another row had to be closed.
    pub row_conflicts: u64,
    /// Bursts that were read from the write queue, without the bus.
    pub forwarded_reads: u64,
    /// Refreshes, each of one rank.
    pub refreshes: u64,
    /// Clocks in which a data bus moved something, all channels together.
    pub bus_busy_clocks: u64,
}

/// The memory at work.
#[derive(Clone, Debug)]
pub struct Ddr {
    config: DdrConfig,
    channels: Vec<Channel>,
    answers: Answers,
    /// Requests of several bursts, by order: the bursts that are missing and the last one's clock.
    parts: HashMap<u64, (u64, Clock)>,
    finished: Vec<Finished>,
    traffic: Traffic,
    now: Cycle,
    /// Up to here no channel has a command to issue: what is asked for most cycles of a run.
    quiet_until: Cycle,
    /// When the next command happens for a request, at the earliest.
    next_command: Option<Cycle>,
}

impl Ddr {
    /// An idle memory, all banks closed.
    ///
    /// # Errors
    /// A number is impossible; the parameter is named.
    pub fn new(config: DdrConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Ddr {
            channels: (0..config.organisation.channels).map(|_| Channel::new(&config)).collect(),
            config,
            answers: Answers::default(),
            parts: HashMap::new(),
            finished: Vec::new(),
            traffic: Traffic::default(),
            now: 0,
            quiet_until: 0,
            next_command: None,
        })
    }

    /// What the banks of all channels did.
    #[must_use]
    pub fn statistics(&self) -> DdrStatistics {
        let mut sum = DdrStatistics::default();
        for one in self.channels.iter().map(|channel| &channel.statistics) {
            sum.row_hits += one.row_hits;
            sum.row_misses += one.row_misses;
            sum.row_conflicts += one.row_conflicts;
            sum.forwarded_reads += one.forwarded_reads;
            sum.refreshes += one.refreshes;
            sum.bus_busy_clocks += one.bus_busy_clocks;
        }
        sum
    }

    /// The largest request that it takes: what fits into a channel's queue, read or written,
    /// wherever it begins.
    #[must_use]
    pub fn most_request_bytes(&self) -> u32 {
        let fewest = self.config.queued(Access::Read).min(self.config.queued(Access::Write));
        MAX_REQUEST_BYTES.min((fewest * self.config.organisation.burst_bytes) as u32)
    }

    /// Keeps every command from now on, for checks of the protocol.
    pub fn record_commands(&mut self) {
        for channel in &mut self.channels {
            channel.record.get_or_insert_default();
        }
    }

    /// The recorded commands of a channel, oldest first.
    #[must_use]
    pub fn commands(&self, channel: u64) -> &[Issued] {
        let channel = usize::try_from(channel).ok().and_then(|i| self.channels.get(i));
        channel.and_then(|channel| channel.record.as_deref()).unwrap_or_default()
    }

    /// Lets every command happen that is due before this cycle.
    fn pass_time(&mut self, now: Cycle) {
        self.now = self.now.max(now);
        if self.now <= self.quiet_until {
            return;
        }
        let clock = self.config.ratio.clock_from(self.now);
        for channel in &mut self.channels {
            channel.run_until(clock, &mut self.finished);
        }
        self.settle();
        self.look_ahead();
    }

    /// Notes when the next command comes, as far as it is known.
    fn look_ahead(&mut self) {
        let ratio = self.config.ratio;
        let commands = self.channels.iter().filter_map(Channel::next_for_a_request).min();
        // A command happens once time has passed it, and answers come later than commands.
        self.next_command = commands.map(|clock| ratio.cycle_of(clock + 1));
        let planned = self.channels.iter().map(|channel| channel.next_planned().unwrap_or(0)).min();
        self.quiet_until = planned.map_or(0, |clock| ratio.cycle_of(clock).saturating_sub(1));
    }

    /// Turns bursts that ended into answers, once all of a request have.
    fn settle(&mut self) {
        for Finished { order, id, at } in self.finished.drain(..) {
            let end = match self.parts.get_mut(&order) {
                None => at,
                Some((missing, last)) => {
                    *missing -= 1;
                    *last = at.max(*last);
                    let last = *last;
                    if *missing > 0 {
                        continue;
                    }
                    self.parts.remove(&order);
                    last
                }
            };
            self.answers.enter(self.config.ratio.cycle_of(end), order, id);
        }
    }

    /// The numbers of a request's bursts. Beyond the last address there is nothing.
    fn bursts(&self, request: &Request) -> RangeInclusive<u64> {
        let bytes = self.config.organisation.burst_bytes;
        let last = request.address.saturating_add(u64::from(request.size_bytes).max(1) - 1);
        request.address / bytes..=last / bytes
    }

    /// Whether every channel has room for its part of a request of several bursts.
    fn has_room(&self, bursts: RangeInclusive<u64>, access: Access) -> bool {
        let mut wanted = vec![0; self.channels.len()];
        for burst in bursts {
            wanted[self.config.location(burst).channel as usize] += 1;
        }
        self.channels.iter().zip(wanted).all(|(channel, wanted)| wanted <= channel.room(access))
    }
}

impl Memory for Ddr {
    fn send(&mut self, now: Cycle, request: Request) -> Result<(), Refused> {
        let bursts = self.bursts(&request);
        let count = bursts.end() - bursts.start() + 1;
        let burst_bytes = self.config.organisation.burst_bytes;
        let most = MAX_REQUEST_BYTES.min((self.config.queued(request.access) * burst_bytes) as u32);
        if request.size_bytes > most || count > self.config.queued(request.access) {
            return Err(Refused::TooLarge { size_bytes: request.size_bytes, most });
        }
        self.pass_time(now);
        let first = self.config.location(*bursts.start());
        let has_room = match count {
            1 => self.channels[first.channel as usize].room(request.access) > 0,
            _ => self.has_room(bursts.clone(), request.access),
        };
        if !has_room {
            return Err(Refused::Full);
        }
        let order = self.answers.next_order();
        if count > 1 {
            self.parts.insert(order, (count, 0));
        }
        self.traffic.count_request(&request);
        let at = self.config.ratio.clock_from(self.now);
        let Request { id, access, .. } = request;
        for burst in bursts.clone() {
            let is_first = burst == *bursts.start();
            let location = if is_first { first } else { self.config.location(burst) };
            let arrival = Arrival { order, id, burst, location, access, at };
            let channel = &mut self.channels[location.channel as usize];
            if channel.enqueue(arrival, &mut self.finished) {
                self.traffic.count_bytes(request.content, access, burst_bytes);
            }
        }
        self.settle();
        self.look_ahead();
        Ok(())
    }

    fn advance(&mut self, now: Cycle, answered: &mut Vec<Completion>) {
        self.pass_time(now);
        self.answers.take(self.now, answered);
    }

    fn next_event(&self) -> Option<Cycle> {
        let command = self.next_command.map(|cycle| cycle.max(self.now + 1));
        self.answers.next().into_iter().chain(command).min()
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}
