//! Any bytes lie where the pager keeps its metadata: a lookup gives the record that was put there,
//! or a violation.
#![no_main]
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use casemate_pages::directory_shape::{LINE_BYTES, Line};
use casemate_core::GlobalPageCounter;
use casemate_pages::{KeySet, PageDirectory, PageRecord, SpaceId, StorePlace, Tag};

const SPACE: SpaceId = SpaceId(1);
const PAGES: u64 = 100;

/// Lines that the fuzzer reaches behind the directory's back.
#[derive(Clone, Default)]
struct Lines(Rc<RefCell<BTreeMap<(u8, u64), Line>>>);

impl UntrustedMemory<LinePlace, Line> for Lines {
    fn read(&mut self, LinePlace { level, index }: LinePlace) -> Line {
        self.0.borrow().get(&(level, index)).copied().unwrap_or([0; LINE_BYTES])
    }

    fn write(&mut self, LinePlace { level, index }: LinePlace, line: &Line) {
        self.0.borrow_mut().insert((level, index), *line);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, changes)) = bytes.split_first() else { return };
    let (memory, keys) = (Lines::default(), KeySet::from_master(&[1; 32]));
    let mut directory = PageDirectory::new(memory.clone(), &keys.directory, 0);
    directory.create_space(SPACE).expect("the first space");
    let counter = GlobalPageCounter::new();
    let records: Vec<_> = (0..PAGES)
        .map(|page| {
            let lpid = counter.next().expect("few pages");
            PageRecord { lpid, tag: Tag([page as u8; 16]), place: StorePlace(page + 1) }
        })
        .collect();
    for (page, record) in (0..).zip(&records) {
        directory.replace(SPACE, page, Some(*record)).expect("memory is intact");
    }
    directory.flush_and_forget().expect("memory is intact");
    let places: Vec<_> = memory.0.borrow().keys().copied().collect();
    let mut number = usize::from(*first);
    for change in changes.chunks(LINE_BYTES) {
        let place = places[number % places.len()];
        let mut lines = memory.0.borrow_mut();
        let line = lines.get_mut(&place).expect("it was there");
        line[..change.len()].copy_from_slice(change);
        number = number.wrapping_mul(31).wrapping_add(7);
    }
    for (page, record) in (0..).zip(&records) {
        if let Ok(found) = directory.lookup(SPACE, page) {
            assert_eq!(found, Some(*record));
        }
    }
});
