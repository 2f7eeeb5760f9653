//! The pager: serves faults of protected address spaces from the Crypt, and keeps the Clear small.
//!
//! Three stages, each in a folder whose `mod.rs` draws its steps: `fault` brings pages in, `evict`
//! takes them out, `events` follows what the program does to its memory. Each step is a method of
//! its stage's handle, which borrows what that stage may touch; the handles are made in `stages`,
//! which also says what each stage may ask of the others. All stand on the state of a space
//! (`space`, `clear_pages`, `rights`), the account of the Clear (`account`, `shared`), records and
//! their ciphertexts (`records`), buffers of plaintext (`plain`), and the end of the run
//! (`run_end`).
//!
//! Lock order: a space's state, the spaces that have ended, the page directory. No thread waits for
//! a second space while it has one, except a fork, which creates the second.

mod account;
pub mod agent;
mod aside;
mod asked;
pub mod clear_pages;
mod ended;
pub mod events;
pub mod evict;
pub mod fault;
pub(crate) mod healing;
pub mod plain;
pub mod quotas;
mod records;
mod rights;
mod rotation;
mod run_end;
pub mod shared;
pub mod space;
mod spaces;
mod stages;

use crate::attention::Attention;
use crate::budget::Budget;
use crate::config::{Config, OnViolation, PAGE_BYTES};
use crate::event_counts::{self, EventCounts};
use crate::metadata::{MappedMetadata, MetadataState};
use crate::outcome::Ending;
use crate::profile::Profiler;
use crate::store::{PageStore, StoreError};
use crate::sys::file_pages::OpenFiles;
use crate::sys::mutex::Mutex;
use crate::sys::poll::Bell;
use casemate_core::{GlobalPageCounter, Violation};
use casemate_pages::{PageCipher, PageDirectory, SpaceId};
use events::growing::Growing;
use events::heard::Heard;
use healing::Healing;
use plain::PlainPool;
use quotas::Quotas;
use rotation::Rotations;
use shared::SharedPages;
use space::Space;
use spaces::Spaces;
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Why the run must stop. The thread that meets one hands it to [`Pager::stop`]; no page is
/// released after that.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Untrusted memory did not verify.
    #[error("{0}")]
    Violation(String),
    /// A store is full or broken.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An invariant of our own does not hold, or the kernel answered what it should not.
    #[error("{0}")]
    Internal(String),
}

/// Has output that is held checked and written, of a program that stands still. False if that takes
/// too long.
type LetsOut = Box<dyn Fn() -> bool + Send + Sync>;

/// What all threads of the keeper share.
pub struct Pager {
    /// The bound on plaintext.
    pub budget: Budget,
    /// How often what happened.
    pub counts: EventCounts,
    /// Where the time of its threads goes.
    pub(crate) profiler: Profiler,
    /// Ciphertext.
    pub store: PageStore,
    /// Plaintext buffers of the grace list.
    pub plain: Arc<PlainPool>,
    cipher: PageCipher,
    gpc: GlobalPageCounter,
    directory: Mutex<PageDirectory<MappedMetadata>>,
    metadata: Arc<MetadataState>,
    /// All address spaces.
    pub(crate) spaces: Spaces,
    /// Pages that spaces share since a fork. Its lock is taken last, and beside no other but a
    /// space's.
    pub(crate) shared: Mutex<SharedPages>,
    /// Processes whose calls are announced since one that they descend from was armed.
    pub(crate) heard: Mutex<Heard>,
    /// The program is executed. Before that its process is one of ours, and is to have no agent.
    pub(crate) has_begun: AtomicBool,
    /// Processes without an agent that ask for more memory.
    pub(crate) growing: Mutex<Growing>,
    /// Processes whose spaces are about to come into being.
    pub(crate) arming: Mutex<HashSet<i32>>,
    /// Threads whose announced call was received and not answered yet: it has not begun.
    pub(crate) received: Mutex<HashSet<i32>>,
    /// Why the kernel refused a filter, the first time that it did.
    pub(crate) unannounced: OnceLock<String>,
    /// Files whose private mappings were replaced.
    files: OpenFiles,
    /// What programs may have of the Clear.
    pub(crate) quotas: Quotas,
    on_violation: OnViolation,
    /// What becomes of pages of which few bits have flipped.
    pub(crate) healing: Healing,
    pub(crate) rotations: Rotations,
    /// What lets out the output that is held in plaintext. None: nothing is ever held.
    pub(crate) lets_out: OnceLock<LetsOut>,
    /// The first violation that the policy did not end the run for.
    noted: OnceLock<Ending>,
    ending: OnceLock<Ending>,
    /// Rung when the run must end.
    pub stopped: Bell,
    /// Rung when faults begin to wait for room.
    pub waiting: Bell,
    /// Calls the watcher when a space wants attention: new, or room is short.
    pub attention: Attention,
}

