//! A stream through a DDR memory: one request a clock at most, in their order, each as soon as it
//! is due and the queue has room.

use super::energy::CommandCounts;
use super::sequence::Sequence;
use super::stream::TimedRequest;
use crate::machine::memory::ddr::{Clock, Ddr, DdrConfig};
use crate::machine::memory::{Completion, Memory, Refused, Request};
use crate::machine::{Access, ConfigError, Content};

/// What came of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// From a read's acceptance to its last data.
    pub reads: Latencies,
    /// Clocks in which requests that were due waited for room in the queue, all together.
    pub waited_clocks: Clock,
    /// Commands of all channels.
    pub commands: CommandCounts,
    /// What their order shows.
    pub sequence: Sequence,
    /// Reads that were answered from the write queue.
    pub forwarded_reads: u64,
    /// Requests that were answered in the clocks that were asked for.
    pub answered: u64,
    /// The clock of the last answer.
    pub last_clock: Clock,
    /// Clocks that were simulated.
    pub clocks: Clock,
    /// Bytes that went over the buses.
    pub bytes: u64,
}

/// Latencies in clocks, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies(Vec<Clock>);

impl Latencies {
    /// Of latencies in any order.
    #[must_use]
    pub fn new(mut clocks: Vec<Clock>) -> Self {
        clocks.sort_unstable();
        Latencies(clocks)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their mean, in clocks; 0 of none.
    #[must_use]
    pub fn mean_clocks(&self) -> f64 {
        self.0.iter().sum::<Clock>() as f64 / self.0.len().max(1) as f64
    }

    /// The least latency that `share` of all (0 to 1) do not exceed, in clocks; 0 of none.
    #[must_use]
    pub fn percentile_clocks(&self, share: f64) -> Clock {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).or(self.0.last()).copied().unwrap_or(0)
    }
}

/// Sends `requests` to a memory, and lets it run until they are answered, and until clock `until`
/// at least. Cycles of `config` are to be clocks.
///
/// # Errors
/// A number of the configuration is impossible.
pub fn replay<'a>(
    config: &DdrConfig,
    controller_clocks: Clock,
    requests: impl IntoIterator<Item = &'a TimedRequest>,
    until: Clock,
) -> Result<Replay, ConfigError> {
    let requests = requests.into_iter();
    let mut memory = Ddr::new(*config)?;
    memory.record_commands();
    let accepted = Vec::with_capacity(requests.size_hint().0);
    let mut run = Run { memory, accepted, reads: Vec::new(), until, answered: 0, last: 0 };
    let (mut free_from, mut waited_clocks) = (0, 0);
    for (request, id) in requests.zip(0..) {
        let due = free_from.max(request.clock);
        let at = run.send(id, request, due, config.organisation.burst_bytes);
        waited_clocks += at - due;
        free_from = at + 1;
    }
    run.finish();
    let Run { memory, mut reads, answered, last, .. } = run;
    reads.iter_mut().for_each(|latency| *latency += controller_clocks);
    let clocks = until.max(last + 1);
    let channels = 0..config.organisation.channels;
    let counts =
        channels.map(|i| CommandCounts::of(memory.commands(i), &config.organisation, clocks));
    let sequences = (0..config.organisation.channels)
        .map(|i| Sequence::of(memory.commands(i), &config.organisation));
    Ok(Replay {
        reads: Latencies::new(reads),
        waited_clocks,
        commands: counts.fold(CommandCounts::default(), CommandCounts::plus),
        sequence: sequences.fold(Sequence::default(), Sequence::plus),
        forwarded_reads: memory.statistics().forwarded_reads,
        answered,
        last_clock: last,
        clocks,
        bytes: memory.traffic().bytes(),
    })
}

/// A memory at work, and what is known of its requests.
struct Run {
    memory: Ddr,
    /// When each request was accepted, and whether it reads.
    accepted: Vec<(Clock, bool)>,
    reads: Vec<Clock>,
    /// The end of the clocks that were asked for.
    until: Clock,
    answered: u64,
    last: Clock,
}

impl Run {
    /// Sends a request at `due`, or as soon as there is room. Returns when that was.
    fn send(&mut self, id: u64, request: &TimedRequest, due: Clock, burst_bytes: u64) -> Clock {
        let asked = Request {
            id,
            // The first byte of the burst, so that it is one burst.
            address: request.address / burst_bytes * burst_bytes,
            size_bytes: 1,
            access: request.access,
            content: Content::Data,
        };
        let mut at = due;
        while self.memory.send(at, asked) == Err(Refused::Full) {
            at += 1;
            self.advance(at);
        }
        self.accepted.push((at, request.access == Access::Read));
        self.advance(at);
        at
    }

    fn advance(&mut self, to: Clock) {
        let mut answered = Vec::new();
        self.memory.advance(to, &mut answered);
        for Completion { id, at } in answered {
            let (accepted, is_read) = self.accepted[id as usize];
            if is_read {
                self.reads.push(at - accepted);
            }
            self.answered += u64::from(at < self.until);
            self.last = self.last.max(at);
        }
    }

    fn finish(&mut self) {
        while let Some(next) = self.memory.next_event() {
            self.advance(next);
        }
        self.advance(self.until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::preset::Preset;

    fn read(address: u64, clock: Clock) -> TimedRequest {
        TimedRequest { address, access: Access::Read, clock }
    }

    /// DDR3-1600K by hand: tRCD 11, CL 11 and a burst of 4 for the first, CL and a burst for the
    /// second in the same row, tRP more for another row of the bank (tRAS is over by then).
    #[test]
    fn latencies_are_those_of_a_hand_count() {
        let preset = Preset::find("ddr3-1600").expect("it exists");
        let config = preset.config().expect("it is possible");
        let other_row = 8192 * 8;
        let stream = [read(0, 0), read(64, 100), read(other_row, 200)];
        let replay = replay(&config, 3, &stream, 1000).expect("it runs");
        assert_eq!(replay.reads.0, [15 + 3, 26 + 3, 37 + 3]);
        assert_eq!((replay.waited_clocks, replay.last_clock, replay.clocks), (0, 237, 1000));
        assert_eq!(replay.bytes, 3 * 64);
        assert_eq!(replay.reads.percentile_clocks(0.5), 29);
        assert_eq!(replay.reads.percentile_clocks(0.99), 40);
        assert_eq!(replay.reads.mean_clocks(), 29.0);
        // Open from the first activation to the end, but for the 11 clocks of the precharge.
        assert_eq!((replay.commands.active_clocks, replay.commands.idle_clocks), (989, 11));
    }

    #[test]
    fn requests_wait_for_room_in_their_order() {
        let preset = Preset::find("ddr3-1600").expect("it exists");
        let mut config = preset.config().expect("it is possible");
        config.read_queue = 1;
        let replay = replay(&config, 0, &[read(0, 0), read(64, 1)], 0).expect("it runs");
        // The first leaves the queue with its column command at 11; clocks before 12 are waited.
        assert_eq!(replay.waited_clocks, 11);
        assert_eq!(replay.reads.0, [18, 26]);
    }
}
