//! Stacks in secret memory.

use std::any::Any;
use std::ffi::c_void;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::memory::{MemoryKind, SecretMemory};
use casemate_core::PAGE_BYTES;

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
        wipe_vector_registers();
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

/// Where the stack of a thread lies.
#[derive(Clone, Copy, Debug)]
pub struct StackRange {
    lowest: usize,
    top: usize,
    /// Which of its pages were touched is known.
    kind: MemoryKind,
}

impl SecretStack {
    /// Where it lies. For the thread that runs on it.
    pub fn range(&self) -> StackRange {
        let lowest = self.memory.pointer().as_ptr() as usize;
        StackRange { lowest, top: lowest + self.memory.bytes(), kind: self.kind() }
    }
}

impl StackRange {
    /// The address below which nothing was ever written, by the thread that runs here.
    #[must_use]
    pub fn lowest_touched(self) -> usize {
        let bytes = self.top - self.lowest;
        let mut pages = vec![1_u8; bytes / PAGE_BYTES];
        // Only secret memory is known to stay where it is once it is there.
        if self.kind == MemoryKind::Secret {
            // SAFETY: the range is mapped, and the answer is a byte for each of its pages.
            let told =
                unsafe { libc::mincore(self.lowest as *mut c_void, bytes, pages.as_mut_ptr()) };
            if told < 0 {
                pages.fill(1);
            }
        }
        let untouched = pages.iter().take_while(|page| **page & 1 == 0).count();
        self.lowest + untouched * PAGE_BYTES
    }
}

/// Wipes the calling thread's vector registers, and its stack from `lowest` to the frame of the
/// caller, into which this is put: frames of functions that are called next hold nothing but what
/// they write.
///
/// # Safety
/// `lowest` must be an address of the stack that the thread runs on, or 0 for none.
#[inline(always)]
pub unsafe fn wipe_below_here(lowest: usize) {
    wipe_vector_registers();
    // SAFETY: what is below the stack pointer belongs to no frame, and as this may use the stack,
    // the compiler keeps nothing there; the caller vouches for where it ends. A handler of a signal
    // that comes meanwhile has returned when the instruction goes on.
    unsafe {
        std::arch::asm!(
            "test rdi, rdi",
            "jz 2f",
            "mov rcx, rsp",
            "sub rcx, rdi",
            "jbe 2f",
            "rep stosb",
            "2:",
            inout("rdi") lowest => _,
            out("rcx") _,
            inout("eax") 0 => _,
        );
    }
}

/// AES-GCM leaves round keys in the highest of them, and copies leave what they copied.
#[inline(always)]
fn wipe_vector_registers() {
    // SAFETY: the processor has the instructions; all that they change is declared.
    unsafe {
        if std::arch::is_x86_feature_detected!("avx512f") {
            std::arch::asm!(
                "vpxorq zmm16, zmm16, zmm16",
                "vpxorq zmm17, zmm17, zmm17",
                "vpxorq zmm18, zmm18, zmm18",
                "vpxorq zmm19, zmm19, zmm19",
                "vpxorq zmm20, zmm20, zmm20",
                "vpxorq zmm21, zmm21, zmm21",
                "vpxorq zmm22, zmm22, zmm22",
                "vpxorq zmm23, zmm23, zmm23",
                "vpxorq zmm24, zmm24, zmm24",
                "vpxorq zmm25, zmm25, zmm25",
                "vpxorq zmm26, zmm26, zmm26",
                "vpxorq zmm27, zmm27, zmm27",
                "vpxorq zmm28, zmm28, zmm28",
                "vpxorq zmm29, zmm29, zmm29",
                "vpxorq zmm30, zmm30, zmm30",
                "vpxorq zmm31, zmm31, zmm31",
                clobber_abi("C"),
                options(nostack, nomem, preserves_flags),
            );
        }
        if std::arch::is_x86_feature_detected!("avx") {
            std::arch::asm!("vzeroall", clobber_abi("C"), options(nostack, nomem, preserves_flags),);
        } else {
            std::arch::asm!(
                "pxor xmm0, xmm0",
                "pxor xmm1, xmm1",
                "pxor xmm2, xmm2",
                "pxor xmm3, xmm3",
                "pxor xmm4, xmm4",
                "pxor xmm5, xmm5",
                "pxor xmm6, xmm6",
                "pxor xmm7, xmm7",
                "pxor xmm8, xmm8",
                "pxor xmm9, xmm9",
                "pxor xmm10, xmm10",
                "pxor xmm11, xmm11",
                "pxor xmm12, xmm12",
                "pxor xmm13, xmm13",
                "pxor xmm14, xmm14",
                "pxor xmm15, xmm15",
                clobber_abi("C"),
                options(nostack, nomem, preserves_flags),
            );
        }
    }
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
