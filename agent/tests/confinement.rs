//! The filter of an agent, judged by the machine that the keeper's supervisor judges with.
use casemate_agent::confinement::{
    AgentCall, CLOSE_RANGE, FIRST_STEPS, FREE, PIDFD_OPEN, PIDFD_SEND_SIGNAL, PRCTL, allows,
    closes_all, confines, filter, is_first_step, is_last_step,
};

const X86_64: u32 = 0xc000_003e;
const PROGRAM: i32 = 6;

fn call(number: u32, [first, second]: [u64; 2]) -> AgentCall {
    AgentCall { processor: X86_64, number, arguments: [first, second, 0] }
}

#[test]
fn a_confined_agent_makes_the_calls_of_its_loop_and_no_others() {
    let filter = filter(PROGRAM);
    for number in (0..1000).chain([0x4000_0000 | FREE[0], u32::MAX]) {
        let allowed = FREE.contains(&number);
        assert_eq!(allows(&filter, &call(number, [0, 0])), allowed, "{number}");
        let other = AgentCall { processor: 0x4000_0003, ..call(number, [0, 0]) };
        assert!(!allows(&filter, &other), "32-bit {number}");
    }
}

#[test]
fn it_kills_its_program_and_no_other_process() {
    let filter = filter(PROGRAM);
    let signal = |to, signal| allows(&filter, &call(PIDFD_SEND_SIGNAL, [to, signal]));
    assert!(signal(6, 9));
    // The kernel looks at the lower half of a descriptor, and so does the filter.
    assert!(signal(1 << 32 | 6, 9));
    assert!(!signal(5, 9) && !signal(6, 15) && !signal(6, 0));
}

#[test]
fn its_first_call_closes_all_descriptors_at_once() {
    let close = |first, last, flags| {
        closes_all(&AgentCall { arguments: [first, last, flags], ..call(CLOSE_RANGE, [0, 0]) })
    };
    assert!(close(0, u64::from(u32::MAX), 0));
    // The third only marks them to be closed by an `execve`.
    assert!(
        !close(1, u64::from(u32::MAX), 0)
            && !close(0, 1000, 0)
            && !close(0, u64::from(u32::MAX), 4)
    );
    assert!(!is_first_step(&call(CLOSE_RANGE, [0, 0]), 77));
}

#[test]
fn before_that_it_opens_its_program_and_nothing_else() {
    let first = |number, argument| is_first_step(&call(number, [argument, 0]), 77);
    assert!(first(PIDFD_OPEN, 77) && !first(PIDFD_OPEN, 78));
    assert!(FIRST_STEPS.iter().chain(&FREE).all(|&number| first(number, 0)));
    // openat, execve, clone, ptrace, kill, prctl(PR_SET_DUMPABLE).
    for (number, argument) in [(257, 0), (59, 0), (56, 0), (101, 0), (62, 0), (PRCTL, 4)] {
        assert!(!first(number, argument), "{number}");
    }
    let last = |number, argument| is_last_step(&call(number, [argument, 0]));
    assert!(last(126, 0) && last(PRCTL, 38) && !last(PRCTL, 22));
    // close, recvmsg, userfaultfd, pidfd_open: another descriptor could take the program's place.
    assert!([3, 47, 323, PIDFD_OPEN].iter().all(|&number| !last(number, 77)));
    assert!(confines(&call(PRCTL, [22, 2])) && !confines(&call(PRCTL, [38, 1])));
}
