//! Programs of mixes beside each other.

use casemate_sim::experiment::session::Entry;
use casemate_sim::results::mix::Mix;
use serde::Deserialize;

use super::table::aligned;

/// A table of the programs of each mix, and what they do to each other; empty without mixes.
pub fn text(entries: &[Entry]) -> String {
    let mixes: Vec<(&Entry, Mix)> =
        entries.iter().filter_map(|entry| Some((entry, of(entry)?))).collect();
    let Some((first, _)) = mixes.first() else { return String::new() };
    let mut header: Vec<String> =
        first.configuration.varied.iter().map(|(key, _)| key.clone()).collect();
    header.extend(["scheme", "program"].map(str::to_owned));
    let names = header.len();
    let numbers = ["instructions", "IPC alone", "IPC in the mix", "speedup"];
    header.extend(numbers.map(str::to_owned));
    let mut rows = vec![header];
    let mut sentences = String::new();
    for (entry, mix) in &mixes {
        rows.extend((0..mix.programs.len()).filter_map(|number| row(entry, mix, number)));
        let Mix { weighted_speedup, harmonic_mean_speedup, fairness, .. } = mix;
        sentences += &format!(
            "{}: weighted speedup {weighted_speedup:.3} of {}, harmonic mean {harmonic_mean_speedup:.3}, fairness {fairness:.3}\n",
            named(entry).join(" "),
            mix.programs.len()
        );
    }
    format!("\n{}{sentences}", aligned(&rows, names))
}

fn of(entry: &Entry) -> Option<Mix> {
    Mix::deserialize(&entry.result.as_ref()?["mix"]).ok()
}

/// What tells a configuration from the others.
fn named(entry: &Entry) -> Vec<String> {
    let mut cells: Vec<String> =
        entry.configuration.varied.iter().map(|(_, value)| value.clone()).collect();
    cells.push(entry.configuration.scheme().to_owned());
    cells
}

fn row(entry: &Entry, mix: &Mix, number: usize) -> Option<Vec<String>> {
    let mut cells = named(entry);
    cells.push(format!("{} {}", number, mix.programs.get(number)?));
    cells.push(mix.instructions.get(number)?.to_string());
    for ratios in [&mix.alone_ipc, &mix.ipc, &mix.speedup] {
        cells.push(format!("{:.3}", ratios.get(number)?));
    }
    Some(cells)
}
