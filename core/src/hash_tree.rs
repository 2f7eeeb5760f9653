//! A Bonsai Merkle Tree (Rogers et al., section 5.2): verified lines in untrusted memory.
//!
//! As in the paper's Figure 5(b), the tree covers only what makes a page's seed fresh (here: the
//! page directory with its LPIDs and tags), not the pages; a page is covered by its own tag.
//!
//! # Shape
//!
//! Level 0 holds the protected lines. A node on level *n* + 1 holds the MACs of eight lines on
//! level *n*. The height is fixed; the node above the highest level, the *root*, stays in trusted
//! memory, or several where there is room for them ([`Shape::roots`]). A MAC of zero stands for a line of zeros: nothing is fetched or stored for it. So a
//! fresh tree of any capacity is one zero root, and lines that become zero again disappear.
//!
//! # Trusted state
//!
//! The root, the keys, and a cache of verified nodes, each of which can be trusted as if it were
//! the root. Writes change only the cache. A dirty line's MAC is computed when it leaves, and goes
//! into its parent, which then is the freshest and dirty in its place.
//!
//! # Invariant
//!
//! For every line that is not cached, the MAC in its parent (cached, or in memory if that is not
//! cached either) is the MAC of the line as it was last written back. All code here keeps this
//! true between any two statements that could look at it; the comments say how.

mod governed;
mod page_subtree;

pub use page_subtree::Subtree;

use crate::checks::Checks;
pub use crate::node_cache::Capacity;
use crate::node_cache::{Frame, NodeCache};
use crate::port::{FixedBytes, LinePlace, Port, Shape, Use};
use crate::violation::{Refusal, Violation};

/// A verified, sparse, growing array of lines.
pub struct HashTree<P: Port> {
    port: P,
    shape: Shape,
    roots: Vec<P::V<P::Line>>,
    cache: NodeCache<P::V<P::Line>>,
    poisoned: bool,
}

/// Whether a line's parent was in trusted memory when its new MAC had to go there.
enum WrittenBack {
    /// Yes. The frame holds the line, now clean.
    LineIsClean,
    /// No. The frame now holds the parent, dirty with the new MAC.
    ParentTookItsFrame,
}

impl<P: Port> HashTree<P> {
    /// An array of zeros. The node cache takes about `node_cache_bytes`, at least 16 lines.
    pub fn new(port: P, node_cache_bytes: usize) -> Self {
        Self::with_cache(port, Capacity::Bytes(node_cache_bytes))
    }

    /// An array of zeros, with such a node cache.
    pub fn with_cache(port: P, node_cache: Capacity) -> Self {
        let shape = port.shape();
        let roots = (0..shape.roots).map(|_| P::carry(P::Line::ZERO, port.now())).collect();
        let cache = NodeCache::new(node_cache, P::Line::BYTES);
        Self { port, shape, roots, cache, poisoned: false }
    }

