//! Sampled runs of `casemate sim` from outside: windows that are spread, as many as it takes, or
//! chosen.

mod common;

use common::Folder;
use common::sim::{files, json, sim, traces};
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
    let (trace, out) = (folder.arg("far.casetrace"), folder.arg("out"));
    let arguments = ["--trace", &trace, "--scheme", "none,aise+bmt", "--window", "500", "--json"];
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
    assert_eq!((wide[0].0, wide[1].0), (30, 30));
    assert!(narrow[0].0 > 30 && narrow[0].0 == narrow[1].0, "{narrow:?}");
    assert!(narrow.iter().all(|(_, relative)| *relative <= 0.0001), "{narrow:?}");
    // What was passed through on the way left nothing behind.
    let folders = fs::read_dir(&out)
        .expect("it is there")
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()));
    assert_eq!(folders.count(), 4);
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
