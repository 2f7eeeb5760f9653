//! Memory of every kind: brk, stacks, .bss, raw system calls.

use crate::support::sys::{self, ANON, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, WORDS};

/// The `brk` heap grows, shrinks and grows again by raw system calls beside glibc's own use of it.
pub fn brk(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = options.pages() / 3;
    // SAFETY: sbrk(0) only asks.
    let start = unsafe { libc::sbrk(0) } as usize;
    let aligned = start.next_multiple_of(PAGE);
    grow((aligned - start + pages * PAGE) as isize)?;
    let region = Region::at(aligned as *mut u8, pages, options.seed);
    region.check_zero()?;
    region.fill(1);
    ballast.squeeze()?;
    region.check(1)?;
    let half = pages / 2;
    for generation in 2..5 {
        grow(-((half * PAGE) as isize))?;
        ballast.squeeze()?;
        region.part(0, pages - half).check(generation - 1)?;
        grow((half * PAGE) as isize)?;
        region.part(pages - half, half).check_zero()?;
        region.fill(generation);
    }
    ballast.squeeze()?;
    region.check(4)
}

fn grow(bytes: isize) -> Verdict {
    // SAFETY: moves the break only over memory that this trap took; glibc's heap copes with
    // foreign use of the break, and nothing of its lies above ours.
    let got = unsafe { libc::sbrk(bytes) };
    if got as isize == -1 {
        return Err(Trouble(format!("sbrk({bytes}): {}", sys::errno_text())));
    }
    Ok(())
}

/// Calls itself with a page of local words in every frame; checks each on the way back.
#[inline(never)]
pub fn deep(seed: u64, frames: usize, generation: u64) -> Verdict {
    let mut frame = [0_u64; WORDS];
    let page = frames as u64;
    for (i, word) in frame.iter_mut().enumerate() {
        *word = crate::support::word(seed, page, generation, i);
    }
    let frame = std::hint::black_box(&mut frame);
    if frames > 0 {
        deep(seed, frames - 1, generation)?;
    }
    for (i, got) in std::hint::black_box(frame).iter().enumerate() {
        if *got != crate::support::word(seed, page, generation, i) {
            return Err(Trouble(format!(
                "stack frame {frames} word {i} at {got:p}: expected {:#x}, got {got:#x} ({})",
                crate::support::word(seed, page, generation, i),
                crate::support::explain(seed, page, generation, i, *got)
            )));
        }
    }
    Ok(())
}

/// The main thread's stack grows to two thirds of the working set; needs a higher limit, hence an
/// exec.
pub fn main_stack(options: &Options) -> Verdict {
    let bytes = (options.mib as u64) << 20;
    // SAFETY: plain data.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is a valid place.
    check("getrlimit", unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) })?;
    if limit.rlim_cur < bytes && options.depth > 0 {
        limit.rlim_cur = bytes.min(limit.rlim_max);
        // SAFETY: `limit` is initialised.
        check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_STACK, &limit) })?;
        return super::exec::again(options, "main-stack", 0, true);
    }
    let frames = limit.rlim_cur.min(bytes) as usize * 2 / 3 / (PAGE + 256);
    for generation in 0..3 {
        deep(options.seed, frames, generation)?;
    }
    Ok(())
}

/// Four threads with stacks of their own recurse at the same time.
pub fn thread_stacks(options: &Options) -> Verdict {
    let frames = options.pages() / 5;
    let seed = options.seed;
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let stack = (frames + 64) * (PAGE + 2048);
            std::thread::Builder::new()
                .stack_size(stack)
                .spawn(move || (0..3).try_for_each(|round| deep(seed + thread, frames, round)))
        })
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

const BSS_PAGES: usize = 64 * 256;

#[repr(C, align(4096))]
struct Bss(std::cell::UnsafeCell<[u8; BSS_PAGES * PAGE]>);

// SAFETY: only the `bss` trap touches it, through a `Region`.
unsafe impl Sync for Bss {}

static BSS: Bss = Bss(std::cell::UnsafeCell::new([0; BSS_PAGES * PAGE]));

/// A static array of 64 MiB.
pub fn bss(options: &Options) -> Verdict {
    let pages = options.pages().min(BSS_PAGES);
    let region = Region::at(BSS.0.get().cast(), pages, options.seed);
    region.check_zero()?;
    for generation in 0..3 {
        region.fill(generation);
        region.check(generation)?;
    }
    crate::support::in_child(|| region.check(2))?.wait()
}

/// The same, written before anything else of it is touched.
pub fn bss_filled(options: &Options) -> Verdict {
    let pages = options.pages().min(BSS_PAGES);
    let region = Region::at(BSS.0.get().cast(), pages, options.seed);
    region.fill(0);
    region.check(0)
}

/// `mmap` by bare instruction, past the C library, as Go's runtime does.
pub fn raw_mmap(options: &Options) -> Verdict {
    let pages = options.pages() / 8;
    let mut regions = Vec::new();
    for i in 0..8 {
        let mut address: i64 = libc::SYS_mmap;
        // SAFETY: the x86-64 system call convention; a new mapping, no memory of ours is touched.
        unsafe {
            std::arch::asm!(
                "syscall",
                inout("rax") address,
                in("rdi") 0,
                in("rsi") pages * PAGE,
                in("rdx") RW,
                in("r10") ANON | libc::MAP_NORESERVE,
                in("r8") -1_i64,
                in("r9") 0,
                out("rcx") _,
                out("r11") _,
            );
        }
        if (-4095..0).contains(&address) {
            return Err(Trouble(format!("raw mmap: error {}", -address)));
        }
        let region = Region::at(address as *mut u8, pages, options.seed + i);
        region.check_zero()?;
        region.fill(i);
        regions.push(region);
    }
    for _ in 0..2 {
        for (i, region) in regions.iter().enumerate() {
            region.check(i as u64)?;
        }
    }
    Ok(())
}
