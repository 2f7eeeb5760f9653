//! Certified execution from outside: a certificate, what it proves, and none for tampered memory.

mod common;

use std::fs;
use std::process::{Command, Output, Stdio};

use common::{Folder, casemate, code, stderr, stdout};

fn example(name: &str) -> String {
    format!("{}/../examples/certified/{name}.asm", env!("CARGO_MANIFEST_DIR"))
}

/// A folder with two processors' keys and some input.
fn machine_room(name: &str) -> Folder {
    let folder = Folder::new(name);
    for key in ["one", "two"] {
        assert_eq!(code(&casemate(&["processor-key", "--out", &folder.arg(key)])), 0);
    }
    fs::write(folder.path("input"), "30 10 20\n18446744073709551615\n").expect("some input");
    folder
}

fn certify(folder: &Folder, more: &[&str], out: &str) -> std::process::Output {
    let (key, input, out) = (folder.arg("one"), folder.arg("input"), folder.arg(out));
    let arguments =
        [&["certify", "--key", &key, "--input", &input, "--out", &out][..], more].concat();
    casemate(&arguments)
}

fn verify(folder: &Folder, key: &str, program: &str, input: &str) -> std::process::Output {
    casemate(&[
        "verify-certificate",
        "--key",
        &folder.arg(key),
        "--program",
        &example(program),
        "--input",
        &folder.arg(input),
        &folder.arg("certificate"),
    ])
}

#[test]
fn a_certificate_proves_one_result_of_one_program_on_one_input() {
    let folder = machine_room("certified");
    let issued = certify(&folder, &[&example("sort")], "certificate");
    let sorted = "10\n20\n30\n18446744073709551615\n";
    assert_eq!((code(&issued), stdout(&issued)), (0, sorted.to_owned()), "{}", stderr(&issued));
    let verified = verify(&folder, "one.pub", "sort", "input");
    assert_eq!((code(&verified), stdout(&verified)), (0, sorted.to_owned()));
    fs::write(folder.path("other"), "30 10 21 18446744073709551615").expect("other input");
    for (key, program, input, word) in [
        ("two.pub", "sort", "input", "another processor"),
        ("one.pub", "sum", "input", "another program"),
        ("one.pub", "sort", "other", "another input"),
    ] {
        let refused = verify(&folder, key, program, input);
        assert_eq!(code(&refused), 1, "{}", stderr(&refused));
        assert!(stderr(&refused).contains(word) && refused.stdout.is_empty(), "{word}");
    }
    // One bit of the result.
    let mut changed = fs::read(folder.path("certificate")).expect("the certificate");
    changed[112] ^= 1;
    fs::write(folder.path("certificate"), changed).expect("a changed certificate");
    let refused = verify(&folder, "one.pub", "sort", "input");
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("did not sign") && refused.stdout.is_empty());
}

