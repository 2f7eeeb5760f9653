//! Stacks in secret memory.

use std::any::Any;
use std::ffi::c_void;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::memory::{MemoryKind, SecretMemory};

/// Zeros above the first frame: a backtrace walks on past that frame, and stops at them.
const HEADROOM: usize = 1024;
/// Enough for deriving keys and building ciphers, with much to spare.
const DERIVING_BYTES: usize = 256 * 1024;

/// A stack in secret memory: what cryptography leaves on it is as well kept as its keys.
pub struct SecretStack {
    pub(super) memory: SecretMemory,
}

impl SecretStack {
    /// A stack of at least `bytes`; 64 KiB is little, 256 KiB plenty for the keeper's threads. It
    /// counts towards `RLIMIT_MEMLOCK` (usually 8 MiB for ordinary users).
    pub fn new(bytes: usize) -> io::Result<Self> {
        Ok(Self { memory: SecretMemory::new(bytes.saturating_add(HEADROOM))? })
    }

    /// How well it is kept.
    pub fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// Calls `f` in this thread, but on this stack, and wipes the stack afterwards. A panic goes
    /// on in the caller. Running over the end of the stack is a SIGSEGV.
    pub fn run<F: FnOnce() -> R, R>(&mut self, f: F) -> R {
        let mut call = Call::<F, R> { f: Some(f), result: None };
        let top = self.memory.bytes() - HEADROOM;
        // SAFETY: `top` is inside the mapping, a multiple of 16 as pages and HEADROOM are, and the
        // stack below is ours alone, since `self` is borrowed exclusively. `call` outlives the
        // call, `entry` is made for its type, and never unwinds.
        unsafe {
            let top = self.memory.pointer().as_ptr().add(top);
            switch(top, entry::<F, R>, std::ptr::from_mut(&mut call).cast());
        }
        self.memory.wipe();
        match call.result {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the call on the other stack did not return"),
        }
    }
}

/// Calls `f` on a stack that is in secret memory and wiped afterwards: for code that copies keys to
/// the stack. Fails only if there is no memory.
pub fn with_wiped_stack<R>(f: impl FnOnce() -> R) -> io::Result<R> {
    Ok(SecretStack::new(DERIVING_BYTES)?.run(f))
}

struct Call<F, R> {
    f: Option<F>,
    result: Option<Result<R, Box<dyn Any + Send>>>,
}

/// The first frame on the other stack.
unsafe extern "C" fn entry<F: FnOnce() -> R, R>(call: *mut c_void) {
    // SAFETY: `run` passes a pointer to its `Call<F, R>`, and does not touch it until we return.
    let call = unsafe { &mut *call.cast::<Call<F, R>>() };
    if let Some(f) = call.f.take() {
        // A panic is passed on by `run`, as if it had gone straight through.
        call.result = Some(catch_unwind(AssertUnwindSafe(f)));
    }
}

/// Calls `entry(data)` with the stack pointer at `top`.
///
/// # Safety
/// `top` must be the aligned upper end of enough writable memory that nothing else uses, and
/// `entry(data)` must be sound and not unwind.
#[inline(never)]
unsafe fn switch(top: *mut u8, entry: unsafe extern "C" fn(*mut c_void), data: *mut c_void) {
    // SAFETY: the old stack pointer is kept in r12, which the callee preserves; everything else
    // that a C call may change is declared. The caller vouches for the rest.
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "mov rsp, rdx",
            "call rax",
            "mov rsp, r12",
            inout("rdx") top => _,
            inout("rax") entry => _,
            inout("rdi") data => _,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}
