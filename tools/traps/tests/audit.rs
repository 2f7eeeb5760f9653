//! `casemate audit`: it finds what can be read, by the tests' own search and the kernel's count; it
//! finds keys, and none of the run's own; and it harms nothing and brings nothing into the Clear.

mod common;

use common::keeper::{assert_no_mismatch, steady_oracle, without_secret_memory};
use common::run::Running;
use common::scan::{marked_frames, marker};
use common::{Run, Scratch, casemate, processes, root, sampler, skip, traps};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const PAGE: u64 = casemate_core::PAGE_BYTES as u64;
const CLEAR: u64 = 8 * MIB;
/// Pages that hold the marker outside the planted ones (the parsed command line, a stack frame).
const SLACK_PAGES: u64 = 8;

/// What an audit came to.
struct Audit {
    code: i32,
    stderr: String,
    json: Value,
}

fn audit(pid: i32, words: &[&str]) -> Audit {
    let pid = pid.to_string();
    let words = ["audit", &pid, "--json"].into_iter().chain(words.iter().copied());
    let done = Command::new(casemate()).args(words).output().expect("casemate starts");
    Audit {
        code: done.status.code().expect("it is not killed"),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        json: serde_json::from_slice(&done.stdout).unwrap_or_default(),
    }
}

impl Audit {
    fn number(&self, pointer: &str) -> u64 {
        let number = self.json.pointer(pointer).and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("no {pointer} in {} {}", self.json, self.stderr))
    }

    /// The sum of the counts of places that are so.
    fn count(&self, places: &str, is_wanted: impl Fn(&Value) -> bool) -> u64 {
        let places = self.json.pointer(places).and_then(Value::as_array).expect("a list");
        let wanted = places.iter().filter(|place| is_wanted(place));
        wanted.filter_map(|place| place["count"].as_u64()).sum()
    }
}

fn needs_root(test: &str) -> bool {
    if !root() {
        skip(test, "only root may read a keeper's memory");
    }
    root()
}

/// A program with a marker in each of its pages, that sleeps until its input ends.
fn planted(marker: &str, mib: u64, flags: &[&str], scratch: &Scratch) -> Running {
    let (traps, mib) = (traps(), mib.to_string());
    let words = ["marker", "--mib", &mib, "--marker", marker, "--seconds", "300"].map(OsStr::new);
    let run = Run::plain([traps.as_os_str()].into_iter().chain(words)).with_input();
    let mut run = run.protected(flags, scratch.path()).without_ballast().start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    run
}

/// By the tests' own search.
fn marked_pages(run: &Running, marker: &[u8; 16]) -> u64 {
    let family = run.family().into_iter().filter(|pid| !processes::agent(*pid));
    family.flat_map(|pid| marked_frames(pid, marker)).collect::<BTreeSet<u64>>().len() as u64
}

#[test]
fn a_marker_is_found_in_the_clear_and_not_in_the_swap_file() {
    if !needs_root("audit (marker)") {
        return;
    }
    let scratch = Scratch::new("audit");
    let swap = scratch.join("swap").to_string_lossy().into_owned();
    let (digits, bytes) = marker();
    let flags = ["--clear", "8M", "--crypt-limit", "16M", "--swap", &swap];
    let mut run = planted(&digits, 64, &flags, &scratch);
    let before = marked_pages(&run, &bytes);
    let found = audit(run.pid, &["--marker", &format!("hex:{digits}"), "--marker", &digits]);
    let after = marked_pages(&run, &bytes);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert_eq!(found.json["found"], true);
    let is_in = |class: &'static str| move |place: &Value| place["class"] == class;
    let places = "/markers/0/places";
    let count = found.number("/markers/0/count");
    assert!(count > CLEAR / PAGE / 2, "{count} pages are too few");
    assert!(count <= CLEAR / PAGE + SLACK_PAGES, "{count} pages are more than the Clear has");
    assert!(count.abs_diff(before) <= SLACK_PAGES, "{count}, by the tests' own search {before}");
    assert!(found.count(places, is_in("protected")) > count / 2, "{}", found.json["markers"]);
    assert_eq!(found.count(places, is_in("swap-file")), 0, "{}", found.json["markers"]);
    assert!(found.number("/swap_file_bytes") > 8 * MIB, "vacuous: little was on swap");
    assert!(after <= before, "{before} pages held the marker before the audit, {after} after");
    // Its digits are an argument: of the front's, in memory of ours.
    let in_front = |place: &Value| place["role"] == "front" && place["class"] == "ours";
    assert!(found.count("/markers/1/places", in_front) > 0, "{}", found.json["markers"]);
    agrees_with_the_kernel(&run, &found);
    run.input = None;
    run.finish().good("marker").really_paged("marker");
}

