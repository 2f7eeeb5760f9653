//! What happens when something ends, runs full, or is used in a way that is not meant.

mod common;

use common::keeper::{assert_all_die, assert_no_mismatch, oracle, steady_oracle};
use common::run::Running;
use common::{Run, STORE_FAILED, Scratch, root, skip, traps};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

const MANY: u64 = 2_000_000_000;

fn trap(name: &str) -> Run {
    Run::plain([traps().as_os_str(), name.as_ref(), "--mib".as_ref(), "48".as_ref()])
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: a process that this test started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill({pid}, {signal})");
}

fn ptrace(request: u32, pid: i32, data: *mut libc::user_regs_struct) {
    // SAFETY: the only data is a structure of registers, which outlives the call, or a number.
    let r = unsafe { libc::ptrace(request, pid, 0, data) };
    assert_eq!(r, 0, "ptrace {request}: {}", std::io::Error::last_os_error());
}

/// Stops a process that is traced, outside the delivery of signals, and reads its registers.
fn interrupted(pid: i32) -> libc::user_regs_struct {
    ptrace(libc::PTRACE_INTERRUPT, pid, std::ptr::null_mut());
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) }, pid);
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        if status >> 16 == libc::PTRACE_EVENT_STOP {
            break;
        }
        let signal = libc::WSTOPSIG(status) as usize as *mut _;
        ptrace(libc::PTRACE_CONT, pid, signal);
    }
    // SAFETY: all zeros are registers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS, pid, &raw mut registers);
    registers
}

/// Lets a process make the system call exit_group, as if it had come to an end by itself: in the
/// place of one that it waits in.
fn let_exit(pid: i32, code: u64) {
    ptrace(libc::PTRACE_SEIZE, pid, std::ptr::null_mut());
    let mut registers = interrupted(pid);
    while (registers.orig_rax as i64) < 0 {
        ptrace(libc::PTRACE_CONT, pid, std::ptr::null_mut());
        registers = interrupted(pid);
    }
    // Back onto the instruction `syscall`, which has two bytes; the call that waits is not made
    // again.
    registers.rip -= 2;
    (registers.orig_rax, registers.rax) = (u64::MAX, libc::SYS_exit_group as u64);
    registers.rdi = code;
    ptrace(libc::PTRACE_SETREGS, pid, &raw mut registers);
    ptrace(libc::PTRACE_DETACH, pid, std::ptr::null_mut());
}

/// Kills one process of a busy run; all others must die, and no program may have read anything
/// wrong.
fn after_killing(choose: impl FnOnce(&Running, i32) -> i32, seed: u64) -> common::Done {
    let scratch = Scratch::new("death");
    let mut run = steady_oracle(MANY, seed, &[], &scratch).seconds(120).start();
    run.hostile = true;
    let keeper = run.busy_keeper(20);
    let family = run.family();
    assert!(!run.programs().is_empty(), "no program to protect");
    let victim = choose(&run, keeper);
    kill(victim, libc::SIGKILL);
    // Children that were forked between the look and the kill are found by their environment.
    let family: Vec<i32> =
        family.into_iter().chain(run.family()).filter(|p| *p != run.pid).collect();
    assert_all_die(&family, "the keeper's death");
    let later = run.programs();
    assert_all_die(&later, "the keeper's death");
    let done = run.finish();
    assert_no_mismatch(&done);
    assert!(!String::from_utf8_lossy(&done.stdout).contains("ok oracle"));
    assert_ne!(done.code, 0, "the run must not look well");
    done
}

#[test]
fn a_killed_keeper_takes_every_program_along() {
    for seed in 1..=3 {
        let done = after_killing(|_, keeper| keeper, seed);
        // 137 if the keeper is `casemate run` itself.
        assert!([122, 137].contains(&done.code), "exit code {}: {}", done.code, done.stderr);
    }
}

/// Whatever made it exit, and with whatever code, it has not said that its programs have ended:
/// none of them, and none of its own processes, outlives the front process.
#[test]
fn a_keeper_that_exits_takes_every_program_along() {
    if !root() {
        return skip("failures (exit)", "only root may trace a keeper");
    }
    for (seed, code) in [(11, 0), (12, 1), (13, 0), (14, 120)] {
        let scratch = Scratch::new("exits");
        let run = oracle(MANY, seed).protected(&["--clear", "8M"], scratch.path());
        let mut run = run.seconds(120).start();
        run.hostile = true;
        let keeper = run.busy_keeper(20);
        let family = run.family();
        let front = run.pid;
        let_exit(keeper, code);
        let mut left = Vec::new();
        let done = run.finish_and(|| {
            let alive = |pid: &i32| *pid != front && common::processes::alive(*pid);
            left.extend(family.into_iter().filter(alive));
        });
        assert!(left.is_empty(), "code {code}:\n{}", common::processes::dump(&left));
        assert_no_mismatch(&done);
        assert_eq!(done.code, 122, "{}", done.stderr);
        let why = format!("ended early with code {code}");
        assert!(done.stderr.contains(&why), "{}", done.stderr);
    }
}

