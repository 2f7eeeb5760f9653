//! `-o`, `--json` and `--length` mean the same with every command.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

use common::{Folder, casemate, code, stderr, stdout};
use serde_json::Value;

fn well(args: &[&str]) -> (String, String) {
    let output = casemate(args);
    assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    (String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&well(args).0).unwrap_or_else(|why| panic!("{args:?}: {why}"))
}

fn usage(args: &[&str], word: &str) {
    let output = casemate(args);
    assert_eq!(code(&output), 125, "{args:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
}

/// A trace of 1,000 loads, as Ramulator's frontend takes it.
fn trace(folder: &Folder) -> String {
    let lines: String = (0..1000).map(|i| format!("LD {:#x}\n", i * 4096)).collect();
    fs::write(folder.path("loads.ramulator-ls"), lines).unwrap();
    let own = folder.arg("loads.casetrace");
    well(&[
        "trace",
        "convert",
        &folder.arg("loads.ramulator-ls"),
        "--from",
        "ramulator-ls",
        "-o",
        &own,
    ]);
    own
}

#[test]
fn a_dash_is_standard_output_and_sentences_go_to_standard_error() {
    let folder = Folder::new("outputs-dash");
    let own = trace(&folder);
    let misses = ["trace", "misses", &own, "--format", "dramsim3"];
    let (requests, said) = well(&[&misses[..], &["-o", "-"]].concat());
    assert!(requests.lines().all(|line| line.contains(" READ ")), "{requests}");
    assert!(said.contains("standard output: 1000 instructions"), "{said}");
    let file = folder.arg("misses");
    let (said, _) = well(&[&misses[..], &["--out", &file]].concat());
    assert!(said.contains("1000 instructions"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), requests);

    // The old name of the flag still works; a trace of ours through a pipe is the same trace.
    let again = folder.arg("again.casetrace");
    well(&["trace", "convert", &own, "--output", &again]);
    let through = casemate(&["trace", "convert", &own, "-o", "-"]);
    assert_eq!(through.stdout, fs::read(&again).unwrap());
    assert!(stderr(&through).contains("1000 instructions"));
}

#[test]
fn a_report_and_a_result_do_not_share_standard_output() {
    let folder = Folder::new("outputs-both");
    let own = trace(&folder);
    usage(&["trace", "misses", &own, "-o", "-", "--json"], "--json=FILE");
    usage(&["trace", "convert", &own, "-o", "-", "--json"], "--json=FILE");
    usage(&["trace", "record", "-o", "-", "--", "/bin/true"], "standard output");
    usage(&["sim", "--trace", &own, "-o", "-"], "folder");
    usage(&["processor-key", "-o", "-"], "two files");
    usage(&["reproduce", "lhash", "-o", "-"], "folder");
    let report = folder.arg("report.json");
    well(&["trace", "misses", &own, "-o", "-", &format!("--json={report}")]);
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["instructions"], 1000);
}

#[test]
fn a_length_of_zero_is_all_of_a_trace() {
    let folder = Folder::new("outputs-length");
    let own = trace(&folder);
    for (length, expected) in [("0", 1000), ("7", 7)] {
        let short = folder.arg(&format!("short-{length}.casetrace"));
        let convert = json(&["trace", "convert", &own, "-o", &short, "--length", length, "--json"]);
        assert_eq!(convert["instructions"], expected);
        let out = folder.arg("misses");
        let misses = json(&["trace", "misses", &own, "-o", &out, "--length", length, "--json"]);
        assert_eq!(misses["instructions"], expected);
        let sim = json(&["sim", "--trace", &own, "--scheme", "none", "--length", length, "--json"]);
        let counted = &sim["runs"][0]["result"]["statistics"]["instructions"];
        assert_eq!(*counted, expected);
    }
}

