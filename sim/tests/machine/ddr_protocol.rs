//! Every command of a DDR memory against the standard, by looking at all pairs of commands.

use casemate_sim::machine::memory::ddr::{
    Command, DdrConfig, Issued, Organisation, Scheduler, Timing,
};
use casemate_sim::machine::memory::{Completion, Ddr, Memory, Request};
use casemate_sim::machine::{Access, Content};
use proptest::prelude::*;

/// The least distance of two commands of a channel, the first of which came earlier.
fn least_distance(first: &Issued, second: &Issued, timing: &Timing) -> u64 {
    use Command::{Activate, Precharge, PrechargeAll, Read, Refresh, Write};
    let (a, b) = (&first.location, &second.location);
    if a.rank != b.rank {
        return 1;
    }
    let of_rank = |command| matches!(command, PrechargeAll | Refresh);
    let same_group = a.group == b.group;
    let touches =
        (same_group && a.bank == b.bank) || of_rank(first.command) || of_rank(second.command);
    let by = |short, long| if same_group { long } else { short };
    let written = timing.cwl + timing.burst;
    match (first.command, second.command) {
        (Activate, Activate) if touches => timing.t_ras + timing.t_rp,
        (Activate, Activate) => by(timing.t_rrd_s, timing.t_rrd_l),
        (Activate, Read | Write) if touches => timing.t_rcd,
        (Activate, Precharge | PrechargeAll) if touches => timing.t_ras,
        (Precharge | PrechargeAll, Activate | Refresh) if touches => timing.t_rp,
        (Read, Read) | (Write, Write) => by(timing.t_ccd_s, timing.t_ccd_l),
        (Read, Write) => timing.cl + timing.burst + timing.turnaround - timing.cwl,
        (Write, Read) => written + by(timing.t_wtr_s, timing.t_wtr_l),
        (Read, Precharge | PrechargeAll) if touches => timing.t_rtp,
        (Write, Precharge | PrechargeAll) if touches => written + timing.t_wr,
        (Refresh, _) => timing.t_rfc,
        _ => 1,
    }
}

/// What is wrong with a sequence of commands, as a sentence.
fn violation(commands: &[Issued], organisation: &Organisation, timing: &Timing) -> Option<String> {
    for (i, second) in commands.iter().enumerate() {
        for first in &commands[..i] {
            let least = least_distance(first, second, timing);
            if second.at < first.at + least {
                return Some(format!("{first:?} and {second:?} are not {least} apart"));
            }
        }
    }
    let of = |rank| commands.iter().filter(move |issued| issued.location.rank == rank);
    for rank in 0..organisation.ranks {
        let activations: Vec<_> = of(rank).filter(|i| i.command == Command::Activate).collect();
        if let Some(five) =
            activations.windows(5).find(|five| five[4].at < five[0].at + timing.t_faw)
        {
            return Some(format!("five activations within tFAW: {five:?}"));
        }
        let due = |i| (i + 1) * timing.t_refi + rank * timing.t_refi / organisation.ranks;
        let end = commands.last().map_or(0, |issued| issued.at);
        let found =
            unopened(&mut of(rank)).or_else(|| unrefreshed(&mut of(rank), due, end, timing));
        if found.is_some() {
            return found;
        }
    }
    colliding_data(commands, timing)
}

/// Commands that do not go with the state of their bank.
fn unopened(commands: &mut dyn Iterator<Item = &Issued>) -> Option<String> {
    let mut open = std::collections::BTreeMap::new();
    for issued in commands {
        let bank = (issued.location.group, issued.location.bank);
        let fits = match issued.command {
            Command::Activate => open.insert(bank, issued.location.row).is_none(),
            Command::Precharge => open.remove(&bank).is_some(),
            Command::PrechargeAll => {
                open.clear();
                true
            }
            Command::Read | Command::Write => open.get(&bank) == Some(&issued.location.row),
            Command::Refresh => open.is_empty(),
        };
        if !fits {
            return Some(format!("{issued:?} does not fit the bank's state"));
        }
    }
    None
}

/// Refreshes of rank `rank` that do not come when they are due: every interval, the ranks in turns,
/// each late by no more than closing the rank takes. `end` is the clock of the channel's last
/// command.
fn unrefreshed(
    commands: &mut dyn Iterator<Item = &Issued>,
    due: impl Fn(u64) -> u64,
    end: u64,
    timing: &Timing,
) -> Option<String> {
    let at: Vec<_> = commands.filter(|i| i.command == Command::Refresh).map(|i| i.at).collect();
    let row = timing.t_ras.max(timing.t_rcd + timing.cwl + timing.burst + timing.t_wr);
    // Another rank may have the command bus in one clock for PREA and in one for REF.
    let late = row + timing.t_rp + 2;
    for (i, &at) in at.iter().enumerate() {
        if !(due(i as u64)..=due(i as u64) + late).contains(&at) {
            return Some(format!("refresh {i} is at {at}, and due at {}", due(i as u64)));
        }
    }
    let missing = due(at.len() as u64);
    (end > missing + late).then(|| format!("no refresh at {missing}"))
}

/// Data that finds the bus busy, or turning round.
fn colliding_data(commands: &[Issued], timing: &Timing) -> Option<String> {
    let mut last: Option<(u64, &Issued)> = None;
    for issued in commands.iter().filter(|issued| issued.command.is_column()) {
        let latency = if issued.command == Command::Read { timing.cl } else { timing.cwl };
        let start = issued.at + latency;
        if let Some((end, before)) = last {
            let turns =
                before.command != issued.command || before.location.rank != issued.location.rank;
            if start < end + if turns { timing.turnaround } else { 0 } {
                return Some(format!("data of {before:?} and {issued:?} collide"));
            }
        }
        last = Some((start + timing.burst, issued));
    }
    None
}

