//! Untrusted memory in an adversary's hands.

use std::collections::BTreeMap;

use casemate_schemes::unit::Block;
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::place::Place;

/// Memory whose contents an adversary can copy, change and put back.
#[derive(Clone, Default)]
pub struct HostileMemory {
    now: BTreeMap<Place, Block>,
}

/// A copy of all of memory.
#[derive(Clone)]
pub struct Image(BTreeMap<Place, Block>);

impl Image {
    /// What a place held.
    pub fn block(&self, place: Place) -> Block {
        self.0.get(&place).copied().unwrap_or([0; 64])
    }
}

impl HostileMemory {
    /// A copy of all of memory as it is.
    pub fn image(&self) -> Image {
        Image(self.now.clone())
    }

    /// The places that were ever written.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.now.keys().copied()
    }

    /// What a place holds.
    pub fn block(&self, place: Place) -> Block {
        self.now.get(&place).copied().unwrap_or([0; 64])
    }

    /// Changes a place. Returns whether that changed anything.
    pub fn change(&mut self, place: Place, change: impl FnOnce(&mut Block)) -> bool {
        let before = self.block(place);
        let mut after = before;
        change(&mut after);
        self.now.insert(place, after);
        after != before
    }

    /// Puts a place back to how it was. Returns whether that changed anything.
    pub fn replay(&mut self, place: Place, image: &Image) -> bool {
        self.change(place, |block| *block = image.block(place))
    }

    /// Puts everything back to how it was. Returns whether that changed anything.
    pub fn roll_back(&mut self, image: &Image) -> bool {
        let places: Vec<_> = self.places().collect();
        let mut changed = false;
        for place in places {
            changed |= self.replay(place, image);
        }
        changed
    }
}

impl OffChip for HostileMemory {
    fn read(&mut self, place: Place) -> Block {
        self.block(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.now.insert(place, *block);
    }
}
