//! Programs that stand still until their agent is in place.
use super::support::{PATIENCE, Program, compiled, ended, pause_ms, state_of};
use casemate_keeper::hand::{Hold, InjectError, Injection, Injector, Progress};
use std::sync::mpsc;
use std::time::Instant;

fn threads(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the program lives");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn let_go(injection: &mut Injection) {
    let end = Instant::now() + PATIENCE;
    while !injection.let_go() {
        let states = || {
            let task = format!("/proc/{}/task", injection.pid());
            let states = threads(injection.pid()).into_iter().map(|tid| {
                let read = |file| std::fs::read_to_string(format!("{task}/{tid}/{file}"));
                let status = read("status").unwrap_or_default();
                let lines =
                    status.lines().filter(|l| l.starts_with("State") || l.starts_with("Tra"));
                let lines: Vec<_> = lines.map(str::to_owned).collect();
                (tid, lines, read("syscall"), read("wchan"))
            });
            states.collect::<Vec<_>>()
        };
        assert!(Instant::now() < end, "cannot be let go: {injection:?}, {:?}", states());
        pause_ms(1);
    }
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a child of this test.
    unsafe { libc::kill(pid, signal) };
}

fn hold(pid: i32) -> (Injection, Progress) {
    // While the machine is busy its threads may need longer to stop than we wait.
    let end = Instant::now() + PATIENCE;
    loop {
        let injector = Injector::new().expect("an injector");
        let mut injection = injector.begin_holding(pid, None).expect("an injection");
        match ended(&mut injection) {
            Progress::Failed(InjectError::Unsettled) if Instant::now() < end => {
                let_go(&mut injection);
            }
            progress => return (injection, progress),
        }
    }
}

#[test]
fn every_thread_that_runs_stands_still_until_it_is_let_go() {
    let Some(path) = compiled("held", &[]) else { return };
    let mut program = Program::start(&path, &["threads"]);
    assert_eq!(program.line(), "ready");
    // It has said so, and begins to wait for a line.
    let end = Instant::now() + PATIENCE;
    while state_of(program.pid()) != Some('S') {
        assert!(Instant::now() < end, "it does not wait for a line");
        pause_ms(1);
    }
    let (mut injection, progress) = hold(program.pid());
    let Progress::Done(hand) = progress else { panic!("{progress:?}") };
    let states = |pid| {
        let mut states: Vec<_> = threads(pid).into_iter().filter_map(state_of).collect();
        states.sort_unstable();
        states
    };
    // The first waits for a line, and sleeps on.
    assert_eq!(states(program.pid()), ['S', 't', 't', 't']);
    signal(program.pid(), libc::SIGUSR1);
    pause_ms(20);
    assert_eq!(states(program.pid()), ['S', 't', 't', 't']);
    let_go(&mut injection);
    assert!(states(program.pid()).iter().all(|state| *state != 't'));
    assert!(!hand.is_left_by(program.pid()));
    pause_ms(20);
    program.tell();
    assert_eq!(program.finish(), "ok 1");
}

#[test]
fn a_held_program_can_be_killed_and_one_that_was_stopped_stays_so() {
    let Some(path) = compiled("held", &[]) else { return };
    let mut program = Program::start(&path, &["threads"]);
    program.line();
    let (mut injection, _hand) = hold(program.pid());
    signal(program.pid(), libc::SIGSTOP);
    let_go(&mut injection);
    program.becomes('T');
    signal(program.pid(), libc::SIGCONT);
    let (mut injection, _hand) = hold(program.pid());
    signal(program.pid(), libc::SIGKILL);
    let_go(&mut injection);
    let status = program.child.wait().expect("it has ended");
    assert!(!status.success());
}

#[test]
fn a_dropped_injection_lets_all_threads_go() {
    let Some(path) = compiled("held", &[]) else { return };
    let mut program = Program::start(&path, &["threads"]);
    program.line();
    drop(hold(program.pid()));
    program.tell();
    assert_eq!(program.finish(), "ok 0");
}

