//! Pages that an agent moves aside from the program, and back: its own events tell of it.

use crate::sys::uffd::Message;
use std::ops::Range;

/// Ranges of addresses. What events say of these is of our own making, and changes nothing that is
/// known of the program.
#[derive(Default)]
pub(super) struct Aside {
    /// Where they are taken from.
    sources: Vec<Range<u64>>,
    /// Where they lie aside.
    places: Vec<Range<u64>>,
    /// Sources that are put back, and whether the event came that unmaps what was left there.
    back: Vec<(Range<u64>, bool)>,
}

impl Aside {
    /// Pages are taken from these.
    pub fn taking(sources: Vec<Range<u64>>) -> Self {
        Aside { sources, ..Aside::default() }
    }

    /// What was taken from `source` is put back from now on.
    pub fn puts_back(&mut self, source: Range<u64>) {
        self.back.push((source, false));
    }

    /// Whether nothing is taken aside.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether a page lies aside.
    pub fn holds(&self, address: u64) -> bool {
        self.places.iter().any(|place| place.contains(&address))
    }

    /// Whether an event is one of the agent's own. Each comes once.
    pub fn swallows(&mut self, event: &Message) -> bool {
        match *event {
            Message::Remap { from, to, len } => {
                let (from, to) = (from..from + len, to..to + len);
                if self.sources.contains(&from) {
                    self.places.push(to);
                    return true;
                }
                self.places.contains(&from) && self.back.iter().any(|(source, _)| *source == to)
            }
            Message::Unmap { start, end } => {
                let of_source = self.back.iter_mut().find(|(source, _)| *source == (start..end));
                match of_source {
                    Some((_, is_unmapped)) => !std::mem::replace(is_unmapped, true),
                    None => self.places.contains(&(start..end)),
                }
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_agents_own_are_told_from_the_programs() {
        let mut aside = Aside::taking(vec![0x1000..0x3000, 0x8000..0x9000]);
        let remap = |from, to, len| Message::Remap { from, to, len };
        let unmap = |start, end| Message::Unmap { start, end };
        // The program moves and unmaps other parts, and parts of these.
        assert!(!aside.swallows(&remap(0x1000, 0xa000, 0x1000)));
        assert!(!aside.swallows(&unmap(0x1000, 0x3000)));
        // Both are taken aside, and one is given up there.
        assert!(aside.swallows(&remap(0x1000, 0x70_0000, 0x2000)));
        assert!(aside.swallows(&remap(0x8000, 0x71_0000, 0x1000)));
        assert!(aside.holds(0x70_1000) && !aside.holds(0x70_2000));
        assert!(aside.swallows(&unmap(0x71_0000, 0x71_1000)));
        // The other is put back.
        aside.puts_back(0x1000..0x3000);
        assert!(aside.swallows(&unmap(0x1000, 0x3000)));
        assert!(aside.swallows(&remap(0x70_0000, 0x1000, 0x2000)));
        assert!(aside.swallows(&unmap(0x70_0000, 0x70_2000)));
        // Then the program unmaps it.
        assert!(!aside.swallows(&unmap(0x1000, 0x3000)));
    }
}
