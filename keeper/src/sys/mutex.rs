//! A mutex for which no thread waits long because its holder is of the idle class: that one is lent
//! the ordinary class.
//!
//! Handlers near the program are of the idle class. On a busy machine one that holds a lock may
//! get no time for a fifth of a second, and the watcher, which is to stop programs before they pass
//! the bound, would wait for it.

use super::sched;
use parking_lot::lock_api::{self, GuardSend};
use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A mutex of which [`Lending`] says who holds it.
pub type Mutex<T> = lock_api::Mutex<Lending, T>;
/// Its guard.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Lending, T>;

/// How long a thread waits before it finds out whether it waits for one of the idle class: many
/// times as long as a holder that runs needs, as a rule.
const PATIENCE: Duration = Duration::from_micros(200);

/// The same after that: each time it begins anew it waits behind all others.
const LONG_PATIENCE: Duration = Duration::from_millis(5);

/// How often a thread was lent the ordinary class.
static LENT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN_TID: Cell<i32> = const { Cell::new(0) };
}

fn own_tid() -> i32 {
    OWN_TID.with(|own| {
        if own.get() == 0 {
            own.set(sched::own_tid());
        }
        own.get()
    })
}

/// The mutex without what it guards.
pub struct Lending {
    inner: parking_lot::RawMutex,
    /// The thread that holds it; 0: none, or one that is just taking it or letting go of it. Only
    /// a hint: a thread that is lent something for nothing gives it back.
    holder: AtomicI32,
}

// SAFETY: `inner` excludes others; `holder` is an atomic beside it, and decides nothing.
unsafe impl lock_api::RawMutex for Lending {
    const INIT: Lending = Lending {
        inner: <parking_lot::RawMutex as lock_api::RawMutex>::INIT,
        holder: AtomicI32::new(0),
    };

    type GuardMarker = GuardSend;

    fn lock(&self) {
        let mut patience = PATIENCE;
        if !self.inner.try_lock() {
            while !lock_api::RawMutexTimed::try_lock_for(&self.inner, patience) {
                lend_to(self.holder.load(Relaxed));
                patience = LONG_PATIENCE;
            }
        }
        self.holder.store(own_tid(), Relaxed);
    }

    fn try_lock(&self) -> bool {
        let is_taken = self.inner.try_lock();
        if is_taken {
            self.holder.store(own_tid(), Relaxed);
        }
        is_taken
    }

    unsafe fn unlock(&self) {
        self.holder.store(0, Relaxed);
        // SAFETY: the caller holds the lock, as this function asks.
        unsafe { self.inner.unlock() }
    }

    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawMutexTimed for Lending {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.try_lock_until(Instant::now() + timeout)
    }

    fn try_lock_until(&self, timeout: Instant) -> bool {
        use lock_api::RawMutex as _;
        let mut patience = PATIENCE;
        loop {
            let part = timeout.min(Instant::now() + patience);
            if lock_api::RawMutexTimed::try_lock_until(&self.inner, part) {
                self.holder.store(own_tid(), Relaxed);
                return true;
            }
            lend_to(self.holder.load(Relaxed));
            patience = LONG_PATIENCE;
            if Instant::now() >= timeout {
                return self.try_lock();
            }
        }
    }
}

/// Gives a thread of the idle class the ordinary one. (Only root may: for others a thread of the
/// idle class stays there.)
fn lend_to(tid: i32) {
    if tid != 0 && sched::is_idle(tid) && sched::hurry(tid) {
        LENT.fetch_add(1, Relaxed);
    }
}

/// What a thread of the idle class may have been lent.
#[derive(Default)]
pub struct Loan {
    lent_before: u64,
}

impl Loan {
    /// The calling thread, which holds no lock, is of the idle class again. Often called.
    pub fn give_back(&mut self) {
        let lent = LENT.load(Relaxed);
        if lent != self.lent_before {
            self.lent_before = lent;
            let _ = sched::idle_self();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A thread of the idle class that holds the lock is of the ordinary class as soon as another
    /// waits for it, and gives that back.
    #[test]
    fn a_holder_of_the_idle_class_is_lent_the_ordinary_one() {
        let mutex = Mutex::new(0);
        let (say, hear) = mpsc::channel();
        std::thread::scope(|scope| {
            let mutex = &mutex;
            scope.spawn(move || {
                sched::idle_self().expect("every thread may");
                let mut loan = Loan::default();
                let mut held = mutex.lock();
                say.send(own_tid()).expect("it is heard");
                // Only root may take a thread out of the idle class.
                // SAFETY: takes nothing, and cannot fail.
                let may = unsafe { libc::geteuid() } == 0;
                while may && sched::is_idle(0) {
                    std::thread::yield_now();
                }
                *held += 1;
                drop(held);
                loan.give_back();
                assert!(sched::is_idle(0));
            });
            let holder = hear.recv().expect("it is said");
            assert!(sched::is_idle(holder));
            *mutex.lock() += 1;
        });
        assert_eq!(*mutex.lock(), 2);
    }

    #[test]
    fn a_wait_with_a_limit_ends_with_it() {
        let mutex = Mutex::new(());
        let held = mutex.lock();
        std::thread::scope(|scope| {
            let waits = || mutex.try_lock_for(3 * PATIENCE).is_some();
            assert!(!scope.spawn(waits).join().expect("it ends"));
        });
        drop(held);
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    }
}
