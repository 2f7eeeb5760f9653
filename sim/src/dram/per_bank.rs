//! A stream through our timing under DRAMsim3's policy: a difference that is gone then is one of
//! policy, and one that is left is one of timing.

use super::energy::CommandCounts;
use super::replay::{Latencies, Replay};
use super::sequence::Sequence;
use super::stream::TimedRequest;
use crate::machine::ConfigError;
use crate::machine::memory::ddr::per_bank::{Answered, PerBank, Rules};
use crate::machine::memory::ddr::{Clock, Command, DdrConfig};

/// Sends `requests` to a channel, for so many clocks. A request that is due at a clock is taken
/// after it, one a clock at most.
///
/// # Errors
/// A number of the configuration is impossible.
pub fn replay_per_bank(
    config: &DdrConfig,
    rules: Rules,
    requests: &[TimedRequest],
    clocks: Clock,
) -> Result<Replay, ConfigError> {
    let mut channel = PerBank::new(*config, rules)?;
    let mut waiting = requests.iter().peekable();
    let (mut free_from, mut waited_clocks) = (0, 0);
    while channel.now() < clocks {
        if let Some(request) = waiting.peek() {
            let due = free_from.max(request.clock + 1);
            if due <= channel.now() && channel.has_room(request.access) {
                channel.take(request.address / config.organisation.burst_bytes, request.access);
                waited_clocks += channel.now() - due;
                free_from = channel.now() + 1;
                waiting.next();
            }
        }
        channel.tick();
        let next = waiting.peek().map_or(clocks, |request| request.clock + 1);
        channel.skip_until(next.min(clocks));
    }
    Ok(outcome(config, &channel, waited_clocks))
}

fn outcome(config: &DdrConfig, channel: &PerBank, waited_clocks: Clock) -> Replay {
    let clocks = channel.now();
    let in_time = || channel.answered().iter().filter(|one| one.at < clocks);
    let reads = Latencies::new(in_time().map(|Answered { taken, at }| at - taken).collect());
    let commands = CommandCounts::of(channel.commands(), &config.organisation, clocks);
    let read_commands = channel.commands().iter().filter(|one| one.command == Command::Read);
    Replay {
        waited_clocks,
        sequence: Sequence::of(channel.commands(), &config.organisation),
        forwarded_reads: (reads.count() as u64).saturating_sub(read_commands.count() as u64),
        answered: reads.count() as u64 + channel.writes_taken(),
        last_clock: in_time().map(|one| one.at).max().unwrap_or(0),
        clocks,
        bytes: (commands.reads + commands.writes) * config.organisation.burst_bytes,
        reads,
        commands,
    }
}
