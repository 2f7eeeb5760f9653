//! What the pager takes from `parking_lot`: locks whose every acquisition is a switch point.

use crate::scheduler::{self, Channel};
use crate::sys::clock::Instant;
use std::ops::{Deref, DerefMut};
use std::sync::TryLockError;
use std::time::Duration;

/// Steps that a wait for a lock lasts if it has a limit.
const PATIENCE: u64 = 60;

#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    guard: Option<std::sync::MutexGuard<'a, T>>,
    channel: Channel,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    fn channel(&self) -> Channel {
        std::ptr::from_ref(self).addr() as Channel
    }

    fn take(&self) -> Option<MutexGuard<'_, T>> {
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { guard: Some(guard), channel: self.channel() })
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        scheduler::point();
        loop {
            match self.take() {
                Some(guard) => return guard,
                None => drop(scheduler::sleep(self.channel(), None)),
            }
        }
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        scheduler::point();
        self.take()
    }

    pub fn try_lock_for(&self, _patience: Duration) -> Option<MutexGuard<'_, T>> {
        scheduler::point();
        let until = scheduler::now() + PATIENCE;
        loop {
            let now = scheduler::now();
            match self.take() {
                Some(guard) => return Some(guard),
                None if now >= until => return None,
                None => drop(scheduler::sleep(self.channel(), Some(until - now))),
            }
        }
    }

    pub fn try_lock_until(&self, _until: Instant) -> Option<MutexGuard<'_, T>> {
        self.try_lock_for(Duration::ZERO)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.guard.as_ref().expect("held until dropped")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("held until dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.guard = None;
        scheduler::wake(self.channel);
    }
}

/// Readers exclude each other here: the pager holds such locks for a look at a table only.
#[derive(Debug, Default)]
pub struct RwLock<T>(Mutex<T>);

impl<T> RwLock<T> {
    pub const fn new(value: T) -> Self {
        RwLock(Mutex::new(value))
    }

    pub fn read(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    pub fn write(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}
