//! Memory that the program asked to be locked.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict};
use std::sync::atomic::{AtomicBool, Ordering};

/// `mlock` of 4 MiB while the rest is squeezed, `munlock`, again.
pub fn mlock(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(1024, options.seed)?;
    for round in 0..5 {
        region.fill(round);
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        // SAFETY: the range is the trap's own.
        check("mlock", unsafe { libc::mlock(region.base.cast(), region.bytes()) })?;
        region.check(round)?;
        ballast.squeeze()?;
        region.check(round)?;
        // SAFETY: as above.
        check("munlock", unsafe { libc::munlock(region.base.cast(), region.bytes()) })?;
    }
    Ok(())
}

/// `mlockall` of present and future memory; without the privilege the limit's refusal is right too.
pub fn mlockall(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    // SAFETY: locks this process's own memory.
    let locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0;
    if !locked && !matches!(sys::errno(), libc::EPERM | libc::ENOMEM) {
        check("mlockall", -1)?;
    }
    region.check(0)?;
    region.fill(1);
    let later = Region::map(if locked { options.pages() / 6 } else { 64 }, options.seed)?;
    later.check_zero()?;
    later.fill(2);
    ballast.squeeze()?;
    // SAFETY: unlocks this process's own memory.
    check("munlockall", unsafe { libc::munlockall() })?;
    ballast.squeeze()?;
    region.check(1)?;
    later.check(2)
}

/// What is mapped from now on is locked, and filled within the call, before a pager has to know of
/// this process; then it maps all of its memory at once.
pub fn locks_future_early(options: &Options) -> Verdict {
    if !lock_all() {
        return Ok(());
    }
    for round in 0..3 {
        let region = Region::map(options.pages(), options.seed)?;
        region.check_zero()?;
        region.fill(round);
        region.check(round)?;
        unmap(&region)?;
    }
    Ok(())
}

/// All is locked, and unlocked again, with whatever a pager has in this process; then memory is
/// mapped that is locked.
pub fn unlocked_then_locked(options: &Options) -> Verdict {
    if !lock_all() {
        return Ok(());
    }
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    region.check(0)?;
    unmap(&region)?;
    // SAFETY: unlocks this process's own memory.
    check("munlockall", unsafe { libc::munlockall() })?;
    for (round, populate) in [(1, libc::MAP_POPULATE), (2, 0)] {
        let flags = sys::ANON | libc::MAP_LOCKED | populate;
        let bytes = options.pages() * PAGE;
        let base = sys::map(std::ptr::null_mut(), bytes, sys::RW, flags)?;
        let region = Region::at(base, options.pages(), options.seed);
        region.fill(round);
        region.check(round)?;
        unmap(&region)?;
    }
    Ok(())
}

fn lock_all() -> bool {
    // SAFETY: locks this process's own memory.
    let locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0;
    if !locked {
        eprintln!("skipped: mlockall: {}", sys::errno_text());
    }
    locked
}

fn unmap(region: &Region) -> Verdict {
    // SAFETY: the range is the trap's own, and is not used after this.
    check("munmap", unsafe { libc::munmap(region.base.cast(), region.bytes()) }).map(drop)
}

/// Locked memory grows to where there is room for it, again and again. The kernel fills what is
/// added.
pub fn locked_grows(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    for round in 0..12 {
        let written = 14 + round;
        let region = Region::map(written, options.seed)?;
        region.fill(0);
        // SAFETY: the range is the trap's own.
        check("mlock", unsafe { libc::mlock(region.base.cast(), region.bytes()) })?;
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        let grown = 8 * written;
        let to = sys::map(std::ptr::null_mut(), grown * PAGE, libc::PROT_NONE, sys::ANON)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are the trap's own.
        let moved =
            unsafe { libc::mremap(region.base.cast(), region.bytes(), grown * PAGE, flags, to) };
        check("mremap", if moved == libc::MAP_FAILED { -1 } else { 0 })?;
        let moved = Region::at(moved.cast(), grown, options.seed);
        moved.part(0, written).check(0)?;
        moved.part(written, grown - written).check_zero()?;
        moved.fill(1);
        moved.check(1)?;
        unmap(&moved)?;
    }
    Ok(())
}

