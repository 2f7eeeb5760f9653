//! The table that people read.

use std::fmt::Write;

use super::measure::System;
use super::numbers::Spread;
use super::profile;
use super::results::{Results, Row};
use super::targets;
use super::timer::Phase;
use crate::size;

const SYSTEMS: [(System, &str); 4] = [
    (System::Plain, "plain Linux"),
    (System::Floor, "floor"),
    (System::Casemate, "casemate"),
    (System::Zram, "zram"),
];
const PHASES: [(Phase, &str); 6] = [
    (Phase::FirstWrite, "first write"),
    (Phase::SequentialRead, "sequential read"),
    (Phase::ReverseRead, "downwards"),
    (Phase::StridedRead, "every 8th page"),
    (Phase::RandomRead, "random read"),
    (Phase::RandomModify, "random load + store"),
];
/// Width of a cell with median and spread.
const CELL: usize = 21;

/// All of it.
pub fn table(results: &Results) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Pager: {} through {} (the Clear; for zram the cgroup's limit), 4 KiB pages, {} runs.\n\
         {}.\n\
         Microseconds a thread spends per access to a page: median (least-greatest).",
        size::format(results.region_bytes),
        size::format(results.clear_bytes),
        results.runs,
        results.machine
    );
    for threads in [1, 2] {
        if results.rows.iter().any(|row| row.threads == threads) {
            grid(&mut text, results, threads);
        }
    }
    legend(&mut text, results);
    profile::table(&mut text, &results.profile);
    fits(&mut text, results);
    crypto(&mut text, results);
    targets_and_trust(&mut text, results);
    for note in &results.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

fn grid(text: &mut String, results: &Results, threads: usize) {
    let label = if threads == 1 { "one thread" } else { "two threads" };
    let _ = write!(text, "\n{label:<22}");
    let systems: Vec<_> = SYSTEMS
        .iter()
        .filter(|(system, _)| results.rows.iter().any(|row| row.system == *system))
        .collect();
    for (_, name) in &systems {
        let _ = write!(text, "{name:>CELL$}");
    }
    let _ = writeln!(text, "{:>9}{:>8}", "/floor", "/zram");
    for (phase, name) in PHASES {
        let random = matches!(phase, Phase::RandomRead | Phase::RandomModify);
        line(text, results, threads, phase, name, &|row| {
            // The floor has misses only.
            (!(random && row.system == System::Floor)).then_some(row.us_per_access)
        });
        if random {
            line(text, results, threads, phase, "  per miss", &|row| row.us_per_miss);
        }
    }
}

fn line(
    text: &mut String,
    results: &Results,
    threads: usize,
    phase: Phase,
    name: &str,
    pick: &dyn Fn(&Row) -> Option<Spread>,
) {
    let value = |system: System| results.row(system, threads, phase).and_then(pick);
    let _ = write!(text, "{name:<22}");
    for (system, _) in SYSTEMS {
        if results.rows.iter().any(|row| row.system == system) {
            let shown = value(system).map_or_else(|| "-".to_owned(), |spread| spread.show());
            let _ = write!(text, "{shown:>CELL$}");
        }
    }
    let ratio = |other: System| match (value(System::Casemate), value(other)) {
        (Some(casemate), Some(other)) => format!("{:.2}x", casemate.median / other.median),
        _ => "-".to_owned(),
    };
    let _ = writeln!(text, "{:>9}{:>8}", ratio(System::Floor), ratio(System::Zram));
}

fn legend(text: &mut String, results: &Results) {
    if results.rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nPage contents: {}.", results.content);
    if let (Some(algorithm), Some(compression)) =
        (&results.zram_algorithm, results.zram_compression)
    {
        let _ = writeln!(text, "zram: unencrypted, {algorithm}, compressed {compression:.2} to 1.");
    }
    let shares: Vec<String> = [System::Casemate, System::Zram]
        .into_iter()
        .filter_map(|system| {
            let row = results.row(system, 1, Phase::RandomRead)?;
            Some(format!("{system:?} {:.0} %", row.miss_rate * 100.0).to_lowercase())
        })
        .collect();
    if !shares.is_empty() {
        let _ = writeln!(text, "Random accesses that miss: {}.", shares.join(", "));
    }
    let _ = writeln!(
        text,
        "Floor: a handler process on the same processor copies a ready page; no cryptography, no \
         eviction."
    );
}

fn fits(text: &mut String, results: &Results) {
    let Some(fits) = &results.fits else { return };
    let [low, middle, high] = [fits.work_ratio.low, fits.work_ratio.median, fits.work_ratio.high]
        .map(|ratio| (ratio - 1.0) * 100.0);
    let [[plain, casemate], [plain_start, casemate_start]] = [fits.work_s, fits.start_and_end_ms];
    let _ = writeln!(
        text,
        "\nA program that fits the Clear, {} pairs   plain            casemate\n\
         \x20 its work, seconds        {:>22}{:>22}   {middle:+.2} % ({low:+.2} to {high:+.2})\n\
         \x20 to start and end, ms     {:>22}{:>22}",
        fits.work_ratio.count,
        plain.show(),
        casemate.show(),
        plain_start.show(),
        casemate_start.show()
    );
}

fn crypto(text: &mut String, results: &Results) {
    let Some(crypto) = &results.crypto else { return };
    let _ = writeln!(
        text,
        "\nPage crypto, microseconds per page       seal      open\n\
         \x20 engine, record and tree walk included {:>6.3}    {:>6.3}\n\
         \x20 AES-256-GCM alone (aws-lc-rs)         {:>6.3}    {:>6.3}\n\
         \x20 lookup alone, random among 4 GiB                {:>6.3}\n\
         \x20 the same by a log hash                          {:>6.3}\n\
         \x20 a check of that log hash, milliseconds          {:>6.1}",
        crypto.engine_seal_us.median,
        crypto.engine_open_us.median,
        crypto.plain_seal_us.median,
        crypto.plain_open_us.median,
        crypto.cold_lookup_us.median,
        crypto.cold_lookup_logged_us.median,
        crypto.check_ms.median
    );
}

fn targets_and_trust(text: &mut String, results: &Results) {
    if results.targets.is_empty() {
        return;
    }
    text.push_str("\nTargets\n");
    text.push_str(&targets::list(&results.targets));
    if let Some(bytes) = results.trusted_bytes.filter(|bytes| *bytes > 0) {
        let _ = writeln!(text, "  Trusted state of the keeper: {}.", size::format(bytes));
    }
}
