//! The spaces of a run.

use super::ended::Ended;
use super::space::Space;
use casemate_pages::SpaceId;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Begins to listen to a space.
type Hear = dyn Fn(&Space) + Send + Sync;

/// All spaces that live, and how many there were.
pub(crate) struct Spaces {
    /// By number, so that every run goes through them in the same order.
    alive: RwLock<BTreeMap<SpaceId, Arc<Space>>>,
    /// Spaces that were ever among them.
    added: AtomicU64,
    next: AtomicU32,
    /// Those that live no more.
    pub ended: Ended,
    /// Begins to listen to the space of a forked child.
    pub hears: OnceLock<Box<Hear>>,
}

impl Default for Spaces {
    fn default() -> Self {
        Spaces {
            alive: RwLock::new(BTreeMap::new()),
            added: AtomicU64::new(0),
            next: AtomicU32::new(1),
            ended: Ended::default(),
            hears: OnceLock::new(),
        }
    }
}

impl Spaces {
    /// A number for a new space, never given twice.
    pub fn new_id(&self) -> SpaceId {
        SpaceId(self.next.fetch_add(1, Relaxed))
    }

    /// How many numbers were given. A space has its number before any page counts for it.
    pub fn begun(&self) -> u32 {
        self.next.load(Relaxed)
    }

    /// The space of that number, while it lives.
    pub fn get(&self, id: SpaceId) -> Option<Arc<Space>> {
        self.alive.read().get(&id).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Space>> {
        self.alive.read().values().cloned().collect()
    }

    /// Takes a space on.
    pub fn add(&self, space: &Arc<Space>) {
        self.alive.write().insert(space.id, Arc::clone(space));
        self.added.fetch_add(1, SeqCst);
    }

    /// How many were taken on so far.
    pub fn added(&self) -> u64 {
        self.added.load(SeqCst)
    }

    /// A space has ended.
    pub fn remove(&self, id: SpaceId) {
        self.alive.write().remove(&id);
    }
}
