//! Calls that a stop interrupts: the keeper's own stop is not seen, one of the program's is.
use super::standstill::{let_go, still};
use super::support::{Program, compiled, ended, inject, pause_ms, state_of};
use casemate_keeper::hand::{Injector, Progress};
use std::io::Read;
use std::os::fd::AsRawFd;

fn signal(pid: i32, signal: i32) {
    // SAFETY: a signal to a child that was not reaped yet.
    unsafe { libc::kill(pid, signal) };
}

/// The number of the call that the process's first thread sleeps in.
fn call_of(program: &Program) -> i64 {
    program.becomes('S');
    let text = std::fs::read_to_string(format!("/proc/{}/syscall", program.pid())).expect("ours");
    let number = text.split_whitespace().next().expect("a word");
    number.parse().unwrap_or_else(|_| panic!("no call: {text}"))
}

/// `restart_syscall` waits for the rest of the time; the call itself would wait for all of it.
#[test]
fn a_sleep_goes_on_for_its_rest_under_the_filter_that_announces() {
    let program = Program::start("sleep", &["30"]);
    assert_eq!(call_of(&program), libc::SYS_clock_nanosleep);
    let mut injection = Injector::new().unwrap().announcing().begin(program.pid(), None).unwrap();
    let Progress::Done(_hand) = ended(&mut injection) else { panic!("no agent") };
    assert_eq!(call_of(&program), libc::SYS_restart_syscall);
}

/// The kernel ends a transfer short at such a stop. A keeper that had the rest of it made would
/// have a stopped program write.
#[test]
fn a_transfer_that_a_stop_of_the_programs_own_ended_is_not_completed() {
    const BYTES: usize = 1 << 20;
    let mut program = Program::start("dd", &["if=/dev/zero", "bs=1M", "count=1", "status=none"]);
    // It fills the pipe, and waits in its only call of write.
    program.becomes('S');
    while call_of(&program) != libc::SYS_write {
        pause_ms(1);
    }
    signal(program.pid(), libc::SIGSTOP);
    program.becomes('T');
    let hand = inject(program.pid());
    assert!(!hand.is_left_by(program.pid()));
    program.becomes('T');
    let (pid, mut bytes) = (program.pid(), vec![1; BYTES]);
    let out = program.out.get_mut();
    let pipe = pipe_bytes(out);
    out.read_exact(&mut bytes[..pipe]).expect("what is in the pipe");
    pause_ms(20);
    assert_eq!(waiting_bytes(out), 0, "it wrote while it was stopped");
    assert_eq!(state_of(pid), Some('T'));
    signal(pid, libc::SIGCONT);
    out.read_exact(&mut bytes[pipe..]).expect("the rest");
    assert!(bytes.iter().all(|byte| *byte == 0));
    assert_eq!(out.read(&mut bytes).expect("its end"), 0);
}

/// The bytes that a full pipe holds.
fn pipe_bytes(pipe: &impl AsRawFd) -> usize {
    // SAFETY: no pointers are passed.
    let bytes = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    usize::try_from(bytes).expect("a pipe")
}

/// The bytes that can be read now.
fn waiting_bytes(pipe: &impl AsRawFd) -> i32 {
    let mut bytes = 0_i32;
    // SAFETY: FIONREAD writes one int.
    let result = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    assert_eq!(result, 0);
    bytes
}

/// A handler without `SA_RESTART` that runs when the program goes on would end an announced fork in
/// `EINTR`, which no fork ends in otherwise. (By a shell's handler of `SIGCHLD`: "Cannot fork".)
#[test]
fn an_announced_fork_that_was_not_received_is_made_again_whatever_handler_runs() {
    let Some(path) = compiled("unheard", &["-O2", "-pthread"]) else { return };
    let mut program = Program::start(&path, &[]);
    assert_eq!(program.line(), "ready");
    while call_of(&program) != libc::SYS_fork {
        pause_ms(1);
    }
    let still = still(&program);
    signal(program.pid(), libc::SIGUSR1);
    let_go(still);
    program.tell();
    assert_eq!(program.finish(), "ok 1");
}
