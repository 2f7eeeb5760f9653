//! With the script `fake-casemate` in the place of casemate.

use std::fs;

use super::super::Folder;
use super::*;

const MANIFEST: &str = "[environment]\nPATH = '/usr/bin:/bin'\nENDS = '1000'\n[[input]]\nfile = 'a'\ntext = 'b'\n\
    [[program]]\nname = 'one'\nabout = 'first'\nrun = ['/bin/true', 'a']\nskip = 3\nlength = 100\n\
    [[program]]\nname = 'two'\nabout = 'second'\nrun = ['{workload}', 'x', 'a']\nthreads = 4\nskip = 0\nlength = 50\n";

fn recorder(folder: &Path, manifest: &str) -> Recorder {
    let options = Options {
        casemate: concat!(env!("CARGO_MANIFEST_DIR"), "/src/programs/recorder/fake-casemate")
            .into(),
        workload: "/bin/false".into(),
        folder: folder.join("traces"),
    };
    let manifest = Manifest::parse(manifest).expect("as above");
    let recorder = Recorder::with_manifest(manifest, options).expect("all is there");
    Recorder { tracer: ("/bin/sh", "dash"), ..recorder }
}

fn runs(folder: &Path, name: &str) -> usize {
    let runs = fs::read_to_string(folder.join("traces").join(name).with_extension("runs"));
    runs.map_or(0, |runs| runs.lines().count())
}

fn ensure_one(recorder: &Recorder, instructions: Option<u64>) -> Recorded {
    let mut traces = recorder.ensure(&["one"], instructions, &mut |_| ()).expect("recorded");
    assert_eq!(traces.len(), 1);
    traces.remove(0)
}

#[test]
fn what_is_wanted_is_recorded_once() {
    let folder = Folder::new("once");
    let recorder = recorder(&folder.0, MANIFEST);
    let mut said = Vec::new();
    let traces = recorder.ensure(&["two", "one"], None, &mut |line| said.push(line.to_owned()));
    let traces = traces.expect("recorded");
    assert_eq!((&*traces[0].name, traces[0].threads, traces[0].instructions), ("two", 4, 50));
    assert_eq!((&*traces[1].about, traces[1].threads, traces[1].instructions), ("first", 1, 100));
    let content = |at: usize| fs::read_to_string(&traces[at].path).expect("it is there");
    assert_eq!(content(0), "50 after 0: -- /bin/false x a b\n");
    assert_eq!(content(1), "100 after 3: -- /bin/true a b\n");
    assert!(said.iter().any(|line| line.starts_with("one: recording")), "{said:?}");
    said.clear();
    let again = recorder.ensure(&[], None, &mut |line| said.push(line.to_owned()));
    assert_eq!(again.expect("there"), [traces[1].clone(), traces[0].clone()]);
    assert_eq!((said.len(), runs(&folder.0, "one"), runs(&folder.0, "two")), (0, 1, 1));
}

#[test]
fn a_longer_trace_is_taken_and_a_shorter_one_is_not() {
    let folder = Folder::new("longer");
    let recorder = recorder(&folder.0, MANIFEST);
    for (wanted, there, runs_until_then) in [
        (Some(20), 20, 1),
        (Some(19), 20, 1),
        (Some(21), 21, 2),
        (None, 100, 3),
        (Some(20), 100, 3),
        (Some(101), 101, 4),
        (None, 101, 4),
    ] {
        let trace = ensure_one(&recorder, wanted);
        assert_eq!((trace.instructions, runs(&folder.0, "one")), (there, runs_until_then));
        let content = fs::read_to_string(&trace.path).expect("it is there");
        assert!(content.starts_with(&format!("{there} after")), "{content}");
    }
}

#[test]
fn what_is_made_in_another_way_is_recorded_again() {
    let folder = Folder::new("another");
    ensure_one(&recorder(&folder.0, MANIFEST), None);
    let changes = [("skip = 3", "skip = 4"), ("/bin/true", "/bin/echo"), ("'b'", "'c'")];
    for (at, (old, new)) in changes.into_iter().enumerate() {
        let changed = recorder(&folder.0, &MANIFEST.replacen(old, new, 1));
        // Even a shorter one: the old one is of no use.
        assert_eq!(ensure_one(&changed, Some(20)).instructions, 20);
        assert_eq!(runs(&folder.0, "one"), 2 * at + 2, "{new}");
        ensure_one(&recorder(&folder.0, MANIFEST), None);
    }
    let described = MANIFEST.replace("'first'", "'the first'");
    assert_eq!(ensure_one(&recorder(&folder.0, &described), None).about, "the first");
    assert_eq!(runs(&folder.0, "one"), 2 * changes.len() + 1);
}

#[test]
fn a_program_that_ends_too_early_leaves_what_was_there() {
    let folder = Folder::new("early");
    let recorder = recorder(&folder.0, &MANIFEST.replace("1000", "60"));
    ensure_one(&recorder, Some(60));
    let error = recorder.ensure(&["one", "two"], Some(61), &mut |_| ()).expect_err("too long");
    let error = error.to_string();
    assert!(error.contains("one: only 60 of 61 instructions"), "{error}");
    assert!(error.contains("two: only 60 of 61") && error.contains("fake end"), "{error}");
    assert_eq!(ensure_one(&recorder, Some(60)).instructions, 60);
    assert_eq!(runs(&folder.0, "one"), 2);
    assert!(!trace(&folder.0.join("traces"), "two").exists());
    assert!(!folder.0.join("traces/two.part").exists());
}

#[test]
fn one_failure_does_not_keep_others_from_being_recorded() {
    let folder = Folder::new("failure");
    let absent =
        MANIFEST.replacen("'/bin/true'", "'{workload}'", 1).replace("{workload}', 'x", "/bin/true");
    let mut recorder = recorder(&folder.0, &absent);
    recorder.options.workload = "/no/such/workload".into();
    let error = recorder.ensure(&[], None, &mut |_| ()).expect_err("one is not there");
    assert!(error.to_string().contains("one: /no/such/workload: not there"), "{error:#}");
    assert!(!error.to_string().contains("two"), "{error:#}");
    assert!(trace(&folder.0.join("traces"), "two").exists());
}

#[test]
fn what_casemate_says_last_is_the_reason() {
    let folder = Folder::new("reason");
    let fails = MANIFEST.replace("ENDS = '1000'", "FAILS = 'no tracer works here'");
    let recorder = recorder(&folder.0, &fails);
    let error = recorder.ensure(&["one"], None, &mut |_| ()).expect_err("it fails").to_string();
    assert!(error.contains("no tracer works here") && error.contains("3"), "{error}");
}

#[test]
fn a_folder_that_is_being_recorded_into_is_refused() {
    let folder = Folder::new("lock");
    let recorder = recorder(&folder.0, MANIFEST);
    let mut held = Some(recorder.lock(&mut |_| ()).expect("it is free"));
    let mut said = Vec::new();
    let traces = recorder.ensure(&["one"], None, &mut |line| {
        said.push(line.to_owned());
        if line.starts_with("waiting") {
            assert_eq!(runs(&folder.0, "one"), 0);
            held = None;
        }
    });
    assert_eq!(traces.expect("recorded").len(), 1);
    assert!(said.iter().any(|line| line.starts_with("waiting")), "{said:?}");
}
