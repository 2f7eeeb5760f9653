//! Robust mutexes whose owners end while memory is out: the kernel marks the mutex, and the next
//! thread that asks for it learns of that.

use crate::support::sys::{self, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict, in_child};
use std::sync::mpsc;

/// A thread ends that holds a robust mutex in evicted memory.
pub fn dead_owner(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(1024, options.seed)?;
    region.fill(0);
    let (before, place, after) = (region.part(0, 512), region.page(512), region.part(513, 511));
    for round in 0..3 {
        make_robust(place.cast(), false)?;
        let (tell, told) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let address = place as usize;
        let owner = std::thread::spawn(move || {
            // SAFETY: the mutex was made above, and its page stays.
            let locked = unsafe { libc::pthread_mutex_lock(address as *mut _) };
            let heard = tell.send(locked).is_ok();
            heard && released.recv().is_ok()
        });
        let locked = told.recv().map_err(|e| e.to_string())?;
        sys::same("pthread_mutex_lock", 0, locked)?;
        ballast.squeeze()?;
        ballast.squeeze()?;
        release.send(()).map_err(|e| e.to_string())?;
        sys::same("the owner's end", Some(true), owner.join().ok())?;
        taken_over(place.cast())?;
        before.check(round)?;
        after.check(round)?;
        before.fill(round + 1);
        after.fill(round + 1);
    }
    Ok(())
}

/// A process ends by `exit_group` while another of its threads sleeps with a robust mutex of two
/// processes. The list of what that thread holds begins in its stack, which is out.
pub fn owners_process_ends(options: &Options) -> Verdict {
    const SHARED: i32 = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let mutex = sys::map(std::ptr::null_mut(), PAGE, RW, SHARED)?;
    for _ in 0..3 {
        make_robust(mutex.cast(), true)?;
        let address = mutex as usize;
        let child = in_child(|| {
            let mut ballast = Ballast::new(options)?;
            let (tell, told) = mpsc::channel();
            std::thread::spawn(move || {
                // SAFETY: the mutex was made above, and its page stays.
                let locked = unsafe { libc::pthread_mutex_lock(address as *mut _) };
                let _ = tell.send(locked);
                loop {
                    std::thread::park();
                }
            });
            sys::same("pthread_mutex_lock", 0, told.recv().map_err(|e| e.to_string())?)?;
            for _ in 0..4 {
                ballast.squeeze()?;
            }
            Ok(())
        })?;
        sys::same("the owner's process", 0, child.status()?)?;
        taken_over(mutex.cast())?;
    }
    Ok(())
}

/// A process executes another program while its other threads sleep, each with a robust mutex of
/// two processes: that ends them.
pub fn owners_process_executes(options: &Options) -> Verdict {
    const THREADS: usize = 8;
    const SHARED: i32 = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let first = sys::map(std::ptr::null_mut(), THREADS * PAGE, RW, SHARED)? as usize;
    let mutex = |number: usize| (first + number * PAGE) as *mut libc::pthread_mutex_t;
    for _ in 0..3 {
        (0..THREADS).try_for_each(|number| make_robust(mutex(number), true))?;
        let child = in_child(|| {
            let mut ballast = Ballast::new(options)?;
            let (tell, told) = mpsc::channel();
            for number in 0..THREADS {
                let (address, tell) = (mutex(number) as usize, tell.clone());
                std::thread::spawn(move || {
                    // SAFETY: the mutex was made above, and its page stays.
                    let locked = unsafe { libc::pthread_mutex_lock(address as *mut _) };
                    let _ = tell.send(locked);
                    loop {
                        std::thread::park();
                    }
                });
            }
            for _ in 0..THREADS {
                sys::same("pthread_mutex_lock", 0, told.recv().map_err(|e| e.to_string())?)?;
            }
            for _ in 0..4 {
                ballast.squeeze()?;
            }
            let words = [c"traps".as_ptr(), c"exit".as_ptr(), c"0".as_ptr(), std::ptr::null()];
            // SAFETY: the words end with a null pointer and outlive the call.
            let r = unsafe { libc::execv(c"/proc/self/exe".as_ptr(), words.as_ptr()) };
            check("execv", r).map(drop)
        })?;
        sys::same("the executed program", 0, child.status()?)?;
        (0..THREADS).try_for_each(|number| taken_over(mutex(number)))?;
    }
    Ok(())
}

