//! Keys of pages: rotated, hidden and forgotten under programs that read all the time what they
//! wrote.

mod common;

use common::door::{Set, set_keys};
use common::keeper::{assert_no_mismatch, oracle, without_secret_memory};
use common::scan::marker;
use common::{Done, Run, Scratch, casemate, loud, poll, root, skip, traps};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SWTPM: &str = "/usr/bin/swtpm";
/// A busy machine has all this time for what takes 15 seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// The oracle, which reads and compares, forks and moves, with these flags, for so long that a
/// rotation comes to its end meanwhile: it rests between pages, and how many accesses are made
/// until it has ended depends on the machine.
fn under(flags: &[&str], seed: u64, name: &str) -> Done {
    const ACCESSES: [u64; 3] = [20_000_000, 80_000_000, 320_000_000];
    let flags = [&["--clear", "8M"], flags].concat();
    for accesses in ACCESSES {
        let scratch = Scratch::new(name);
        let run = oracle(accesses, seed).protected(&flags, scratch.path());
        let done = run.seconds(600).finish();
        assert_no_mismatch(&done);
        done.good(name).really_paged(name);
        if count(&done, "key_rotations") > 0 {
            return done;
        }
        loud(&format!("NOTE: {name}: no rotation has ended within {accesses} accesses"));
    }
    panic!("{name}: no rotation came to its end");
}

fn count(done: &Done, name: &str) -> u64 {
    done.statistics("keys").number(name)
}

#[test]
fn keys_are_rotated_while_a_program_reads_what_it_wrote() {
    let done = under(&["--rotate", "1s"], 41, "rotate");
    assert!(count(&done, "resealed_pages") > 0);
    assert_eq!(count(&done, "root_reveals"), 0, "nothing was hidden");
}

/// As often as that is asked for: one after another, and by several at once, of which those are
/// refused that come while another's goes on.
#[test]
fn keys_are_rotated_when_that_is_asked_for() {
    let scratch = Scratch::new("rotate-asked");
    let sign = scratch.join("goes-on");
    std::fs::write(&sign, "").expect("a file");
    let run = oracle(2_000_000, 46).with_words(&["--file", sign.to_str().expect("a path of ours")]);
    let run = run.protected(&["--clear", "8M"], scratch.path()).seconds(600).start();
    let front = run.pid;
    // Refused until the run has begun.
    poll("pages are stored", LIMIT, || {
        let json = set_keys(front).json?;
        (json.number("resealed_pages") > 0).then_some(())
    });
    let (one_by_one, mut rotated) = (3, 0);
    for _ in 0..one_by_one {
        let Set { code, stderr, .. } = set_keys(front);
        assert_eq!(code, 0, "{stderr}");
    }
    let at_once: Vec<_> = (0..4).map(|_| std::thread::spawn(move || set_keys(front))).collect();
    for caller in at_once {
        let Set { code, stderr, .. } = caller.join().expect("it asked");
        let is_refused = code == 1 && stderr.contains("rotates its keys already");
        assert!(code == 0 || is_refused, "{code}, {stderr}");
        rotated += u64::from(code == 0);
    }
    assert!(rotated > 0, "none was made");
    std::fs::remove_file(sign).expect("it is there");
    let done = run.finish();
    assert_no_mismatch(&done);
    done.good("rotate-asked").really_paged("rotate-asked");
    assert!(count(&done, "key_rotations") > one_by_one + rotated);
}

/// The Crypt is full, and pages go to the swap file and come from there.
#[test]
fn keys_are_rotated_of_pages_in_the_swap_file() {
    let scratch = Scratch::new("rotate-swap");
    let swap = scratch.join("swap");
    let swap = swap.to_str().expect("a path of ours");
    let flags =
        ["--rotate", "1s", "--crypt-limit", "8M", "--swap", swap, "--heal", "--scrub", "1s"];
    let done = under(&flags, 42, "rotate-swap");
    assert!(count(&done, "swap_pages_in") > 0, "vacuous: nothing came from the swap file");
}

#[test]
fn roots_come_out_of_memory_that_decays_when_they_are_needed() {
    let flags = ["--rotate", "1s", "--key-hiding", "exposure-resilient:64K"];
    let done = under(&flags, 43, "exposure-resilient");
    assert!(count(&done, "root_reveals") > 0, "they never came out");
}

