//! What a stopped thread holds: its registers, its signal mask, and the memory that it has.
use super::Tracee;
use crate::hand::settle::CriticalSection;
use crate::hand::sys;
use libc::user_regs_struct as Registers;
use std::io;
use std::os::unix::fs::FileExt;

const PTRACE_GET_RSEQ_CONFIGURATION: u32 = 0x420f;
const PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG: u32 = 0x4210;
const PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG: u32 = 0x4211;
const NT_X86_XSTATE: usize = 0x202;
const USER_CODE_SEGMENT_64: u64 = 0x33;

/// A thread's Syscall User Dispatch (`prctl(PR_SET_SYSCALL_USER_DISPATCH)`): the kernel makes its
/// system calls SIGSYS, before a tracer sees them. `struct ptrace_sud_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::hand) struct Dispatch {
    /// 0 is off; then all other fields have to be 0.
    mode: u64,
    selector: u64,
    offset: u64,
    bytes: u64,
}

impl Dispatch {
    const INCLUSIVE: u64 = 2;

    /// The kernel keeps a range from which calls are dispatched (`PR_SYS_DISPATCH_INCLUSIVE_ON`,
    /// Linux 6.18) as its complement, from which they are not, and tells that. As such it refuses
    /// it, since the complement goes round the end of the addresses.
    fn as_it_was_asked_for(self) -> Self {
        let end = self.offset.wrapping_add(self.bytes);
        if self.offset == 0 || end > self.offset {
            return self;
        }
        Dispatch { mode: Self::INCLUSIVE, offset: end, bytes: self.bytes.wrapping_neg(), ..self }
    }
}

impl Tracee {
    /// Turns the thread's Syscall User Dispatch off. Returns what it was, if it was on.
    pub(in crate::hand) fn suspend_dispatch(&self) -> io::Result<Option<Dispatch>> {
        let mut dispatch = Dispatch::default();
        let at = (&raw mut dispatch) as usize;
        self.request(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, size_of::<Dispatch>(), at)?;
        if dispatch.mode == 0 {
            return Ok(None);
        }
        let dispatch = dispatch.as_it_was_asked_for();
        // What the kernel would not take back is not turned off.
        self.set_dispatch(&dispatch)?;
        self.set_dispatch(&Dispatch::default())?;
        Ok(Some(dispatch))
    }

    pub(in crate::hand) fn set_dispatch(&self, dispatch: &Dispatch) -> io::Result<()> {
        let at = std::ptr::from_ref(dispatch) as usize;
        self.request(PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG, size_of::<Dispatch>(), at)
    }

    /// More bytes of vector registers than any processor has: AMX's tiles take 8 KiB of them.
    pub(in crate::hand) const MOST_EXTENDED_BYTES: usize = 16 << 10;

    /// The registers of a stopped thread; an error of kind `Unsupported` if it does not run 64-bit
    /// code.
    pub(in crate::hand) fn registers(&self) -> io::Result<Registers> {
        // SAFETY: registers are plain integers.
        let mut regs: Registers = unsafe { std::mem::zeroed() };
        let mut iov =
            libc::iovec { iov_base: (&raw mut regs).cast(), iov_len: size_of::<Registers>() };
        let iov_at = (&raw mut iov) as usize;
        self.request(libc::PTRACE_GETREGSET, libc::NT_PRSTATUS as usize, iov_at)?;
        if iov.iov_len != size_of::<Registers>() || regs.cs != USER_CODE_SEGMENT_64 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(regs)
    }

    pub(in crate::hand) fn set_registers(&self, regs: &Registers) -> io::Result<()> {
        let mut regs = *regs;
        let mut iov =
            libc::iovec { iov_base: (&raw mut regs).cast(), iov_len: size_of::<Registers>() };
        let iov_at = (&raw mut iov) as usize;
        self.request(libc::PTRACE_SETREGSET, libc::NT_PRSTATUS as usize, iov_at)
    }

    /// The vector registers of a stopped thread and what belongs to them: `struct xregs_state`.
    pub(in crate::hand) fn extended_state(&self) -> io::Result<Vec<u8>> {
        let mut state = vec![0_u8; Self::MOST_EXTENDED_BYTES];
        let mut iov = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() };
        let iov_at = (&raw mut iov) as usize;
        self.request(libc::PTRACE_GETREGSET, NT_X86_XSTATE, iov_at)?;
        state.truncate(iov.iov_len);
        Ok(state)
    }

    pub(in crate::hand) fn set_extended_state(&self, state: &[u8]) -> io::Result<()> {
        // The kernel only reads it.
        let base = state.as_ptr().cast_mut().cast();
        let mut iov = libc::iovec { iov_base: base, iov_len: state.len() };
        let iov_at = (&raw mut iov) as usize;
        self.request(libc::PTRACE_SETREGSET, NT_X86_XSTATE, iov_at)
    }

    pub(in crate::hand) fn signal_mask(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        self.request(libc::PTRACE_GETSIGMASK, 8, (&raw mut mask) as usize)?;
        Ok(mask)
    }

    pub(in crate::hand) fn set_signal_mask(&self, mask: u64) -> io::Result<()> {
        self.request(libc::PTRACE_SETSIGMASK, 8, (&raw const mask) as usize)
    }

    /// The restartable sequence that the thread says it is in, if any.
    pub(in crate::hand) fn critical_section(&self) -> Option<CriticalSection> {
        let mut configuration = [0_u64; 3];
        let at = (&raw mut configuration) as usize;
        self.request(PTRACE_GET_RSEQ_CONFIGURATION, 24, at).ok()?;
        let described = sys::read_u64(self.tid, configuration[0].checked_add(8)?).ok()?;
        if configuration[0] == 0 || described == 0 {
            return None;
        }
        let mut bytes = [0; CriticalSection::BYTES];
        sys::read_memory(self.tid, described, &mut bytes).ok()?;
        Some(CriticalSection::parse(&bytes))
    }

    /// Writes to the program's private memory whatever its access rights.
    pub(in crate::hand) fn write_memory(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let memory =
            std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", self.tid));
        if memory.and_then(|m| m.write_all_at(bytes, address)).is_ok() {
            return Ok(());
        }
        // Some kernels forbid that; a tracer may still write word by word.
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let at = address as usize + i * 8;
            self.request(libc::PTRACE_POKEDATA, at, u64::from_le_bytes(word) as usize)?;
        }
        Ok(())
    }
}
