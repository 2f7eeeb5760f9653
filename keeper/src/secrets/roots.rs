//! The roots of a run's page keys, hidden or not, and what a lock seals of them.

use super::idle_keys;
use crate::hiding::{Hideaway, SECRET_BYTES};
use crate::secret::{SecretBox, random_key};
use casemate_core::key_derivation::derive;
use casemate_pages::{NoRoot, Roots};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::time::{Duration, Instant};
use zeroize::Zeroize;

const ROOT_BYTES: usize = 32;
const NEXT_CONTEXT: &str = "casemate 2026-11-27 root of the next epoch v1";
/// The keys of so many segments to come are derived beside that of a new one, where a root is
/// hidden: 128 MiB of pages are sealed before it is needed again.
const SEGMENTS_AHEAD: u64 = 7;

/// Roots that stay as long as the process.
pub(super) struct RunRoots {
    state: Mutex<State>,
    account: Mutex<Account>,
}

/// How often hidden roots were needed, and what went wrong first. Apart from the state, which a
/// lock of the run holds for as long as it lasts.
type Account = (RootUses, Option<String>);

/// What there is of the roots.
pub(super) struct State {
    /// The root of epoch `n` in half `n % 2`; zeros where there is none, and all zeros while the
    /// roots are hidden.
    roots: SecretBox<[u8; SECRET_BYTES]>,
    hideaway: Option<Box<dyn Hideaway>>,
    /// The last epoch.
    epoch: u64,
    /// The root of the epoch before is there still.
    has_earlier: bool,
}

/// How often hidden roots were needed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RootUses {
    /// Times that they were revealed.
    pub reveals: u64,
    /// The longest that took.
    pub slowest: Duration,
}

impl RunRoots {
    /// Draws the first root, and hides it if there is a place to hide it.
    pub fn draw(hideaway: Option<Box<dyn Hideaway>>) -> io::Result<Self> {
        let mut roots = SecretBox::<[u8; SECRET_BYTES]>::zeroed()?;
        roots[..ROOT_BYTES].copy_from_slice(&*random_key()?);
        let mut state = State { roots, hideaway, epoch: 0, has_earlier: false };
        state.hide()?;
        Ok(RunRoots { state: Mutex::new(state), account: Mutex::default() })
    }

    /// How often hidden roots were needed, and what went wrong first.
    pub fn account(&self) -> Account {
        self.account.lock().clone()
    }

    /// Leaves the place where they are hidden, unless they are in use or it has failed: what it
    /// keeps of them may outlive this process.
    pub fn leave(&self) {
        let has_failed = self.account.lock().1.is_some();
        if let Some(mut state) = self.state.try_lock().filter(|_| !has_failed) {
            state.hideaway = None;
        }
    }

    /// The roots, though another holds them.
    ///
    /// # Safety
    /// No other thread may use them meanwhile.
    #[cfg(test)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn peek(&self) -> &mut State {
        // SAFETY: the caller vouches for it.
        unsafe { &mut *self.state.data_ptr() }
    }

    /// The roots while nothing may use them: who tries waits.
    pub fn hold(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Calls `with` with the roots, and wipes them where they are hidden.
    fn reveal<T>(
        &self,
        state: &mut State,
        with: impl FnOnce(&mut State) -> T,
    ) -> Result<T, NoRoot> {
        let Some(place) = &mut state.hideaway else { return Ok(with(state)) };
        let begun = Instant::now();
        let revealed = place.reveal(&mut state.roots);
        {
            let uses = &mut self.account.lock().0;
            uses.reveals += 1;
            uses.slowest = uses.slowest.max(begun.elapsed());
        }
        let done = self.note(revealed).map(|()| with(state));
        state.roots.zeroize();
        done
    }

    fn note<T>(&self, result: io::Result<T>) -> Result<T, NoRoot> {
        result.map_err(|error| {
            self.account.lock().1.get_or_insert_with(|| error.to_string());
            NoRoot
        })
    }

    fn begin(&self, state: &mut State, epoch: u64) -> Result<(), NoRoot> {
        if state.has_earlier || epoch != state.epoch + 1 {
            return Err(NoRoot);
        }
        let fresh = self.note(random_key())?;
        let hidden = self.reveal(state, |state| {
            let mut next = zeroize::Zeroizing::new([0; ROOT_BYTES]);
            let last: &[u8; ROOT_BYTES] = state.root(epoch - 1);
            // Neither who knows the root before nor who knows the random numbers knows this one.
            derive(NEXT_CONTEXT, &[last, &*fresh], next.as_mut_slice());
            state.root(epoch).copy_from_slice(next.as_slice());
            state.hide()
        })?;
        self.note(hidden)?;
        (state.epoch, state.has_earlier) = (epoch, true);
        Ok(())
    }
}

impl State {
    /// All memory that roots can be found from. It must be as before when they are used again.
    pub fn memory(&mut self) -> [&mut [u8]; 2] {
        let hidden = self.hideaway.as_mut().map_or(&mut [][..], |place| place.memory());
        [&mut self.roots[..], hidden]
    }

