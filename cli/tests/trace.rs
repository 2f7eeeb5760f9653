//! `casemate trace` from outside.

mod common;

use common::{Folder, run as casemate, stdout};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder with a Ramulator trace of 1,000 lines, and a trace of Casemate's made of it.
fn converted(name: &str) -> Folder {
    let folder = Folder::new(name);
    let lines: String = (0..1000)
        .map(|i| if i % 4 == 3 { format!("ST {i}\n") } else { format!("LD {i}\n") })
        .collect();
    fs::write(folder.path("ls"), lines).expect("the folder is ours");
    let (ls, own) = (folder.arg("ls"), folder.arg("own"));
    let run = casemate(&["trace", "convert", "--from", "ramulator-ls", &ls, "-o", &own]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

#[test]
fn a_foreign_trace_is_converted_and_told_what_it_holds() {
    let folder = converted("convert");
    let (ls, own) = (folder.arg("ls"), folder.arg("own"));
    let of = |arguments: &[&str]| -> Value {
        let run = casemate(&[&["trace", "info", "--json"], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str(&run.stdout).expect("one JSON object")
    };
    for report in [of(&[&own]), of(&[&own, "--check"]), of(&[&ls, "--from", "ramulator-ls"])] {
        assert_eq!((&report["loads"], &report["stores"]), (&750.into(), &250.into()), "{report}");
        assert_eq!(report["instructions"], 1000);
        assert_eq!(report["blake3"].as_str().map(str::len), Some(64));
    }
    let run = casemate(&["trace", "head", &own, "-n", "2", "--at", "7"]);
    let lines: Vec<_> = run.stdout.lines().map(str::split_whitespace).collect();
    let last: Vec<_> = lines.into_iter().filter_map(Iterator::last).collect();
    assert_eq!(last, ["S0@0x7", "L0@0x8"], "{}", run.stdout);
    let run = casemate(&["trace", "head", &own, "--at", "1000"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("--at 1000 is past its 1000 instructions"), "{}", run.stderr);
    let run = casemate(&["trace", "head", &own, "-n", "1", "--json"]);
    let record: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    assert_eq!(record["references"][0]["kind"], "load");
}

#[test]
fn what_is_no_trace_or_malformed_is_refused_by_name_and_place() {
    let folder = converted("malformed");
    let (ls, out) = (folder.arg("ls"), folder.arg("out"));
    assert_eq!(casemate(&["trace", "info", &ls]).code, 0, "its content tells its format");
    let run = casemate(&["trace", "convert", &ls, "--from", "dramsim3", "-o", &out]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("line 1: "), "{}", run.stderr);
    let left: Vec<_> = fs::read_dir(&folder.0).expect("the folder is ours").collect();
    assert_eq!(left.len(), 2, "nothing half-written stays");
    let text = folder.arg("text");
    fs::write(&text, "no trace at all\n").expect("the folder is ours");
    let run = casemate(&["trace", "info", &text]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains(&text) && run.stderr.contains("--from"), "{}", run.stderr);
    assert_eq!(casemate(&["trace", "info", &folder.arg("none")]).code, 1);
    assert_eq!(casemate(&["trace", "info", &ls, "--from", "nonsense"]).code, 125);
}

#[test]
fn a_damaged_trace_is_refused_and_salvaged() {
    let folder = converted("salvage");
    let (own, cut, saved) = (folder.arg("own"), folder.arg("cut"), folder.arg("saved"));
    let bytes = fs::read(&own).expect("it was written");
    // The trailer only: the one block is whole.
    fs::write(&cut, &bytes[..bytes.len() - 5]).expect("the folder is ours");
    for arguments in [&["trace", "info", &cut][..], &["trace", "convert", &cut, "-o", &saved]] {
        let run = casemate(arguments);
        assert_eq!(run.code, 1);
        assert!(run.stderr.contains("byte ") && run.stderr.contains("--salvage"), "{}", run.stderr);
    }
    let run = casemate(&["trace", "convert", "--salvage", &cut, "-o", &saved]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("byte "), "{}", run.stderr);
    let head = |file: &str| casemate(&["trace", "head", "-n", "2000", file]).stdout;
    assert_eq!(head(&saved), head(&own));
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("the folder is ours");
    let run = casemate(&["trace", "convert", "--salvage", &cut, "-o", &saved]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("nothing of the trace is whole"), "{}", run.stderr);
}

/// `script` gives a command a terminal. What is drawn there begins with a return and ends with
/// "clear the rest". The program sleeps for longer than the two seconds after which a line is
/// drawn.
#[test]
fn a_line_is_redrawn_on_a_terminal_and_taken_away_again() {
    let folder = Folder::new("progress");
    let out = folder.arg("out");
    let script = folder.path("program.sh");
    let busy = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); done";
    fs::write(&script, format!("{busy}; sleep 3; {busy}\n")).expect("the folder is ours");
    let program = script.display().to_string();
    let record = ["trace", "record", "-o", &out, "--length", "100000000", "--", "sh", &program];
    let sized = ["stty rows 24 cols 80;", env!("CARGO_BIN_EXE_casemate")];
    let command = [&sized[..], &record[..]].concat().join(" ");
    let on_terminal = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        // Nothing is drawn on a terminal of no kind, which is what a test may be started from.
        .env("TERM", "xterm")
        .output();
    let piped = casemate(&record);
    let missing = on_terminal.is_err() || piped.code != 0;
    if missing && std::env::var_os("CASEMATE_INSTALLED").is_none() {
        eprintln!("SKIPPED: script or the tracer is not here: {}", piped.stderr);
        return;
    }
    let drawn = stdout(&on_terminal.expect("script is installed"));
    let (before, drawn) = drawn.split_once('[').expect("a line is drawn");
    assert!(before.contains("recording into "), "{before:?}");
    assert!(drawn.contains(" %, ") && drawn.contains(" M instructions, "), "{drawn:?}");
    let (_, after) = drawn.rsplit_once("\r\x1b[2K").expect("the line is taken away");
    assert!(after.contains(" instructions, ") && !after.contains(" left"), "{after:?}");
    assert_eq!(piped.code, 0, "{}", piped.stderr);
    assert!(!piped.stdout.contains('\r') && !piped.stderr.contains('\r'), "{piped:?}");
}

#[test]
fn a_program_is_recorded_and_its_trace_is_whole() {
    let folder = Folder::new("record");
    let (own, report) = (folder.arg("own"), folder.arg("report"));
    for tracer in ["qemu", "valgrind"] {
        let json = format!("--json={report}");
        let with =
            ["trace", "record", "--with", tracer, "-o", &own, &json, "--", "/bin/echo", "a b"];
        let run = casemate(&with);
        if run.code != 0 && std::env::var_os("CASEMATE_INSTALLED").is_none() {
            eprintln!("SKIPPED: {tracer} is not here: {}", run.stderr);
            continue;
        }
        // What the program prints is its own.
        assert_eq!((run.code, run.stdout.as_str()), (0, "a b\n"), "{}", run.stderr);
        let text = fs::read_to_string(&report).expect("the report was written");
        let report: Value = serde_json::from_str(&text).expect("one JSON object");
        assert_eq!(report["ending"], "exit status: 0");
        let info = casemate(&["trace", "info", "--check", "--json", &own]);
        let info: Value = serde_json::from_str(&info.stdout).expect("one JSON object");
        for count in ["instructions", "loads", "stores"] {
            assert_eq!(info[count], report[count], "{info}");
            assert!(info[count].as_u64() > Some(1000), "{info}");
        }
        assert_eq!((&info["program"], &info["arguments"][0]), (&"/bin/echo".into(), &"a b".into()));
    }
}

#[test]
fn a_program_that_cannot_be_recorded_is_refused() {
    let folder = Folder::new("refused");
    let run = casemate(&["trace", "record", "-o", &folder.arg("own"), "--", "/etc/passwd"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("64-bit x86"), "{}", run.stderr);
    assert!(!folder.path("own").exists());
}

#[test]
fn gcc_and_sqlite_take_less_than_two_bytes_a_reference() {
    let cc1 = Command::new("gcc").arg("-print-prog-name=cc1").output();
    let cc1 = cc1.map(|output| stdout(&output).trim().to_owned()).unwrap_or_default();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/plugin/casemate_trace.c");
    let gcc = [
        &cc1,
        "-quiet",
        "-O2",
        "-imultiarch",
        "x86_64-linux-gnu",
        "-DAPI_VERSION=1",
        source,
        "-o",
        "/dev/null",
    ];
    let sql = "create table a(k int, v text); with recursive c(x) as (select 1 union all select x+1 \
               from c where x<20000) insert into a select (x*7919)%10007, 'name'||x from c; \
               create index i on a(k); select count(*) from a p join a q using(k);";
    let folder = Folder::new("size");
    let own = folder.arg("own");
    for command in [&gcc[..], &["sqlite3", ":memory:", sql]] {
        let window =
            ["trace", "record", "--skip=20000000", "--length=5000000", "--json", "-o", &own, "--"];
        let run = casemate(&[&window, command].concat());
        if run.code != 0 && std::env::var_os("CASEMATE_INSTALLED").is_none() {
            eprintln!("SKIPPED: {}", run.stderr);
            continue;
        }
        assert_eq!(run.code, 0, "{}", run.stderr);
        // The program's own output, if any, comes first.
        let at = run.stdout.find('{').expect("a report");
        let report: Value = serde_json::from_str(&run.stdout[at..]).expect("one JSON object");
        assert_eq!(report["instructions"], 5_000_000, "{report}");
        let bytes = report["bytes_per_reference"].as_f64().expect("a number");
        assert!(bytes < 2.0, "{report}");
    }
}

#[test]
fn misses_are_written_in_every_format_and_read_again() {
    let folder = converted("misses");
    // A trace of a program: every 64th byte of 256 KiB is loaded twice over, every fourth block is
    // stored to.
    let block = |n: u64| {
        format!(
            "2 {}{}\n",
            n * 64,
            if n.is_multiple_of(4) { format!(" {}", n * 64 + 8) } else { String::new() }
        )
    };
    let lines: String = (0..2 * 4096).map(|n| block(n % 4096)).collect();
    fs::write(folder.path("o3"), lines).expect("the folder is ours");
    let o3 = folder.arg("o3");
    let caches = ["--l1i", "1K,2,64", "--l1d", "1K,2,64", "--l2", "64K,4,64", "--json"];
    let mut reports = Vec::new();
    for (format, from) in
        [("casemate", None), ("ramulator-ls", Some("ramulator-ls")), ("dramsim3", Some("dramsim3"))]
    {
        let out = folder.arg(format);
        let to = ["trace", "misses", &o3, "--from", "ramulator-o3", "-o", &out, "--format", format];
        let run = casemate(&[&to[..], &caches].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let report: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
        // The last level holds a quarter of it, so LRU keeps nothing from one time to the next; all
        // but what is left at the end is thrown out, a quarter of it changed.
        assert_eq!(report["reads"], 8192, "{report}");
        assert_eq!(report["instructions"], 3 * 8192);
        let writes = report["writes"].as_u64().expect("a number");
        let clean = report["clean_evictions"].as_u64().expect("a number");
        assert_eq!(writes + clean, 8192 - 1024);
        assert!((1792 - 16..=1792).contains(&writes), "{report}");
        let mut info = vec!["trace", "info", "--check", "--json", &out];
        info.extend(from.iter().flat_map(|from| ["--from", from]));
        let run = casemate(&info);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let info: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
        assert_eq!((&info["loads"], &info["stores"]), (&report["reads"], &report["writes"]));
        reports.push((report["cycles"].clone(), writes));
    }
    assert!(reports.iter().all(|report| *report == reports[0]), "{reports:?}");
    // The same caches, said as a configuration says them: what misses does not depend on the rest
    // of a machine whose first level is as small.
    let out = folder.arg("configured");
    let mut configured =
        vec!["trace", "misses", &o3, "--from", "ramulator-o3", "-o", &out, "--json"];
    configured.extend(["--preset", "otp-snc"]);
    for value in [
        "l1d.size_bytes=1K",
        "l1d.ways=2",
        "l1d.block_bytes=64",
        "l2.size_bytes=64K",
        "l2.ways=4",
        "l2.block_bytes=64",
    ] {
        configured.extend(["--set", value]);
    }
    let run = casemate(&configured);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    assert_eq!(report["reads"], 8192, "{report}");
    assert_ne!(report["cycles"], reports[0].0, "another memory, another time");
    for (wrong, says) in
        [("l2.size_bytes=1M,2M", "one value"), ("l2.size_byte=1M", "l2.size_bytes")]
    {
        let words = ["trace", "misses", &o3, "--from", "ramulator-o3", "-o", &out, "--set", wrong];
        let run = casemate(&words);
        assert_ne!(run.code, 0);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let small = [
        "trace",
        "misses",
        &o3,
        "--from",
        "ramulator-o3",
        "-o",
        &folder.arg("x"),
        "--memory",
        "64K",
    ];
    let run = casemate(&small);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("more than 64 KiB; give more with --memory"), "{}", run.stderr);
    assert!(!folder.path("x").exists());
}

#[test]
fn a_copy_for_which_there_is_no_space_is_named() {
    let folder = converted("full");
    let own = folder.arg("own");
    for command in [&["trace", "convert", &own][..], &["trace", "misses", &own]] {
        let run = casemate(&[command, &["-o", "/dev/full"]].concat());
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stderr.starts_with("casemate: /dev/full: "), "{}", run.stderr);
    }
}

#[test]
fn what_no_machine_can_do_is_refused() {
    let folder = converted("refused-machines");
    let own = folder.arg("own");
    for (words, sentence) in [
        (&["trace", "caches", "--l2", "1M,8,32"][..], "l2.block_bytes is 32"),
        (&["trace", "caches", "--l1d", "32K,8,4096"][..], "it must be at least 4096"),
        (&["trace", "misses", "-o", "/dev/null", "--l2", "1M,8,32"][..], "l2.block_bytes is 32"),
    ] {
        let output = casemate(&[words, &[&own]].concat());
        assert_eq!(output.code, 125, "{words:?}: {}", output.stderr);
        assert!(output.stderr.contains(sentence), "{words:?}: {}", output.stderr);
    }
    let info = casemate(&["trace", "info", "--json", &own]);
    let info: serde_json::Value = serde_json::from_str(&info.stdout).unwrap();
    let all = info["instructions"].as_u64().unwrap();
    for (warmup, wanted) in [(all - 1, 0), (all, 1)] {
        let results = folder.arg(&format!("results-{warmup}"));
        let words = ["sim", "--scheme", "none", "--trace", &own, "-o", &results];
        let output = casemate(&[&words[..], &["--warmup", &warmup.to_string()]].concat());
        assert_eq!(output.code, wanted, "{warmup} of {all}: {}", output.stderr);
    }
}

/// A program that sleeps says nothing that could be recorded, and would not end either.
#[test]
fn a_signal_ends_the_recording_of_a_program_that_sleeps() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let folder = Folder::new("sleeps");
    let own = folder.arg("own");
    let mut recording = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["trace", "record", "-o", &own, "--", "sh", "-c", "echo up; exec sleep 600"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("casemate starts");
    let mut line = String::new();
    let output = recording.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it is open");
    if line.is_empty() && std::env::var_os("CASEMATE_INSTALLED").is_none() {
        eprintln!("SKIPPED: no tracer is here: {:?}", recording.wait());
        return;
    }
    // SAFETY: signals a child of ours.
    unsafe { libc::kill(recording.id() as i32, libc::SIGTERM) };
    let since = Instant::now();
    let mut has_ended = || recording.try_wait().expect("it is our child").is_some();
    while !has_ended() && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended_itself = has_ended();
    let _ = recording.kill();
    let end = recording.wait().expect("it is our child");
    assert!(ended_itself, "it does not end");
    assert_eq!(end.code(), Some(0));
    let info = casemate(&["trace", "info", "--check", "--json", &own]);
    assert_eq!(info.code, 0, "{}", info.stderr);
}

#[test]
fn a_pipe_has_no_info_and_is_not_waited_for() {
    let folder = common::Folder::new("trace-pipe");
    let pipe = folder.arg("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
    assert!(made.success());
    let run = casemate(&["trace", "info", &pipe]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("pipe: a pipe has no size and no index"), "{}", run.stderr);
}
