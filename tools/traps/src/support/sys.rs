//! System calls with their failures put into words.

use super::{PAGE, Verdict};
use std::fmt;
use std::ptr;

/// Why a trap failed: one sentence for a person.
#[derive(Debug)]
pub struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl<T: Into<String>> From<T> for Trouble {
    fn from(text: T) -> Self {
        Trouble(text.into())
    }
}

/// The last system call's error.
pub fn errno_text() -> String {
    std::io::Error::last_os_error().to_string()
}

/// The last system call's error number.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sets the error number, for calls whose result does not tell failure.
pub fn set_errno(value: i32) {
    // SAFETY: the C library's own place for this thread.
    unsafe { *libc::__errno_location() = value };
}

/// Turns a negative return value into a sentence.
pub fn check(what: &str, value: impl Into<i64>) -> Result<i64, Trouble> {
    let value = value.into();
    if value < 0 { Err(Trouble(format!("{what}: {}", errno_text()))) } else { Ok(value) }
}

/// A comparison that says both sides.
pub fn same<T: PartialEq + fmt::Debug>(what: &str, expected: T, got: T) -> Verdict {
    if expected == got {
        Ok(())
    } else {
        Err(Trouble(format!("{what}: expected {expected:?}, got {got:?}")))
    }
}

/// Private anonymous memory, read and write.
pub const ANON: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Read and write.
pub const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// `mmap` without a file.
pub fn map(at: *mut u8, bytes: usize, prot: i32, flags: i32) -> Result<*mut u8, Trouble> {
    // SAFETY: a new mapping; with MAP_FIXED the caller owns the range.
    let address = unsafe { libc::mmap(at.cast(), bytes, prot, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(Trouble(format!("mmap of {bytes} bytes: {}", errno_text())));
    }
    Ok(address.cast())
}

/// Private anonymous pages wherever the kernel likes.
pub fn map_pages(pages: usize) -> Result<*mut u8, Trouble> {
    map(ptr::null_mut(), pages * PAGE, RW, ANON)
}

/// `mmap` of private anonymous memory as 32-bit programs call it. None if the kernel knows no such
/// calls.
pub fn map_as_32_bit(bytes: usize) -> Result<Option<*mut u8>, Trouble> {
    const MMAP2: u64 = 192;
    let answer: u64;
    // SAFETY: a new mapping at an address of the kernel's choice. The two registers that the
    // compiler keeps for itself are saved around the call, which may change those that are named,
    // and no others.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "push rbp",
            "xor ebx, ebx",
            "xor ebp, ebp",
            "int 0x80",
            "pop rbp",
            "pop rbx",
            inlateout("rax") MMAP2 => answer,
            in("rcx") bytes,
            in("rdx") RW,
            in("rsi") ANON,
            in("rdi") -1_i64,
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
        );
    }
    match answer as u32 as i32 {
        error if error == -libc::ENOSYS => Ok(None),
        error @ -4095..0 => Err(Trouble(format!("32-bit mmap: error {}", -error))),
        address => Ok(Some(address as u32 as usize as *mut u8)),
    }
}

/// `munmap` of memory that the caller owns and no longer uses.
pub fn unmap(at: *mut u8, bytes: usize) -> Verdict {
    // SAFETY: the caller owns the range.
    check("munmap", unsafe { libc::munmap(at.cast(), bytes) }).map(drop)
}

/// `mprotect` of memory that the caller owns.
pub fn protect(at: *mut u8, bytes: usize, prot: i32) -> Verdict {
    // SAFETY: the caller owns the range and minds its new protection.
    check("mprotect", unsafe { libc::mprotect(at.cast(), bytes, prot) }).map(drop)
}

/// `madvise` of memory that the caller owns.
pub fn advise(at: *mut u8, bytes: usize, advice: i32) -> Verdict {
    // SAFETY: the caller owns the range and expects what the advice does to it.
    check(&format!("madvise({advice})"), unsafe { libc::madvise(at.cast(), bytes, advice) })
        .map(drop)
}

/// Is this advice known to the kernel at all?
pub fn advice_known(at: *mut u8, bytes: usize, advice: i32) -> Result<bool, Trouble> {
    // SAFETY: the caller owns the range and expects what the advice does to it.
    if unsafe { libc::madvise(at.cast(), bytes, advice) } == 0 {
        return Ok(true);
    }
    match errno() {
        libc::EINVAL => Ok(false),
        other => Err(Trouble(format!("madvise({advice}): error {other}"))),
    }
}

/// A pipe: reading end, writing end.
pub fn pipe() -> Result<(i32, i32), Trouble> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    check("pipe", unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((ends[0], ends[1]))
}

/// Closes a descriptor that the caller owns.
pub fn close(descriptor: i32) {
    // SAFETY: the caller owns the descriptor.
    unsafe { libc::close(descriptor) };
}

/// Writes all of a buffer in memory that may be missing.
pub fn write_all(descriptor: i32, at: *const u8, bytes: usize) -> Verdict {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the caller owns `bytes` bytes at `at`.
        let count = unsafe { libc::write(descriptor, at.add(done).cast(), bytes - done) };
        if count < 0 && errno() == libc::EINTR {
            continue;
        }
        done += check("write", count as i64)? as usize;
    }
    Ok(())
}

/// Reads all of a buffer into memory that may be missing.
pub fn read_all(descriptor: i32, at: *mut u8, bytes: usize) -> Verdict {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the caller owns `bytes` bytes at `at`.
        let count = unsafe { libc::read(descriptor, at.add(done).cast(), bytes - done) };
        if count < 0 && errno() == libc::EINTR {
            continue;
        }
        match check("read", count as i64)? {
            0 => return Err(Trouble(format!("read: end of file after {done} of {bytes} bytes"))),
            count => done += count as usize,
        }
    }
    Ok(())
}

/// Installs a handler with SA_SIGINFO and these flags; gives back the one before.
pub fn handle(
    signal: i32,
    handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void),
    flags: i32,
) -> Result<libc::sigaction, Trouble> {
    // SAFETY: both structures are plain data; the handler has the SA_SIGINFO signature.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        let mut old: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | flags;
        check("sigaction", libc::sigaction(signal, &new, &mut old))?;
        Ok(old)
    }
}
