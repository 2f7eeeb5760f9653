//! `casemate set`: the bound holds for another size as soon as it was answered, by the kernel's own
//! count; the program reads what it wrote meanwhile; and no other user or process of the run
//! changes it.

mod common;

use common::door::{Caller, Set, set};
use common::keeper::oracle;
use common::run::{ALLOWANCE, Running};
use common::sampler::{self, Sampler, Seen};
use common::{Run, Scratch, casemate, processes, root, skip, tally, traps};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// The sizes that take turns, in MiB.
const SIZES: [u64; 4] = [8, 32, 6, 64];
/// How long a size is looked at, once it is in force.
const WHILE: Duration = Duration::from_millis(150);
const MARKER: &str = "00112233445566778899aabbccddeeff";

/// Each is looked at with no other's run beside it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A program that sleeps until its input ends, and then checks its memory.
fn asleep(mib: u64, mode: &str, flags: &[&str], scratch: &Scratch) -> Running {
    let mib = mib.to_string();
    let words = ["marker", "--marker", MARKER, "--mib", &mib, "--mode", mode, "--seconds", "300"];
    let run = Run::plain([traps().to_str().expect("a path of ours")].into_iter().chain(words));
    let run = run.with_input().protected(flags, scratch.path());
    let mut run = run.without_ballast().start();
    run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
    run
}

fn woken(mut run: Running, what: &str) -> common::Done {
    run.input = None;
    let done = run.finish();
    done.good(what);
    done.kept_its_bound(what);
    done
}

/// What the kernel counts for a while, from now on.
fn seen_for_a_while(run: &Running) -> Seen {
    let sampler = Sampler::start(run.pid, &casemate());
    std::thread::sleep(WHILE);
    sampler.finish()
}

fn has_ended_by(run: &mut Running, deadline: Instant) -> bool {
    while run.goes_on() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Sets one size after the other until the run ends, and looks at each.
fn sizes_in_turn(mut run: Running, what: &str) -> common::Done {
    let (mut changes, mut slowest, mut latest) = (0, Duration::ZERO, 0);
    run.wait_until("its door is open", |run| Caller::at(run).map(drop));
    for size in SIZES.into_iter().cycle() {
        if !run.goes_on() {
            break;
        }
        let begun = Instant::now();
        let Set { code, stderr, json } = set(run.pid, &format!("{size}M"));
        slowest = slowest.max(begun.elapsed());
        // The door of a run that is ending is shut.
        if json.is_none() && has_ended_by(&mut run, Instant::now() + Duration::from_secs(5)) {
            break;
        }
        let json = json.unwrap_or_else(|| panic!("{what}, {size} MiB: {stderr}"));
        assert_eq!((code, json.number("clear_bytes")), (0, size * MIB));
        let seen = seen_for_a_while(&run);
        tally::outside(seen.most_bytes > size * MIB + ALLOWANCE);
        assert!(
            seen.most_bytes <= size * MIB + ALLOWANCE,
            "{what}: {} KiB of plaintext in a Clear of {size} MiB: {seen:?}",
            seen.most_bytes >> 10
        );
        (changes, latest) = (changes + 1, size);
    }
    let done = run.finish();
    println!("{what}: {changes} sizes, the slowest after {slowest:?}, {latest} MiB last");
    done.good(what);
    done.kept_its_bound(what);
    assert!(changes >= 8, "{what}: {changes} sizes are too few to judge by");
    let statistics = done.statistics(what);
    let told = ["clear_bytes_limit_least", "clear_bytes_limit"].map(|key| statistics.number(key));
    assert_eq!(told, [6 * MIB, 64 * MIB]);
    assert!(statistics.number("clear_size_changes") >= changes);
    assert!(statistics.number("clear_bytes_excess_peak") <= ALLOWANCE);
    done
}

/// It reads and writes 48 MiB at random in four threads, and maps, moves and drops them.
#[test]
fn sizes_take_turns_under_a_program_that_checks_its_memory() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set");
    let run = oracle(24_000_000, 7).with_words(&["--without", "fork"]);
    let run = run.protected(&["--clear", "64M"], scratch.path()).without_ballast().start();
    let done = sizes_in_turn(run, "oracle");
    done.really_paged("oracle");
}

