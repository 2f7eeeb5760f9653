//! The calls that an agent may make: the seccomp filter that it puts itself under, and what the
//! keeper's supervisor holds an agent to whose filters rest (`keeper/src/hand/supervisor.rs`).

/// An instruction of a seccomp filter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Instruction {
    code: u16,
    if_equal: u8,
    if_not: u8,
    value: u32,
}

const LOAD: u16 = 0x20;
const COMPARE: u16 = 0x15;
const ANSWER: u16 = 0x06;

const X86_64: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000 | 1;

/// Where `struct seccomp_data` holds things: the call's number, the processor, the lower halves of
/// the first arguments (the kernel looks at no more of a descriptor or a signal).
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const FIRST: u32 = 16;
const SECOND: u32 = 24;

/// `close_range`.
pub const CLOSE_RANGE: u32 = 436;
/// `pidfd_send_signal`.
pub const PIDFD_SEND_SIGNAL: u32 = 424;
/// `pidfd_open`.
pub const PIDFD_OPEN: u32 = 434;
/// `prctl`.
pub const PRCTL: u32 = 157;
/// With this `prctl` an agent sets its filter: its start is over.
pub const PR_SET_SECCOMP: u32 = 22;
/// The only signal that an agent sends.
pub const SIGKILL: u32 = 9;

/// The calls that an agent makes freely in its loop: `ioctl`, `futex`, `madvise`, `mremap`, `mmap`,
/// `mprotect`, `munmap`, `mlock2`, `munlock`, `poll`, `restart_syscall` (by which interrupted waits
/// are taken up again), `exit_group`, `write`, `mlockall`, `brk`, `vmsplice`.
pub const FREE: [u32; 16] = [16, 202, 28, 25, 9, 10, 11, 325, 150, 7, 219, 231, 1, 151, 12, 278];

/// What it makes besides before it is confined: `close`, `recvmsg`, `socketpair`, `setsockopt`,
/// `chdir`, `setsid`, `capget`, `capset`, `userfaultfd`, `pipe2`.
pub const FIRST_STEPS: [u32; 10] = [3, 47, 53, 54, 80, 112, 125, 126, 323, 293];
/// What is left of them when it has opened its program's process: `capget`, `capset`, `exit_group`.
pub const LAST_STEPS: [u32; 3] = [125, 126, 231];
/// What it asks of `prctl` then: its name, no new privileges.
pub const FIRST_CONTROLS: [u32; 2] = [15, 38];

const fn load(place: u32) -> Instruction {
    Instruction { code: LOAD, if_equal: 0, if_not: 0, value: place }
}

/// Goes on `if_equal` or `if_not` instructions further.
const fn compare(value: u32, if_equal: u8, if_not: u8) -> Instruction {
    Instruction { code: COMPARE, if_equal, if_not, value }
}

const fn answer(value: u32) -> Instruction {
    Instruction { code: ANSWER, if_equal: 0, if_not: 0, value }
}

/// Instructions of a [`filter`].
pub const LENGTH: usize = FREE.len() + 10;

/// The filter of an agent: the calls of its loop, and SIGKILL to the one process behind the
/// descriptor `program`. No call is allowed that could put another descriptor in its place.
#[must_use]
pub fn filter(program: i32) -> [Instruction; LENGTH] {
    let mut filter = [answer(REFUSE); LENGTH];
    filter[0] = load(PROCESSOR);
    filter[1] = compare(X86_64, 0, (LENGTH - 4) as u8);
    filter[2] = load(NUMBER);
    let mut at = 3;
    while at < FREE.len() + 3 {
        filter[at] = compare(FREE[at - 3], (LENGTH - 2 - at) as u8, 0);
        at += 1;
    }
    filter[at] = compare(PIDFD_SEND_SIGNAL, 0, 4);
    filter[at + 1] = load(FIRST);
    filter[at + 2] = compare(program as u32, 0, 2);
    filter[at + 3] = load(SECOND);
    filter[at + 4] = compare(SIGKILL, 1, 0);
    filter[at + 5] = answer(REFUSE);
    filter[at + 6] = answer(ALLOW);
    filter
}

/// A system call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCall {
    /// How the kernel names the processor (`AUDIT_ARCH_...`) whose numbers the call's is one of.
    pub processor: u32,
    /// Its number.
    pub number: u32,
    /// Its first arguments.
    pub arguments: [u64; 3],
}

/// Whether a filter of [`filter`]'s lets a call pass.
#[must_use]
pub fn allows(filter: &[Instruction], call: &AgentCall) -> bool {
    let (mut at, mut loaded) = (0, 0);
    while let Some(step) = filter.get(at) {
        at += 1;
        match step.code {
            LOAD => {
                loaded = match step.value {
                    NUMBER => call.number,
                    PROCESSOR => call.processor,
                    FIRST => call.arguments[0] as u32,
                    SECOND => call.arguments[1] as u32,
                    _ => return false,
                }
            }
            COMPARE => {
                at += usize::from(if loaded == step.value { step.if_equal } else { step.if_not })
            }
            _ => return step.value == ALLOW,
        }
    }
    false
}

/// Whether this closes all descriptors: an agent's very first call, for its table is a copy of the
/// program's.
#[must_use]
pub fn closes_all(call: &AgentCall) -> bool {
    let arguments = call.arguments.map(|argument| argument as u32);
    call.processor == X86_64 && call.number == CLOSE_RANGE && arguments == [0, u32::MAX, 0]
}

/// Whether an agent that has closed them and is not confined yet makes such a call. `program` is
/// the process that it is put into.
#[must_use]
pub fn is_first_step(call: &AgentCall, program: u32) -> bool {
    let first = call.arguments[0] as u32;
    call.processor == X86_64
        && match call.number {
            PIDFD_OPEN => first == program,
            PRCTL => FIRST_CONTROLS.contains(&first),
            number => FREE.contains(&number) || FIRST_STEPS.contains(&number),
        }
}

/// Whether an agent makes such a call that has opened its program's process: it gives up rights,
/// and opens and closes nothing.
#[must_use]
pub fn is_last_step(call: &AgentCall) -> bool {
    let is_control = call.number == PRCTL && FIRST_CONTROLS.contains(&(call.arguments[0] as u32));
    call.processor == X86_64 && (is_control || LAST_STEPS.contains(&call.number))
}

/// Whether this is the call by which an agent confines itself.
#[must_use]
pub fn confines(call: &AgentCall) -> bool {
    call.processor == X86_64 && call.number == PRCTL && call.arguments[0] as u32 == PR_SET_SECCOMP
}
