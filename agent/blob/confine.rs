//! What the agent gives up once it has all it needs. It began with the rights that the program had at
//! that moment, and the program may drop its own later; but the agent's code lies in memory that the
//! program can write. So whoever takes the program over must gain nothing by taking the agent too.
//!
//! Its user stays as it was, for another one would change who may look into the program's memory. A
//! filter makes that user worthless instead: no call is left that names a file, a process or a user.
use crate::calls;
use crate::wire::Errno;

/// The program may have changed its user when it must be killed.
const CAP_KILL: u32 = 5;
/// Stagings for locked memory are locked too, and under `mlockall` every mapping is: the kernel then
/// counts the program's locked pages against the limit.
const CAP_IPC_LOCK: u32 = 14;
const KEPT: u32 = 1 << CAP_KILL | 1 << CAP_IPC_LOCK;

const X86_64: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000 | 1;

/// Where `struct seccomp_data` holds things: the call's number, the processor, the lower halves of the
/// first arguments (the kernel looks at no more of a descriptor or a signal).
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const FIRST: u32 = 16;
const SECOND: u32 = 24;

/// An instruction of a seccomp filter.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Instruction {
    code: u16,
    if_equal: u8,
    if_not: u8,
    value: u32,
}

const fn load(place: u32) -> Instruction {
    Instruction { code: 0x20, if_equal: 0, if_not: 0, value: place }
}

/// Goes on `if_equal` or `if_not` instructions further.
const fn compare(value: u32, if_equal: u8, if_not: u8) -> Instruction {
    Instruction { code: 0x15, if_equal, if_not, value }
}

const fn answer(value: u32) -> Instruction {
    Instruction { code: 0x06, if_equal: 0, if_not: 0, value }
}

const FREE: usize = calls::AFTER_CONFINEMENT.len();
const LENGTH: usize = FREE + 10;

/// The calls of the agent's loop, and SIGKILL to the one process behind `program`. No call is allowed
/// that could put another descriptor in its place.
fn filter(program: i32) -> [Instruction; LENGTH] {
    let mut filter = [answer(REFUSE); LENGTH];
    filter[0] = load(PROCESSOR);
    filter[1] = compare(X86_64, 0, (LENGTH - 4) as u8);
    filter[2] = load(NUMBER);
    let mut at = 3;
    while at < FREE + 3 {
        filter[at] = compare(calls::AFTER_CONFINEMENT[at - 3], (LENGTH - 2 - at) as u8, 0);
        at += 1;
    }
    filter[at] = compare(calls::PIDFD_SEND_SIGNAL as u32, 0, 4);
    filter[at + 1] = load(FIRST);
    filter[at + 2] = compare(program as u32, 0, 2);
    filter[at + 3] = load(SECOND);
    filter[at + 4] = compare(calls::SIGKILL as u32, 1, 0);
    filter[at + 5] = answer(REFUSE);
    filter[at + 6] = answer(ALLOW);
    filter
}

/// Leaves the agent with the rights that its loop needs. `program` is the program's pidfd.
///
/// # Errors
/// If that cannot be done; then there must be no agent.
pub fn confine(program: i32) -> Result<(), Errno> {
    calls::keep_capabilities(KEPT)?;
    calls::gain_no_privileges()?;
    calls::set_filter(&filter(program))
}
