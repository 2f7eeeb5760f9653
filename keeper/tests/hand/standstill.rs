//! Whole processes that stand still: nothing of theirs is left in registers, their memory stays as
//! it is, and they do not notice.
use super::CALLS;
use super::support::{Program, compiled, pause_ms};
use casemate_keeper::hand::Standstill;
use std::io::{Read, Seek, SeekFrom};

/// What `secretive.c` has in registers; its complement is in its `.data`.
const MARKER: u64 = 0x5ec2e7_u64.wrapping_mul(SPREAD) ^ 77_u64.wrapping_mul(SPREAD);
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Has all threads of a program stand still.
pub fn still(program: &Program) -> Standstill {
    let mut still = Standstill::default();
    loop {
        still.stop([(program.pid(), false)].into_iter()).expect("it can be traced");
        let now = still.look();
        if now.threads > 0 && now.in_calls == 0 {
            return still;
        }
        pause_ms(1);
    }
}

pub fn let_go(mut still: Standstill) {
    while !still.let_go() {
        pause_ms(1);
    }
}

fn holds(bytes: &[u8], word: u64) -> bool {
    bytes.windows(8).any(|window| window == word.to_ne_bytes())
}

/// The registers of a thread that this thread traces.
fn registers(tid: i32) -> Vec<u8> {
    [libc::NT_PRSTATUS as usize, 0x202].into_iter().flat_map(|kind| regset(tid, kind)).collect()
}

fn regset(tid: i32, kind: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; 16 << 10];
    let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the vector is live, and as long as it says.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, kind, std::ptr::from_mut(&mut iov)) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    bytes.truncate(iov.iov_len);
    bytes
}

/// The writable private mappings of files of a program.
fn data_of(pid: i32) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
    let mut memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("it is ours");
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains("rw-p") && line.contains('/')) {
        let (start, rest) = line.split_once('-').expect("a range");
        let end = rest.split(' ').next().expect("an end");
        let at = |text| u64::from_str_radix(text, 16).expect("an address");
        let mut bytes = vec![0; (at(end) - at(start)) as usize];
        memory.seek(SeekFrom::Start(at(start))).expect("it can be sought");
        memory.read_exact(&mut bytes).expect("it is mapped");
        all.extend(bytes);
    }
    all
}

#[test]
fn what_is_taken_is_nowhere_else_and_comes_back() {
    let Some(path) = compiled("secretive", &["-O2"]) else { return };
    let mut program = Program::start(&path, &[]);
    assert_eq!(program.line(), "ready");
    let pid = program.pid();
    // At first it may be in front of its loop.
    let mut still = loop {
        let still = still(&program);
        if holds(&registers(pid), MARKER) {
            break still;
        }
        let_go(still);
        pause_ms(1);
    };
    assert!(holds(&data_of(pid), !MARKER), "vacuous: not in its data");
    let mut taken = still.take();
    assert!(holds(taken.bytes(), MARKER));
    assert!(!holds(&registers(pid), MARKER), "left in its registers");
    // Others may be reading it: a pipe that refers to it, or a process.
    assert!(holds(&data_of(pid), !MARKER), "its memory was changed");
    still.give_back(taken);
    assert!(holds(&registers(pid), MARKER));
    let_go(still);
    // SAFETY: a signal to a child that was not reaped yet.
    unsafe { libc::kill(pid, libc::SIGUSR1) };
    assert_eq!(program.finish(), "ok");
}

#[test]
fn no_call_notices_that_its_process_stood_still() {
    let Some(path) = compiled("blocked", &[]) else { return };
    for call in CALLS {
        let mut program = Program::start(&path, &[call]);
        assert_eq!(program.line(), "ready");
        let waits = || {
            if call != "compute" {
                program.becomes('S');
            }
        };
        waits();
        for _ in 0..3 {
            let mut still = still(&program);
            // A transfer that would be seen to end early goes on, and meets no page of the Clear.
            let now = still.look();
            let alone = u64::from(call == "writev");
            assert_eq!((now.threads, now.left_alone), (3 - alone, alone), "{call}");
            let taken = still.take();
            still.give_back(taken);
            let_go(still);
        }
        waits();
        program.tell();
        assert_eq!(program.finish(), format!("ok {call}"));
    }
}

#[test]
fn a_process_that_is_killed_while_it_stands_still_is_gone() {
    let program = Program::start("sleep", &["30"]);
    program.becomes('S');
    let mut still = still(&program);
    let taken = still.take();
    // SAFETY: a signal to a child that was not reaped yet.
    unsafe { libc::kill(program.pid(), libc::SIGKILL) };
    while still.look().threads > 0 {
        pause_ms(1);
    }
    still.give_back(taken);
    let_go(still);
    program.becomes('Z');
}
