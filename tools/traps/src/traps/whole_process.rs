//! What changes a process as a whole while its memory is out.

use crate::support::sys::{self, ANON, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};

/// `READ_IMPLIES_EXEC`, set late: what is mapped from then on may be executed, and so may a heap
/// that grows.
pub fn read_implies_exec(options: &Options) -> Verdict {
    const ASK: libc::c_ulong = 0xffff_ffff;
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    ballast.squeeze()?;
    // SAFETY: asks for, and changes, an attribute of this thread only.
    let set = unsafe {
        let now = libc::personality(ASK);
        now >= 0 && libc::personality(now as libc::c_ulong | READ_IMPLIES_EXEC) >= 0
    };
    if !set {
        eprintln!("skipped: personality: {}", sys::errno_text());
        return Ok(());
    }
    let heap = grown_heap(4)?;
    let mapped = sys::map_pages(64)?;
    for at in [mapped, heap] {
        for value in 1..3_u32 {
            write_function(at, value);
            ballast.squeeze()?;
            // SAFETY: the bytes just written are a function without arguments that returns a u32.
            let run: extern "C" fn() -> u32 = unsafe { std::mem::transmute(at) };
            sys::same("what a generated function returns", value, run())?;
        }
    }
    region.check(0)
}

const READ_IMPLIES_EXEC: libc::c_ulong = 0x0040_0000;

/// Writes `mov eax, value; ret`.
fn write_function(at: *mut u8, value: u32) {
    let mut bytes = [0xb8, 0, 0, 0, 0, 0xc3];
    bytes[1..5].copy_from_slice(&value.to_le_bytes());
    // SAFETY: the caller has just mapped this page.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
}

/// So many whole pages at the end of the heap.
fn grown_heap(pages: usize) -> Result<*mut u8, Trouble> {
    // SAFETY: the C library's allocator goes on behind what was taken of the heap by other code.
    let old = unsafe { libc::sbrk(((pages + 1) * PAGE) as isize) };
    if old as isize == -1 {
        return Err(Trouble(format!("sbrk of {pages} pages: {}", sys::errno_text())));
    }
    Ok(old.cast::<u8>().map_addr(|address| address.next_multiple_of(PAGE)))
}

/// `mlockall(MCL_FUTURE)`: from now on the kernel fills every new mapping, and the heap, within the
/// call.
pub fn lock_future(options: &Options) -> Verdict {
    const CHUNK: usize = 512;
    let mut ballast = Ballast::new(options)?;
    // SAFETY: concerns this process's own memory.
    if unsafe { libc::mlockall(libc::MCL_FUTURE) } != 0 {
        eprintln!("skipped: mlockall: {}", sys::errno_text());
        return Ok(());
    }
    let mut chunks = Vec::new();
    for number in 0..options.pages() * 2 / 3 / CHUNK {
        let chunk = if number % 4 == 3 {
            Region::at(grown_heap(CHUNK)?, CHUNK, options.seed)
        } else {
            match sys::map_pages(CHUNK) {
                Err(_) if sys::errno() == libc::EAGAIN => {
                    eprintln!("skipped: too little memory may be locked");
                    return Ok(());
                }
                at => Region::at(at?, CHUNK, options.seed),
            }
        };
        chunk.check_zero()?;
        chunk.fill(number as u64);
        chunks.push(chunk);
    }
    ballast.squeeze()?;
    let numbered = || chunks.iter().zip(0..);
    numbered().try_for_each(|(chunk, number)| chunk.check(number))?;
    // SAFETY: as above.
    check("munlockall", unsafe { libc::munlockall() })?;
    ballast.squeeze()?;
    numbered().try_for_each(|(chunk, number)| chunk.check(number))
}

/// Memory that the kernel may drop when it runs short (Linux 6.11): a page is whole or zero, and a
/// child has none.
pub fn droppable(options: &Options) -> Verdict {
    const MAP_DROPPABLE: i32 = 0x08;
    const ENOTSUPP: i32 = 524;
    let mut ballast = Ballast::new(options)?;
    let (pages, flags) = (options.pages() * 2 / 3, ANON & !libc::MAP_PRIVATE | MAP_DROPPABLE);
    let region = match sys::map(std::ptr::null_mut(), pages * PAGE, RW, flags) {
        Ok(at) => Region::at(at, pages, options.seed),
        Err(_) if matches!(sys::errno(), libc::EINVAL | libc::EOPNOTSUPP | ENOTSUPP) => {
            eprintln!("skipped: no MAP_DROPPABLE in this kernel");
            return Ok(());
        }
        Err(trouble) => return Err(trouble),
    };
    region.check_zero()?;
    for round in 0..2 {
        region.fill(round);
        ballast.squeeze()?;
        for page in 0..pages {
            if region.check_zero_page(page).is_err() {
                region.check_page(page, round)?;
            }
        }
    }
    in_child(|| {
        region.part(0, pages / 4).check_zero()?;
        region.part(0, 64).fill(7);
        region.part(0, 64).check(7)
    })?
    .wait()
}
