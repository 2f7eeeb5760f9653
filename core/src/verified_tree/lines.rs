//! The verified lines that a tree has on chip.

use crate::node_cache::{Frame, NodeCache};
use crate::port::{LinePlace, Port, Use};

/// Where a verified line is on chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Above the levels in memory, where it stays: a root.
    OnChip(usize),
    /// In a frame of the cache.
    Cached(Frame),
}

/// Verified lines in trusted memory: those above all levels in memory, and a cache of the others.
pub struct TrustedLines<P: Port> {
    pub(super) on_chip: Vec<P::V<P::Line>>,
    pub(crate) cache: NodeCache<P::V<P::Line>>,
}

impl<P: Port> TrustedLines<P> {
    /// The line there.
    #[inline]
    pub fn line(&self, holder: Holder) -> &P::V<P::Line> {
        match holder {
            Holder::OnChip(index) => &self.on_chip[index],
            Holder::Cached(frame) => self.cache.line(frame),
        }
    }

    /// The line there, to be changed by something that is ready at `at`. The port is told, and
    /// memory has an older one from now on.
    pub fn line_to_amend(
        &mut self,
        port: &mut P,
        holder: Holder,
        at: P::Moment,
    ) -> &mut P::V<P::Line> {
        match holder {
            Holder::OnChip(index) => &mut self.on_chip[index],
            Holder::Cached(frame) => {
                port.used(self.cache.place(frame), Use::Amended, at);
                self.cache.line_mut(frame)
            }
        }
    }

    /// The frame that a line is cached in.
    pub fn find(&mut self, place: LinePlace) -> Option<Frame> {
        self.cache.find(place)
    }

    /// A cached line was stored as it is: memory has it.
    pub fn set_clean(&mut self, frame: Frame) {
        self.cache.set_clean(frame);
    }

    /// Bytes of trusted memory.
    pub(super) fn trusted_bytes(&self) -> usize {
        self.on_chip.capacity() * size_of::<P::V<P::Line>>() + self.cache.trusted_bytes()
    }
}
