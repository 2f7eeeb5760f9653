//! The index of a folder of results: a row for each, with the columns that people quote.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::compare::{BASELINE, Baselines};
use super::table::Table;
use super::tree::{columns, flatten, part};

/// A result and the folder that has it.
pub type Found = (String, Value);

/// Counters that are quoted.
const COUNTERS: [&str; 3] =
    ["statistics.instructions", "statistics.cycles", "statistics.last_level.reads"];

/// What is quoted of a mix.
const MIXED: [&str; 3] = ["mix.weighted_speedup", "mix.harmonic_mean_speedup", "mix.fairness"];

/// The index: each result's folder, trace, scheme, the keys in which configurations differ,
/// counters, ratios, and its overhead over the same run without protection; of a sampled run, how far
/// its CPI and its overhead may be off.
#[must_use]
pub fn index(found: &[Found]) -> Table {
    let baselines = Baselines::of(found.iter().map(|(_, result)| result));
    let mut names = vec!["trace.name".to_owned(), "scheme".to_owned()];
    names.extend(differing_keys(found));
    names.extend(COUNTERS.map(str::to_owned));
    let row = |(folder, result): &Found| {
        let of_result =
            |name: &String| (name.clone(), part(result, name).cloned().unwrap_or_default());
        let is_compared = result["scheme"] != BASELINE;
        let overhead = is_compared.then(|| baselines.overhead(result)).flatten();
        let mut row = vec![("folder".to_owned(), json!(folder))];
        row.extend(names.iter().map(of_result));
        row.push(("overhead".to_owned(), json!(overhead.map(|overhead| overhead.mean))));
        row.extend(columns(&json!({"derived": result["derived"]})));
        if result["sampling"].is_object() {
            let (windows, cpi) = (&result["sampling"]["windows"], &result["sampling"]["cpi"]);
            let unseen = &result["sampling"]["unseen"];
            let quoted = json!({"cpi": cpi, "unseen": unseen, "windows": windows});
            row.extend(columns(&json!({ "sampling": quoted })));
            let half_width = overhead.and_then(|overhead| overhead.half_width);
            row.push(("overhead_half_width".to_owned(), json!(half_width)));
        }
        row.extend(
            MIXED.map(str::to_owned).iter().map(of_result).filter(|(_, value)| !value.is_null()),
        );
        row.push(of_result(&"trace_ended".to_owned()));
        row
    };
    Table::of_rows(found.iter().map(row))
}

/// The keys of configurations that have more than one value, but for the scheme.
fn differing_keys(found: &[Found]) -> Vec<String> {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, result) in found {
        for (name, value) in flatten(&result["config"]) {
            values.entry(name).or_default().insert(value.to_string());
        }
    }
    let differing =
        values.into_iter().filter(|(name, values)| values.len() > 1 && name != "run.scheme");
    differing.map(|(name, _)| format!("config.{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str, scheme: &str, size: u64, cycles: u64) -> Found {
        let counted = json!({"instructions": 100, "cycles": cycles, "last_level": {"reads": 7}});
        let result = json!({
            "scheme": scheme, "trace": {"name": "t"}, "trace_ended": false,
            "config": {"l2": {"size_bytes": size}, "run": {"scheme": scheme, "seed": 1}},
            "derived": {"ipc": 0.5}, "statistics": counted,
        });
        (folder.to_owned(), result)
    }

    #[test]
    fn a_row_has_what_differs_and_its_overhead() {
        let table = index(&[
            found("a", "none", 64, 200),
            found("b", "aise+bmt", 64, 250),
            found("c", "aise+bmt", 128, 300),
        ]);
        // By hand: 250 / 200 - 1; nothing of 128 bytes runs without protection.
        assert_eq!(
            table.csv(),
            "folder,trace.name,scheme,config.l2.size_bytes,statistics.instructions,\
             statistics.cycles,statistics.last_level.reads,overhead,derived.ipc,\
             trace_ended\n\
             a,t,none,64,100,200,7,,0.5,false\n\
             b,t,aise+bmt,64,100,250,7,0.25,0.5,false\n\
             c,t,aise+bmt,128,100,300,7,,0.5,false\n"
        );
    }

    #[test]
    fn equal_configurations_need_no_column() {
        let table = index(&[found("a", "none", 64, 200), found("b", "aise+bmt", 64, 250)]);
        assert!(table.columns.iter().all(|column| !column.name.starts_with("config.")));
        assert_eq!(index(&[]).rows, 0);
    }
}