    /// Hides the roots as they are now, if there is a place.
    fn hide(&mut self) -> io::Result<()> {
        let Some(place) = &mut self.hideaway else { return Ok(()) };
        let hidden = place.hide(&self.roots);
        self.roots.zeroize();
        hidden
    }

    /// The root of an epoch, while they are revealed.
    fn root(&mut self, epoch: u64) -> &mut [u8; ROOT_BYTES] {
        &mut self.roots.as_chunks_mut().0[(epoch % 2) as usize]
    }
}

impl Roots for RunRoots {
    fn with_root(&self, epoch: u64, with: &mut dyn FnMut(&[u8; 32])) -> Result<(), NoRoot> {
        let mut state = self.state.lock();
        let is_there = epoch == state.epoch || state.has_earlier && epoch + 1 == state.epoch;
        if !is_there {
            return Err(NoRoot);
        }
        self.reveal(&mut state, |state| with(state.root(epoch)))?;
        idle_keys::stir();
        Ok(())
    }

    fn begin_epoch(&self, epoch: u64) -> Result<(), NoRoot> {
        self.begin(&mut self.state.lock(), epoch)
    }

    fn end_epochs_before(&self, epoch: u64) -> Result<(), NoRoot> {
        let mut state = self.state.lock();
        if epoch != state.epoch || !state.has_earlier {
            return Ok(());
        }
        let hidden = self.reveal(&mut state, |state| {
            state.root(epoch + 1).zeroize();
            state.hide()
        })?;
        self.note(hidden)?;
        state.has_earlier = false;
        Ok(())
    }

    fn segments_ahead(&self) -> u64 {
        if self.state.lock().hideaway.is_some() { SEGMENTS_AHEAD } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Hides nothing, and fails when it is told to.
    struct Plain(Box<[u8; SECRET_BYTES]>, Arc<AtomicBool>);

    impl Hideaway for Plain {
        fn hide(&mut self, secret: &[u8; SECRET_BYTES]) -> io::Result<()> {
            *self.0 = *secret;
            Ok(())
        }

        fn reveal(&mut self, secret: &mut [u8; SECRET_BYTES]) -> io::Result<()> {
            if self.1.load(Relaxed) {
                return Err(io::Error::other("the device does not answer"));
            }
            *secret = *self.0;
            Ok(())
        }

        fn memory(&mut self) -> &mut [u8] {
            &mut *self.0
        }
    }

    fn roots(hideaway: Option<Box<dyn Hideaway>>) -> &'static RunRoots {
        Box::leak(Box::new(RunRoots::draw(hideaway).expect("memory")))
    }

    fn root(roots: &&'static RunRoots, epoch: u64) -> Option<[u8; 32]> {
        let mut found = None;
        let given = roots.with_root(epoch, &mut |root| found = Some(*root));
        assert_eq!(given.is_ok(), found.is_some());
        found
    }

    fn plain() -> (Box<dyn Hideaway>, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        (Box::new(Plain(Box::new([0; SECRET_BYTES]), Arc::clone(&fails))), fails)
    }

    #[test]
    fn an_epochs_root_stays_until_it_ends_and_is_nowhere_after_that() {
        for hideaway in [None, Some(plain().0)] {
            let is_hidden = hideaway.is_some();
            let roots = roots(hideaway);
            let first = root(&roots, 0).expect("the first");
            assert_eq!(root(&roots, 1), None);
            assert_eq!(roots.begin_epoch(2), Err(NoRoot));
            roots.begin_epoch(1).expect("the next");
            let second = root(&roots, 1).expect("the next");
            assert_ne!(first, second);
            assert_eq!(root(&roots, 0), Some(first), "it has not ended");
            assert_eq!(roots.begin_epoch(2), Err(NoRoot), "there are two");
            roots.end_epochs_before(1).expect("it ends");
            assert_eq!((root(&roots, 0), root(&roots, 1)), (None, Some(second)));
            let mut state = roots.hold();
            assert_eq!(*state.roots == [0; SECRET_BYTES], is_hidden, "revealed for a use only");
            let memory = state.memory().concat();
            let has = |root: &[u8; 32]| memory.windows(32).any(|word| word == root);
            assert_eq!((has(&first), has(&second)), (false, true));
            drop(state);
            roots.begin_epoch(2).expect("the next");
            assert_ne!(root(&roots, 2), Some(second));
        }
    }

    #[test]
    fn a_root_that_is_not_revealed_is_not_used_and_the_reason_is_kept() {
        let (hideaway, fails) = plain();
        let roots = roots(Some(hideaway));
        let first = root(&roots, 0);
        fails.store(true, Relaxed);
        assert_eq!(root(&roots, 0), None);
        assert_eq!(roots.begin_epoch(1), Err(NoRoot));
        fails.store(false, Relaxed);
        assert_eq!(root(&roots, 0), first);
        assert_eq!(root(&roots, 1), None, "it did not begin");
        assert_eq!(roots.account().1.as_deref(), Some("the device does not answer"));
    }
}