/// Children that each write what they share, and check what they did not.
const FORKS: &str = "
import os, time
N = 24 << 20
memory = bytearray(b'p' * N)
end = time.monotonic() + 8
rounds = 0
while time.monotonic() < end:
    children = []
    for i in range(2):
        pid = os.fork()
        if pid == 0:
            for at in range(0, N // 4, 4096): memory[at] = 99 + i
            right = all(memory[at] == 99 + i for at in range(0, N // 4, 4096))
            os._exit(0 if right and memory[N // 4:].count(b'p') == N - N // 4 else 1)
        children.append(pid)
    for pid in children: assert os.waitpid(pid, 0)[1] == 0
    assert memory.count(b'p') == N
    rounds += 1
print('rounds', rounds)
";

#[test]
fn sizes_take_turns_while_a_program_forks() {
    const PYTHON: &str = "/usr/bin/python3";
    if !Path::new(PYTHON).exists() {
        return skip("sizes while a program forks", "needs /usr/bin/python3");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-forks");
    let run = Run::plain([PYTHON, "-c", FORKS]).protected(&["--clear", "64M"], scratch.path());
    let done = sizes_in_turn(run.without_ballast().start(), "forks");
    assert!(done.stdout.starts_with(b"rounds "), "{}", done.stderr);
}

/// It has no agent when the smaller size comes: it gets one first.
#[test]
fn a_program_that_fitted_until_then_is_encrypted_at_once() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-asleep");
    let run = asleep(48, "forks", &["--clear", "1G"], &scratch);
    assert!(sampler::now(run.pid, &casemate()) >= 48 * MIB);
    assert_eq!(set(run.pid, "6M").code, 0);
    let seen = seen_for_a_while(&run);
    assert!(seen.most_bytes <= 6 * MIB + ALLOWANCE, "{seen:?}");
    let done = woken(run, "asleep");
    assert!(done.statistics("asleep").number("processes_armed") >= 1);
}

/// What the program pins cannot leave: the old size stays, and the run goes on.
#[test]
fn a_size_that_cannot_be_reached_is_not_promised() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-pinned");
    let run = asleep(24, "pinned", &["--clear", "64M"], &scratch);
    let Set { code, stderr, .. } = set(run.pid, "8M");
    assert_eq!(code, 1);
    assert!(stderr.contains("its limit is 64 MiB as before"), "{stderr}");
    assert_eq!(set(run.pid, "40M").json.expect("it fits").number("before_bytes"), 64 * MIB);
    let done = woken(run, "pinned");
    let statistics = done.statistics("pinned");
    assert_eq!(statistics.number("clear_size_changes"), 1);
    assert_eq!(statistics.number("clear_bytes_limit_last"), 40 * MIB);
}

/// A Crypt that runs full ends a run, but not for a size that was asked for.
#[test]
fn a_size_for_which_the_crypt_has_no_places_is_given_up() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-places");
    let run = asleep(48, "plain", &["--clear", "1G", "--crypt-limit", "16M"], &scratch);
    let Set { code, stderr, .. } = set(run.pid, "8M");
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("its limit is 1 GiB as before"), "{stderr}");
    let done = woken(run, "places");
    assert!(done.statistics("places").number("crypt_bytes_peak") <= 16 * MIB);
}

/// One that cannot be stopped gets no agent; it fits the old size.
#[test]
fn a_size_for_which_a_process_cannot_be_armed_is_given_up() {
    const CHRT: &str = "/usr/bin/chrt";
    if !root() || !Path::new(CHRT).exists() {
        return skip("a smaller Clear and SCHED_DEADLINE", "needs root and chrt");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-deadline");
    let traps = traps();
    let deadline = ["-d", "--sched-runtime", "5000000", "--sched-deadline", "10000000"];
    let words = ["--sched-period", "10000000", "0", traps.to_str().expect("a path of ours")];
    let marker = ["marker", "--marker", MARKER, "--mib", "40", "--seconds", "300"];
    let words = [CHRT].into_iter().chain(deadline).chain(words).chain(marker);
    let run = Run::plain(words).with_input();
    for bound in ["lazy", "strict"] {
        let run = run.protected(&["--clear", "200M", "--bound", bound], scratch.path());
        let mut run = run.without_ballast().start();
        run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
        // Strict, it is to have an agent if it has more than half.
        let refused = [("8M", true), ("60M", bound == "strict"), ("8M", true)];
        for size in refused.into_iter().filter_map(|(size, is)| is.then_some(size)) {
            let Set { code, stderr, .. } = set(run.pid, size);
            assert_eq!(code, 1, "{stderr}");
            assert!(stderr.contains("its limit is 200 MiB as before"), "{stderr}");
        }
        assert_eq!(set(run.pid, "1G").code, 0);
        woken(run, bound);
    }
}

/// What a process mapped that shares another's memory counts with that one once it is armed.
#[test]
fn memory_that_a_sharer_mapped_is_encrypted_for_a_smaller_size() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-sharer");
    let run = asleep(40, "sharer", &["--clear", "200M", "--bound", "strict"], &scratch);
    let Set { code, stderr, .. } = set(run.pid, "8M");
    assert_eq!(code, 0, "{stderr}");
    let seen = seen_for_a_while(&run);
    assert!(seen.most_bytes <= 8 * MIB + ALLOWANCE, "{seen:?}");
    woken(run, "sharer");
}

/// A run is found by its number in another namespace too, but its keeper cannot be told there.
#[test]
fn from_another_pid_namespace_a_size_is_refused_with_the_reason() {
    const UNSHARE: &str = "/usr/bin/unshare";
    if !root() || !Path::new(UNSHARE).exists() {
        return skip("a pid namespace", "needs root and unshare");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-namespace");
    let run = asleep(4, "plain", &["--clear", "64M"], &scratch);
    let done = Command::new(UNSHARE)
        .args(["--pid", "--fork"])
        .arg(casemate())
        .args(["set", &run.pid.to_string(), "--clear", "32M"])
        .output()
        .expect("unshare starts");
    let done = Set::from(done);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("of another pid namespace"), "{}", done.stderr);
    woken(run, "namespace");
}

#[test]
fn a_run_that_ends_before_it_answers_has_ended() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-ends");
    let run = asleep(24, "pinned", &["--clear", "64M"], &scratch);
    let words = ["set", &run.pid.to_string(), "--clear", "8M"];
    let command = Command::new(casemate()).args(words).stderr(Stdio::piped()).spawn();
    let waits = command.expect("casemate starts");
    std::thread::sleep(Duration::from_secs(1));
    woken(run, "ends");
    let done = Set::from(waits.wait_with_output().expect("it is ours"));
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("has ended meanwhile"), "{}", done.stderr);
}

