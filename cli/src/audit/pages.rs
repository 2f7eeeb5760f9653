//! The pages of an address space that are in RAM.

use std::collections::{BTreeMap, HashSet};
use std::io;

use casemate_core::PAGE_BYTES;
use casemate_keeper::sys::pagemap::{Frame, Pagemap};
use casemate_keeper::sys::procfs::{self, Described};

use super::class::{self, Class, Judge};
use super::family::{Role, Space};

/// The bytes of a page.
pub const PAGE: u64 = PAGE_BYTES as u64;
/// Pages whose frames are asked for at once: little time passes before the last is looked at.
const AT_ONCE: u64 = 64;

/// A page in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Of its first byte.
    pub address: u64,
    /// What it is.
    pub class: Class,
    /// Where it is.
    pub frame: Frame,
}

/// Mappings of an address space, described.
#[derive(Default)]
pub struct Mappings {
    described: Vec<Described>,
    uses: u32,
}

/// Looks by the same description. The pager may have taken a mapping over since, which changes
/// nothing that `maps` shows.
const MOST_USES: u32 = 10;

impl Mappings {
    /// Those of now. The walk through `smaps`, which costs much more, is done again only if a
    /// mapping came, went or changed, and every tenth time.
    pub fn refresh(&mut self, space: &Space) -> io::Result<&[Described]> {
        let now = procfs::mappings(space.thread)?;
        let known = self.described.iter().map(|known| &known.mapping);
        self.uses += 1;
        if self.uses > MOST_USES || !now.iter().eq(known) {
            self.described = procfs::described(space.thread)?;
            self.uses = 0;
        }
        Ok(&self.described)
    }
}

/// Whether a process has secret memory.
pub fn has_secret_memory(space: &Space) -> bool {
    procfs::mappings(space.thread).is_ok_and(|all| all.iter().any(class::is_secret))
}

/// Calls `visit` with each page of an address space that is in RAM, in the order of addresses.
pub fn for_each(
    space: &Space,
    mappings: &[Described],
    judge: &Judge,
    visit: &mut dyn FnMut(Page),
) -> io::Result<()> {
    let pagemap = Pagemap::open(space.thread)?;
    for described in mappings {
        // The kernel's own mappings have no pages to ask for.
        if judge.class(space.role, described, false).is_none() {
            continue;
        }
        let (mut runs, range) = (Vec::new(), described.mapping.range.clone());
        pagemap.for_each_resident(range, &mut |run, is_of_file| runs.push((run, is_of_file)))?;
        for (run, is_of_file) in runs {
            let Some(class) = judge.class(space.role, described, is_of_file) else { continue };
            for start in run.clone().step_by((AT_ONCE * PAGE) as usize) {
                let part = start..run.end.min(start + AT_ONCE * PAGE);
                let frames = pagemap.frames(part)?;
                for (address, frame) in (start..).step_by(PAGE_BYTES).zip(frames) {
                    if let Some(frame) = frame {
                        visit(Page { address, class, frame });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Counts pages by their class, each frame once.
#[derive(Default)]
pub struct Count {
    seen: HashSet<u64>,
    bytes: BTreeMap<Class, u64>,
    /// A frame's number was not told: what processes share counts for each.
    pub are_frames_hidden: bool,
}

impl Count {
    /// Whether the page was not counted yet. One that is mapped once is not remembered.
    pub fn is_new(&mut self, frame: Frame) -> bool {
        self.are_frames_hidden |= frame.number.is_none();
        frame.is_exclusive || frame.number.is_none_or(|number| self.seen.insert(number))
    }

    /// Adds a page.
    pub fn add(&mut self, class: Class) {
        *self.bytes.entry(class).or_default() += PAGE;
    }

    /// What was counted, in bytes.
    pub fn bytes(&self) -> &BTreeMap<Class, u64> {
        &self.bytes
    }

    /// The program's plaintext, in bytes.
    pub fn exposed_bytes(&self) -> u64 {
        exposed(&self.bytes)
    }
}

/// The program's plaintext among what was counted.
pub fn exposed(bytes: &BTreeMap<Class, u64>) -> u64 {
    Class::EXPOSED.iter().filter_map(|class| bytes.get(class)).sum()
}

/// Whether stays of pages of this kind are followed: what the pager takes out.
pub fn is_followed(role: Role, class: Class) -> bool {
    role == Role::Program && class == Class::Protected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_counts_once_unless_it_is_hidden() {
        let frame = |number, is_exclusive| Frame { number, is_exclusive };
        let mut count = Count::default();
        let new = [(Some(7), false), (Some(7), false), (Some(8), false), (Some(9), true)];
        let new = new.map(|(number, is_exclusive)| count.is_new(frame(number, is_exclusive)));
        assert_eq!((new, count.are_frames_hidden), ([true, false, true, true], false));
        assert!(count.is_new(frame(None, false)) && count.is_new(frame(None, false)));
        assert!(count.are_frames_hidden);
    }

    #[test]
    fn what_is_exposed_is_the_programs() {
        let mut count = Count::default();
        [Class::Protected, Class::Shared, Class::Files, Class::Ours, Class::Secret]
            .into_iter()
            .for_each(|class| count.add(class));
        assert_eq!(count.exposed_bytes(), 2 * 4096);
    }
}