impl Pager {
    /// A pager with nothing to protect yet.
    pub fn new(
        config: &Config,
        cipher: PageCipher,
        directory: PageDirectory<MappedMetadata>,
        metadata: Arc<MetadataState>,
        store: PageStore,
    ) -> std::io::Result<Self> {
        let clear = config.first_clear();
        Ok(Pager {
            budget: Budget::new(clear, 0),
            counts: EventCounts::default(),
            profiler: Profiler::new(),
            store,
            plain: PlainPool::new(plain::grace_pages(clear))?,
            cipher,
            gpc: GlobalPageCounter::new(),
            directory: Mutex::new(directory),
            metadata,
            spaces: Spaces::default(),
            shared: Mutex::default(),
            heard: Mutex::default(),
            has_begun: AtomicBool::new(false),
            growing: Mutex::default(),
            arming: Mutex::default(),
            received: Mutex::default(),
            unannounced: OnceLock::new(),
            files: OpenFiles::default(),
            quotas: Quotas::of(&config.programs),
            on_violation: config.on_violation,
            healing: Healing::default(),
            rotations: Rotations::default(),
            lets_out: OnceLock::new(),
            noted: OnceLock::new(),
            ending: OnceLock::new(),
            stopped: Bell::new()?,
            waiting: Bell::new()?,
            attention: Attention::new()?,
        })
    }

    /// A number for a new space, never given twice.
    pub(crate) fn new_space_id(&self) -> SpaceId {
        self.spaces.new_id()
    }

    /// The space of that number, while it lives.
    pub fn space(&self, id: SpaceId) -> Option<Arc<Space>> {
        self.spaces.get(id)
    }

    /// All spaces alive.
    pub fn all_spaces(&self) -> Vec<Arc<Space>> {
        self.spaces.all()
    }

    /// Makes room for a space in the page directory.
    pub fn open_space(&self, id: SpaceId) -> Result<(), Stop> {
        self.records().open_space(id)
    }

    /// Takes a space on.
    pub fn add_space(&self, space: &Arc<Space>) {
        self.spaces.add(space);
    }

    /// How many spaces were begun so far. A caller that sees pages counted for a space sees it
    /// among these.
    pub fn spaces_begun(&self) -> u32 {
        self.spaces.begun()
    }

    /// How many spaces were taken on so far. A caller that finds no space for a thread, and the
    /// same number afterwards, knows that there was none in between.
    pub fn spaces_added(&self) -> u64 {
        self.spaces.added()
    }

    /// Ends the run; the first reason wins. Nothing is served afterwards, so nothing wrong is read.
    pub fn stop(&self, why: Stop) {
        self.end().stop(why);
    }

    /// Ends the run at once if `result` is an error. For a thread that holds the lock of a space:
    /// the step that failed may have left the space half changed, and the next holder must find
    /// that nothing is served any more.
    pub(crate) fn or_stop<T>(&self, result: Result<T, Stop>) -> Result<T, Stop> {
        self.end().or_stop(result)
    }

    /// [`Pager::stop`] for a reason that is none of the pager's.
    pub fn stop_as(&self, ending: Ending) {
        self.end().stop_as(ending);
    }

