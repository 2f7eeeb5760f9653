//! Many short lists in one array, so that nothing is allocated while a program runs.

/// The end of a list, and an empty one.
pub(super) const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    item: [u32; 3],
    next: u32,
}

/// The lists. A list is the number of its first entry.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    entries: Vec<Entry>,
    spare: u32,
}

impl Lists {
    pub(super) fn new() -> Lists {
        Lists { entries: Vec::new(), spare: EMPTY }
    }

    /// Puts an item in front.
    #[inline]
    pub(super) fn push(&mut self, list: &mut u32, item: [u32; 3]) {
        let entry = Entry { item, next: *list };
        if self.spare == EMPTY {
            *list = self.entries.len() as u32;
            self.entries.push(entry);
        } else {
            *list = self.spare;
            self.spare = self.entries[*list as usize].next;
            self.entries[*list as usize] = entry;
        }
    }

    /// Takes the item in front: the one that was pushed last.
    #[inline]
    pub(super) fn pop(&mut self, list: &mut u32) -> Option<[u32; 3]> {
        if *list == EMPTY {
            return None;
        }
        let first = *list;
        let Entry { item, next } = self.entries[first as usize];
        *list = next;
        self.entries[first as usize].next = self.spare;
        self.spare = first;
        Some(item)
    }
}