#[test]
fn pages_and_completions_report_what_was_written() {
    let folder = Folder::new("outputs-pages");
    let out = folder.arg("man1");
    let names = |report: &Value| -> Vec<String> {
        let pages = report["pages"].as_array().unwrap();
        pages.iter().map(|page| page["name"].as_str().unwrap().to_owned()).collect()
    };
    let written = json(&["man", "-o", &out, "--json"]);
    for page in written["pages"].as_array().unwrap() {
        let name = page["name"].as_str().unwrap();
        assert_eq!(page["file"], folder.arg(&format!("man1/{name}.1")));
        assert!(folder.path("man1").join(format!("{name}.1")).exists());
    }
    assert_eq!(names(&written).len(), fs::read_dir(&out).unwrap().count());
    let named = json(&["man", "--json"]);
    assert_eq!(names(&named), names(&written));
    assert!(named["pages"][0]["file"].is_null());
    let one = json(&["man", "trace", "record", "--json"]);
    assert_eq!(names(&one), ["casemate-trace-record"]);
    assert_eq!(one["pages"][0]["command"], "trace record");

    let script = folder.arg("casemate.bash");
    let report = json(&["completions", "bash", "-o", &script, "--json"]);
    assert_eq!((&report["shell"], &report["file"]), (&"bash".into(), &script.clone().into()));
    assert_eq!(report["bytes"], fs::metadata(&script).unwrap().len());
    assert_eq!(fs::read_to_string(&script).unwrap(), well(&["completions", "bash"]).0);
    usage(&["completions", "bash", "--json"], "--json=FILE");
}

#[test]
fn an_empty_file_is_a_trace_of_no_tool() {
    let folder = Folder::new("outputs-empty");
    fs::write(folder.path("empty"), "").unwrap();
    fs::write(folder.path("odd"), "LD 0x40\nSD 0x40\n").unwrap();
    let nothing = |arguments: &[&str], words: &str| {
        let line = Command::new(env!("CARGO_BIN_EXE_casemate"))
            .current_dir(&folder.0)
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(code(&line), 1, "{arguments:?}");
        assert!(line.stdout.is_empty(), "{arguments:?}");
        let told = stderr(&line);
        assert!(told.starts_with(&format!("casemate: {words}")), "{arguments:?}: {told}");
    };
    for format in ["champsim", "ramulator-ls", "ramulator-o3", "dramsim3"] {
        let empty = "empty: byte 0: the file is empty, and no trace";
        nothing(&["trace", "info", "empty", "--from", format], empty);
        nothing(&["trace", "convert", "empty", "--from", format, "-o", "-"], empty);
        nothing(&["sim", "--trace", "empty", "--from", format, "--scheme", "none"], empty);
    }
    // What is wrong from its first record on has no header either.
    nothing(&["trace", "convert", "odd", "--from", "dramsim3", "-o", "-"], "odd: line 1: ");
    nothing(
        &["sim", "--trace", "odd", "--from", "ramulator-ls", "--scheme", "none"],
        "odd: line 2",
    );
}

#[test]
fn a_scheme_alone_has_no_overhead() {
    let folder = Folder::new("outputs-alone");
    let own = trace(&folder);
    let (table, _) = well(&["sim", "--trace", &own, "--scheme", "mac"]);
    assert!(!table.contains("+0.0 %") && table.contains("add --scheme none"), "{table}");
    let report = json(&["sim", "--trace", &own, "--scheme", "mac", "--json"]);
    assert!(report["runs"][0]["overhead"].is_null() && report["runs"][0]["baseline"].is_null());
    // Nor has the one that others are compared with, alone or among them.
    let (table, _) = well(&["sim", "--trace", &own, "--scheme", "none"]);
    assert!(!table.contains("+0.0 %") && !table.contains("add --scheme"), "{table}");
    for schemes in ["none,mac", "mac,none"] {
        let report = json(&["sim", "--trace", &own, "--scheme", schemes, "--json"]);
        for run in report["runs"].as_array().unwrap() {
            let protected = run["scheme"] == "mac";
            assert_eq!(run["baseline"] == "none", protected, "{run}");
            assert_eq!(run["overhead"].is_null(), !protected, "{run}");
        }
    }
}