    /// Why the run is ending, if it is.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.get()
    }

    /// The violation that was noted first, if any was.
    pub fn noted_violation(&self) -> Option<Ending> {
        self.noted.get().cloned()
    }

    /// Verifies what was believed since the last check of the log hash. How many lines of the
    /// directory were read for it.
    pub(crate) fn check_log(&self) -> Result<u64, Stop> {
        self.records().check()
    }

    /// Pages of the run that are plaintext in the Clear or only ciphertext. Processes without an
    /// agent count what they share each for itself.
    pub fn protected_pages(&self) -> u64 {
        self.budget.protected(self.store.pages())
    }

    /// Pages of the grace lists: out of their programs, and not encrypted yet.
    pub fn spared_pages(&self) -> u64 {
        self.plain.lent() as u64
    }

    /// Raises the peaks that are read off running values.
    pub fn note_peaks(&self) {
        let c = &self.counts;
        let directory_bytes = self.records().metadata_bytes();
        event_counts::peak(
            &c.metadata_bytes_peak,
            directory_bytes + self.store.stats().metadata_bytes,
        );
    }
}

/// A violation found while serving `place` (what the page is to the program).
pub(crate) fn violation_at(place: &str, violation: Violation) -> Stop {
    match violation {
        Violation::SeedsExhausted | Violation::NoKey { .. } | Violation::Refused(_) => {
            Stop::Internal(format!("{place}: {violation}"))
        }
        _ => Stop::Violation(format!("integrity violation at {place}: {violation}")),
    }
}

/// A violation found while serving one page.
pub(crate) fn violation_at_page(vpn: space::Vpn, violation: Violation) -> Stop {
    violation_at(&format!("{:#x}", vpn * PAGE_BYTES as u64), violation)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::store::StoreConfig;
    use crate::sys::uffd::Userfault;
    use casemate_pages::KeySet;
    use space::SpaceState;
    use std::time::Duration;

    /// A pager, and a space whose descriptor is none.
    pub(crate) fn pager_and_space() -> (Pager, Arc<Space>) {
        let keys = KeySet::from_master(&[7; 32]);
        let metadata = MappedMetadata::new(false).expect("room");
        let state = metadata.state();
        let directory = PageDirectory::new(metadata, &keys.directory, 16 << 10);
        let store = PageStore::new(StoreConfig::default()).expect("a store");
        let (config, cipher) = (Config::new(Vec::new()), PageCipher::new(&keys.page));
        let pager = Pager::new(&config, cipher, directory, state, store).expect("a pager");
        // It can be written only: reading messages off it fails.
        let file = std::fs::File::options().write(true).open("/dev/null").expect("there is one");
        let space = Space::new(SpaceId(1), Userfault::unusable(file.into()), SpaceState::default());
        (pager, space)
    }

    #[test]
    fn a_survey_waits_no_longer_than_it_is_told_for_the_lock_of_the_space() {
        let (pager, space) = pager_and_space();
        let own_pid = std::process::id() as i32;
        let busy = space.state.lock();
        let surveyed = pager.events().survey(&space, own_pid, Duration::from_millis(1));
        assert!(matches!(surveyed, Ok(None)), "{surveyed:?}");
        drop(busy);
        // Then it is begun, and finds that this space's descriptor is none.
        assert!(pager.events().survey(&space, own_pid, Duration::from_millis(1)).is_err());
    }

    #[test]
    fn a_store_to_a_page_that_a_guard_replaced_finds_no_page() {
        let (pager, space) = pager_and_space();
        let page = Box::new([1_u8; 2 * PAGE_BYTES]);
        let vpn = (page.as_ptr().addr() as u64).div_ceil(PAGE_BYTES as u64);
        let found = |guard: std::ops::Range<u64>| {
            let mut state = SpaceState::default();
            state.processes.pids = vec![std::process::id() as i32];
            state.mapped.registered.insert(vpn..vpn + 1);
            state.mapped.guards.insert(guard);
            // This space's descriptor lifts no protection.
            assert!(pager.fault().lift(&space, &mut state, vpn).is_err());
            state.clear.pages.contains_key(&vpn)
        };
        assert!(found(vpn + 1..vpn + 2));
        assert!(!found(vpn - 1..vpn + 1));
    }

    #[test]
    fn a_step_that_fails_ends_the_run_before_another_thread_gets_the_space() {
        let (pager, space) = pager_and_space();

        let failed = pager.fault().attend(&space, &mut |_, _, _| {});
        assert!(failed.is_err());
        // `attend` itself ended the run: its caller gets the error only when the lock is free
        // already.
        assert!(matches!(pager.ending(), Some(Ending::KeeperFailed { .. })), "{failed:?}");
        assert!(
            pager.fault().attend(&space, &mut |_, _, _| {}).is_ok(),
            "nothing is served any more"
        );
    }
}
