//! Protection changes of evicted pages, and programs that live on the faults they cause.

use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Trouble, Verdict};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Read-only and back, with evictions in between.
pub fn mprotect_ro(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    for round in 0..5 {
        sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
        ballast.squeeze()?;
        region.check(round)?;
        ballast.squeeze()?;
        sys::protect(region.base, region.bytes(), RW)?;
        region.check(round)?;
        region.fill(round + 1);
    }
    expect_segv(region.base, libc::PROT_READ)?;
    region.check(5)
}

/// PROT_NONE and back; nothing may touch the pages meanwhile, nothing may be lost.
pub fn mprotect_none(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    for round in 0..5 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        sys::protect(region.base, region.bytes(), libc::PROT_NONE)?;
        ballast.squeeze()?;
        sys::protect(region.base, region.bytes(), RW)?;
        region.check(round)?;
        region.fill(round + 1);
    }
    expect_segv(region.base, libc::PROT_NONE)?;
    region.check(5)
}

/// A child that writes to a page of this protection dies of SIGSEGV, as without a pager.
fn expect_segv(page: *mut u8, prot: i32) -> Verdict {
    let child = crate::support::in_child(|| {
        sys::protect(page, PAGE, prot)?;
        // SAFETY: expected to fault; the process ends there.
        unsafe { page.write_volatile(1) };
        Err(Trouble(format!("a write to a page of protection {prot} went through")))
    })?;
    let status = child.status()?;
    if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV {
        return Ok(());
    }
    Err(Trouble(format!("a write to protection {prot}: expected SIGSEGV, got status {status:#x}")))
}

/// Generated functions: written, made executable, evicted, run, rewritten.
pub fn jit(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = 512;
    let code = sys::map_pages(pages)?;
    for round in 0..4_u32 {
        for page in 0..pages {
            let value = round * 100_000 + page as u32;
            let at = code.wrapping_add(page * PAGE);
            // mov eax, imm32; ret
            let mut bytes = [0xb8, 0, 0, 0, 0, 0xc3];
            bytes[1..5].copy_from_slice(&value.to_le_bytes());
            // SAFETY: within the mapping, which is writable now.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        }
        if round % 2 == 1 {
            ballast.squeeze()?;
        }
        sys::protect(code, pages * PAGE, libc::PROT_READ | libc::PROT_EXEC)?;
        for turn in 0..2 {
            for page in 0..pages {
                let at = code.wrapping_add(page * PAGE);
                // SAFETY: the bytes above are a function without arguments that returns a u32.
                let run: extern "C" fn() -> u32 = unsafe { std::mem::transmute(at) };
                sys::same(
                    "what a generated function returns",
                    round * 100_000 + page as u32,
                    run(),
                )?;
            }
            if turn == 0 {
                ballast.squeeze()?;
            }
        }
        sys::protect(code, pages * PAGE, RW)?;
    }
    Ok(())
}

static BARRIER_BASE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static BARRIER_BYTES: AtomicUsize = AtomicUsize::new(0);
static DIRTY: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];
static STRAY: AtomicUsize = AtomicUsize::new(0);

extern "C" fn barrier(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid structure for SIGSEGV.
    let address = unsafe { (*info).si_addr() } as usize;
    let base = BARRIER_BASE.load(Ordering::Relaxed) as usize;
    let bytes = BARRIER_BYTES.load(Ordering::Relaxed);
    if address < base || address >= base + bytes {
        STRAY.store(address.max(1), Ordering::Relaxed);
        // SAFETY: nothing that this program expects; ends it.
        unsafe { libc::_exit(3) };
    }
    let page = (address - base) / PAGE;
    DIRTY[page / 64].fetch_or(1 << (page % 64), Ordering::Relaxed);
    // SAFETY: the page belongs to the trap's region.
    unsafe { libc::mprotect((base + page * PAGE) as *mut libc::c_void, PAGE, RW) };
}