/// The kernel's own count has an agent's memory too, and pages of the program on their way.
fn agrees_with_the_kernel(run: &Running, found: &Audit) {
    const TOLERANCE: u64 = 512 << 10;
    let bytes = |class: &str| found.json["bytes"][class].as_u64().unwrap_or(0);
    let ours = bytes("protected") + bytes("unprotected") + bytes("file-copies");
    let kernel = sampler::now(run.pid, &casemate());
    assert!(ours.abs_diff(kernel) <= TOLERANCE, "{ours} bytes, by the kernel {kernel}");
    assert_eq!(found.json["shared_counted_once"], true);
    assert!(bytes("secret") > 0, "no secret memory was seen: {}", found.json["bytes"]);
}

#[test]
fn memory_without_the_marker_has_none() {
    if !needs_root("audit (nothing)") {
        return;
    }
    let scratch = Scratch::new("audit-nothing");
    let mut run = planted("00112233445566778899aabbccddeeff", 24, &["--clear", "8M"], &scratch);
    let (_, other) = marker();
    let other: String = other.iter().map(|byte| format!("{byte:02x}")).collect();
    let found = audit(run.pid, &["--marker", &format!("hex:{other}")]);
    assert_eq!((found.code, found.number("/markers/0/count")), (0, 0), "{}", found.stderr);
    assert_eq!(found.json["swap_file_bytes"], Value::Null);
    run.input = None;
    run.finish().good("marker");
}

#[test]
fn what_sleeps_leaves_the_clear_while_it_is_watched() {
    if !needs_root("audit (watch)") {
        return;
    }
    let scratch = Scratch::new("audit-watch");
    let flags = ["--clear", "1G", "--idle", "1s"];
    let mut run = planted("00112233445566778899aabbccddeeff", 48, &flags, &scratch);
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let seen = audit(run.pid, &["--watch", "--seconds", "2"]);
        assert_eq!(seen.code, 0, "{}", seen.stderr);
        assert!(seen.stderr.is_empty(), "a progress line in a pipe: {}", seen.stderr);
        let looks = seen.number("/watched/looks");
        assert!((2..=21).contains(&looks), "{looks} looks in two seconds");
        let [mean, most, last] = ["mean", "most", "last"]
            .map(|which| seen.number(&format!("/watched/exposed_bytes_{which}")));
        assert!(mean <= most && last <= most, "{}", seen.json["watched"]);
        let cut_off = seen.number("/watched/stays_cut_off/count");
        assert!(cut_off > 0, "some page stays all the time: {}", seen.json["watched"]);
        if most < 2 * MIB {
            break;
        }
        assert!(Instant::now() < deadline, "it does not leave: {}", seen.json["watched"]);
    }
    run.input = None;
    let done = run.finish();
    assert!(
        done.good("marker").statistics("marker").number("idle_evictions") > 48 * MIB / PAGE / 2
    );
}

