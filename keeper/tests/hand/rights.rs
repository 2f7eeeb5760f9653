//! What an agent may do: less than its program, and still enough for what it is there for.
use super::pages::make_staging;
use super::support::{PATIENCE, Program, inject, pause_ms, state_of, try_inject};
use casemate_keeper::hand::{InjectError, Injector, Progress, StagingKind};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

fn status(pid: i32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

#[test]
fn an_agent_keeps_no_right_that_its_loop_does_not_need() {
    const KILL_AND_IPC_LOCK: u64 = 1 << 5 | 1 << 14;
    let program = Program::start("sleep", &["30"]);
    program.becomes('S');
    let hand = inject(program.pid());
    let agent = hand.agent_pid();
    let had = status(program.pid(), "CapPrm");
    for set in ["CapEff", "CapPrm"] {
        assert_eq!(status(agent, set), had & KILL_AND_IPC_LOCK, "{set}");
    }
    assert_eq!(status(agent, "CapInh") | status(agent, "CapAmb"), 0);
    assert_eq!((status(agent, "NoNewPrivs"), status(agent, "Seccomp")), (1, 2));
    // The program's own are as before.
    assert_eq!(status(program.pid(), "CapPrm"), had);
    assert_eq!(status(program.pid(), "Seccomp"), 0);
}

/// Machine code that makes `calls` one after another, leaves each result at `results`, and exits.
fn code(calls: &[(i64, [u64; 3])], results: u64) -> Vec<u8> {
    let load = |code: &mut Vec<u8>, prefix: [u8; 2], value: u64| {
        code.extend(prefix);
        code.extend(value.to_le_bytes());
    };
    let mut code = Vec::new();
    for (i, (number, [first, second, third])) in calls.iter().enumerate() {
        load(&mut code, [0x48, 0xb8], *number as u64); // mov rax, number
        load(&mut code, [0x48, 0xbf], *first); // mov rdi, first
        load(&mut code, [0x48, 0xbe], *second); // mov rsi, second
        load(&mut code, [0x48, 0xba], *third); // mov rdx, third
        code.extend([0x0f, 0x05]); // syscall
        load(&mut code, [0x48, 0xa3], results + i as u64 * 8); // mov [result], rax
    }
    code
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: touches no memory.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn a_process_that_takes_an_agent_over_gains_nothing() {
    let program = Program::start("sleep", &["30"]);
    let bystander = Program::start("sleep", &["30"]);
    program.becomes('S');
    bystander.becomes('S');
    let hand = inject(program.pid());
    let agent = hand.agent_pid();
    // Guard page, four pages of stack, bootstrap page, code.
    let region = hand.owned_ranges()[0].clone();
    let (scratch, start) = (region.start + 5 * 4096 + 2048, region.start + 6 * 4096);
    let memory = std::fs::File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/{}/mem", program.pid()));
    let memory = memory.unwrap();
    let path = scratch + 1024;
    memory.write_all_at(b"/etc/passwd\0", path).unwrap();
    let other = bystander.pid() as u64;
    let descriptors = std::fs::read_dir(format!("/proc/{agent}/fd")).unwrap();
    let mut calls: Vec<(i64, [u64; 3])> = vec![
        (libc::SYS_open, [path, 0, 0]),
        (libc::SYS_openat, [libc::AT_FDCWD as u64, path, 0]),
        (libc::SYS_execve, [path, 0, 0]),
        (libc::SYS_setuid, [0, 0, 0]),
        (libc::SYS_socket, [1, 1, 0]),
        (libc::SYS_kill, [other, 9, 0]),
        (libc::SYS_pidfd_open, [other, 0, 0]),
        (libc::SYS_fork, [0, 0, 0]),
        (libc::SYS_ptrace, [16, other, 0]),
        // The 32-bit way in, by a number that means another call there.
        (0x4000_0000 + libc::SYS_open, [path, 0, 0]),
    ];
    // Neither another signal, nor the keeper's pidfd.
    for fd in descriptors {
        let fd: u64 = fd.unwrap().file_name().to_str().unwrap().parse().unwrap();
        calls.push((libc::SYS_pidfd_send_signal, [fd, libc::SIGSTOP as u64, 0]));
        calls.push((libc::SYS_close, [fd, 0, 0]));
    }
    // The agent goes on somewhere in its code, and slides to our own. It sees all of that or
    // nothing.
    kill(agent, libc::SIGSTOP);
    while state_of(agent) != Some('T') {
        pause_ms(1);
    }
    let length = (region.end - start) as usize;
    let mut taken = code(&calls, scratch);
    taken.extend([0xb8, 231, 0, 0, 0, 0x0f, 0x05]); // exit_group
    let mut slide = vec![0x90; length - taken.len()];
    slide.extend(taken);
    memory.write_all_at(&slide, start).unwrap();
    kill(agent, libc::SIGCONT);
    let begun = Instant::now();
    while state_of(agent).is_some_and(|state| state != 'Z') {
        assert!(begun.elapsed() < PATIENCE, "the agent goes on");
        pause_ms(5);
    }
    for (i, (number, _)) in calls.iter().enumerate() {
        let mut result = [0; 8];
        memory.read_exact_at(&mut result, scratch + i as u64 * 8).unwrap();
        assert_eq!(i64::from_le_bytes(result), -i64::from(libc::EPERM), "call {number}");
    }
    program.becomes('S');
    bystander.becomes('S');
}

#[test]
fn a_program_that_changed_its_user_dies_with_the_keeper_too() {
    // SAFETY: takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let script = "import os,sys,time\nprint('ready',flush=True)\nsys.stdin.readline()\n\
                  os.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n\
                  print('changed',flush=True)\ntime.sleep(30)\n";
    let mut program = Program::start("python3", &["-c", script]);
    assert_eq!(program.line(), "ready");
    let keeper = armed_keeper(&program);
    program.tell();
    assert_eq!(program.line(), "changed");
    dies_with(program, keeper);
}

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
    let Progress::Done(mut hand) = super::support::ended(&mut injection) else { panic!("failed") };
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
    program.becomes('S');
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
        assert!(killed.elapsed() < PATIENCE, "the program outlives its keeper");
        pause_ms(5);
    }
}