#[test]
fn a_thread_that_calls_execve_meanwhile_gets_on() {
    let Some(path) = compiled("held", &[]) else { return };
    let mut held = 0;
    for round in 0..150_u64 {
        let wait = (round * 37 % 1500).to_string();
        let mut program = Program::start(&path, &["exec", &wait]);
        program.line();
        let injector = Injector::new().expect("an injector");
        if let Ok(mut injection) = injector.begin_holding(program.pid(), None) {
            held += u32::from(matches!(ended(&mut injection), Progress::Done(_)));
            let_go(&mut injection);
        }
        assert_eq!(program.finish(), "ok after", "round {round}");
    }
    println!("{held} of 150 were given an agent before or after");
}

/// Waits until so many threads are in this state.
fn await_threads(pid: i32, state: char, count: usize) {
    let end = Instant::now() + PATIENCE;
    loop {
        let states: Vec<_> = threads(pid).into_iter().filter_map(state_of).collect();
        if states.iter().filter(|&&other| other == state).count() >= count {
            return;
        }
        assert!(Instant::now() < end, "{count} threads should be {state}: {states:?}");
        pause_ms(1);
    }
}

/// Lets go of all.
fn release(mut hold: Hold) {
    let end = Instant::now() + PATIENCE;
    while !hold.let_go() {
        assert!(Instant::now() < end, "cannot be let go");
        pause_ms(1);
    }
}

#[test]
fn threads_that_run_stand_still_and_sleeping_ones_sleep_on() {
    let Some(path) = compiled("held", &[]) else { return };
    let mut program = Program::start(&path, &["sleeper"]);
    assert_eq!(program.line(), "ready");
    let pid = program.pid();
    // One waits for epoll, which ends early if its caller is stopped, and one for us.
    await_threads(pid, 'S', 2);
    for _ in 0..20 {
        let hold = Hold::running_threads(pid);
        assert!(!hold.is_empty());
        let end = Instant::now() + PATIENCE;
        while threads(pid).into_iter().filter(|tid| state_of(*tid) == Some('t')).count() < 3 {
            assert!(Instant::now() < end, "three threads should stand still");
        }
        signal(pid, libc::SIGUSR1);
        release(hold);
        pause_ms(2);
    }
    program.tell();
    // The thread that called epoll_wait says how often it came back for nothing. Signals may merge,
    // and get lost only together.
    let said = program.finish();
    let signals = said.strip_prefix("ok 0 ").and_then(|n| n.parse::<u32>().ok());
    assert!(signals.is_some_and(|n| (1..=20).contains(&n)), "{said}");
}

#[test]
fn a_thread_that_calls_execve_while_others_are_held_gets_on() {
    let Some(path) = compiled("held", &[]) else { return };
    for round in 0..150_u64 {
        let wait = (round * 37 % 1500).to_string();
        let mut program = Program::start(&path, &["exec", &wait]);
        program.line();
        release(Hold::running_threads(program.pid()));
        assert_eq!(program.finish(), "ok after", "round {round}");
    }
}

/// Threads that are held end when another one executes, which waits until their tracer has seen
/// that. The tracer that seizes one more meanwhile must not wait for the end of the `execve`.
#[test]
fn a_process_that_executes_while_its_threads_are_held_is_not_waited_for() {
    let Some(path) = compiled("held", &[]) else { return };
    let mut program = Program::start(&path, &["told"]);
    program.line();
    let pid = program.pid();
    // The first, and the one that waits for us.
    await_threads(pid, 'S', 2);
    let (tell, told) = mpsc::channel();
    let (tell_back, told_back) = mpsc::channel();
    let tracer = std::thread::spawn(move || {
        let injector = Injector::new().expect("an injector");
        let hold = Hold::running_threads(pid);
        assert!(!hold.is_empty());
        tell.send(()).expect("the test lives");
        // All have ended but the one that executes.
        await_threads(pid, 'Z', 4);
        let mut injection = injector.begin(pid, None).expect("an injection that fails");
        let progress = ended(&mut injection);
        assert!(matches!(progress, Progress::Failed(InjectError::Executing)), "{progress:?}");
        let_go(&mut injection);
        release(hold);
        tell_back.send(()).expect("the test lives");
    });
    told.recv_timeout(PATIENCE).expect("the threads are held");
    program.tell();
    told_back
        .recv_timeout(2 * PATIENCE)
        .expect("the tracer waits for the process, and that for it");
    tracer.join().expect("no assertion failed");
    assert_eq!(program.finish(), "ok after");
}