/// Locked memory that cannot be written leaves, and stays locked: what is locked cannot be given
/// up, and counts once.
pub fn locked_read_only(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(64, options.seed)?;
    let bytes = region.bytes();
    for (round, prot) in [libc::PROT_READ, libc::PROT_READ | libc::PROT_EXEC].iter().enumerate() {
        sys::protect(region.base, bytes, sys::RW)?;
        region.fill(round as u64);
        // SAFETY: the range is the trap's own, here and below.
        check("mlock", unsafe { libc::mlock(region.base.cast(), bytes) })?;
        let locked = locked_kib()?;
        sys::protect(region.base, bytes, *prot)?;
        for _ in 0..3 {
            ballast.squeeze()?;
            // SAFETY: as above; it is to fail.
            let given_up = unsafe { libc::madvise(region.base.cast(), bytes, libc::MADV_DONTNEED) };
            sys::same("madvise of locked memory", (-1, libc::EINVAL), (given_up, sys::errno()))?;
            region.check(round as u64)?;
        }
        // The pager's own may be locked by now as well.
        let now = locked_kib()?;
        let mappings = [0, 1024].map(|more| locked + more);
        if !mappings.contains(&now) {
            sys::same("locked KiB", locked, now)?;
        }
        // SAFETY: as above.
        check("munlock", unsafe { libc::munlock(region.base.cast(), bytes) })?;
        sys::same("locked KiB after munlock", now - bytes as u64 / 1024, locked_kib()?)?;
    }
    Ok(())
}

/// Half of a mapping that cannot be written is locked, and the other half stays as it is, whatever
/// leaves together.
pub fn locked_beside_unlocked(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    for half in 0..2 {
        let region = Region::map(128, options.seed)?;
        let [locked, other] = [half, 1 - half].map(|half| region.part(64 * half, 64));
        region.fill(1);
        // SAFETY: the range is the trap's own.
        check("mlock", unsafe { libc::mlock(locked.base.cast(), locked.bytes()) })?;
        sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
        ballast.squeeze()?;
        region.check(1)?;
        ballast.squeeze()?;
        sys::advise(other.base, other.bytes(), libc::MADV_DONTNEED)?;
        other.check_zero()?;
        locked.check(1)?;
        unmap(&region)?;
    }
    Ok(())
}

/// Memory that cannot be written is locked and unlocked while another thread drives it out: of what
/// is unlocked nothing stays locked.
pub fn locked_in_turns(options: &Options) -> Verdict {
    let region = Region::map(256, options.seed)?;
    region.fill(1);
    sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
    let before = locked_kib()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let presses = scope.spawn(|| {
            let mut ballast = Ballast::new(options)?;
            while !is_over.load(Ordering::Relaxed) {
                ballast.squeeze()?;
            }
            Ok(())
        });
        let turns = (0..200).try_for_each(|turn| {
            // SAFETY: the range is the trap's own, here and below.
            check("mlock", unsafe { libc::mlock(region.base.cast(), region.bytes()) })?;
            region.check(1)?;
            let unlocked = match turn % 2 {
                // SAFETY: as above.
                0 => unsafe { libc::munlock(region.base.cast(), region.bytes()) },
                // SAFETY: unlocks this process's own memory.
                _ => unsafe { libc::munlockall() },
            };
            check("munlock", unlocked)?;
            // A pager may have locked whole mebibytes for itself.
            sys::same("locked KiB", 0, (locked_kib()? - before) % 1024)
        });
        is_over.store(true, Ordering::Relaxed);
        turns.and(presses.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

/// Memory that leaves and comes all the time is locked and unlocked as a whole: pages of a batch
/// are refused together when that has changed.
pub fn locked_often(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 4, options.seed)?;
    region.fill(0);
    for turn in 0..60 {
        // SAFETY: the range is the trap's own, here and below.
        check("mlock", unsafe { libc::mlock(region.base.cast(), region.bytes()) })?;
        region.check(turn)?;
        region.fill(turn + 1);
        // SAFETY: as above.
        check("munlock", unsafe { libc::munlock(region.base.cast(), region.bytes()) })?;
        region.check(turn + 1)?;
    }
    Ok(())
}

/// Calls of which no event tells when they are over, `munlockall` and a fork that fails, and then
/// memory that cannot be written, which is not taken out while they are under way.
pub fn unlocked_all_then_read_only(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 4, options.seed)?;
    region.fill(1);
    sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
    for _ in 0..2 {
        // SAFETY: unlocks this process's own memory.
        check("munlockall", unsafe { libc::munlockall() })?;
        region.check(1)?;
        // SAFETY: these flags exclude each other, so that nothing is made.
        let forked = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_SIGHAND, 0, 0, 0, 0) };
        sys::same("clone", (-1, libc::EINVAL), (forked, sys::errno()))?;
        region.check(1)?;
    }
    Ok(())
}