#[test]
fn sealed_and_certified_programs_report_as_json_and_through_pipes() {
    let folder = Folder::new("outputs-sealed");
    let key = folder.arg("key");
    let made = json(&["processor-key", "-o", &key, "--json"]);
    let public = made["public_key"].as_str().unwrap().to_owned();
    let image = folder.arg("image");
    let sealed = json(&["seal-image", "--for", &public, "-o", &image, "/bin/true", "--json"]);
    assert_eq!(sealed["processor"], made["processor"]);
    assert_eq!(sealed["bytes"], fs::metadata(&image).unwrap().len());
    let opened = casemate(&["open-image", "--key", &key, "-o", "-", &image]);
    assert_eq!(opened.stdout, fs::read("/bin/true").unwrap());
    let program = folder.arg("program");
    let report = json(&["open-image", "--key", &key, "-o", &program, &image, "--json"]);
    assert_eq!(report["bytes"], opened.stdout.len());
    usage(&["open-image", "--key", &key, &image, "--json"], "--out");
    usage(&["seal-image", "--for", &public, "-o", "-", "/bin/true", "--json"], "--json=FILE");

    let source = format!("{}/../examples/certified/sum.asm", env!("CARGO_MANIFEST_DIR"));
    let input = folder.arg("input");
    fs::write(&input, "3 4 5 6").unwrap();
    let certificate = folder.arg("certificate");
    let certify = ["certify", "--key", &key, "--input", &input, &source];
    let certified = json(&[&certify[..], &["-o", &certificate, "--json"]].concat());
    let check = ["verify-certificate", "--key", &public, "--program", &source, "--input", &input];
    let verified = json(&[&check[..], &[&certificate, "--json"]].concat());
    assert_eq!(certified["result"], verified["result"]);
    let (_, said) = well(&[&certify[..], &["-o", "-"]].concat());
    let expected = stdout(&casemate(&[&check[..], &[&certificate]].concat()));
    assert_eq!(said, expected);
}