#[test]
fn a_busy_run_shows_no_key_and_is_not_harmed() {
    if !needs_root("audit (busy)") {
        return;
    }
    let scratch = Scratch::new("audit-busy");
    let mut run = steady_oracle(40_000_000, 7, &[], &scratch).start();
    let keeper = run.busy_keeper(5);
    // Some seconds' worth, while it pages all the time.
    const AUDITS: u64 = 9;
    let (mut audits, mut whole) = (0, 0);
    while run.goes_on() && audits < AUDITS {
        let words: &[&str] = if audits % 3 == 2 { &["--watch", "--seconds", "1"] } else { &[] };
        let seen = audit(run.pid, words);
        if seen.json.is_null() {
            assert_eq!(seen.code, 125, "{}", seen.stderr);
            continue;
        }
        assert_eq!((seen.code, &seen.json["keys"]), (0, &Value::Array(vec![])), "{}", seen.stderr);
        assert_eq!(seen.number("/keeper"), keeper as u64);
        whole += seen.json.pointer("/watched/stays/count").and_then(Value::as_u64).unwrap_or(0);
        audits += 1;
    }
    let done = run.finish();
    assert_no_mismatch(done.good("oracle").really_paged("oracle"));
    assert!(done.stdout.ends_with(b"ok oracle\n"));
    assert!(audits >= 3 && whole > 0, "{audits} audits and {whole} whole stays are too few");
}

/// That of AES-128 for the key `casemate key 001`, as FIPS 197 expands it. It has no zero byte, so
/// that it can be an argument.
const SCHEDULE: &str = "\
    636173656d617465206b6579203030316665b4d20b04c0b72b6fa5ce0b5f95ff\
    ab4fa2f9a04b624e8b24c780807b527f8e4f70342e04127aa520d5fa255b8785\
    bf58e70b915cf571347c208b1127a70e63044c89f258b9f8c6249973d7033e7d\
    38b6b387caee0a7f0cca930cdbc9ad71a523103e6fcd1a416307894db8ce243c\
    ae15fb52c1d8e113a2df685e1a114c62373c51f0f6e4b0e3543bd8bd4e2a94df\
    e41ecfdf12fa7f3c46c1a78108eb335e";

fn started<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>, scratch: &Scratch) -> Running {
    let run = Run::plain(words).with_input().protected(&["--clear", "8M"], scratch.path());
    let mut run = run.without_ballast().start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    run
}

#[test]
fn a_programs_own_key_is_found_and_told_apart() {
    const TEST: &str = "audit (a program's key)";
    if !needs_root(TEST) {
        return;
    }
    if Command::new("/usr/bin/python3").arg("--version").output().is_err() {
        return skip(TEST, "python3 is not installed");
    }
    let scratch = Scratch::new("audit-key");
    let script = format!(
        "import sys; key = bytes.fromhex('{SCHEDULE}'); print('ready', flush=True); sys.stdin.read()"
    );
    let mut run = started(["/usr/bin/python3", "-c", &script], &scratch);
    let found = audit(run.pid, &[]);
    assert_eq!((found.code, &found.json["found"]), (0, &Value::Bool(false)), "{}", found.stderr);
    let is_own =
        |key: &Value| key["bits"] == 128 && key["ours"] == false && key["role"] == "program";
    assert!(found.count("/keys", is_own) > 0, "{}", found.json["keys"]);
    assert_eq!(found.count("/keys", |key| key["ours"] == true), 0, "{}", found.json["keys"]);
    run.input = None;
    run.finish().good("python");
}

/// An argument lies in the front's memory too, where no key may be.
#[test]
fn a_key_in_memory_of_casemates_own_is_a_find() {
    if !needs_root("audit (a key of ours)") {
        return;
    }
    let scratch = Scratch::new("audit-our-key");
    let byte = |at| u8::from_str_radix(&SCHEDULE[at..at + 2], 16).expect("two digits");
    let schedule: Vec<u8> = (0..SCHEDULE.len()).step_by(2).map(byte).collect();
    // Of four copies, each a byte further, one begins at a word.
    let copies = OsString::from_vec([&schedule[..]; 4].join(&b'-'));
    let sh = ["sh", "-c", "echo ready; read line; exit 0", "sh"].map(OsString::from);
    let mut run = started(sh.into_iter().chain([copies]), &scratch);
    let found = audit(run.pid, &[]);
    assert_eq!((found.code, &found.json["found"]), (1, &Value::Bool(true)), "{}", found.stderr);
    let is_ours = |key: &Value| key["ours"] == true && key["role"] == "front";
    assert!(found.count("/keys", is_ours) > 0, "{}", found.json["keys"]);
    run.input = None;
    run.finish().good("sh");
}