    /// A protected line, and when it is there for a request that knew its index at `from`.
    #[inline]
    pub fn read(
        &mut self,
        index: u64,
        from: P::Moment,
    ) -> Result<(&P::Line, P::Moment), Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        let (frame, from) = match self.cache.find(place) {
            Some(frame) => (frame, self.port.used(place, Use::Hit, from)),
            None => (self.bring_in_leaf(place, from)?, from),
        };
        let line = self.cache.line(frame);
        let at = self.port.join(from, P::moment(line));
        Ok((P::peek(line), at))
    }

    /// Changes a protected line by something that is ready at `from`.
    #[inline]
    pub fn amend(
        &mut self,
        index: u64,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        let frame = match self.cache.find(place) {
            Some(frame) => frame,
            None => self.bring_in_leaf(place, from)?,
        };
        let from = self.port.used(place, Use::Amended, from);
        let line = self.cache.line_mut(frame);
        self.port.amend(line, from, change);
        Ok(P::moment(line))
    }

    /// A protected line that the cache is not to keep, such as data that a cache of its own keeps.
    ///
    /// Lines are either always used through the cache or never: a cached line may be newer than memory.
    pub fn read_through(
        &mut self,
        index: u64,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.guarded(|tree| {
            let (place, parent, found) = tree.parent_of_leaf(index, from)?;
            let expected = tree.expected_mac(place, parent);
            let known = tree.port.join(found, P::moment(&expected));
            let expected = P::carry(*P::peek(&expected), known);
            tree.fetch_verified(place, &expected, from)
        })
    }

    /// Replaces a protected line that the cache does not keep.
    pub fn write_through(&mut self, index: u64, line: &P::V<P::Line>) -> Result<(), Violation> {
        self.guarded(|tree| {
            let (place, parent, _) = tree.parent_of_leaf(index, P::moment(line))?;
            let mac = store(&mut tree.port, place, line);
            tree.put_mac(place, parent, &mac);
            Ok(())
        })
    }

    /// Writes every dirty line back, from the leaves up, so that the roots cover all of memory.
    pub fn flush(&mut self) -> Result<(), Violation> {
        self.guarded(|tree| {
            for level in 0..tree.shape.levels {
                for frame in 0..tree.cache.frames() {
                    // A parent that takes its child's frame is met again on its own level.
                    if tree.cache.place(frame).level == level && tree.cache.is_dirty(frame) {
                        tree.write_back(frame)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// The port, to set its clock or read its counts.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// Bytes of trusted memory: the roots and the node cache.
    pub fn trusted_bytes(&self) -> usize {
        let roots = self.roots.capacity() * size_of::<P::V<P::Line>>();
        size_of::<Self>() + roots + self.cache.trusted_bytes()
    }

    /// Writes everything back and empties the cache, so that whatever is used next is fetched.
    pub fn flush_and_forget(&mut self) -> Result<(), Violation> {
        self.flush()?;
        self.cache = self.cache.emptied();
        Ok(())
    }

    /// Remembers that a verified line made no sense: from now on every call fails.
    pub fn poison(&mut self, violation: Violation) -> Violation {
        self.poisoned = <P::Checks as Checks>::POISON;
        violation
    }

    /// Fails if an earlier violation was found.
    #[inline]
    pub fn check_not_poisoned(&self) -> Result<(), Violation> {
        if self.poisoned { Err(Violation::Poisoned) } else { Ok(()) }
    }

    /// Runs a step after which, if it finds a violation, nothing works any more.
    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        self.check_not_poisoned()?;
        step(self).map_err(|violation| self.poison(violation))
    }

    /// A leaf's place, the frame of its parent, brought in if need be (`None`: the root), and when that was
    /// found.
    fn parent_of_leaf(
        &mut self,
        index: u64,
        from: P::Moment,
    ) -> Result<(LinePlace, Option<Frame>, P::Moment), Violation> {
        if index >= self.shape.capacity_lines() {
            return Err(Refusal::DirectoryFull.into());
        }
        let place = LinePlace { level: 0, index };
        let Some(parent) = self.shape.parent(place) else { return Ok((place, None, from)) };
        let (frame, found) = match self.cache.find(parent) {
            Some(frame) => (frame, self.port.used(parent, Use::Hit, from)),
            None => (self.bring_in(parent, from)?, from),
        };
        Ok((place, Some(frame), found))
    }

    #[cold]
    #[inline(never)]
    fn bring_in_leaf(&mut self, place: LinePlace, from: P::Moment) -> Result<Frame, Violation> {
        if place.index >= self.shape.capacity_lines() {
            return Err(Refusal::DirectoryFull.into());
        }
        self.guarded(|tree| tree.bring_in(place, from))
    }

    /// Brings a line and its missing ancestors into the cache, from the top down.
    fn bring_in(&mut self, place: LinePlace, from: P::Moment) -> Result<Frame, Violation> {
        if self.cache.is_governed() {
            return self.bring_in_governed(place, from);
        }
        loop {
            let (missing, parent) = self.highest_missing(place);
            // Held fast, the parent survives the making of room, so each round gets one level
            // further down whatever has to be evicted meanwhile.
            self.make_room(parent)?;
            // Making room may have brought this very line in, as the parent of a dirty victim.
            // To fetch it again would put a second, stale copy into the cache.
            let frame = match self.cache.find(missing) {
                Some(frame) => frame,
                None => {
                    let expected = self.expected_mac(missing, parent);
                    let line = self.fetch_verified(missing, &expected, from)?;
                    self.cache.insert(missing, line)
                }
            };
            if missing == place {
                return Ok(frame);
            }
        }
    }

    /// The highest ancestor-or-self of `place` below which nothing of its path is cached, and the
    /// frame of that one's parent (`None`: the root).
    fn highest_missing(&mut self, place: LinePlace) -> (LinePlace, Option<Frame>) {
        let mut missing = place;
        while let Some(parent) = self.shape.parent(missing) {
            if let Some(frame) = self.cache.find(parent) {
                return (missing, Some(frame));
            }
            missing = parent;
        }
        (missing, None)
    }

    /// The MAC that the parent, in `parent`'s frame or the root, holds for a line.
    fn expected_mac(&self, place: LinePlace, parent: Option<Frame>) -> P::V<P::Mac> {
        match parent {
            Some(frame) => self.mac_in(self.cache.line(frame), place),
            None => self.mac_in(&self.roots[self.shape.root(place)], place),
        }
    }

    /// Fetches one line and releases it if it matches the MAC from its verified parent.
    fn fetch_verified(
        &mut self,
        place: LinePlace,
        expected: &P::V<P::Mac>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        if *P::peek(expected) == P::Mac::ZERO {
            return Ok(P::carry(P::Line::ZERO, P::moment(expected)));
        }
        let line = self.port.fetch_line(place, from);
        self.port.release_line(place, line, expected)
    }

    /// Sees to it that a frame is free, writing back as many dirty lines as that takes.
    ///
    /// It ends: a round that frees nothing has replaced a dirty line by one nearer to the root,
    /// and a line below the root itself always finds its parent at hand.
    fn make_room(&mut self, pinned: Option<Frame>) -> Result<(), Violation> {
        while !self.cache.has_room() {
            let victim = self.cache.next_victim(pinned);
            if self.cache.is_dirty(victim) {
                match self.write_back(victim)? {
                    WrittenBack::LineIsClean => {}
                    WrittenBack::ParentTookItsFrame => continue,
                }
            }
            self.cache.remove(victim);
        }
        Ok(())
    }

    /// Stores a dirty line and puts its new MAC into its parent, which becomes dirty.
    ///
    /// If the parent is not cached it takes the line's own frame: a write-back never needs
    /// another frame, so it evicts nothing and cannot recurse, however small the cache is.
    fn write_back(&mut self, frame: Frame) -> Result<WrittenBack, Violation> {
        let place = self.cache.place(frame);
        if self.cache.is_governed() {
            self.write_back_governed(frame)?;
            return Ok(WrittenBack::LineIsClean);
        }
        let line = self.cache.line(frame);
        let mac = store(&mut self.port, place, line);
        let Some(parent) = self.shape.parent(place) else {
            self.put_mac(place, None, &mac);
            self.cache.set_clean(frame);
            return Ok(WrittenBack::LineIsClean);
        };
        if let Some(parent_frame) = self.cache.find(parent) {
            self.put_mac(place, Some(parent_frame), &mac);
            self.cache.set_clean(frame);
            return Ok(WrittenBack::LineIsClean);
        }
        let parent_line = self.verify_without_caching(parent)?;
        self.cache.replace(frame, parent, parent_line);
        self.put_mac(place, Some(frame), &mac);
        Ok(WrittenBack::ParentTookItsFrame)
    }

    /// Fetches and verifies a line down from its nearest cached ancestor, keeping nothing.
    fn verify_without_caching(&mut self, place: LinePlace) -> Result<P::V<P::Line>, Violation> {
        let from = self.port.now();
        let (mut missing, parent) = self.highest_missing(place);
        let mut expected = self.expected_mac(missing, parent);
        loop {
            let line = self.fetch_verified(missing, &expected, from)?;
            if missing == place {
                return Ok(line);
            }
            missing = self.shape.ancestor(place, missing.level - 1);
            expected = self.mac_in(&line, missing);
        }
    }

    fn mac_in(&self, node: &P::V<P::Line>, child: LinePlace) -> P::V<P::Mac> {
        P::carry(self.shape.mac_in(P::peek(node), child), P::moment(node))
    }

    /// Puts a child's new MAC into its parent, in `parent`'s frame or the root.
    fn put_mac(&mut self, child: LinePlace, parent: Option<Frame>, mac: &P::V<P::Mac>) {
        if !<P::Checks as Checks>::UPDATE_PARENT {
            return;
        }
        let shape = self.shape;
        let at = P::moment(mac);
        let node = match parent {
            Some(frame) => {
                self.port.used(self.cache.place(frame), Use::Amended, at);
                self.cache.line_mut(frame)
            }
            None => &mut self.roots[shape.root(child)],
        };
        self.port.amend(node, at, |line| shape.put_mac(line, child, P::peek::<P::Mac>(mac)));
    }
}

/// Stores a line and computes its MAC. Lines of zeros need neither.
fn store<P: Port>(port: &mut P, place: LinePlace, line: &P::V<P::Line>) -> P::V<P::Mac> {
    if *P::peek(line) == P::Line::ZERO {
        return P::carry(P::Mac::ZERO, P::moment(line));
    }
    port.store_line(place, line);
    port.line_mac(place, line)
}
