//! Untrusted memory in an adversary's hands, of lines of any size at places of any kind.
//!
//! Behind the feature `hostile-memory`: attacks and tests have it, the keeper does not.

use std::collections::BTreeMap;

use crate::port::FixedBytes;
use crate::untrusted_memory::UntrustedMemory;

/// Memory whose contents an adversary can copy, change and put back. It remembers every line that
/// was ever stored to it.
#[derive(Debug, Clone)]
pub struct HostileMemory<At, Line> {
    /// Every line that was ever stored, as it is now.
    now: BTreeMap<At, Line>,
    /// What was stored last at each place, and how often something was.
    stored: BTreeMap<At, Vec<Line>>,
    /// How often a line was read that was not what was last stored there.
    pub lies: u64,
}

/// A copy of all of memory.
#[derive(Debug, Clone)]
pub struct Image<At, Line>(BTreeMap<At, Line>);

impl<At, Line> Default for HostileMemory<At, Line> {
    fn default() -> Self {
        HostileMemory { now: BTreeMap::new(), stored: BTreeMap::new(), lies: 0 }
    }
}

impl<At: Ord, Line: FixedBytes> Image<At, Line> {
    /// What a place held.
    pub fn line(&self, at: At) -> Line {
        self.0.get(&at).copied().unwrap_or(Line::ZERO)
    }
}

impl<At: Copy + Ord, Line: FixedBytes> HostileMemory<At, Line> {
    /// The places that were ever written, in order.
    pub fn places(&self) -> impl Iterator<Item = At> + '_ {
        self.now.keys().copied()
    }

    /// What a place holds.
    pub fn line(&self, at: At) -> Line {
        self.now.get(&at).copied().unwrap_or(Line::ZERO)
    }

    /// Every version ever stored at a place, oldest first.
    pub fn versions(&self, at: At) -> &[Line] {
        self.stored.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Changes a place. Returns whether that changed anything.
    pub fn change(&mut self, at: At, change: impl FnOnce(&mut Line)) -> bool {
        let before = self.line(at);
        let mut after = before;
        change(&mut after);
        self.now.insert(at, after);
        after != before
    }

    /// Puts a line there.
    pub fn tamper(&mut self, at: At, line: &Line) {
        self.change(at, |now| *now = *line);
    }

    /// Flips one bit.
    pub fn flip(&mut self, at: At, bit: usize) {
        self.change(at, |line| line.as_mut()[bit / 8 % Line::BYTES] ^= 1 << (bit % 8));
    }

    /// Exchanges two lines.
    pub fn splice(&mut self, a: At, b: At) {
        let (line_a, line_b) = (self.line(a), self.line(b));
        self.tamper(a, &line_b);
        self.tamper(b, &line_a);
    }

    /// A copy of all of memory as it is.
    pub fn image(&self) -> Image<At, Line> {
        Image(self.now.clone())
    }

    /// Puts a place back to how it was. Returns whether that changed anything.
    pub fn replay(&mut self, at: At, image: &Image<At, Line>) -> bool {
        self.change(at, |line| *line = image.line(at))
    }

    /// Puts the places back to how they were that `which` names: all of memory, or a subtree, which
    /// is a replay that is consistent in itself. Returns whether that changed anything.
    pub fn roll_back(&mut self, image: &Image<At, Line>, which: impl Fn(At) -> bool) -> bool {
        let places: Vec<_> = self.places().filter(|at| which(*at)).collect();
        let mut changed = false;
        for at in places {
            changed |= self.replay(at, image);
        }
        changed
    }

    /// Undoes all tampering: every line is again what was last stored there.
    pub fn make_good(&mut self) {
        for (at, versions) in &self.stored {
            if let Some(line) = versions.last() {
                self.now.insert(*at, *line);
            }
        }
    }
}

impl<At: Copy + Ord, Line: FixedBytes> UntrustedMemory<At, Line> for HostileMemory<At, Line> {
    fn read(&mut self, at: At) -> Line {
        let line = self.line(at);
        let stored = self.versions(at).last();
        self.lies += u64::from(stored.is_some_and(|stored| *stored != line));
        line
    }

    fn write(&mut self, at: At, line: &Line) {
        self.now.insert(at, *line);
        self.stored.entry(at).or_default().push(*line);
    }
}
