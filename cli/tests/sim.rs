//! `casemate sim` and `casemate plot` from outside.

mod common;

use casemate_schemes::catalogue::SCHEMES;
use common::run as casemate;
use common::sim::{files, json, sim, traces};
use serde_json::Value;
use std::fs;

#[test]
fn a_comparison_is_printed_and_written_and_the_same_every_time() {
    let folder = traces("compare");
    let (near, far) = (folder.arg("near.casetrace"), folder.arg("far.casetrace"));
    let arguments = [
        "--trace", &near, "--trace", &far, "--scheme", "none", "--warmup", "1000", "--every",
        "30000",
    ];
    let run = sim(&[&arguments[..], &["-o", &folder.arg("a")]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 3, "{}", run.stdout);
    for words in ["trace", "scheme", "cycles", "IPC", "overhead", "LLC misses", "metadata"] {
        assert!(
            run.stdout.lines().next().is_some_and(|line| line.contains(words)),
            "{}",
            run.stdout
        );
    }
    let run = sim(&[&arguments[..], &["-o", &folder.arg("b"), "--jobs", "1"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (a, b) = (files(&folder.path("a")), files(&folder.path("b")));
    // Two runs of six files, two tables of both as CSV and as Parquet, and the tables' lock.
    assert_eq!(a.len(), 17, "{:?}", a.iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert!(a == b, "the same inputs give the same bytes");
}

#[test]
fn every_scheme_that_attack_knows_is_simulated() {
    let folder = traces("schemes");
    let trace = folder.arg("far.casetrace");
    for preset in ["aise-bmt", "delta-ecc"] {
        let small = ["--set", "memory.size_bytes=64M", "--set", "l2.size_bytes=64K"];
        let report = json(&sim(&[
            &["--preset", preset, "--scheme", "all", "--json", "--trace", &trace][..],
            &small,
        ]
        .concat()));
        let runs = report["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), SCHEMES.len(), "{}", report["failures"]);
        for run in runs {
            let (scheme, statistics) = (run["scheme"].as_str(), &run["result"]["statistics"]);
            let protected = !statistics["protection"].is_null();
            assert_eq!(protected, scheme != Some("none"), "{run}");
            if protected {
                assert_eq!(run["baseline"], "none");
                // Protection takes time; only reordering in DRAM may give a little of it back.
                let overhead = run["overhead"].as_f64().expect("a number");
                assert!(overhead > -0.01, "{scheme:?}: {overhead}");
            } else {
                assert!(run["baseline"].is_null() && run["overhead"].is_null(), "{run}");
            }
            assert!(
                !protected || statistics["protection"]["reads"].as_u64() > Some(1000),
                "{statistics}"
            );
            assert_eq!(statistics["instructions"], runs[0]["result"]["statistics"]["instructions"]);
        }
    }
}

#[test]
fn a_resolved_configuration_gives_the_same_result_again() {
    let folder = traces("again");
    let trace = folder.arg("far.casetrace");
    let first = [
        "--preset",
        "lhash",
        "--set",
        "l2.size_bytes=256K",
        "--scheme",
        "none",
        "--length",
        "20000",
    ];
    let run = sim(&[&first[..], &["--trace", &trace, "-o", &folder.arg("a")]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let config =
        files(&folder.path("a")).into_iter().find(|(name, _)| name.ends_with("config.toml"));
    let config = folder.path("a").join(config.expect("it is written").0).display().to_string();
    let run = sim(&["--config", &config, "--trace", &trace, "-o", &folder.arg("b")]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(files(&folder.path("a")) == files(&folder.path("b")));
}

#[test]
fn what_is_computed_is_not_computed_again() {
    let folder = traces("resume");
    let (near, far, out) =
        (folder.arg("near.casetrace"), folder.arg("far.casetrace"), folder.arg("out"));
    let sizes = [
        "--scheme",
        "none",
        "--set",
        "l2.size_bytes=256K,1M",
        "-o",
        &out,
        "--json",
        "--trace",
        &near,
    ];
    let reused = |report: &Value| {
        let runs = report["runs"].as_array().expect("runs").clone();
        runs.iter().map(|run| run["reused"].as_bool().expect("a flag")).collect::<Vec<_>>()
    };
    let first = json(&sim(&sizes));
    assert_eq!(reused(&first), [false, false]);
    // As if it had been killed before the second result was whole.
    let second = first["runs"][1]["folder"].as_str().expect("a folder").to_owned();
    fs::remove_file(format!("{second}/result.json")).expect("it was written");
    let again = json(&sim(&sizes));
    assert_eq!(reused(&again), [true, false]);
    assert_eq!(again["runs"][1]["result"], first["runs"][1]["result"]);
    // Another trace beside, another length, another value: all are computed, and what is there
    // stays.
    let more = json(&sim(&[&sizes[..], &["--trace", &far]].concat()));
    assert_eq!(reused(&more), [true, true, false, false]);
    assert_eq!(reused(&json(&sim(&[&sizes[..], &["--length", "5000"]].concat()))), [false, false]);
    assert_eq!(reused(&json(&sim(&[&sizes[..], &["--force"]].concat()))), [false, false]);
}

#[test]
fn sets_go_over_files_and_files_over_presets() {
    let folder = traces("layers");
    let (trace, config) = (folder.arg("near.casetrace"), folder.arg("my.toml"));
    fs::write(&config, "[core]\nissue_width = 2\ncommit_width = 2\n[run]\nscheme = \"none\"\n")
        .expect("ours");
    let of = |more: &[&str]| {
        let report =
            json(&sim(&[&["--trace", &trace, "--json", "--config", &config], more].concat()));
        report["runs"][0]["result"]["config"].clone()
    };
    let file = of(&[]);
    assert_eq!((&file["core"]["issue_width"], &file["core"]["cores"]), (&2.into(), &1.into()));
    let set = of(&["--set", "core.issue_width=4", "--seed", "9"]);
    assert_eq!((&set["core"]["issue_width"], &set["core"]["commit_width"]), (&4.into(), &2.into()));
    assert_eq!(set["run"]["seed"], 9);
}

#[test]
fn traces_of_other_tools_are_recognised() {
    let folder = traces("foreign");
    let (own, foreign) = (folder.arg("far.casetrace"), folder.arg("far.ramulator-o3"));
    let report = json(&sim(&["--scheme", "none", "--json", "--trace", &own, "--trace", &foreign]));
    let statistics = |i: usize| &report["runs"][i]["result"]["statistics"];
    assert_eq!(statistics(0), statistics(1));
    assert_eq!(report["runs"][1]["result"]["trace"]["format"], "ramulator-o3");
}

#[test]
fn mistakes_are_one_sentence_and_a_documented_code() {
    let folder = traces("mistakes");
    let (trace, far) = (folder.arg("near.casetrace"), folder.arg("far.casetrace"));
    let bytes = fs::read(folder.path("near.casetrace")).expect("it was written");
    let cut = folder.arg("cut.casetrace");
    fs::write(&cut, &bytes[..bytes.len() * 2 / 3]).expect("the folder is ours");
    let damaged = folder.arg("damaged.casetrace");
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    fs::write(&damaged, changed).expect("the folder is ours");
    let config = folder.arg("bad.toml");
    fs::write(&config, "[l2]\nsiez_bytes = 1\n").expect("the folder is ours");
    let with = |more: &[&'static str]| [&["--trace", "TRACE"], more].concat();
    for (arguments, code, words) in [
        (with(&["--set", "l2.size_bytes=12Q"]), 125, "12Q"),
        (with(&["--set", "l2.size_byte=1M"]), 125, "did you mean l2.size_bytes?"),
        (with(&["--set", "memory.kind=dddr"]), 125, "did you mean ddr?"),
        (with(&["--set", "core.order=in-ordr"]), 125, "did you mean in-order?"),
        (with(&["--set", "memory.ddr.standard=ddr4-240"]), 125, "did you mean ddr4-2400?"),
        (with(&["--set", "protection.counters.held_in=ownn"]), 125, "did you mean own?"),
        (with(&["--set", "l2.replacement=lrru"]), 125, "(did you mean lru?)"),
        (with(&["--set", "l2.size_bytes"]), 125, "="),
        (with(&["--set", "l2.size_bytes=100000"]), 125, "l2.size_bytes"),
        (with(&["--scheme", "aise+btm"]), 125, "did you mean aise+bmt?"),
        (with(&["--scheme", "none/bmt"]), 125, "none/bmt"),
        (with(&["--scheme", "none", "--set", "run.scheme=mac"]), 125, "what --scheme says"),
        (with(&["--length", "9", "--set", "run.length_instructions=8"]), 125, "--length says"),
        (with(&["--preset", "lhahs"]), 125, "did you mean lhash?"),
        (with(&["--config", "CONFIG"]), 125, "l2.siez_bytes"),
        (with(&["--config", "NONE"]), 1, "cannot be read"),
        (with(&["--jobs", "0"]), 125, "--jobs"),
        (with(&["--force"]), 125, "--out"),
        (with(&["--scheme", "none", "--warmup", "99999999"]), 1, "run.warmup_instructions"),
        (
            vec!["--trace", "FAR", "--scheme", "none", "--set", "memory.size_bytes=1M"],
            1,
            "memory.size_bytes",
        ),
        (vec![], 125, "--trace"),
        (vec!["--trace", "NONE", "--scheme", "none"], 1, "cannot be opened"),
        (vec!["--trace", "CUT", "--scheme", "none"], 1, "--salvage"),
        (vec!["--trace", "DAMAGED", "--scheme", "none"], 1, "byte "),
        (vec!["--trace", "CONFIG", "--scheme", "none"], 1, "no Casemate trace"),
        (vec!["--scheme", "none", "--", "/nowhere/program"], 1, "/nowhere/program"),
    ] {
        let none = folder.arg("none");
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|word| match *word {
                "TRACE" => trace.as_str(),
                "FAR" => far.as_str(),
                "CUT" => cut.as_str(),
                "DAMAGED" => damaged.as_str(),
                "CONFIG" => config.as_str(),
                "NONE" => none.as_str(),
                other => other,
            })
            .collect();
        let run = sim(&arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_broken_trace_does_not_take_others_results_with_it() {
    let folder = traces("partly");
    let bytes = fs::read(folder.path("near.casetrace")).expect("it was written");
    let (own, damaged) = (folder.arg("far.casetrace"), folder.arg("damaged.casetrace"));
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    fs::write(&damaged, changed).expect("the folder is ours");
    let run = sim(&["--scheme", "none", "--json", "--trace", &damaged, "--trace", &own]);
    assert_eq!(run.code, 1);
    let report: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(1), "{report}");
    assert!(
        report["failures"][0].as_str().is_some_and(|f| f.contains("damaged")),
        "{}",
        report["failures"]
    );
}

#[test]
fn a_trace_that_cannot_be_read_is_one_sentence_that_names_it_once() {
    let folder = traces("once");
    let (empty, own) = (folder.arg("empty.champsim"), folder.arg("near.casetrace"));
    fs::write(&empty, "").expect("the folder is ours");
    for arguments in [
        &["sim", "--scheme", "none,mac", "--trace", &empty][..],
        &["trace", "info", &folder.0.display().to_string()],
        &["sim", "--trace", &folder.0.display().to_string()],
        &["sim", "--trace", &own, "--config", &folder.0.display().to_string()],
    ] {
        let run = casemate(arguments);
        assert_eq!((run.code, run.stderr.lines().count()), (1, 1), "{}", run.stderr);
        let name = arguments.last().expect("there are some");
        assert_eq!(run.stderr.matches(name).count(), 1, "{}", run.stderr);
        assert!(run.stderr.matches("os error").count() < 2, "{}", run.stderr);
    }
}

#[test]
fn what_is_asked_for_twice_runs_once() {
    let folder = traces("twice");
    let near = folder.arg("near.casetrace");
    let again = folder.0.join(".").join("near.casetrace").display().to_string();
    let report = json(&sim(&[
        &["--trace", &near, "--trace", &again, "--scheme", "none,mac,none", "--json"][..],
        &["--set", "l2.size_bytes=1M,256K,1024K", "--set", "core.cores=1"],
    ]
    .concat()));
    let runs = report["runs"].as_array().expect("runs").iter();
    let runs: Vec<_> =
        runs.map(|run| (run["scheme"].as_str(), run["varied"]["l2.size_bytes"].as_str())).collect();
    let [large, small] = [Some("1048576"), Some("262144")];
    let [none, mac] = [Some("none"), Some("mac")];
    assert_eq!(runs, [(none, large), (mac, large), (none, small), (mac, small)]);
    assert_eq!(report["runs"][0]["result"]["config"]["core"]["cores"], 1);
}

#[test]
fn the_list_names_all_presets_schemes_and_keys() {
    let list = json(&sim(&["--list", "--json"]));
    let folder = traces("list");
    let report =
        json(&sim(&["--scheme", "none", "--json", "--trace", &folder.arg("near.casetrace")]));
    let mut names = Vec::new();
    let mut left = vec![(String::new(), report["runs"][0]["result"]["config"].clone())];
    while let Some((name, value)) = left.pop() {
        match value {
            Value::Object(members) => {
                let below = |key: &str| {
                    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
                };
                left.extend(members.iter().map(|(key, value)| (below(key), value.clone())));
            }
            _ => names.push(name),
        }
    }
    names.sort();
    let listed = |part: &str, key: &str| -> Vec<String> {
        let all = list[part].as_array().expect("a list").iter();
        all.map(|entry| entry[key].as_str().expect("a name").to_owned()).collect()
    };
    let mut keys = listed("keys", "key");
    keys.sort();
    assert_eq!(keys, names);
    let text = sim(&["--list"]).stdout;
    for name in listed("presets", "name").iter().chain(&listed("schemes", "name")) {
        assert!(text.contains(name), "{name}");
    }
    for key in list["keys"].as_array().expect("a list") {
        let meaning = key["meaning"].as_str().expect("a sentence");
        assert!(meaning.len() > 5 && text.contains(meaning), "{key}");
        assert!(
            !key["value"].is_null() && key["type"].as_str().is_some_and(|t| t.len() > 5),
            "{key}"
        );
    }
}

#[test]
fn a_program_is_simulated_while_it_runs() {
    let run = sim(&["--scheme", "none", "--length", "50000", "--json", "--", "/bin/echo", "hello"]);
    if run.code != 0 && std::env::var_os("CASEMATE_INSTALLED").is_none() {
        eprintln!("SKIPPED: {}", run.stderr);
        return;
    }
    assert_eq!(run.code, 0, "{}", run.stderr);
    let at = run.stdout.find('{').expect("a report");
    let report: Value = serde_json::from_str(&run.stdout[at..]).expect("one JSON object");
    let result = &report["runs"][0]["result"];
    assert_eq!(result["statistics"]["instructions"], 50_000, "{result}");
    assert_eq!(
        (&result["trace"]["name"], &result["inputs_blake3"]),
        (&"echo".into(), &Value::Null)
    );
}

#[test]
fn results_are_drawn_as_svg_and_png() {
    let folder = traces("plot");
    let (near, far, out) =
        (folder.arg("near.casetrace"), folder.arg("far.casetrace"), folder.arg("out"));
    let run = sim(&[
        "--scheme",
        "none",
        "--trace",
        &near,
        "--trace",
        &far,
        "--set",
        "l2.size_bytes=256K,512K,1M",
        "--every",
        "20000",
        "-o",
        &out,
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for (arguments, file) in [
        (&["--value", "ipc", "--series", "l2.size_bytes"][..], "bars.svg"),
        (
            &["--value", "cycles", "--by", "l2.size_bytes", "--series", "trace", "--kind", "lines"],
            "lines.png",
        ),
        (&["--value", "ipc", "--series", "l2.size_bytes"], "bars.pdf"),
    ] {
        let file = folder.arg(file);
        let run = casemate(&[&["plot", &out, "-o", &file], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let bytes = fs::read(&file).expect("it was drawn");
        let again = casemate(&[&["plot", &out, "-o", &file], arguments].concat());
        assert_eq!((again.code, fs::read(&file).expect("it was drawn") == bytes), (0, true));
        if file.ends_with("svg") {
            let text = String::from_utf8(bytes).expect("it is text");
            for words in ["near", "far", "262144", "instructions in a cycle"] {
                assert!(text.contains(words), "{words}");
            }
        } else {
            let start: &[u8] = if file.ends_with("pdf") { b"%PDF-" } else { b"\x89PNG\r\n\x1a\n" };
            assert!(bytes.starts_with(start) && bytes.len() > 5000, "{}", bytes.len());
        }
    }
    // Samples of one run are drawn without saying more.
    let runs = fs::read_dir(&out).expect("the results").map(|entry| entry.expect("one").path());
    let one = runs.into_iter().find(|run| run.join("result.json").is_file()).expect("a run");
    let file = folder.arg("samples.svg");
    let run = casemate(&["plot", &one.display().to_string(), "--kind", "lines", "-o", &file]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(fs::read_to_string(&file).expect("it was drawn").contains("instructions in a cycle"));
    for (arguments, code, words) in [
        (&["plot", &out, "-o", "plot.gif"][..], 125, ".svg"),
        (&["plot", &out, "--value", "ipx"], 1, "did you mean ipc?"),
        (&["plot", &out, "--series", "trac"], 1, "did you mean trace?"),
        (&["plot", &out, "--value", "overhed"], 1, "did you mean overhead?"),
        (&["plot", &out, "--value", "ipc"], 1, "--series"),
        (&["plot", &folder.arg("none")], 1, "none"),
        (&["plot", &near], 1, "no result"),
        (&["plot"], 125, "RESULTS"),
    ] {
        let run = casemate(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}

/// Two programs and one of them once more: the command says each one's speed in the mix and alone,
/// keeps the result, and finds it again.
#[test]
fn a_mix_is_compared_with_each_program_alone() {
    let folder = traces("mix");
    let (near, far, results) =
        (folder.arg("near.casetrace"), folder.arg("far.casetrace"), folder.arg("results"));
    let mix = format!("{near},{far},{near}");
    let arguments =
        ["--mix", &mix, "--scheme", "none,aise+bmt", "--length", "20000", "-o", &results];
    let small = ["--set", "l2.size_bytes=256K"];
    let run = sim(&[&arguments[..], &small].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    for words in ["near+far+near", "IPC alone", "IPC in the mix", "1 far", "weighted speedup"] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    let report = json(&sim(&[&arguments[..], &small, &["--json"]].concat()));
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(run["reused"], true, "{run}");
        let mix = &run["result"]["mix"];
        let numbers = |name: &str| -> Vec<f64> {
            let list = mix[name].as_array().expect("a list");
            list.iter().map(|number| number.as_f64().expect("a number")).collect()
        };
        let (ipc, alone, speedup) = (numbers("ipc"), numbers("alone_ipc"), numbers("speedup"));
        assert_eq!((speedup.len(), alone[0]), (3, alone[2]));
        for program in 0..3 {
            assert!((ipc[program] / alone[program] - speedup[program]).abs() < 1e-9, "{mix}");
        }
        let sum = mix["weighted_speedup"].as_f64().expect("a number");
        assert!((speedup.iter().sum::<f64>() - sum).abs() < 1e-9, "{mix}");
        assert!(sum > 0.5 && sum < 3.1, "{mix}");
        assert_eq!(run["result"]["config"]["core"]["cores"], 3);
    }
    let index = fs::read_to_string(folder.path("results/runs.csv")).expect("the index");
    assert!(index.lines().next().is_some_and(|line| line.contains("mix.weighted_speedup")));
}

#[test]
fn what_makes_no_mix_is_refused() {
    let folder = traces("no-mix");
    let (near, own) = (folder.arg("near.ramulator-o3"), folder.arg("near.casetrace"));
    let bytes = fs::read(folder.path("near.casetrace")).expect("it is there");
    fs::write(folder.path("half.casetrace"), &bytes[..bytes.len() / 2]).expect("it is ours");
    let text = fs::read_to_string(folder.path("near.ramulator-o3")).expect("it is there");
    fs::write(folder.path("bad.ramulator-o3"), text + "3 x\n").expect("it is ours");
    let (half, bad) = (folder.arg("half.casetrace"), folder.arg("bad.ramulator-o3"));
    let missing = folder.arg("missing.casetrace");
    let eight_and_one = [own.as_str(); 9].join(",");
    for (mix, more, code, words) in [
        (format!("{own},{missing}"), &[][..], 1, "missing.casetrace: the trace cannot be opened"),
        (format!("{own},{half}"), &[], 1, "half.casetrace: byte"),
        (format!("{near},{bad}"), &["--from", "ramulator-o3"], 1, "bad.ramulator-o3: line"),
        (eight_and_one, &[], 125, "1 to 8 programs, a core for each; here are 9"),
        (own.clone(), &["--set", "core.cores=2"], 125, "leave it out"),
        (own.clone(), &["--set", "run.sample_windows=2"], 125, "leave run.sample_windows out"),
        (own.clone(), &["--sample", "3"], 125, "cannot be used with"),
        (own.clone(), &["--trace", &own], 125, "cannot be used with"),
    ] {
        let run = sim(&[&["--mix", &mix][..], more].concat());
        assert_eq!(run.code, code, "{mix} {more:?}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{mix} {more:?}: {}", run.stderr);
    }
}

#[test]
fn a_configuration_without_an_end_is_read_no_further() {
    let run = sim(&["--config", "/dev/zero", "--trace", "x"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("/dev/zero: the configuration cannot be read"), "{}", run.stderr);
    assert!(run.stderr.contains("larger than 1 MiB"), "{}", run.stderr);
}