/// Two processes have 16 MiB of one memory, and a child has its parent's 8 MiB.
#[test]
fn what_processes_share_is_counted_once() {
    const TEST: &str = "audit (shared memory)";
    const SCRIPT: &str = "
import mmap, os, sys
shared, private = mmap.mmap(-1, 16 << 20), mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for memory in shared, private: memory[:] = b'shared by two' + b'x' * (len(memory) - 13)
if os.fork() == 0:
    right = all(memory[:13] == b'shared by two' and memory[-1] == 120 for memory in (shared, private))
    print('ready', flush=True)
    sys.stdin.read()
    os._exit(not right)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
";
    if !needs_root(TEST) {
        return;
    }
    if Command::new("/usr/bin/python3").arg("--version").output().is_err() {
        return skip(TEST, "python3 is not installed");
    }
    let scratch = Scratch::new("audit-shared");
    let run = Run::plain(["/usr/bin/python3", "-c", SCRIPT]).with_input();
    let run = run.protected(&["--clear", "1G", "--bound", "lazy"], scratch.path());
    let mut run = run.without_ballast().start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    let found = audit(run.pid, &[]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(found.number("/bytes/shared"), 16 * MIB);
    agrees_with_the_kernel(&run, &found);
    run.input = None;
    run.finish().good("python");
}

/// Without secret memory the keeper's keys are where they can be read: the search knows one that is
/// in use, and its schedule as the cipher has it.
#[test]
fn the_keepers_own_key_is_found_where_there_is_no_secret_memory() {
    const TEST: &str = "audit (no secret memory)";
    if !needs_root(TEST) {
        return;
    }
    if Command::new("/usr/bin/python3").arg("--version").output().is_err() {
        return skip(TEST, "python3 is not installed");
    }
    let traps = traps();
    let marker = ["marker", "--mib", "24", "--marker", "00112233445566778899aabbccddeeff"];
    let words = [traps.as_os_str()].into_iter().chain(marker.map(OsStr::new));
    let mut run = without_secret_memory(&["--clear", "8M"], words).with_input().start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    let found = audit(run.pid, &[]);
    assert_eq!((found.code, &found.json["found"]), (1, &Value::Bool(true)), "{}", found.stderr);
    let is_the_keepers =
        |key: &Value| key["bits"] == 256 && key["ours"] == true && key["role"] == "keeper";
    assert!(found.count("/keys", is_the_keepers) > 0, "{}", found.json["keys"]);
    assert_eq!(found.json["bytes"]["secret"], Value::Null);
    run.input = None;
    run.finish().good("marker");
}

#[test]
fn a_watch_ends_with_the_run() {
    if !needs_root("audit (the run's end)") {
        return;
    }
    let scratch = Scratch::new("audit-end");
    let mut run = planted("00112233445566778899aabbccddeeff", 16, &["--clear", "8M"], &scratch);
    let pid = run.pid;
    let words = ["audit", &pid.to_string(), "--watch"];
    let mut watcher = Command::new(casemate());
    let mut watcher = watcher.args(words).stdout(Stdio::piped()).spawn().expect("casemate starts");
    let mut lines = BufReader::new(watcher.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().transpose().expect("text");
    // What the one look found is said before the watch.
    while next().expect("a line about keys").split_whitespace().next() != Some("AES") {}
    run.input = None;
    run.finish().good("marker");
    let watched = next().expect("a line about what was watched");
    assert!(
        watched.starts_with("  watched ") && watched.contains(" exposed on average"),
        "{watched}"
    );
    assert!(watcher.wait().expect("it ends").success());
    let late = audit(pid, &[]);
    assert_eq!(late.code, 125, "{}", late.stderr);
    assert_eq!(late.stderr.trim_end().lines().count(), 1, "{}", late.stderr);
}

#[test]
fn a_process_of_the_run_is_refused() {
    let casemate = casemate();
    let script = "\"$0\" audit $PPID; echo code $?";
    let run = Run::plain(["sh".as_ref(), "-c".as_ref(), script.as_ref(), casemate.as_os_str()]);
    let scratch = Scratch::new("audit-inside");
    let done = run.protected(&["--clear", "8M"], scratch.path()).finish();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "code 125\n", "{}", done.stderr);
    assert!(done.stderr.contains("give the command from outside"), "{}", done.stderr);
}