/// A shell that becomes `casemate run` has children before: they and theirs are not the run's, also
/// when the keeper is killed.
#[test]
fn what_was_there_before_a_run_lives_on() {
    let scratch = Scratch::new("elders");
    let pids = scratch.join("pids");
    for (program, code) in [("true", 0), ("sh -c 'kill -9 $PPID; exec sleep 60'", 122)] {
        let script = format!(
            "(sleep 601 & echo $! > {pids}; sleep 602 & echo $! >> {pids}; wait) & elder=$!; \
             sleep 0.3; echo $elder >> {pids}; exec {} run -q -- {program}",
            common::casemate().display(),
            pids = pids.display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null());
        let ended = shell.status().expect("a shell starts");
        let text = std::fs::read_to_string(&pids).expect("the shell wrote them");
        let elders: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let left = elders.iter().filter(|&&pid| common::processes::alive(pid)).count();
        for pid in &elders {
            // SAFETY: a process that this test started, or that has ended.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        assert_eq!((elders.len(), left, ended.code()), (3, 3, Some(code)), "{program}");
    }
}

#[test]
fn a_killed_casemate_run_takes_everything_along() {
    for seed in 4..=6 {
        assert_eq!(after_killing(|run, _| run.pid, seed).code, 128 + libc::SIGKILL);
    }
}

#[test]
fn a_killed_program_ends_the_run_with_its_signal() {
    let scratch = Scratch::new("killed");
    let mut run = steady_oracle(MANY, 7, &[], &scratch).seconds(120).start();
    run.busy_keeper(20);
    let program = *run.programs().iter().min().expect("the program runs");
    kill(program, libc::SIGKILL);
    let done = run.finish();
    assert_no_mismatch(&done);
    assert_eq!(done.code, 128 + libc::SIGKILL, "{}", done.stderr);
}

#[test]
fn a_program_that_is_stopped_and_continued_goes_on() {
    let scratch = Scratch::new("stopped");
    let mut run = steady_oracle(8_000_000, 8, &[], &scratch).seconds(300).start();
    run.busy_keeper(5);
    let program = *run.programs().iter().min().expect("the program runs");
    let mut stops = 0;
    while run.goes_on() {
        // SAFETY: the run's own program; it may end between the two.
        unsafe {
            libc::kill(program, libc::SIGSTOP);
            libc::kill(program, libc::SIGCONT);
        }
        stops += 1;
        std::thread::sleep(std::time::Duration::from_millis(7));
    }
    let done = run.finish();
    done.good("oracle, stopped and continued").really_paged("oracle");
    assert!(stops > 10, "only {stops} stops");
}

#[test]
fn signals_are_forwarded() {
    let scratch = Scratch::new("signals");
    let script = "trap 'echo got it; exit 9' TERM; echo up; while :; do sleep 0.05; done";
    let plain = Run::plain(["/bin/bash", "-c", script]);
    for protect in [false, true] {
        let run = Run::plain(["/bin/bash", "-c", script]);
        let run = if protect { plain.protected(&["--clear", "8M"], scratch.path()) } else { run };
        let mut run = run.start();
        run.wait_until("up", |run| run.stdout().contains("up").then_some(()));
        run.signal(libc::SIGTERM);
        let done = run.finish();
        done.ended_with(9, "a program that handles SIGTERM");
        assert_eq!(done.stdout, b"up\ngot it\n");
    }
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1] {
        let words = ["marker", "--marker", "00112233445566778899aabbccddeeff", "--mib", "16"];
        let traps = traps();
        let run = Run::plain([traps.as_os_str()].into_iter().chain(words.map(OsStr::new)));
        let mut run = run.with_input().protected(&["--clear", "8M"], scratch.path()).start();
        run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
        run.signal(signal);
        // The program would end by itself at the end of its input.
        let input = run.input.take();
        run.finish().ended_with(128 + signal, "a program that does not handle the signal");
        drop(input);
    }
}

