//! Puts agents into real programs and looks whether the programs notice.
mod held;
mod interrupted;
mod pages;
mod rights;
mod standstill;
mod support;
mod unusual;

use casemate_keeper::hand::{Action, HandError, InjectError};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{PATIENCE, Program, compiled, inject, pause_ms, state_of, try_inject};

const CALLS: [&str; 19] = [
    "nanosleep",
    "epoll_wait",
    "epoll_wait-signal",
    "epoll_pwait",
    "read",
    "futex",
    "futex-timed",
    "poll",
    "ppoll",
    "ppoll-signal",
    "select",
    "pause",
    "sigsuspend",
    "sigtimedwait",
    "recv",
    "semop",
    "msgrcv",
    "writev",
    "compute",
];

fn no_call_notices(how: &[&str]) {
    let Some(path) = compiled("blocked", how) else { return };
    for call in CALLS {
        let mut program = Program::start(&path, &[call]);
        assert_eq!(program.line(), "ready");
        let waits = || {
            if call != "compute" {
                program.becomes('S')
            }
        };
        waits();
        for _ in 0..3 {
            let hand = inject(program.pid());
            assert!(!hand.is_left_by(program.pid()));
            hand.kill();
        }
        let _hand = inject(program.pid());
        // A signal that comes before the call would not end it.
        waits();
        program.tell();
        assert_eq!(program.finish(), format!("ok {call}"));
    }
}

#[test]
fn no_call_in_progress_notices_in_a_dynamic_program() {
    no_call_notices(&[]);
}

#[test]
fn no_call_in_progress_notices_in_a_static_program() {
    no_call_notices(&["-static"]);
}

