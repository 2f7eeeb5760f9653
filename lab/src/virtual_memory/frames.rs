//! Which frames are free.

use std::collections::BTreeSet;
use std::ops::Range;

/// The free frames of programs' memory.
#[derive(Debug, Clone)]
pub struct Frames {
    free: BTreeSet<u64>,
    all: Range<u64>,
    /// Where the search for a free frame goes on, so that a page seldom comes back to where it was.
    next: u64,
}

impl Frames {
    /// All of these are free.
    pub fn new(all: Range<u64>) -> Frames {
        Frames { free: all.clone().collect(), next: all.start, all }
    }

    /// How many are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes one.
    pub fn take(&mut self) -> Option<u64> {
        let later = self.free.range(self.next..).next();
        let frame = *later.or_else(|| self.free.first())?;
        self.free.remove(&frame);
        self.next = frame + 1;
        Some(frame)
    }

    /// Takes this one, which must be free.
    pub fn take_this(&mut self, frame: u64) {
        let was_free = self.free.remove(&frame);
        debug_assert!(was_free, "frame {frame} is in use");
    }

    /// Gives one back.
    pub fn give_back(&mut self, frame: u64) {
        let was_taken = self.free.insert(frame);
        debug_assert!(was_taken && self.all.contains(&frame), "frame {frame} was not in use");
    }

    /// The aligned run of so many frames in which most are free.
    pub fn best_run(&self, frames: u64) -> Option<Range<u64>> {
        let first = self.all.start.next_multiple_of(frames);
        let runs = (first..self.all.end).step_by(frames as usize).map(|at| at..at + frames);
        let whole = runs.filter(|run| run.end <= self.all.end);
        whole.max_by_key(|run| self.free.range(run.clone()).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_taken_once() {
        let mut frames = Frames::new(3..9);
        let taken: BTreeSet<_> = (0..6).filter_map(|_| frames.take()).collect();
        assert_eq!((taken.len(), frames.take()), (6, None));
        frames.give_back(4);
        assert_eq!((frames.take(), frames.free()), (Some(4), 0));
    }

    #[test]
    fn runs_are_aligned_and_whole() {
        let mut frames = Frames::new(3..14);
        frames.take_this(5);
        assert_eq!(frames.best_run(4), Some(8..12));
        assert_eq!(frames.best_run(16), None);
    }
}
