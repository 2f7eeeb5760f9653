//! `casemate attack --scheme`, `casemate storage`, `casemate seeds` and `casemate bench schemes`
//! from outside.

mod common;

use common::run as casemate;
use serde_json::Value;

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON object")
}

#[test]
fn a_part_of_the_matrix_comes_out_as_promised() {
    let run = casemate(&["attack", "--scheme", "aise+bmt", "--attack", "roll-back", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let report = json_of(&run.stdout);
    assert_eq!(report["kept"], true);
    let cell = &report["cells"][0];
    assert_eq!(
        (cell["promise"].as_str(), cell["undetected"].as_u64()),
        (Some("detected"), Some(0))
    );
    assert!(cell["detected"].as_u64() > Some(0), "{cell}");
    assert!(cell["operations"].as_u64() >= Some(10_000), "{cell}");
}

#[test]
fn what_a_paper_admits_is_shown_with_its_reason() {
    let run =
        casemate(&["attack", "--scheme", "mac", "--attack", "replay-data-mac", "--rounds", "500"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("mac  U"), "{run:?}");
    assert!(run.stdout.contains("U: LHash 4.1.2"), "{run:?}");
}

/// A cell says how many strikes its letter stands on, and one without any says why.
#[test]
fn strikes_are_counted_and_what_is_not_attacked_has_its_reason() {
    let run = casemate(&["attack", "--scheme=delta+bmt", "--attack=flip-node", "--rounds=1"]);
    assert!(run.code == 0 && run.stdout.contains("delta+bmt  D  8 strikes"), "{run:?}");
    let run = casemate(&["attack", "--scheme=mac", "--rounds=1", "--json"]);
    let report = json_of(&run.stdout);
    let cells = report["cells"].as_array().expect("a list");
    let cell = |attack: &str| cells.iter().find(|cell| cell["attack"] == attack).expect("a cell");
    let node = cell("flip-node");
    assert_eq!((&node["letter"], &node["strikes"]), (&"-".into(), &0.into()));
    assert_eq!((&node["because"], &node["kept"]), (&"there is no tree".into(), &true.into()));
    let lost = cell("drop-writes");
    assert_eq!((&lost["letter"], &lost["strikes_needed"]), (&"U".into(), &8.into()));
    assert!(lost["strikes"].as_u64() >= Some(8), "{lost}");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let run = |seed| {
        let seed = format!("--seed={seed}");
        casemate(&["attack", "--scheme=none", "--rounds=400", &seed, "--json"]).stdout
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn unknown_names_are_told_what_there_is() {
    for (flag, name) in [("--scheme", "aise+bmt"), ("--attack", "roll-back")] {
        let other = if flag == "--attack" { vec!["--scheme", "all"] } else { vec![] };
        let run = casemate(&[&["attack", flag, "nonsense"], &other[..]].concat());
        assert_eq!(run.code, 125, "{run:?}");
        assert!(run.stderr.contains("nonsense") && run.stderr.contains(name), "{run:?}");
    }
}

#[test]
fn live_runs_and_schemes_do_not_mix() {
    let run = casemate(&["attack", "--pid", "1", "--kind", "flip", "--scheme", "all"]);
    assert_eq!(run.code, 125, "{run:?}");
    assert_eq!(casemate(&["attack", "--pid", "1"]).code, 125);
    assert_eq!(casemate(&["attack", "--kind", "flip"]).code, 125);
}

#[test]
fn without_a_name_all_schemes_are_attacked() {
    let named =
        casemate(&["attack", "--scheme", "all", "--attack", "flip-data", "--rounds", "300"]);
    let not_named = casemate(&["attack", "--attack", "flip-data", "--rounds", "300"]);
    assert_eq!((named.code, &named.stdout), (not_named.code, &not_named.stdout), "{not_named:?}");
    assert!(not_named.stdout.contains("aise+bmt"), "{not_named:?}");
}

#[test]
fn storage_prints_the_papers_figures_and_ours() {
    let run = casemate(&["storage", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let report = json_of(&run.stdout);
    let figures = report["figures"].as_array().expect("a list");
    let all = figures.iter().find(|f| f["what"] == "128-bit MAC, AISE+BMT: all").expect("Table 2");
    assert_eq!(all["paper"], 21.55);
    assert!((all["counted"].as_f64().expect("a number") - 21.553).abs() < 0.001, "{all}");
    for figure in figures {
        let explained = figure["assumption"].is_string();
        assert_ne!(figure["agrees"].as_bool(), Some(explained), "{figure}");
    }
    assert!(casemate(&["storage"]).stdout.contains("33.51 / 33.51"));
}

#[test]
fn the_bench_measures_hits_that_fetch_no_metadata_and_misses_that_do() {
    let run = casemate(&["bench", "schemes", "--only=mac,aise+bmt-gmac", "--runs=1", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let report = json_of(&run.stdout);
    let [mac, default] = &report["schemes"].as_array().expect("a list")[..] else {
        panic!("two were asked for: {report}")
    };
    assert!(mac["read_miss_ns"].is_null() && mac["lines_per_read_miss"].is_null(), "{mac}");
    // A counter line and some of its path, of five levels.
    let lines = default["lines_per_read_miss"].as_f64().expect("a number");
    assert!(lines > 1.0 && lines <= 6.0, "{default}");
    assert_eq!(default["lines_per_read_hit"], 0.0, "{default}");
    for field in ["read_hit_ns", "write_hit_ns", "read_miss_ns", "write_miss_ns"] {
        assert!(default[field]["median"].as_f64() > Some(0.0), "{default}");
    }
    assert!(report["bare"]["open_ns"]["median"].as_f64() > Some(0.0), "{report}");
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(2), "{report}");
}

#[test]
fn the_bench_tells_which_schemes_there_are() {
    let run = casemate(&["bench", "schemes", "--only=nonsense"]);
    assert_eq!(run.code, 125, "{run:?}");
    assert!(run.stderr.contains("nonsense") && run.stderr.contains("aise+bmt-gmac"), "{run:?}");
}

#[test]
fn seeds_are_held_to_the_papers_table() {
    let run = casemate(&["seeds", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let report = json_of(&run.stdout);
    assert_eq!(report["agrees"], true);
    let rows = report["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 6);
    let service = |row: &Value, name: &str| {
        let services = row["services"].as_array().expect("a list");
        services.iter().find(|cell| cell["service"] == name).expect("a service").clone()
    };
    let aise = rows.iter().find(|row| row["paper"]["column"] == "AISE").expect("a row");
    for cell in aise["services"].as_array().expect("a list") {
        assert_eq!(
            (cell["holds"].as_bool(), cell["pads_used_twice"].as_u64()),
            (Some(true), Some(0))
        );
        assert_eq!(cell["reencrypted_blocks"], 0, "{cell}");
    }
    for row in rows {
        let ipc = service(row, "IPC")["holds"] == true;
        assert_eq!(row["paper"]["ipc_support"] == "Yes", ipc, "{row}");
        let swap = service(row, "swap")["reencrypted_blocks"].as_u64();
        assert_eq!(row["paper"]["other_issues"] == "Re-enc on page swap", swap > Some(0), "{row}");
    }
    let text = casemate(&["seeds"]).stdout;
    assert!(text.contains("no, refused") && text.contains("Re-enc on page swap"), "{text}");
}

#[test]
fn parts_that_go_together_have_a_name() {
    let run = casemate(&["attack", "--scheme", "virtual/bmt", "--attack", "flip-data", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(json_of(&run.stdout)["cells"][0]["scheme"], "virtual/bmt");
    let run = casemate(&["attack", "--scheme", "direct/bmt"]);
    assert_eq!(run.code, 125, "{run:?}");
    assert!(run.stderr.contains("direct/bmt") && run.stderr.contains("has none"), "{run:?}");
    let run = casemate(&["attack", "--scheme", "aise/bnt"]);
    assert!(run.stderr.contains("process-virtual") && run.stderr.contains("h-lhash"), "{run:?}");
}

#[test]
fn what_a_fault_costs_is_counted_for_any_size_of_memory() {
    let run = casemate(&["storage", "--pages", "1M,1T", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    let memories = report["memories"].as_array().expect("memories");
    // By hand in pages/tests/fault_costs.rs: 35 lines and a page come in cold, with a MAC for each.
    let read = &memories[0]["read"]["cold"];
    assert_eq!([&read["lines_fetched"], &read["macs"]], [35.0, 36.0]);
    assert_eq!(read["bytes_moved"], 35.0 * 128.0 + 4096.0);
    assert_eq!(memories[1]["pages"], 1_u64 << 28);
    let table = casemate(&["storage", "--pages", "1G", "--node-cache", "1M"]).stdout;
    assert!(table.contains("1 GiB: 262144 pages") && table.contains("goes out, cold"), "{table}");
    for (args, words) in [
        (&["--pages", "1E"][..], "--pages"),
        (&["--pages", "512T", "--node-cache", "1K"], "choose 16K to 1G"),
        (&["--pages", "12Q"], "12Q"),
        (&["--node-cache", "1M"], "--pages"),
    ] {
        let run = casemate(&[&["storage"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (125, ""), "{args:?}");
        assert!(run.stderr.contains(words), "{args:?}: {}", run.stderr);
    }
}
