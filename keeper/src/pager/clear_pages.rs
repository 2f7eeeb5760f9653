//! The pages of one space that are in the Clear. How many they are can be read without the space's
//! lock, so that a look at a program's growth need not wait for the handler threads that serve it.

use super::space::{ClearPage, Vpn, VpnMap};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A map of pages that publishes its size.
#[derive(Debug, Default)]
pub struct ClearPages {
    map: VpnMap<ClearPage>,
    published: Arc<AtomicU64>,
}

/// The size of a [`ClearPages`], in pages, readable without its lock.
#[derive(Debug, Clone)]
pub struct PageCount(Arc<AtomicU64>);

impl PageCount {
    /// The pages now. The holder of the lock may be about to add or take a batch of them.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl ClearPages {
    /// A handle on the number of pages.
    pub fn count(&self) -> PageCount {
        PageCount(Arc::clone(&self.published))
    }

    /// Adds a page, or replaces what is known of it.
    pub fn insert(&mut self, vpn: Vpn, page: ClearPage) {
        self.map.insert(vpn, page);
        self.publish();
    }

    /// Takes a page off.
    pub fn remove(&mut self, vpn: &Vpn) -> Option<ClearPage> {
        let page = self.map.remove(vpn);
        self.publish();
        page
    }

    /// What is known of a page, to be changed.
    pub fn get_mut(&mut self, vpn: &Vpn) -> Option<&mut ClearPage> {
        self.map.get_mut(vpn)
    }

    /// Changes what is known of each page.
    pub fn for_each(&mut self, mut change: impl FnMut(&Vpn, &mut ClearPage)) {
        self.map.iter_mut().for_each(|(vpn, page)| change(vpn, page));
    }

    /// There is one writer at a time, the holder of the lock.
    fn publish(&self) {
        self.published.store(self.map.len() as u64, Relaxed);
    }
}

impl Deref for ClearPages {
    type Target = VpnMap<ClearPage>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_follows_every_change() {
        let mut pages = ClearPages::default();
        let count = pages.count();
        let page =
            ClearPage { clean: false, referenced: false, stamp: 0, shared: None, protected: false };
        for vpn in [5, 6, 5] {
            pages.insert(vpn, page);
            assert_eq!(count.get(), pages.len() as u64);
        }
        assert_eq!(count.get(), 2);
        for (vpn, left) in [(7, 2), (5, 1), (6, 0)] {
            pages.remove(&vpn);
            assert_eq!(count.get(), left);
        }
    }
}