/// A collector's write barrier: pages are read-only or out of reach until a handler opens them.
pub fn write_barrier(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = (options.pages() / 3).min(512 * 64);
    let region = Region::map(pages, options.seed)?;
    let mut generations = vec![0_u64; pages];
    let mut rng = Rng::new(options.seed);
    region.fill(0);
    BARRIER_BASE.store(region.base, Ordering::Relaxed);
    BARRIER_BYTES.store(region.bytes(), Ordering::Relaxed);
    let old = sys::handle(libc::SIGSEGV, barrier, 0)?;
    for round in 0..6 {
        DIRTY.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let prot = if round % 2 == 0 { libc::PROT_READ } else { libc::PROT_NONE };
        sys::protect(region.base, region.bytes(), prot)?;
        ballast.squeeze()?;
        let mut wanted = vec![false; pages];
        for _ in 0..pages / 4 {
            let page = rng.below(pages);
            generations[page] += 1;
            wanted[page] = true;
            region.fill_page(page, generations[page]);
        }
        ballast.squeeze()?;
        for (page, wanted) in wanted.iter().enumerate() {
            let dirty = DIRTY[page / 64].load(Ordering::Relaxed) >> (page % 64) & 1 == 1;
            if dirty != *wanted {
                return Err(Trouble(format!(
                    "page {page} in round {round}: written {wanted}, the handler saw {dirty}"
                )));
            }
        }
        sys::protect(region.base, region.bytes(), RW)?;
        for (page, generation) in generations.iter().enumerate() {
            region.check_page(page, *generation)?;
        }
    }
    // SAFETY: puts back what `handle` gave.
    unsafe { libc::sigaction(libc::SIGSEGV, &old, std::ptr::null_mut()) };
    sys::same("stray fault address", 0, STRAY.load(Ordering::Relaxed))
}

/// Guard pages: an allocator that protects every eighth page for good, and moves the guards.
pub fn guard_pages(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let groups = options.pages() / 3 / 8;
    let at = sys::map(std::ptr::null_mut(), groups * 8 * PAGE, libc::PROT_NONE, ANON)?;
    let region = Region::at(at, groups * 8, options.seed);
    for group in 0..groups {
        sys::protect(region.page(group * 8), 7 * PAGE, RW)?;
        region.part(group * 8, 7).fill(1);
    }
    ballast.squeeze()?;
    for group in 0..groups {
        region.part(group * 8, 7).check(1)?;
        sys::protect(region.page(group * 8 + 7), PAGE, RW)?;
        region.check_zero_page(group * 8 + 7)?;
        region.fill_page(group * 8 + 7, 1);
        sys::protect(region.page(group * 8), PAGE, libc::PROT_NONE)?;
    }
    ballast.squeeze()?;
    sys::protect(region.base, region.bytes(), RW)?;
    region.check(1)
}

/// A thread's stack whose guard is taken away, once its pages are evicted, and grown into.
pub fn stack_guard(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let (guard, pages) = (512, 1024);
    let at = sys::map(std::ptr::null_mut(), (guard + pages) * PAGE, RW, ANON)?;
    sys::protect(at, guard * PAGE, libc::PROT_NONE)?;
    let stack = at.wrapping_add(guard * PAGE);
    on_stack(stack, pages * PAGE, 100, options.seed)?;
    ballast.squeeze()?;
    let fresh = sys::map(at, guard * PAGE, RW, ANON | libc::MAP_FIXED)?;
    Region::at(fresh, guard, 0).check_zero()?;
    on_stack(at, (guard + pages) * PAGE, (guard + pages) * 3 / 4, options.seed)?;
    sys::protect(at, guard * PAGE, libc::PROT_NONE)?;
    ballast.squeeze()?;
    on_stack(stack, pages * PAGE, pages * 3 / 4, options.seed)
}

struct Deep {
    frames: usize,
    seed: u64,
    verdict: Verdict,
}

extern "C" fn go_deep(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `on_stack` passes this and waits for the thread.
    let deep = unsafe { &mut *argument.cast::<Deep>() };
    deep.verdict = super::places::deep(deep.seed, deep.frames, 0);
    argument
}

fn on_stack(at: *mut u8, bytes: usize, frames: usize, seed: u64) -> Verdict {
    let mut deep = Deep { frames, seed, verdict: Err("the thread did not run".into()) };
    // SAFETY: the stack and `deep` outlive the thread, which is waited for.
    let error = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = 0;
        libc::pthread_attr_init(&mut attributes);
        let mut error = libc::pthread_attr_setstack(&mut attributes, at.cast(), bytes);
        if error == 0 {
            let argument = (&raw mut deep).cast();
            error = libc::pthread_create(&mut thread, &attributes, go_deep, argument);
        }
        if error == 0 {
            error = libc::pthread_join(thread, std::ptr::null_mut());
        }
        libc::pthread_attr_destroy(&mut attributes);
        error
    };
    sys::same("the thread functions' error", 0, error)?;
    deep.verdict
}