/// A simulated TPM at a socket.
struct Tpm {
    program: Child,
    socket: PathBuf,
}

impl Tpm {
    fn start(scratch: &Scratch) -> Self {
        // The path of a socket is short.
        let socket = scratch.join("t");
        let at = |what: &str, path: &Path| format!("{what}{}", path.display());
        let program = Command::new(SWTPM)
            .args(["socket", "--tpm2", "--flags", "startup-clear"])
            .args(["--tpmstate", &at("dir=", scratch.path())])
            .args(["--server", &at("type=unixio,path=", &socket)])
            .args(["--ctrl", &at("type=unixio,path=", &scratch.join("c"))])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it is installed");
        let tpm = Tpm { program, socket };
        poll("the TPM listens", LIMIT, || tpm.socket.exists().then_some(()));
        tpm
    }

    fn flag(&self) -> String {
        format!("tpm:{}", self.socket.display())
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Drop for Tpm {
    fn drop(&mut self) {
        self.end();
    }
}

fn has_tpm(test: &str) -> bool {
    let has = Path::new(SWTPM).exists();
    if !has {
        skip(test, "swtpm is not installed");
    }
    has
}

#[test]
fn roots_come_out_of_a_tpm_when_they_are_needed() {
    if !has_tpm("keys (tpm)") {
        return;
    }
    let scratch = Scratch::new("tpm");
    let tpm = Tpm::start(&scratch);
    let done = under(&["--rotate", "1s", "--key-hiding", &tpm.flag()], 44, "tpm");
    assert!(count(&done, "root_reveals") > 0, "they never came out");
}

/// A TPM has room for three objects, and nothing here takes back what a process leaves in it.
#[test]
fn runs_leave_nothing_in_a_tpm() {
    if !has_tpm("keys (tpm, many runs)") {
        return;
    }
    let scratch = Scratch::new("tpm-runs");
    let tpm = Tpm::start(&scratch);
    for run in 0..6 {
        let flags = ["run", "-q", "--key-hiding", &tpm.flag(), "--", "true"];
        let done = Command::new(casemate()).args(flags).output().expect("casemate starts");
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "run {run}: {stderr}");
    }
}

/// Its keys are lost, and no page is opened without its own.
#[test]
fn a_tpm_that_ends_stops_the_run_with_its_reason() {
    if !has_tpm("keys (tpm that ends)") {
        return;
    }
    let scratch = Scratch::new("tpm-ends");
    let mut tpm = Tpm::start(&scratch);
    let flags = ["--clear", "8M", "--rotate", "1s", "--key-hiding", &tpm.flag()];
    let run = oracle(2_000_000_000, 45).protected(&flags, scratch.path()).seconds(600);
    let mut run = run.start();
    run.busy_keeper(20);
    tpm.end();
    let done = run.finish();
    assert_no_mismatch(&done);
    done.ended_with(122, "the TPM has ended");
    assert!(done.stderr.contains("TPM"), "it says why: {}", done.stderr);
}

#[test]
fn a_place_that_is_not_there_stops_a_run_before_its_program_starts() {
    let flags = ["run", "--key-hiding", "tpm:/nowhere/tpm", "--", "echo", "started"];
    let done = Command::new(casemate()).args(flags).output().expect("casemate starts");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(122), &b""[..]), "{stderr}");
    assert!(stderr.contains("/nowhere/tpm") && stderr.contains("never started"), "{stderr}");
}

/// Without secret memory keys can be looked for.
#[test]
fn keys_that_nothing_uses_leave_memory_and_come_again() {
    const TEST: &str = "keys (idle)";
    if !root() {
        return skip(TEST, "only root may read a keeper's memory");
    }
    if !Path::new("/usr/bin/python3").exists() {
        return skip(TEST, "python3 is not installed");
    }
    let (digits, _) = marker();
    let traps = traps();
    let words = ["marker", "--mib", "48", "--marker", &digits, "--seconds", "300"];
    let words = [traps.as_os_str()].into_iter().chain(words.map(OsStr::new));
    let run: Run = without_secret_memory(&["--clear", "8M"], words).with_input();
    let mut run = run.start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    assert!(run.key_schedules() > 0, "vacuous: none is found while they are in use");
    poll("its keys are forgotten", LIMIT, || (run.key_schedules() == 0).then_some(()));
    run.input = None;
    run.finish().good("it reads all of its pages");
}