#[test]
fn formats_of_traces_are_told_by_their_content_everywhere() {
    let folder = Folder::new("outputs-formats");
    let own = trace(&folder);
    let mut record = [0_u8; 64];
    record[0..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
    record[32..40].copy_from_slice(&0x1234_5678_u64.to_le_bytes());
    let champsim = record.repeat(3);
    for (format, content) in [
        ("champsim", &champsim[..]),
        ("ramulator-ls", b"LD 0x40\nST 128\nLD 0x80\n"),
        ("ramulator-o3", b"0 64\n0 128 192\n0 64\n"),
        ("dramsim3", b"0x40 READ 0\n0x80 WRITE 5\n0x40 READ 9\n"),
    ] {
        // The name tells nothing, or something wrong.
        for name in ["plain", "odd.dramsim3", "odd.casetrace"] {
            let file = folder.arg(name);
            fs::write(&file, content).unwrap();
            let info = json(&["trace", "info", &file, "--check", "--json"]);
            assert_eq!(info["format"], format, "{name}: {info}");
            let sim = json(&["sim", "--trace", &file, "--scheme", "none", "--json"]);
            let result = &sim["runs"][0]["result"];
            assert_eq!(result["trace"]["format"], format);
            assert_eq!(result["statistics"]["instructions"], 3);
            assert_eq!(json(&["trace", "caches", &file, "--json"])["instructions"], 3);
        }
    }
    let info = json(&["trace", "info", &own, "--json"]);
    assert!(info["format"].as_str().unwrap().starts_with("casemate"), "{info}");
    let neither = folder.arg("neither");
    fs::write(&neither, "hello\n").unwrap();
    let output = casemate(&["trace", "info", &neither]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert_eq!(stderr(&output).matches(&neither).count(), 1, "{}", stderr(&output));
}

/// On a terminal of `script`'s.
#[test]
fn what_is_over_at_once_draws_no_line_of_progress() {
    let program = env!("CARGO_BIN_EXE_casemate");
    let commands =
        ["attack --scheme mac --rounds 100", "dram --generate sequential-light --count 1000"];
    for command in commands {
        let line = format!("{program} {command}");
        let typed = Command::new("script").args(["-qec", &line, "/dev/null"]).output();
        let Ok(typed) = typed else {
            eprintln!("skipped: there is no script(1)");
            return;
        };
        let shown = stdout(&typed);
        assert!(typed.status.success() && !shown.is_empty(), "{shown}");
        assert!(!shown.contains("1 of 1") && !shown.contains('\u{1b}'), "{shown:?}");
    }
}

#[test]
fn a_result_replaces_neither_its_input_nor_its_report() {
    let folder = Folder::new("outputs-same");
    let own = trace(&folder);
    let before = fs::read(&own).unwrap();
    let link = folder.arg("link.casetrace");
    fs::hard_link(&own, &link).unwrap();
    usage(&["trace", "convert", "--length", "10", &own, "-o", &own], "what it is made of");
    usage(&["trace", "misses", &own, "-o", &link], "what it is made of");
    usage(&["trace", "merge", "--every", "10", &own, &own, "-o", &own], "what it is made of");
    assert_eq!(fs::read(&own).unwrap(), before);
    let new = folder.arg("new");
    let report = format!("--json={}/./new", folder.arg("."));
    usage(&["trace", "convert", &own, "-o", &new, &report], "replace the result");
    usage(&["exposure", "--csv", &new, &report], "replace the result");
    usage(&["processor-key", "-o", &new, &report], "replace the key");
    assert!(!folder.path("new").exists());
    // What is no file takes both.
    well(&["trace", "convert", &own, "-o", "/dev/null", "--json=/dev/null"]);
}

#[test]
fn an_interrupted_copy_leaves_what_was_there_and_nothing_else() {
    let folder = Folder::new("outputs-interrupted");
    let (long, out) = (folder.arg("long"), folder.arg("out"));
    fs::write(&out, "before").unwrap();
    // It takes many minutes to read: the same part again and again.
    let mut part = GzEncoder::new(Vec::new(), Compression::best());
    part.write_all("LD 0x1000\n".repeat(1_000_000).as_bytes()).unwrap();
    let part = part.finish().unwrap();
    let mut file = fs::File::create(&long).unwrap();
    (0..5000).for_each(|_| file.write_all(&part).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_casemate"));
    command.args(["trace", "convert", &long, "--from", "ramulator-ls", "-o", &out]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let names = || fs::read_dir(folder.path(".")).unwrap().count();
    while names() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    // A shell has what runs in the background ignore SIGINT.
    // SAFETY: to a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    assert_eq!(names(), 2, "the trace and what was there");
    assert_eq!(fs::read_to_string(&out).unwrap(), "before");
}

#[test]
fn a_run_whose_report_cannot_be_written_does_not_begin() {
    let folder = Folder::new("outputs-report");
    let sign = folder.arg("sign");
    for report in ["--json=/nonexistent/report", "--json=/"] {
        usage(&["run", report, "--", "touch", &sign], "choose another file");
    }
    assert!(!folder.path("sign").exists());
}

#[test]
fn a_recording_that_fails_leaves_the_trace_that_was_there() {
    let folder = Folder::new("outputs-record");
    let own = trace(&folder);
    let before = fs::read(&own).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_casemate"));
    command.args(["trace", "record", "-q", "-o", &own, "--", "/bin/ls", "-R", "/usr/lib"]);
    // SAFETY: between fork and exec only two calls are made that may be made there.
    unsafe {
        command.pre_exec(|| {
            let most = libc::rlimit { rlim_cur: 1 << 16, rlim_max: 1 << 16 };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &most);
            Ok(())
        })
    };
    let recorded = command.stdout(Stdio::null()).output().unwrap();
    assert_eq!(code(&recorded), 1, "{}", stderr(&recorded));
    assert_eq!(fs::read(&own).unwrap(), before, "{}", stderr(&recorded));
}
