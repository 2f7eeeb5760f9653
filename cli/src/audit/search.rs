//! Markers and key schedules in bytes that come page by page.

use super::aes;
use super::marker::Marker;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The marker of this number.
    Marker(usize),
    /// An AES key schedule, by its key's bits.
    Schedule(u32),
}

/// Something that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Find {
    /// Where its first byte is.
    pub address: u64,
    /// What it is.
    pub what: What,
}

/// Searches. What runs on from one page to the next is found if that page comes next.
pub struct Search<'a> {
    markers: &'a [Marker],
    /// The end of what came, as far as something may begin there, and what comes.
    bytes: Vec<u8>,
    /// The address after `bytes`.
    end: u64,
}

impl<'a> Search<'a> {
    /// For these, and for key schedules.
    pub fn new(markers: &'a [Marker]) -> Self {
        Search { markers, bytes: Vec::new(), end: 0 }
    }

    /// What ends in these bytes. They begin at a word.
    pub fn feed(&mut self, address: u64, bytes: &[u8]) -> Vec<Find> {
        if address != self.end {
            self.bytes.clear();
        }
        let (old, begin) = (self.bytes.len(), address - self.bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        let mut finds = Vec::new();
        // What ends before was found when that came.
        let mut found = |place: usize, length: usize, what: What| {
            if place + length > old {
                finds.push(Find { address: begin + place as u64, what });
            }
        };
        for (number, marker) in self.markers.iter().enumerate() {
            let places = marker.places(&self.bytes);
            places.for_each(|place| found(place, marker.len(), What::Marker(number)));
        }
        aes::schedules(&self.bytes, &mut |schedule| {
            found(schedule.place, schedule.len(), What::Schedule(schedule.bits));
        });
        let gone = self.bytes.len().saturating_sub(self.kept());
        self.bytes.drain(..gone);
        self.end = address + bytes.len() as u64;
        finds
    }

    /// How much of what came is kept: less than the longest that is looked for, in whole words.
    fn kept(&self) -> usize {
        let longest = self.markers.iter().map(Marker::len).max().unwrap_or(0).max(aes::MOST_BYTES);
        (longest - 1).next_multiple_of(4)
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_over_the_end_of_a_page_is_found_once() {
        let markers = ["first".parse().expect("a marker"), "second".parse().expect("a marker")];
        let text = b"--first--second-first-";
        for cut in (0..text.len()).step_by(2) {
            let mut search = Search::new(&markers);
            let mut finds = search.feed(0x1000, &text[..cut]);
            finds.extend(search.feed(0x1000 + cut as u64, &text[cut..]));
            let find = |address, number| Find { address, what: What::Marker(number) };
            finds.sort_unstable();
            assert_eq!(finds, [find(0x1002, 0), find(0x1009, 1), find(0x1010, 0)], "{cut}");
        }
    }

    #[test]
    fn what_does_not_come_next_is_not_joined() {
        let markers = ["first".parse().expect("a marker")];
        let mut search = Search::new(&markers);
        assert_eq!(search.feed(0x1000, b"-fir"), []);
        assert_eq!(search.feed(0x2000, b"st--"), []);
    }

    #[test]
    fn a_schedule_over_two_pages_is_found() {
        let schedule = aes::tests::bytes(aes::tests::AES_128);
        let page = |filler: usize, part: &[u8]| [&vec![7; filler], part].concat();
        let mut search = Search::new(&[]);
        assert_eq!(search.feed(0x1000, &page(4096 - 100, &schedule[..100])), []);
        let finds = search.feed(0x2000, &schedule[100..]);
        assert_eq!(finds, [Find { address: 0x2000 - 100, what: What::Schedule(128) }]);
    }
}
