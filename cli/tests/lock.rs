//! `casemate lock` and `casemate unlock`, as far as no run gets locked.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Run, root, run, stderr, stdout};
use serde_json::Value;

const CASEMATE: &str = env!("CARGO_BIN_EXE_casemate");

/// A public key: RFC 7748, section 6.1.
const KEY: &str = r#"{"salt":"000102030405060708090a0b0c0d0e0f","memory-kib":8192,"passes":1,
"public":"8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"}"#;

fn one_sentence(text: &str) {
    assert!(text.starts_with("casemate: "), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}

/// Runs with this on standard input.
fn fed(words: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(CASEMATE)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("casemate starts");
    // Who refuses does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    Run { code: common::code(&output), stdout: stdout(&output), stderr: stderr(&output) }
}

/// `casemate run` of a program that says that it has begun, and waits; killed when dropped.
struct Sleeper(Child);

impl Sleeper {
    /// None where this machine cannot protect.
    fn begin() -> Option<Self> {
        let mut child = Command::new(CASEMATE)
            .args(["run", "-q", "--clear", "64M", "--", "sh", "-c", "echo begun; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("casemate starts");
        let mut said = [0; 6];
        let read = child.stdout.take().expect("a pipe").read_exact(&mut said);
        let sleeper = Sleeper(child);
        if read.is_err() {
            eprintln!("NOTE: skipped, since this machine cannot protect");
            return None;
        }
        assert_eq!(&said, b"begun\n");
        Some(sleeper)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Whether the program goes on: it ends when it reads.
    fn ends_well(mut self) -> bool {
        drop(self.0.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                // `read` of no line ends with 1.
                return status.code() == Some(1);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    for words in [
        &["lock"][..],
        &["lock", "0"],
        &["lock", "1", "--all"],
        &["lock", "1", "--make-key", "/nonexistent/key"],
        &["lock", "--all", "--make-key", "/nonexistent/key"],
        &["lock", "1", "--key", "a", "--passphrase-file", "b"],
        &["lock", "--make-key", "/nonexistent/key", "--key", "a"],
        &["lock", "1", "2"],
        &["lock", "1", "--key"],
        &["lock", "1", "--passphrase", "secret"],
        &["unlock"],
        &["unlock", "init"],
        &["unlock", "1", "--all"],
        &["unlock", "1", "--key", "a"],
        &["unlock", "--make-key", "a"],
    ] {
        let refused = run(words);
        assert_eq!(refused.code, 125, "{words:?}: {}", refused.stderr);
        assert!(!refused.stderr.contains("panicked"), "{words:?}: {}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn no_process_and_no_run_are_told_apart_before_anything_is_asked() {
    let own = std::process::id().to_string();
    for command in ["lock", "unlock"] {
        // Process ids end below this.
        for (pid, sentence) in [("2147483647", "there is no process"), (&own, "belongs to no run")]
        {
            let none = run(&[command, pid, "--passphrase-file", "/nonexistent/passphrase"]);
            assert_eq!(none.code, 1, "{}", none.stderr);
            one_sentence(&none.stderr);
            assert!(none.stderr.contains(sentence), "{}", none.stderr);
        }
    }
}

#[test]
fn a_key_is_made_once_and_holds_nothing_secret() {
    let folder = Folder::new("make-key");
    let file = folder.arg("lock.key");
    let words = ["lock", "--make-key", &file, "--passphrase-file", "-"];
    let made = fed(&words, b"correct horse\n");
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stdout.contains(&format!("casemate lock --key {file} PID")), "{}", made.stdout);
    let text = fs::read_to_string(&file).expect("the key");
    let key: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&key["memory-kib"], &key["passes"]), (&262_144.into(), &3.into()), "{text}");
    assert_eq!(key["salt"].as_str().map(str::len), Some(32));
    assert_eq!(key["public"].as_str().map(str::len), Some(64));
    assert_eq!(key.as_object().map(|all| all.len()), Some(4), "{text}");
    let mode = fs::metadata(&file).expect("the key").permissions().mode();
    assert_eq!(mode & 0o137, 0o004 & mode, "no other user may write it: {mode:o}");

    // It is refused before a passphrase is asked for: this file of one is not there.
    let again = run(&["lock", "--make-key", &file, "--passphrase-file", "/nonexistent/passphrase"]);
    assert_eq!(again.code, 125);
    one_sentence(&again.stderr);
    assert!(again.stderr.contains("exists already, and is not replaced"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(&file).expect("the key"), text);
}

#[test]
fn a_key_goes_to_standard_output_and_its_report_to_json() {
    let words = ["lock", "--make-key", "-", "--passphrase-file", "-"];
    let both = fed(&[&words[..], &["--json"]].concat(), b"horse\n");
    assert_eq!((both.code, both.stdout.as_str()), (125, ""), "{}", both.stderr);
    let made = fed(&words, b"horse\n");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let key: Value = serde_json::from_str(&made.stdout).expect("the key alone");
    assert!(made.stderr.contains("key made: "), "{}", made.stderr);
    assert!(key["public"].is_string());
}

#[test]
fn a_passphrase_that_is_none_is_refused() {
    let folder = Folder::new("no-passphrase");
    let file = folder.arg("lock.key");
    let words = ["lock", "--make-key", &file, "--passphrase-file", "-"];
    let long = vec![b'x'; 1025];
    for (input, sentence) in
        [(&b""[..], "is empty"), (b"\n", "is empty"), (&long, "longer than the 1024 bytes")]
    {
        let refused = fed(&words, input);
        assert_eq!(refused.code, 125, "{}", refused.stderr);
        one_sentence(&refused.stderr);
        assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
    }
    let none = run(&["lock", "--make-key", &file, "--passphrase-file", &folder.arg("none")]);
    assert_eq!(none.code, 125);
    assert!(none.stderr.contains("cannot read the passphrase from"), "{}", none.stderr);
    assert!(!folder.path("lock.key").exists());
}

#[test]
fn a_run_is_not_locked_under_what_is_no_key() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let folder = Folder::new("bad-key");
    for (content, sentence) in [
        ("", "it is another file, or cut"),
        (&KEY.replace("8192", "4294967295"), "8 MiB to 4 GiB are allowed"),
        (&KEY.replace("\"passes\":1", "\"passes\":65"), "1 to 64 are allowed"),
        (
            &KEY.replace(
                "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
                &"0".repeat(64),
            ),
            "no public key of X25519",
        ),
        (&KEY.replace("\"passes\"", "\"lanes\":4,\"passes\""), "unknown field"),
    ] {
        fs::write(folder.path("key"), content).expect("the folder is ours");
        let refused = run(&["lock", &sleeper.pid(), "--key", &folder.arg("key")]);
        assert_eq!(refused.code, 125, "{}", refused.stderr);
        one_sentence(&refused.stderr);
        assert!(refused.stderr.contains(sentence), "{sentence}: {}", refused.stderr);
    }
    assert!(sleeper.ends_well());
}

#[test]
fn a_run_that_is_not_locked_is_not_unlocked_and_nobody_is_asked_for_a_passphrase() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let words = ["unlock", &sleeper.pid(), "--passphrase-file", "/nonexistent/passphrase"];
    let refused = run(&words);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    one_sentence(&refused.stderr);
    let sentence = format!("run {} is not locked", sleeper.pid());
    assert!(refused.stderr.contains(&sentence), "{}", refused.stderr);

    let refused = run(&[&words[..], &["--json"]].concat());
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let report: Value = serde_json::from_str(&refused.stdout).expect("one JSON object");
    assert_eq!(report["runs"][0]["run"].to_string(), sleeper.pid());
    assert_eq!(report["runs"][0]["outcome"], "failed");
    assert!(report["runs"][0]["why"].as_str().is_some_and(|why| why.contains("is not locked")));
    assert!(sleeper.ends_well());
}

/// What a process that waits for a passphrase shows of itself.
#[test]
fn a_process_that_reads_a_passphrase_leaves_no_core_and_is_not_swapped() {
    let folder = Folder::new("hidden");
    let mut child = Command::new(CASEMATE)
        .args(["lock", "--make-key", &folder.arg("key"), "--passphrase-file", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("casemate starts");
    let proc = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id()));
    // It has asked for its input when it is in `read` of descriptor 0 (call 0 of x86-64).
    let deadline = Instant::now() + Duration::from_secs(20);
    while root() && !proc("syscall").is_ok_and(|call| call.starts_with("0 0x0 ")) {
        assert!(Instant::now() < deadline, "it does not read");
        std::thread::sleep(Duration::from_millis(5));
    }
    if root() {
        let limits = proc("limits").expect("it lives");
        let core = limits.lines().find(|line| line.starts_with("Max core file size"));
        let words: Vec<&str> = core.expect("a limit").split_whitespace().collect();
        assert_eq!(words[4..6], ["0", "0"], "{limits}");
        let status = proc("status").expect("it lives");
        let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let locked_kib = locked.and_then(|text| text.trim().strip_suffix(" kB"));
        let locked_kib: u64 = locked_kib.and_then(|kib| kib.trim().parse().ok()).expect("a number");
        assert!(locked_kib > 0, "{status}");
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(125), "an empty passphrase");
}
