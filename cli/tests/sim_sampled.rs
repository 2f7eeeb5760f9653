//! Sampled runs of `casemate sim` from outside: windows that are spread, as many as it takes, or
//! chosen.

mod common;

use common::sim::{files, json, sim, traces};
use common::{Folder, run as casemate};
use serde_json::Value;
use std::fs;

/// The configuration in a run's folder gives the same bytes again.
fn comes_again(folder: &Folder, trace: &str, place: &str) {
    let (again, config) = (folder.arg("again"), format!("{place}/config.toml"));
    let run = sim(&["--trace", trace, "--config", &config, "-o", &again]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let name = std::path::Path::new(place).file_name().expect("a folder");
    assert!(files(place.as_ref()) == files(&folder.path("again").join(name)));
}

/// Windows of 1000 of the far trace's 80,000 instructions: a row for each, their intervals beside
/// them, and the same bytes from the configuration that is written beside.
#[test]
fn a_sample_has_its_intervals_beside_it_and_comes_again_from_its_configuration() {
    let folder = traces("sample");
    let (trace, out) = (folder.arg("far.casetrace"), folder.arg("out"));
    let both = ["--trace", &trace, "--scheme", "none,aise+bmt"];
    let sample = ["--sample", "12", "--window", "1000", "-o", &out];
    let detail = ["--set", "run.sample_warmup_instructions=1000"];
    let run = sim(&[&both[..], &sample[..], &detail[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("12 windows of 80") && run.stdout.contains(" ±"), "{}", run.stdout);
    let one = sim(&[&both[..], &["--sample", "1", "--window", "1000"], &detail].concat());
    assert!(one.stdout.contains("of 1 window of 80; of one window no"), "{}", one.stdout);
    let report = json(&sim(&[&both[..], &sample[..], &detail[..], &["--json"]].concat()));
    assert_eq!(report["runs"][1]["reused"], true);
    assert!(report["runs"][1]["overhead_half_width"].as_f64().is_some_and(|half| half > 0.0));
    let result = &report["runs"][1]["result"];
    assert_eq!(
        (&result["sampling"]["windows"], &result["sampling"]["of_windows"]),
        (&12.into(), &80.into())
    );
    assert!(result["sampling"]["cpi"]["half_width"].as_f64().is_some_and(|half| half > 0.0));
    let place = report["runs"][1]["folder"].as_str().expect("it was written");
    let rows = |name: &str| {
        fs::read_to_string(format!("{place}/{name}")).expect("it is there").lines().count() - 1
    };
    assert_eq!(rows("samples.csv"), 12);
    assert!(rows("intervals.csv") > 100, "{}", rows("intervals.csv"));
    let header = fs::read_to_string(format!("{out}/runs.csv")).expect("it is there");
    assert!(header.lines().next().is_some_and(|line| line.contains("sampling.cpi.half_width")));
    comes_again(&folder, &trace, place);
}

/// `auto` takes more windows until the interval is narrow enough, here for two schemes at once.
#[test]
fn auto_goes_on_until_the_interval_is_narrow_enough() {
    let folder = traces("auto");
    let (trace, out) = (slow_start(&folder, "long.casetrace", 1000), folder.arg("out"));
    let arguments = [&["--trace", &trace, "--scheme", "none,aise+bmt"], &SHORT[..]].concat();
    let auto = |error: &str| {
        let sample = ["--sample", "auto", "--error", error, "-o", &out];
        json(&sim(&[&arguments[..], &sample[..]].concat()))
    };
    let windows = |report: &Value| {
        let of = |run: &Value| {
            let sampling = &run["result"]["sampling"];
            let cpi = &sampling["cpi"];
            let half_width = cpi["half_width"].as_f64().expect("it has one");
            let relative = half_width / cpi["mean"].as_f64().expect("it has one");
            (sampling["windows"].as_u64().expect("a number"), relative)
        };
        [of(&report["runs"][0]), of(&report["runs"][1])]
    };
    let [wide, narrow] = ["90%", "0.01%"].map(|error| windows(&auto(error)));
    // 300 of 4000 windows at least; 307 lie at one distance.
    assert_eq!((wide[0].0, wide[1].0), (307, 307));
    assert!(narrow[0].0 > 307 && narrow[0].0 == narrow[1].0, "{narrow:?}");
    assert!(narrow.iter().all(|(_, relative)| *relative <= 0.0001), "{narrow:?}");
    // What was passed through on the way left nothing behind.
    let folders = fs::read_dir(&out)
        .expect("it is there")
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()));
    assert_eq!(folders.count(), 4);
}

/// A trace of 400,000 instructions, of which `slow` lines of 4 in front miss every cache and the
/// rest none.
fn slow_start(folder: &Folder, name: &str, slow: u64) -> String {
    let address = |line: u64| if line < slow { line * 4096 } else { 8 * (line % 16) };
    let lines: String = (0..100_000).map(|line| format!("3 {}\n", address(line))).collect();
    let (text, own) = (folder.arg(&format!("{name}.ramulator-o3")), folder.arg(name));
    fs::write(&text, lines).expect("the folder is ours");
    let run = casemate(&["trace", "convert", "--from", "ramulator-o3", &text, "-o", &own]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    own
}

/// Windows of 100 instructions, as they are measured in these tests.
const SHORT: [&str; 5] =
    ["--window", "100", "--set", "run.sample_warmup_instructions=100", "--json"];

/// The slow start is 1 % of 4000 windows: 30 meet it with a chance of 30 %, and agree otherwise.
/// For each seed the run in full lies within what `auto` says, or no window is left out.
#[test]
fn auto_meets_a_rare_slow_phase_or_says_what_it_may_cost() {
    let folder = traces("rare");
    let trace = slow_start(&folder, "rare.casetrace", 1000);
    let full = json(&sim(&["--trace", &trace, "--scheme", "none", "--json"]));
    let full = &full["runs"][0]["result"]["statistics"];
    let of = |name: &str| full[name].as_f64().expect("a counter");
    let full = of("cycles") / of("instructions");
    let mut all = 0;
    for seed in 1..=10 {
        let (seed, both) = (seed.to_string(), ["--trace", &trace, "--scheme", "none"]);
        let auto = ["--sample", "auto", "--error", "25%", "--seed", &seed];
        let report = json(&sim(&[&both[..], &auto[..], &SHORT[..]].concat()));
        let sampling = &report["runs"][0]["result"]["sampling"];
        let number = |of: &Value| of.as_f64().expect("a number");
        let (cpi, unseen) = (&sampling["cpi"], &sampling["unseen"]["cycles_per_instruction"]);
        let within = number(&cpi["half_width"]) + number(unseen);
        assert!(within <= 0.25 * number(&cpi["mean"]), "{sampling}");
        let off = (number(&cpi["mean"]) - full).abs();
        let is_whole = sampling["windows"] == sampling["of_windows"];
        assert!(is_whole || off <= within, "seed {seed}: {off} of {full}: {sampling}");
        all += usize::from(is_whole);
    }
    assert!(all < 10, "some windows are left out for some seeds");
}

/// Ten windows that agree say so of 30 % of the region at most: the IPC's half interval is not 0.
/// The windows' CPI is known beforehand, what they may have missed is not.
#[test]
fn windows_that_agree_are_not_certain() {
    let folder = traces("agree");
    let trace = slow_start(&folder, "agree.casetrace", 20);
    let both = ["--trace", &trace, "--scheme", "none", "--sample", "10", "--seed", "3"];
    let report = json(&sim(&[&both[..], &SHORT[..]].concat()));
    let sampling = &report["runs"][0]["result"]["sampling"];
    let number = |of: &Value| of.as_f64().expect("a number");
    assert!(number(&sampling["cpi"]["half_width"]) < 0.01, "{sampling}");
    assert!((number(&sampling["unseen"]["share"]) - 0.3).abs() < 0.01, "{sampling}");
    let cost = number(&sampling["unseen"]["cycles_per_instruction"]);
    assert!(cost >= 0.29 * number(&sampling["cpi"]["mean"]), "{sampling}");
    let text = sim(&[&both[..], &SHORT[..4]].concat()).stdout;
    assert!(!text.contains("±0.000") && text.contains("unlike every window"), "{text}");
}

#[test]
fn what_is_said_wrong_of_samples_is_refused() {
    let folder = traces("refused-samples");
    let (trace, foreign) = (folder.arg("far.casetrace"), folder.arg("far.ramulator-o3"));
    for (arguments, words) in [
        (&["--trace", &trace, "--sample", "0"][..], "or auto"),
        (&["--trace", &trace, "--sample", "auto", "--error", "200"], "between 0 and 100"),
        (&["--trace", &trace, "--sample", "auto", "--error", "2%%"], "between 0 and 100"),
        (&["--trace", &trace, "--sample", "5", "--error", "2%"], "--sample auto"),
        (&["--trace", &trace, "--error", "2%"], "--sample"),
        (&["--trace", &trace, "--sample", "9999"], "has 4 windows of 20000"),
        (&["--trace", &foreign, "--from", "ramulator-o3", "--sample", "5"], "length_instructions"),
        (&["--sample", "auto", "--", "true"], "record a trace"),
    ] {
        let run = sim(arguments);
        assert_ne!(run.code, 0, "{arguments:?}");
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}

/// SimPoint's files for a choice of windows with weights.
fn simpoints(folder: &Folder, points: &[(u64, f64)]) -> [String; 2] {
    let both = [folder.arg("a.simpoints"), folder.arg("a.weights")];
    let lines = |line: &dyn Fn(usize, &(u64, f64)) -> String| -> String {
        points.iter().enumerate().map(|(phase, point)| line(phase, point)).collect()
    };
    let texts = [
        lines(&|phase, (interval, _)| format!("{interval} {phase}\n")),
        lines(&|phase, (_, weight)| format!("{weight} {phase}\n")),
    ];
    for (path, text) in both.iter().zip(texts) {
        fs::write(path, text).expect("the folder is ours");
    }
    both
}

/// All 80 windows with the same weight are a sample of all windows: every counter is the same. Only
/// how sure one can be is not known.
#[test]
fn all_windows_with_one_weight_are_all_windows() {
    let folder = traces("simpoints-all");
    let trace = folder.arg("far.casetrace");
    let all: Vec<(u64, f64)> = (0..80).map(|interval| (interval, 0.0125)).collect();
    let [points, weights] = simpoints(&folder, &all);
    let both = ["--trace", &trace, "--scheme", "aise+bmt", "--window", "1000", "--json"];
    let spread = json(&sim(&[&both[..], &["--sample", "80"]].concat()));
    let chosen = ["--simpoints", &points, "--weights", &weights];
    let chosen = json(&sim(&[&both[..], &chosen[..]].concat()));
    let [spread, chosen] = [&spread, &chosen].map(|report| &report["runs"][0]["result"]);
    assert!(spread["statistics"]["cycles"].as_u64().is_some_and(|cycles| cycles > 0));
    assert_eq!(spread["statistics"], chosen["statistics"]);
    assert_eq!(chosen["sampling"]["cpi"]["half_width"], Value::Null);
    assert_eq!(chosen["sampling"]["of_windows"], 80);
}

/// The two windows' cycles, 3 to 1, are the weighted run's; the configuration beside it gives the
/// same bytes again without SimPoint's files.
#[test]
fn chosen_windows_count_by_their_weights_and_come_again_from_the_configuration() {
    let folder = traces("simpoints");
    let (trace, out) = (folder.arg("far.casetrace"), folder.arg("out"));
    let [points, weights] = simpoints(&folder, &[(70, 0.25), (4, 0.75)]);
    let chosen = ["--simpoints", &points, "--weights", &weights, "--window", "1000", "-o", &out];
    let both = ["--trace", &trace, "--scheme", "none,aise+bmt"];
    let run = sim(&[&both[..], &chosen[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("2 windows of 80; they count by their weights"), "{}", run.stdout);
    let report = json(&sim(&[&both[..], &chosen[..], &["--json"]].concat()));
    let cycles = |result: &Value| result["statistics"]["cycles"].as_f64().expect("a number");
    for run in report["runs"].as_array().expect("two runs") {
        let result = &run["result"];
        let windows = result["samples"].as_array().expect("two windows");
        let places = windows.iter().map(|window| window["end_instructions"].as_u64());
        assert_eq!(places.collect::<Vec<_>>(), [Some(5000), Some(71_000)]);
        let weighted = 2.0 * (0.75 * cycles(&windows[0]) + 0.25 * cycles(&windows[1]));
        assert!((cycles(result) - weighted).abs() <= 0.5, "{weighted} {result}");
    }
    comes_again(&folder, &trace, report["runs"][1]["folder"].as_str().expect("it was written"));
}

/// Weights of 0.15 and 0.05 leave four fifths of the program out. Of a sum of 1 nothing is said.
#[test]
fn weights_of_a_part_of_the_program_say_so() {
    let folder = traces("simpoints-part");
    let trace = folder.arg("far.casetrace");
    let said = |points: &[(u64, f64)]| {
        let [points, weights] = simpoints(&folder, points);
        let chosen = ["--simpoints", &points, "--weights", &weights, "--window", "1000"];
        let both = [&["--trace", &trace, "--scheme", "none"], &chosen[..]].concat();
        let report = json(&sim(&[&both[..], &["--json"]].concat()));
        let sum = report["runs"][0]["result"]["sampling"]["weights_sum"].as_f64();
        (sim(&both).stdout, sum.expect("a sum"))
    };
    let (text, sum) = said(&[(4, 0.15), (70, 0.05)]);
    assert!(text.contains("which sum to 0.200: 80.0 % of the program is in none"), "{text}");
    assert!((sum - 0.2).abs() < 1e-12, "{sum}");
    let (text, sum) = said(&[(4, 0.75), (70, 0.25)]);
    assert!(text.contains("they count by their weights\n"), "{text}");
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
}

#[test]
fn what_is_said_wrong_of_simpoints_is_refused() {
    let folder = traces("refused-simpoints");
    let trace = folder.arg("far.casetrace");
    let [points, weights] = simpoints(&folder, &[(3, 0.5), (80, 0.5)]);
    let both = ["--simpoints", &points, "--weights", &weights];
    let (points, nowhere) = (["--simpoints", &points], folder.arg("nowhere"));
    for (arguments, code, words) in [
        (&[&both[..], &["--window", "1000"]].concat(), 1, "interval 80 of run.sample_points ends"),
        (&[&both[..], &["--sample", "5"]].concat(), 125, "cannot be used with"),
        (&[&both[..], &["--set", "run.sample_windows=5"]].concat(), 125, "leave one out"),
        (&[&both[..], &["--set", "run.sample_points=1:1"]].concat(), 125, "says again"),
        (&points.to_vec(), 125, "--weights"),
        (&[&points[..], &["--weights", &nowhere]].concat(), 1, "cannot be read"),
        (&[&points[..], &["--weights", points[1]]].concat(), 125, "are no simpoints: "),
        (&vec!["--set", "run.sample_points=1:x"], 125, "INTERVAL:WEIGHT"),
    ] {
        let run = sim(&[&["--trace", &trace], &arguments[..]].concat());
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
    }
}