/// A thread ends that holds robust mutexes in memory of its own, and one between them in a shared
/// mapping whose page is in no page table: the kernel brings that one in by itself.
pub fn owner_beside_shared_ends(options: &Options) -> Verdict {
    const MUTEXES: usize = 4;
    let mut ballast = Ballast::new(options)?;
    let shared = sys::map(std::ptr::null_mut(), PAGE, RW, libc::MAP_SHARED | libc::MAP_ANONYMOUS)?;
    let own = Region::map(MUTEXES, options.seed)?;
    let (first, between) = (own.base as usize, shared as usize);
    let mutex = move |number: usize| match number {
        2 => between as *mut libc::pthread_mutex_t,
        _ => (first + number * PAGE) as *mut libc::pthread_mutex_t,
    };
    for _ in 0..3 {
        (0..MUTEXES).try_for_each(|number| make_robust(mutex(number), number == 2))?;
        let (tell, told) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let owner = std::thread::spawn(move || {
            // SAFETY: the mutexes were made above, and their pages stay.
            let lock = |number| unsafe { libc::pthread_mutex_lock(mutex(number)) } == 0;
            tell.send((0..MUTEXES).all(lock)).is_ok() && released.recv().is_ok()
        });
        sys::same("locking", true, told.recv().map_err(|e| e.to_string())?)?;
        sys::advise(shared, PAGE, libc::MADV_DONTNEED)?;
        ballast.squeeze()?;
        ballast.squeeze()?;
        release.send(()).map_err(|e| e.to_string())?;
        sys::same("the owner's end", Some(true), owner.join().ok())?;
        (0..MUTEXES).try_for_each(|number| taken_over(mutex(number)))?;
    }
    Ok(())
}

/// A thread ends that holds nearly as many robust mutexes, each in a page of its own, as a Clear of
/// 8 MiB has pages. Then the program goes on with other memory.
pub fn owner_of_many_ends(options: &Options) -> Verdict {
    const MUTEXES: usize = 2000;
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(MUTEXES, options.seed)?;
    let first = region.base as usize;
    let mutex = move |number: usize| (first + number * PAGE) as *mut libc::pthread_mutex_t;
    (0..MUTEXES).try_for_each(|number| make_robust(mutex(number), false))?;
    let owner = std::thread::spawn(move || {
        // SAFETY: the mutexes were made above, and their pages stay.
        (0..MUTEXES).all(|number| unsafe { libc::pthread_mutex_lock(mutex(number)) } == 0)
    });
    sys::same("the owner's end", Some(true), owner.join().ok())?;
    for _ in 0..4 {
        ballast.squeeze()?;
    }
    (0..MUTEXES).try_for_each(|number| taken_over(mutex(number)))
}

fn make_robust(mutex: *mut libc::pthread_mutex_t, between_processes: bool) -> Verdict {
    // SAFETY: `mutex` is in a page of its own that no thread uses yet; the attributes are
    // initialised first.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        let steps = [
            libc::pthread_mutexattr_init(&mut attributes),
            libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST),
            libc::pthread_mutexattr_setpshared(&mut attributes, i32::from(between_processes)),
            libc::pthread_mutex_init(mutex, &attributes),
            libc::pthread_mutexattr_destroy(&mut attributes),
        ];
        sys::same("making a robust mutex", [0; 5], steps)
    }
}

/// Locks the mutex whose owner has ended, and makes an end of it.
fn taken_over(mutex: *mut libc::pthread_mutex_t) -> Verdict {
    // SAFETY: the mutex is initialised, and no other thread uses it any more.
    unsafe {
        let mut until: libc::timespec = std::mem::zeroed();
        check("clock_gettime", libc::clock_gettime(libc::CLOCK_REALTIME, &mut until))?;
        until.tv_sec += 30;
        let got = libc::pthread_mutex_timedlock(mutex, &until);
        sys::same("locking a dead owner's mutex", libc::EOWNERDEAD, got)?;
        let steps = [
            libc::pthread_mutex_consistent(mutex),
            libc::pthread_mutex_unlock(mutex),
            libc::pthread_mutex_destroy(mutex),
        ];
        sys::same("ending a dead owner's mutex", [0; 3], steps)
    }
}