fn locked_kib() -> Result<u64, crate::support::Trouble> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse().unwrap_or(0))
}

/// A mapping that is to be locked is refused to a process that may lock less.
pub fn locked_map_limited(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    give_up_lock_capability()?;
    for (limit, error) in [(1 << 20, libc::EAGAIN), (0, libc::EPERM)] {
        let limit = libc::rlimit { rlim_cur: limit, rlim_max: 1 << 20 };
        // SAFETY: `limit` is initialised.
        check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) })?;
        let flags = sys::ANON | libc::MAP_LOCKED;
        // SAFETY: a new mapping; it is to fail.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 2 << 20, sys::RW, flags, -1, 0) };
        let is_refused = mapped == libc::MAP_FAILED;
        sys::same("mmap of locked memory", (true, error), (is_refused, sys::errno()))?;
    }
    Ok(())
}

/// Locks all that it may, and so leaves nothing for an agent to lock; then reads it, with a page of
/// its stack for each.
pub fn locked_to_the_limit(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    for page in (0..options.pages()).step_by(16) {
        let bytes = options.pages().saturating_sub(page).min(16) * PAGE;
        // SAFETY: within the region.
        check("mlock", unsafe { libc::mlock(region.page(page).cast(), bytes) })?;
    }
    let mut sums = [0_u64; 2 * PAGE / 8];
    for page in 0..options.pages() {
        for word in 0..PAGE / 512 {
            // SAFETY: within the region.
            let found = unsafe { region.page(page).add(64 * word).cast::<u64>().read_volatile() };
            let sum = &mut sums[(page * 61 + word) % (2 * PAGE / 8)];
            *sum = std::hint::black_box(sum.wrapping_add(found));
        }
    }
    std::hint::black_box(&sums);
    region.check(0)
}

/// `mlockall` of a process that may lock little, or nothing, is refused as the manual says.
pub fn mlockall_limited(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    give_up_lock_capability()?;
    let cases = [
        (1 << 20, libc::MCL_CURRENT, libc::ENOMEM),
        (1 << 20, libc::MCL_CURRENT | libc::MCL_ONFAULT, libc::ENOMEM),
        (1 << 20, libc::MCL_ONFAULT, libc::EINVAL),
        (1 << 20, 64, libc::EINVAL),
        (0, libc::MCL_CURRENT, libc::EPERM),
        (0, libc::MCL_FUTURE, libc::EPERM),
    ];
    for (bytes, flags, error) in cases {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: 1 << 20 };
        // SAFETY: `limit` is initialised.
        check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) })?;
        // SAFETY: locks this process's own memory, if that is allowed.
        let got = unsafe { libc::mlockall(flags) };
        sys::same(
            &format!("mlockall({flags}), {bytes} allowed"),
            (-1, error),
            (got, sys::errno()),
        )?;
    }
    region.check(0)
}

/// From now on the limit holds for root too.
fn give_up_lock_capability() -> Verdict {
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let header = [VERSION_3, 0];
    // Effective, permitted and inheritable, for capabilities 0 to 31, then 32 to 63.
    let mut sets = [0_u32; 6];
    // SAFETY: version 3 has a header of two words and two times three sets.
    check("capget", unsafe { libc::syscall(libc::SYS_capget, &header, &mut sets) })?;
    sets[0] &= !(1 << CAP_IPC_LOCK);
    // SAFETY: as above.
    check("capset", unsafe { libc::syscall(libc::SYS_capset, &header, &sets) }).map(drop)
}