#[test]
fn the_exit_code_passes_through() {
    let scratch = Scratch::new("codes");
    for code in [0, 1, 37, 255] {
        let run = Run::plain([traps().as_os_str(), "exit".as_ref(), code.to_string().as_ref()]);
        run.finish().ended_with(code, "plain");
        run_again(code).protected(&[], scratch.path()).finish().ended_with(code, "protected");
    }
}

fn run_again(code: i32) -> Run {
    Run::plain([traps().as_os_str(), "exit".as_ref(), code.to_string().as_ref()])
}

#[test]
fn a_run_inside_a_run_is_protected_by_the_outer_one() {
    let scratch = Scratch::new("nested");
    let outer = trap("fork").protected(&["--clear", "8M"], scratch.path());
    let done = nested(&outer, &scratch).finish();
    done.good("casemate run inside casemate run");
    assert!(String::from_utf8_lossy(&done.stdout).ends_with("ok fork\n"));
    done.really_paged("nested");
}

fn nested(inner: &Run, scratch: &Scratch) -> Run {
    inner.protected(&["--clear", "8M"], scratch.path())
}

#[test]
fn swap_takes_what_the_crypt_does_not() {
    let scratch = Scratch::new("swap");
    let swap = scratch.join("swap").to_string_lossy().into_owned();
    for name in ["interleaved", "fork", "bss", "mremap-move"] {
        let flags = ["--clear", "8M", "--crypt-limit", "4M", "--swap", &swap];
        let done = trap(name).protected(&flags, scratch.path()).finish();
        done.good(name).really_paged(name);
        let statistics = done.statistics(name);
        for counter in ["swap_pages_out", "swap_pages_in"] {
            assert!(statistics.number(counter) > 0, "{name}: no {counter}: {}", statistics.0);
        }
        let crypt = statistics.number("crypt_bytes_peak");
        assert!(crypt <= 4 << 20, "{name}: a Crypt of {crypt} bytes over its limit");
        assert!(!Path::new(&swap).exists(), "the swap file is left behind");
    }
}

#[test]
fn a_swap_file_that_exists_is_refused_and_kept() {
    let scratch = Scratch::new("exists");
    let swap = scratch.join("swap");
    std::fs::write(&swap, "another's data").expect("a file");
    let name = swap.to_string_lossy().into_owned();
    let flags = ["--clear", "8M", "--crypt-limit", "4M", "--swap", &name];
    let done = trap("bss").protected(&flags, scratch.path()).finish();
    assert!([121, 125].contains(&done.code), "exit code {}: {}", done.code, done.stderr);
    assert_eq!(std::fs::read(&swap).expect("the file is there"), b"another's data");
    assert!(done.stderr.contains("swap"), "no word about the reason: {}", done.stderr);
}

#[test]
fn a_full_crypt_without_swap_stops_the_program() {
    let scratch = Scratch::new("full");
    let flags = ["--clear", "8M", "--crypt-limit", "4M"];
    let done = trap("interleaved").protected(&flags, scratch.path()).finish();
    assert_eq!(done.code, STORE_FAILED, "{}", done.stderr);
    assert!(!done.stderr.contains("wrong:"), "{}", done.stderr);
    assert!(done.stderr.contains("casemate:"), "no sentence: {}", done.stderr);
}

/// Room that is kept free for growth is no need: what fits the Clear ends well with any Crypt.
#[test]
fn a_small_crypt_is_not_filled_ahead_of_need() {
    const FILL: &str = "heap = bytearray(b'1') * (85 << 20); print(heap.count(b'1'))";
    const PYTHON: &str = "/usr/bin/python3";
    if !Path::new(PYTHON).exists() {
        return skip("a small Crypt", "needs /usr/bin/python3");
    }
    for limit in ["10M", "1M"] {
        let scratch = Scratch::new("small");
        let flags = ["--clear", "100M", "--bound", "lazy", "--crypt-limit", limit];
        let done = Run::plain([PYTHON, "-c", FILL]).protected(&flags, scratch.path()).finish();
        done.good(limit);
        assert_eq!(done.stdout, b"89128960\n");
    }
}

/// A small tmpfs that goes away at the end.
struct Tiny<'a>(&'a Path);

impl Drop for Tiny<'_> {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(self.0).status();
        if !done.is_ok_and(|status| status.success()) {
            common::loud(&format!("NOTE: {} could not be unmounted", self.0.display()));
        }
    }
}