/// LHash, section 3.1: with tampered memory nothing is signed, whenever it was.
#[test]
fn with_tampered_memory_nothing_is_signed() {
    let folder = machine_room("certified-tampered");
    for tamper in ["--tamper", "--tamper=1", "--tamper=7", "--tamper=100"] {
        let refused = certify(&folder, &[tamper, &example("sort")], "certificate");
        assert_eq!(code(&refused), 120, "{tamper}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("nothing was signed"), "{}", stderr(&refused));
        assert!(refused.stdout.is_empty() && !folder.path("certificate").exists(), "{tamper}");
    }
}

#[test]
fn programs_that_do_not_end_well_get_a_sentence() {
    let folder = machine_room("certified-traps");
    fs::write(folder.path("endless"), "here: jump here").expect("a program");
    fs::write(folder.path("typo"), "set r1, 2\nsit r1").expect("no program");
    fs::write(folder.path("wild"), "load r1, r4, 0").expect("a program");
    for (arguments, expected, word) in [
        (vec!["--steps=1000".to_owned(), folder.arg("endless")], 1, "1000 instructions"),
        (vec![folder.arg("typo")], 125, "line 2: there is no operation sit"),
        (vec![folder.arg("wild")], 1, "address"),
        (vec!["--memory=1G".to_owned(), example("sum")], 125, "--memory is 64M at most"),
        (vec!["--memory=1".to_owned(), example("sum")], 125, "--memory is 4K at least"),
        (vec!["--tamper=999999999".to_owned(), example("sort")], 125, "flipped no bit"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let refused = certify(&folder, &arguments, "certificate");
        assert_eq!(code(&refused), expected, "{arguments:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
        assert!(!folder.path("certificate").exists());
    }
    fs::write(folder.path("input"), "12 -3").expect("no input");
    assert_eq!(code(&certify(&folder, &[&example("sum")], "certificate")), 125);
}

/// A run of a real program; `None` where no program can be protected.
fn certified_run(folder: &Folder, flags: &[&str], words: &[&str], input: &str) -> Option<Output> {
    let (key, out) = (folder.arg("one"), folder.arg("certificate"));
    let fixed = ["run", "-q", "--clear", "8M", "--certify", &out, "--certify-key", &key];
    let run = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(fixed)
        .args(flags)
        .arg("--")
        .args(words)
        .stdin(fs::File::open(folder.path(input)).expect("the input"))
        .output()
        .expect("casemate runs");
    if code(&run) == 123 {
        eprintln!("SKIPPED certified_run: {}", stderr(&run));
        return None;
    }
    Some(run)
}

const HELD: [&str; 3] = ["--verify", "log-hash", "--hold-output"];

#[test]
fn a_certificate_of_a_run_names_program_arguments_input_and_output() {
    let folder = machine_room("certified-run");
    let words = ["/bin/sh", "-c", "cat; echo to standard error >&2; exit 5"];
    let Some(run) = certified_run(&folder, &HELD, &words, "input") else { return };
    assert_eq!(code(&run), 5, "{}", stderr(&run));
    fs::write(folder.path("output"), &run.stdout).expect("a copy of the output");
    let verify = |program: &str, input: &str, output: &str, words: &[&str]| {
        let (key, input, output) = (folder.arg("one.pub"), folder.arg(input), folder.arg(output));
        let certificate = folder.arg("certificate");
        let head = ["verify-certificate", "--json", "--key", &key, "--program", program];
        let tail = ["--input", &input, "--output", &output, &certificate, "--"];
        casemate(&[&head[..], &tail, words].concat())
    };
    let verified = verify("/bin/sh", "input", "output", &words[1..]);
    assert_eq!(code(&verified), 0, "{}", stderr(&verified));
    let said: serde_json::Value = serde_json::from_str(&stdout(&verified)).expect("JSON");
    assert_eq!(said["exit_code"], 5);
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    assert_eq!(said["stdout"]["blake3"], hash(&run.stdout));
    assert_eq!(said["stderr"]["blake3"], hash(b"to standard error\n"));
    fs::write(folder.path("other"), "something else").expect("another file");
    for (program, input, output, words, why) in [
        ("/bin/cat", "input", "output", &words[1..], "another program"),
        ("/bin/sh", "other", "output", &words[1..], "another input"),
        ("/bin/sh", "input", "other", &words[1..], "something else"),
        ("/bin/sh", "input", "output", &words[2..], "other arguments"),
    ] {
        let refused = verify(program, input, output, words);
        assert_eq!(code(&refused), 1, "{why}");
        assert!(stderr(&refused).contains(why) && refused.stdout.is_empty(), "{why}");
    }
    // A certificate is never replaced.
    let again = certified_run(&folder, &HELD, &words, "input").expect("as before");
    assert_eq!(code(&again), 125);
    assert!(again.stdout.is_empty(), "the program was started");
}

#[test]
fn what_was_not_checked_or_did_not_end_by_itself_is_not_certified() {
    let folder = machine_room("certified-not");
    let killed = ["/bin/sh", "-c", "kill -9 $$"];
    let Some(run) = certified_run(&folder, &HELD, &killed, "input") else { return };
    assert_eq!(code(&run), 137, "{}", stderr(&run));
    assert!(stderr(&run).contains("nothing was certified"), "{}", stderr(&run));
    let unprotected = [&HELD[..], &["--allow-unprotected"]].concat();
    for flags in [&[][..], &HELD[..2], &unprotected] {
        let refused = certified_run(&folder, flags, &["/bin/echo", "started"], "input");
        let refused = refused.expect("as before");
        assert_eq!(code(&refused), 125, "{flags:?}: {}", stderr(&refused));
        assert!(refused.stdout.is_empty(), "{flags:?}: the program was started");
    }
    assert!(!folder.path("certificate").exists());
}

#[test]
fn output_whose_reader_went_away_is_not_certified() {
    let folder = machine_room("certified-reader");
    let (key, out) = (folder.arg("one"), folder.arg("certificate"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["run", "-q", "--clear", "8M", "--certify", &out, "--certify-key", &key])
        .args(HELD)
        .args(["--check-every", "100ms", "--", "/bin/sh", "-c"])
        .arg("trap '' PIPE; echo one; sleep 1; echo two; sleep 1; echo three; exit 0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("casemate runs");
    drop(child.stdout.take());
    let run = child.wait_with_output().expect("it ends");
    if code(&run) == 123 {
        return eprintln!("SKIPPED certified_run: {}", stderr(&run));
    }
    assert_eq!(code(&run), 125, "{}", stderr(&run));
    assert!(stderr(&run).contains("nothing was certified"), "{}", stderr(&run));
    assert!(!folder.path("certificate").exists());
}