#[test]
fn a_program_that_is_injected_again_and_again_under_signals_computes_the_same() {
    let Some(path) = compiled("alarms", &[]) else { return };
    let mut alone = Program::start(&path, &[]);
    alone.line();
    let expected = alone.finish();
    let mut program = Program::start(&path, &[]);
    program.line();
    pause_ms(5);
    let mut injected = 0;
    while program.state() != 'Z' && injected < 200 {
        match try_inject(program.pid()) {
            Ok(_) => injected += 1,
            Err(InjectError::Gone | InjectError::AgentDied { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(injected > 0);
    assert_eq!(program.finish(), expected);
}

#[test]
fn a_process_that_was_just_forked_can_be_injected_and_its_parent_too() {
    let Some(path) = compiled("alarms", &[]) else { return };
    let mut alone = Program::start(&path, &[]);
    alone.line();
    let expected = alone.finish();
    let mut program = Program::start(&path, &["fork"]);
    program.line();
    let child: i32 = program.line().parse().unwrap();
    let in_child = inject(child);
    assert!(!in_child.is_left_by(child), "state of the child: {:?}", state_of(child));
    assert!(in_child.is_left_by(program.pid()), "the parent is another");
    let in_parent = inject(program.pid());
    assert!(!in_parent.is_left_by(program.pid()) && in_parent.is_left_by(child));
    assert_eq!(program.finish(), expected);
}

#[test]
fn a_forked_child_has_no_trace_of_the_hand() {
    let script = "import os,sys\nprint('ready',flush=True)\nsys.stdin.readline()\n\
                  print(open('/proc/self/maps').read().count('casemate'),flush=True)\n\
                  r=os.fork()\n\
                  if r==0:\n print(open('/proc/self/maps').read().count('casemate'),flush=True)\n os._exit(0)\n\
                  os.waitpid(r,0)\nsys.stdout.flush()\n";
    let mut program = Program::start("python3", &["-c", script]);
    program.line();
    let hand = inject(program.pid());
    for range in hand.owned_ranges() {
        assert!(range.start > 0 && range.end > range.start && range.start % 4096 == 0);
    }
    program.tell();
    let mut counts: Vec<String> = program.finish().lines().map(str::to_owned).collect();
    counts.sort();
    assert_eq!(counts, ["0", "1"]);
}

#[test]
fn interpreters_go_on() {
    let scripts: [(&str, &str); 3] = [
        (
            "python3",
            "import sys;print('ready',flush=True);sys.stdin.readline();print(sum(range(10**6)))",
        ),
        ("perl", "$|=1;print \"ready\\n\";<STDIN>;$s=0;$s+=$_ for 0..999999;print \"$s\\n\""),
        ("sh", "echo ready; read x; echo 499999500000"),
    ];
    for (interpreter, script) in scripts {
        let flag = if interpreter == "perl" { "-e" } else { "-c" };
        if Command::new(interpreter).args([flag, ""]).status().is_err() {
            eprintln!("skipped: no {interpreter}");
            continue;
        }
        let mut program = Program::start(interpreter, &[flag, script]);
        assert_eq!(program.line(), "ready");
        let hand = inject(program.pid());
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", hand.agent_pid())).unwrap();
        assert_eq!(comm.trim(), "casemate-agent");
        program.tell();
        assert_eq!(program.finish(), "499999500000");
    }
}

#[test]
fn a_stopped_program_is_injected_and_stays_stopped() {
    let Some(path) = compiled("blocked", &[]) else { return };
    let mut program = Program::start(&path, &["read"]);
    program.line();
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(program.pid(), libc::SIGSTOP) };
    program.becomes('T');
    let hand = inject(program.pid());
    assert!(!hand.is_left_by(program.pid()));
    program.becomes('T');
    pause_ms(20);
    assert_eq!(program.state(), 'T');
    program.tell();
    pause_ms(50);
    assert_eq!(program.state(), 'T');
    // SAFETY: as above.
    unsafe { libc::kill(program.pid(), libc::SIGCONT) };
    assert_eq!(program.finish(), "ok read");
}

/// Whenever the two signals come, a stop does not outlast the SIGCONT that came after it.
#[test]
fn a_program_that_is_stopped_and_continued_meanwhile_goes_on() {
    let Some(path) = compiled("blocked", &[]) else { return };
    for round in 0..200_u64 {
        let mut program = Program::start(&path, &["read"]);
        program.line();
        let pid = program.pid();
        let until = |micros: u64| {
            let end = Instant::now() + Duration::from_micros(micros);
            while Instant::now() < end {}
        };
        let signals = std::thread::spawn(move || {
            until(round * 37 % 1500);
            // SAFETY: signals to our own child, which is not reaped before this thread has ended.
            unsafe { libc::kill(pid, libc::SIGSTOP) };
            until(round * 53 % 400);
            // SAFETY: as above.
            unsafe { libc::kill(pid, libc::SIGCONT) };
        });
        let hand = inject(pid);
        signals.join().expect("it sends signals");
        assert!(!hand.is_left_by(pid));
        pause_ms(1);
        assert_ne!(program.state(), 'T', "stopped for good in round {round}");
        program.tell();
        assert_eq!(program.finish(), "ok read");
    }
}

#[test]
fn a_hand_whose_agent_was_killed_says_so() {
    let program = Program::start("sleep", &["30"]);
    program.becomes('S');
    let mut hand = inject(program.pid());
    // SAFETY: a signal to the agent.
    unsafe { libc::kill(hand.agent_pid(), libc::SIGKILL) };
    assert_eq!(hand.run(&[Action::Nop.into()], &mut || ()), Err(HandError::Gone));
    program.becomes('S');
}

#[test]
fn a_program_that_ends_or_changes_takes_its_hand_with_it() {
    let mut program = Program::start("sh", &["-c", "echo ready; read x; exec cat"]);
    program.line();
    let mut hand = inject(program.pid());
    program.tell();
    let end = Instant::now() + PATIENCE;
    while !hand.is_left_by(program.pid()) {
        assert!(Instant::now() < end, "the shell calls exec");
        pause_ms(1);
    }
    assert!(hand.run(&[Action::Nop.into()], &mut || ()).is_ok(), "the agent holds the old memory");
    drop(hand);
    program.finish();
}