/// Maps 160 MiB, and fills them by one call when its input ends.
const ONE_CALL: &str = "
import mmap, sys
memory = mmap.mmap(-1, 160 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
print('ready', flush=True)
sys.stdin.read()
assert open(sys.argv[1], 'rb', buffering=0).readinto(memory) == 160 << 20
print('filled')
";

/// What a process mapped while there was room is filled when there is none: it has its agent by
/// then, though nothing had to leave for the smaller size.
fn filled_by_one_call(flags: &[&str], size: u64) {
    const PYTHON: &str = "/usr/bin/python3";
    if !Path::new(PYTHON).exists() {
        return skip("one call after another size", "needs /usr/bin/python3");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("set-one-call");
    // The kernel lets no signal into a read of what it has already.
    let file = scratch.join("160-mib");
    std::fs::write(&file, vec![1; 160 << 20]).expect("a file of ours");
    let file = file.to_str().expect("a plain path");
    let run = Run::plain([PYTHON, "-c", ONE_CALL, file]).with_input();
    let mut run = run.protected(flags, scratch.path()).without_ballast().start();
    run.wait_until("it has mapped", |run| run.stdout().contains("ready").then_some(()));
    // It has less than either size until then.
    let sampler = Sampler::start_sparing(size * MIB, run.pid, &casemate());
    let answered = set(run.pid, &format!("{size}M"));
    run.input = None;
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    let done = run.finish();
    let seen = sampler.finish();
    done.good("one call");
    assert_eq!(done.stdout, b"ready\nfilled\n");
    let most_bytes = seen.most_bytes;
    assert!(most_bytes <= size * MIB + ALLOWANCE, "{} KiB: {seen:?}", most_bytes >> 10);
}

#[test]
fn what_was_mapped_when_there_was_room_counts_when_there_is_less() {
    filled_by_one_call(&["--bound", "strict", "--clear", "1G"], 40);
}

/// Its calls are not announced: it is armed since there is hardly room.
#[test]
fn where_room_becomes_scarce_every_process_is_under_the_pager_first() {
    filled_by_one_call(&["--bound", "lazy", "--clear", "1G"], 20);
}

/// Whatever a program of the run starts, as root or not, is of the run.
#[test]
fn a_program_does_not_change_the_run_that_it_is_in() {
    let scratch = Scratch::new("set-inside");
    let casemate = casemate();
    let casemate = casemate.to_str().expect("a plain path");
    // The keeper is its parent, whose parent is the front process.
    let script = format!(
        "front=$(awk '/PPid/{{print $2}}' /proc/$PPID/status)
         try() {{ \"$@\" {casemate} set $front --clear 512M 2>&1; echo code $?; }}
         try env; try env; try setsid -w; (try env) | cat
         (setsid sh -c \"sleep 0.3; {casemate} set $front --clear 512M > orphan 2>&1; \
            echo code \\$? >> orphan\" &)
         while ! grep -q code orphan 2>/dev/null; do sleep 0.05; done; cat orphan"
    );
    let run = Run::plain(["/bin/sh", "-c", &script]).directory(scratch.path());
    let done = run.protected(&["--clear", "8M"], scratch.path()).without_ballast().finish();
    let said = String::from_utf8_lossy(&done.good("inside").stdout).into_owned();
    assert_eq!(said.matches("protects this very process").count(), 5, "{said}");
    assert_eq!(said.matches("code 1\n").count(), 5, "{said}");
    assert_eq!(done.statistics("inside").number("clear_size_changes"), 0);
}

/// Answers in the keeper's stead: at the door of its parent, whose child it is, and at that of the
/// front process's parent, whose child it is not.
const IMPOSTOR: &str = "
import os, socket, sys
doors = []
for pid in [os.getpid(), int(sys.argv[1])]:
    doors.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    doors[-1].bind('\\0casemate-control-%d' % pid)
child = os.fork()
if child == 0:
    for door in doors: door.listen(0)
    print('ready', flush=True)
    while True:
        caller = doors[0].accept()[0]
        caller.send(b'{\"set\":{\"clear_bytes\":1,\"before_bytes\":1,\"plaintext_bytes\":1,\"elapsed_ms\":1}}')
sys.stdin.read()
os.kill(child, 9)
";

/// Names are free for all: a program takes those of processes that are asked for its run.
#[test]
fn a_program_does_not_answer_for_its_run() {
    const PYTHON: &str = "/usr/bin/python3";
    if !Path::new(PYTHON).exists() {
        return skip("an impostor at the door", "needs /usr/bin/python3");
    }
    let scratch = Scratch::new("set-impostor");
    let own = std::process::id().to_string();
    let run = Run::plain([PYTHON, "-c", IMPOSTOR, &own]).with_input();
    let run = run.protected(&["--clear", "64M"], scratch.path());
    let mut run = run.without_ballast().start();
    run.wait_until("it listens", |run| run.stdout().contains("ready").then_some(()));
    let python = std::fs::canonicalize(PYTHON).expect("it is there");
    let programs = processes::running(run.pid, &run.tag, &python);
    assert_eq!(programs.len(), 2);
    for pid in programs.into_iter().chain([run.pid]) {
        let done = set(pid, "32M");
        assert_eq!(done.code, 0, "{pid}: {}", done.stderr);
        assert_eq!(done.json.expect("an answer").number("clear_bytes"), 32 * MIB, "of {pid}");
    }
    let done = woken(run, "impostor");
    // It was 32 MiB already when it was set again.
    assert_eq!(done.statistics("impostor").number("clear_size_changes"), 1);
}

#[test]
fn another_user_does_not_change_a_run() {
    const TEST: &str = "another user at the door";
    if !root() {
        return skip(TEST, "only root may play another user");
    }
    let scratch = Scratch::new("set-user");
    // Not below the build, which other users may not be able to enter.
    let shared = Scratch::under(&std::env::temp_dir(), "casemate-set");
    let copy = shared.join("casemate");
    let copied = Command::new("install").args(["-m", "755"]).arg(casemate()).arg(&copy).status();
    assert!(copied.expect("install starts").success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(shared.path(), open).expect("the directory is ours");
    let run = asleep(4, "plain", &["--clear", "8M"], &scratch);
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    let words = ["set", &run.pid.to_string(), "--clear", "512M"];
    let done = Command::new("setpriv").args(user).arg(&copy).args(words).output();
    let Ok(done) = done else { return skip(TEST, "setpriv is not installed") };
    let done = Set::from(done);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("another user's"), "{}", done.stderr);
    let done = woken(run, "another user");
    assert_eq!(done.statistics("another user").number("clear_size_changes"), 0);
}

#[test]
fn nothing_that_is_said_at_the_door_ends_a_run() {
    let scratch = Scratch::new("set-garbage");
    let mut run = asleep(16, "plain", &["--clear", "64M"], &scratch);
    let huge = vec![b'['; 128 << 10];
    let request = |version: u32, size: &str| {
        format!("{{\"version\":{version},\"request\":{{\"set-clear\":{size}}}}}").into_bytes()
    };
    let cases: [(&[u8], &str); 9] = [
        (b"", "malformed"),
        (b"\0\xff\xfe\x80", "malformed"),
        (b"{}", "malformed"),
        (&huge, "malformed"),
        (&[b'{'; 1024], "malformed"),
        (&request(1, "{\"bytes\":18446744073709551616}"), "malformed"),
        (&request(1, "{\"bytes\":2097151}"), "too-small"),
        (&request(1, "{\"percent\":0}"), "malformed"),
        (&request(7, "{\"bytes\":33554432}"), "{\"version\":1}"),
    ];
    for (message, refusal) in cases {
        let caller = Caller::at(&run).expect("the door is open");
        caller.say(message);
        let answer = caller.hear();
        let start = String::from_utf8_lossy(&message[..message.len().min(60)]);
        // Of a message without bytes the keeper cannot tell whether the caller has gone.
        assert!(answer.contains("refused") && answer.contains(refusal), "{start}: {answer}");
    }
    for _ in 0..200 {
        drop(Caller::at(&run).expect("the door is open"));
    }
    // Who says nothing is not waited for for long, and who does not listen not at all.
    let silent = Caller::at(&run);
    let deaf = Caller::at(&run).expect("the door is open");
    deaf.say(&request(1, "{\"bytes\":50331648}"));
    drop(deaf);
    assert_eq!(set(run.pid, "32M").json.expect("it is heard").number("before_bytes"), 48 * MIB);
    drop(silent);
    assert!(run.goes_on());
    let statistics = woken(run, "garbage");
    assert_eq!(statistics.statistics("garbage").number("clear_size_changes"), 2);
}

#[test]
fn a_run_is_found_by_any_of_its_processes_and_not_after_its_end() {
    let scratch = Scratch::new("set-ended");
    let run = asleep(4, "forks", &["--clear", "64M"], &scratch);
    let keeper = processes::keeper(run.pid, &casemate()).expect("there is a keeper");
    let programs = run.programs();
    assert_eq!(programs.len(), 4, "{programs:?}");
    for pid in programs.into_iter().chain([keeper, run.pid]) {
        let done = set(pid, "32M");
        assert_eq!(done.code, 0, "{pid}: {}", done.stderr);
        assert_eq!(done.json.expect("an answer").number("run"), run.pid as u64);
    }
    let small = set(run.pid, "1M");
    assert_eq!(small.code, 125);
    assert!(small.stderr.contains("1M is less than the 2 MiB that the Clear needs at least"));
    let (pid, name) = (run.pid, format!("@casemate-control-{}", run.pid));
    let open = || std::fs::read_to_string("/proc/net/unix").is_ok_and(|all| all.contains(&name));
    assert!(open());
    woken(run, "found");
    assert!(!open());
    let gone = set(pid, "32M");
    assert_eq!(gone.code, 1);
    assert!(gone.stderr.contains(&format!("there is no process {pid}")), "{}", gone.stderr);
    // This test is of no run, unless it runs in one.
    let stranger = set(std::process::id() as i32, "32M");
    assert_eq!(stranger.code, 1);
    assert!(stranger.stderr.contains("belongs to no run"), "{}", stranger.stderr);
}