/// A small file system, and a file in it; none if there can be none.
fn tiny<'a>(size: &str, place: &'a Path) -> Option<(Tiny<'a>, String)> {
    if !root() {
        skip("a full swap disk", "only root may mount a small file system");
        return None;
    }
    std::fs::create_dir(place).expect("a mount point");
    let mount = ["-t", "tmpfs", "-o", size, "tmpfs"];
    let mounted = Command::new("mount").args(mount).arg(place).status().expect("mount starts");
    if !mounted.success() {
        skip("a full swap disk", "a tmpfs cannot be mounted here");
        return None;
    }
    Some((Tiny(place), place.join("swap").to_string_lossy().into_owned()))
}

/// What is read again and not written keeps no ciphertext where that leaves no place for the rest:
/// 40 MiB of the program's, 34 of Clear, and 12 for ciphertext.
#[test]
fn pages_that_are_only_read_leave_the_swap_disk_to_others() {
    let scratch = Scratch::new("small disk");
    let place = scratch.join("disk");
    let Some((_disk, swap)) = tiny("size=8m", &place) else { return };
    for bound in ["strict", "lazy"] {
        let words = ["sweeper", "--mib", "40", "--accesses", "30000"].map(std::ffi::OsStr::new);
        let run = Run::plain([common::traps().as_os_str()].into_iter().chain(words));
        let flags = ["--clear", "34M", "--bound", bound, "--crypt-limit", "4M", "--swap", &swap];
        let done = run.protected(&flags, scratch.path()).without_ballast().finish();
        done.good(bound).really_paged(bound);
    }
}

/// Pages that cannot leave take all of the room: no fault waits for room that never comes, though
/// the few pages of the others go and come back.
#[test]
fn beside_a_process_that_has_pinned_more_than_the_clear_another_gets_on() {
    const SCRIPT: &str = r#"
        mkfifo input && exec 9<> input
        "$0" marker --marker 00112233445566778899aabbccddeeff --mib 9 --mode pinned \
            < input > ready 9>&- &
        until grep -q ready ready; do sleep 0.05; done
        "$0" interleaved --mib 2; code=$?
        exec 9>&-
        wait; exit $code
    "#;
    if !root() {
        return skip("pinned beyond the Clear", "only root may lock as much");
    }
    let scratch = Scratch::new("pinned");
    let traps = traps();
    let words = ["/bin/sh".as_ref(), "-c".as_ref(), SCRIPT.as_ref(), traps.as_os_str()];
    let run = Run::plain(words).directory(scratch.path());
    let run = run.protected(&["--clear", "8M"], scratch.path()).without_ballast().seconds(60);
    let done = run.finish();
    done.good("interleaved");
    let statistics = done.statistics("interleaved");
    assert!(statistics.number("filled_without_room") > 0, "vacuous: {}", statistics.0);
}

/// What a program has locked, and its agent may not lock more beside it, cannot leave. It stays in
/// the Clear and passes the bound by what it must; and of the few pages beside it each would drive
/// out the one that was needed just before.
#[test]
fn a_program_that_has_locked_all_that_it_may_gets_on() {
    const SCRIPT: &str = r#"
        ulimit -l 7400
        setpriv --bounding-set -ipc_lock "$0" locked-to-the-limit --mib 7; exit $?
    "#;
    if !root() {
        return skip("locked beyond the Clear", "only root may take a capability from itself");
    }
    let scratch = Scratch::new("locked");
    let traps = traps();
    for _ in 0..3 {
        let words = ["/bin/sh".as_ref(), "-c".as_ref(), SCRIPT.as_ref(), traps.as_os_str()];
        let run = Run::plain(words).directory(scratch.path());
        let run = run.protected(&["--clear", "4M"], scratch.path()).without_ballast().seconds(60);
        let done = run.finish();
        done.good("locked-to-the-limit");
        let statistics = done.statistics("locked-to-the-limit");
        assert!(statistics.number("filled_without_room") > 0, "vacuous: {}", statistics.0);
    }
}

#[test]
fn a_full_swap_disk_stops_the_program() {
    let scratch = Scratch::new("tiny");
    let place = scratch.join("disk");
    let Some((tiny, swap)) = tiny("size=2m", &place) else { return };
    for name in ["interleaved", "dontneed", "fork"] {
        let flags = ["--clear", "8M", "--crypt-limit", "2M", "--swap", &swap];
        let done = trap(name).protected(&flags, scratch.path()).finish();
        assert_eq!(done.code, STORE_FAILED, "{name}: {}", done.stderr);
        for word in ["wrong:", "in child"] {
            assert!(!done.stderr.contains(word), "{name}: {}", done.stderr);
        }
    }
    drop(tiny);
}
