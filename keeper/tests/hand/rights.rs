//! What an agent may do: less than its program, and still enough for what it is there for.
use super::pages::make_staging;
use super::support::{Program, inject, pause_ms, try_inject};
use casemate_keeper::hand::{InjectError, Injector, Progress, StagingKind};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn with_the_device_an_unprivileged_program_needs_no_leave_for_userfaultfd() {
    let Ok(device) = std::fs::File::open("/dev/userfaultfd") else {
        eprintln!("skipped: no /dev/userfaultfd");
        return;
    };
    let mut program = Program::start(
        "setpriv",
        &["--reuid=65534", "--clear-groups", "sh", "-c", "echo ready; read x; echo ok"],
    );
    assert_eq!(program.line(), "ready");
    let mut injection =
        Injector::new().unwrap().begin(program.pid(), Some(device.as_fd())).unwrap();
    let Progress::Done(mut hand) = injection.wait(Duration::from_secs(5)) else { panic!("failed") };
    let _uffd = make_staging(&mut hand, StagingKind::Rw);
    hand.kill();
    if std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|s| s == "0\n") {
        let error = try_inject(program.pid()).unwrap_err();
        assert!(matches!(error, InjectError::AgentDied { error: libc::EPERM }), "{error}");
    }
    program.tell();
    assert_eq!(program.finish(), "ok");
}

/// The other half of the next test, in a process of its own.
#[test]
fn keeper_that_will_be_killed() {
    let Ok(pid) = std::env::var("CASEMATE_TEST_PROGRAM") else { return };
    let _hand = inject(pid.parse().unwrap());
    println!("armed");
    pause_ms(20_000);
}

#[test]
fn when_the_keeper_is_killed_the_program_dies() {
    let program = Program::start("sleep", &["30"]);
    pause_ms(50);
    let keeper = armed_keeper(&program);
    dies_with(program, keeper);
}

/// A keeper of its own that has put an agent into `program`.
fn armed_keeper(program: &Program) -> Child {
    let mut keeper = Command::new(std::env::current_exe().unwrap());
    keeper.args(["--exact", "rights::keeper_that_will_be_killed", "--nocapture"]);
    keeper.env("CASEMATE_TEST_PROGRAM", program.pid().to_string());
    let mut keeper = keeper.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("armed")));
    keeper
}

fn dies_with(mut program: Program, mut keeper: Child) {
    assert!(program.child.try_wait().unwrap().is_none());
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    let killed = Instant::now();
    while program.child.try_wait().unwrap().is_none() {
        assert!(killed.elapsed() < Duration::from_secs(2), "the program outlives its keeper");
        pause_ms(5);
    }
}
