//! What depends on the processor: the first instructions, the system call, and the memory functions
//! that the compiler expects to find.
use core::arch::{asm, global_asm, naked_asm};

// The injector sets the program's thread to the first instruction with a `clone` in its registers
// and stops it again before the second one, which only the new process reaches: the *intermediate*,
// which has no use for a stack. It clones the agent, notes its pid (or the error) and exits, so
// that the agent has no parent in the program. rbx holds the address of the bootstrap block
// throughout. The agent makes no call before it is released, since under the program's own filters
// a call could kill it. Its wait is bounded.
//
// A program that adopts orphans would get the agent, and its `wait` for all children would not end.
// Where the block says so, the new process is the agent itself: a child with the exit signal 0,
// which `wait` does not see.
global_asm!(
    ".section .text.entry, \"ax\"",
    ".globl agent_entry",
    "agent_entry:",
    "syscall",
    "cmp dword ptr [rbx + 28], 0",
    "jne 2f",
    "mov eax, 56",
    "mov edi, 0x100",
    "mov rsi, [rbx + 16]",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "syscall",
    "test eax, eax",
    "jz 2f",
    "mov [rbx + 12], eax",
    "mov eax, 231",
    "xor edi, edi",
    "syscall",
    "ud2",
    "2:",
    "mov ecx, 0x10000000",
    "3:",
    "cmp dword ptr [rbx + 24], 0",
    "jne 4f",
    "pause",
    "dec ecx",
    "jnz 3b",
    "ud2",
    "4:",
    "xor ebp, ebp",
    "mov rdi, rbx",
    "call {main}",
    "ud2",
    ".text",
    main = sym crate::agent_main,
);

/// Makes a system call.
///
/// # Safety
/// As the call demands.
#[inline(always)]
pub unsafe fn syscall(nr: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel clobbers rax, rcx and r11 and nothing else; the caller vouches for the
    // call.
    unsafe {
        asm!("syscall", inlateout("rax") nr as isize => result, in("rdi") a[0], in("rsi") a[1],
            in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Copies bytes between areas that do not overlap.
///
/// # Safety
/// Both areas must be mapped for `len` bytes.
#[inline(always)]
pub unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the direction flag is clear by the calling convention; the caller vouches for the
    // areas.
    unsafe {
        asm!("rep movsb", inout("rdi") dst => _, inout("rsi") src => _, inout("rcx") len => _,
            options(nostack, preserves_flags));
    }
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memcpy(_dst: *mut u8, _src: *const u8, _len: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memset(_dst: *mut u8, _byte: i32, _len: usize) -> *mut u8 {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret")
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memcmp(_a: *const u8, _b: *const u8, _len: usize) -> i32 {
    naked_asm!(
        "xor eax, eax",
        "test rdx, rdx",
        "jz 3f",
        "2:",
        "movzx eax, byte ptr [rdi]",
        "movzx ecx, byte ptr [rsi]",
        "sub eax, ecx",
        "jnz 3f",
        "inc rdi",
        "inc rsi",
        "dec rdx",
        "jnz 2b",
        "3:",
        "ret",
    )
}