/// A defect of a memory.
type Change = fn(&mut Timing);

/// Requests: cycles since the last one, block, whether it is a write.
type Traffic = Vec<(u64, u64, bool)>;

fn traffic() -> impl Strategy<Value = Traffic> {
    // Rarely a pause, so that refreshes meet both idle and busy ranks.
    let gap = prop_oneof![6 => 0..4u64, 3 => 0..80u64, 1 => 0..3000u64];
    // Few rows, columns, ranks and banks, so that all distances are tried.
    let block = (0..3u64, 0..64u64, 0..3u64)
        .prop_map(|(row, bank, column)| (row * 64 + bank) * 128 + column);
    prop::collection::vec((gap, block, any::<bool>()), 1..250)
}

fn configurations(timing: impl Fn(Timing) -> Timing) -> Vec<DdrConfig> {
    let presets = [DdrConfig::ddr3_1600(1, 800), DdrConfig::ddr4_2400(1, 1200)];
    let mut all = Vec::new();
    for preset in presets {
        let mut config = preset.expect("valid");
        config.organisation.ranks = 2;
        config.timing = timing(config.timing);
        all.push(config);
        config.scheduler = Scheduler::Fcfs;
        all.push(config);
    }
    all
}

/// Sends everything; the memory at its end, and the answers.
fn run(config: DdrConfig, traffic: &Traffic, step: u64) -> (Ddr, Vec<Completion>) {
    let mut memory = Ddr::new(config).expect("valid");
    memory.record_commands();
    let (mut now, mut answered) = (0, Vec::new());
    for (id, &(gap, block, is_write)) in traffic.iter().enumerate() {
        for _ in 0..gap {
            now += 1;
            if now % step == 0 {
                memory.advance(now, &mut answered);
            }
        }
        let access = if is_write { Access::Write } else { Access::Read };
        let (id, address) = (id as u64, block * 64);
        let request = Request { id, address, size_bytes: 64, access, content: Content::Data };
        while memory.send(now, request).is_err() {
            now += 1;
        }
    }
    while let Some(next) = memory.next_event() {
        now = now.max(next);
        memory.advance(now, &mut answered);
    }
    (memory, answered)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_command_keeps_its_distance(traffic in traffic()) {
        for config in configurations(|timing| timing) {
            let (memory, answered) = run(config, &traffic, u64::MAX);
            let mut ids: Vec<_> = answered.iter().map(|completion| completion.id).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..traffic.len() as u64).collect::<Vec<_>>());
            prop_assert!(answered.is_sorted_by_key(|completion| completion.at));
            let found = violation(memory.commands(0), &config.organisation, &config.timing);
            prop_assert_eq!(found, None, "{:?}", config.scheduler);
        }
    }

    /// However often the memory is advanced, answers and commands are the same.
    #[test]
    fn steps_do_not_matter(traffic in traffic(), step in 1..50u64) {
        for config in configurations(|timing| timing) {
            let (one, other) = (run(config, &traffic, step), run(config, &traffic, u64::MAX));
            prop_assert_eq!(one.1, other.1);
            prop_assert_eq!(one.0.commands(0), other.0.commands(0));
        }
    }
}

/// A memory that is one clock too early anywhere, or refreshes too rarely, is caught. tCCD_S is as
/// long as a burst, so the data bus keeps it too.
#[test]
fn a_clock_too_few_is_caught() {
    let early: [(&str, Change); 14] = [
        ("tRCD", |t| t.t_rcd -= 1),
        ("tRP", |t| t.t_rp -= 1),
        ("tRAS", |t| t.t_ras -= 1),
        ("tRRD_S", |t| t.t_rrd_s -= 1),
        ("tRRD_L", |t| t.t_rrd_l -= 1),
        ("tFAW", |t| t.t_faw -= 1),
        ("tCCD_L", |t| t.t_ccd_l -= 1),
        ("tWTR_S", |t| t.t_wtr_s -= 1),
        ("tWTR_L", |t| t.t_wtr_l -= 1),
        ("tWR", |t| t.t_wr -= 1),
        ("tRTP", |t| t.t_rtp -= 1),
        ("tRFC", |t| t.t_rfc -= 1),
        ("turnaround", |t| t.turnaround -= 1),
        ("tREFI", |t| t.t_refi *= 2),
    ];
    let traffic = busy_traffic();
    for (name, change) in early {
        let config = DdrConfig::ddr4_2400(1, 1200).expect("valid");
        let mut broken = config;
        broken.organisation.ranks = 2;
        change(&mut broken.timing);
        let (memory, _) = run(broken, &traffic, u64::MAX);
        let found = violation(memory.commands(0), &broken.organisation, &config.timing);
        assert!(found.is_some(), "{name} is not kept, and no check notices");
    }
}

/// Requests for three refresh intervals, by a linear congruential generator.
fn busy_traffic() -> Traffic {
    let mut state = 1u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let request = |_| {
        let block = (next(3) * 64 + next(64)) * 128 + next(3);
        (if next(4) == 0 { next(100) } else { 0 }, block, next(2) == 0)
    };
    (0..1500).map(request).collect()
}
