//! What is taken from threads that stand still, and given back: what they have in registers.
use super::others::Others;
use super::tracee::Tracee;
use crate::sys::procfs;
use libc::user_regs_struct as Registers;
use zeroize::Zeroize;

const GENERAL: usize = size_of::<Registers>();

/// What was taken. Only [`Taken::bytes`] is secret.
#[derive(Default)]
pub struct Taken {
    of: Vec<TakenOf>,
    bytes: Vec<u8>,
    /// Threads that still have them: the kernel did not show or blank them.
    left: u64,
}

struct TakenOf {
    tid: i32,
    /// Bytes of the vector registers; in front of them are the general ones.
    extended: usize,
}

impl Taken {
    /// All that was taken, to be sealed where it lies.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Threads whose registers are where they were.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes from all threads that stand still.
    pub(super) fn from(processes: &mut [Others]) -> Taken {
        let threads = processes.iter_mut().flat_map(Others::still).count();
        // A vector that grows leaves what it held behind.
        let bytes = Vec::with_capacity(threads * (GENERAL + Tracee::MOST_EXTENDED_BYTES));
        let mut taken = Taken { of: Vec::new(), bytes, left: 0 };
        processes.iter_mut().flat_map(Others::still).for_each(|tracee| taken.take(tracee));
        taken
    }

    /// Gives all of it back. A thread that was killed meanwhile does not want it.
    pub(super) fn give_back(mut self, processes: &mut [Others]) {
        let mut rest = self.bytes.as_slice();
        for TakenOf { tid, extended } in &self.of {
            let (own, others) = rest.split_at(GENERAL + extended);
            rest = others;
            let mut tracees = processes.iter_mut().flat_map(Others::still);
            if let Some(tracee) = tracees.find(|tracee| tracee.tid() == *tid) {
                let _ = tracee.set_extended_state(&own[GENERAL..]);
                let _ = tracee.set_registers(&registers_of(&own[..GENERAL]));
            }
        }
        self.bytes.zeroize();
    }

    fn take(&mut self, tracee: &Tracee) {
        let (Ok(registers), Ok(mut extended)) = (tracee.registers(), tracee.extended_state())
        else {
            self.left += u64::from(!procfs::is_gone(tracee.tid()));
            return;
        };
        self.of.push(TakenOf { tid: tracee.tid(), extended: extended.len() });
        self.bytes.extend_from_slice(bytes_of(&registers));
        self.bytes.extend_from_slice(&extended);
        blank_extended(&mut extended);
        let blanked = tracee.set_registers(&blank(&registers));
        let is_blank = blanked.and_then(|()| tracee.set_extended_state(&extended)).is_ok();
        // A thread that is killed now needs no registers any more.
        self.left += u64::from(!is_blank && !procfs::is_gone(tracee.tid()));
    }
}

/// Where the thread is stays: that is no secret.
fn blank(registers: &Registers) -> Registers {
    Registers {
        r15: 0,
        r14: 0,
        r13: 0,
        r12: 0,
        rbp: 0,
        rbx: 0,
        r11: 0,
        r10: 0,
        r9: 0,
        r8: 0,
        rax: 0,
        rcx: 0,
        rdx: 0,
        rsi: 0,
        rdi: 0,
        ..*registers
    }
}

/// `struct xregs_state`: its control words must stay valid, and its header says what is in it.
fn blank_extended(state: &mut [u8]) {
    const CONTROL: [std::ops::Range<usize>; 2] = [0..6, 24..32];
    /// From the kernel's notes at the end of the legacy part to the end of the header.
    const HEADER: std::ops::Range<usize> = 464..576;
    for (at, byte) in state.iter_mut().enumerate() {
        if !HEADER.contains(&at) && !CONTROL.iter().any(|kept| kept.contains(&at)) {
            *byte = 0;
        }
    }
}

fn bytes_of(registers: &Registers) -> &[u8] {
    // SAFETY: plain integers without padding, borrowed as long as the result.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(registers).cast(), GENERAL) }
}

/// Of as many bytes as [`bytes_of`] gives.
fn registers_of(bytes: &[u8]) -> Registers {
    assert_eq!(bytes.len(), GENERAL);
    // SAFETY: plain integers, read from as many bytes in any alignment.
    unsafe { bytes.as_ptr().cast::<Registers>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_registers_are_blanked_and_what_makes_them_valid_stays() {
        let mut state = vec![0xff; 2696];
        blank_extended(&mut state);
        let kept = |at: usize| state[at] == 0xff;
        // Control and status words, MXCSR and its mask, the header; no register of any kind.
        for at in [0, 5, 24, 31, 464, 512, 575] {
            assert!(kept(at), "{at}");
        }
        for at in [6, 23, 32, 160, 415, 463, 576, 832, 2695] {
            assert!(!kept(at), "{at}");
        }
    }
}
