//! Sequential read-ahead: decrypts ahead of the program, and backs off when it guesses wrong
//! (Cryptkeeper section VI.A, speculative decryption).

/// The most pages that one fault brings in.
pub const MAX_WINDOW_PAGES: u64 = 64;
const FIRST_WINDOW_PAGES: u64 = 4;
const STREAMS: usize = 8;

/// One run of faults at rising addresses.
#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    /// Where the next fault is expected: one past the last window.
    next_page: u64,
    window_pages: u64,
    last_use: u64,
}

/// What to do about a fault.
#[derive(Debug, PartialEq, Eq)]
pub struct Guess {
    /// Pages to bring in, the faulting one first; at least 1.
    pub window_pages: u64,
    /// The previous window of the same stream was used to its end.
    pub hit: bool,
    /// A stream that had read ahead was given up for this one.
    pub miss: bool,
}

/// The streams of one address space.
#[derive(Debug, Default)]
pub struct Readahead {
    streams: [Stream; STREAMS],
    clock: u64,
    /// Windows that were not used since the last one that was; new streams start slower after many.
    misses_in_a_row: u32,
}

impl Readahead {
    /// Learns of a fault on `page` and says how far to read. Random faults cost nothing: a window
    /// opens only when a fault lands exactly where a stream's last one ended.
    pub fn on_fault(&mut self, page: u64) -> Guess {
        self.clock += 1;
        let clock = self.clock;
        if let Some(stream) = self.streams.iter_mut().find(|s| s.next_page == page && page != 0) {
            let grown = stream.window_pages * 2;
            let hit = stream.window_pages > 1;
            let window_pages = grown.clamp(FIRST_WINDOW_PAGES, MAX_WINDOW_PAGES);
            *stream = Stream { next_page: page + window_pages, window_pages, last_use: clock };
            if hit {
                self.misses_in_a_row = 0;
            }
            // After many wrong guesses a stream must be confirmed twice before pages are read
            // ahead.
            if self.misses_in_a_row > 16 && !hit {
                stream.window_pages = 1;
                stream.next_page = page + 1;
                self.misses_in_a_row -= 1;
                return Guess { window_pages: 1, hit: false, miss: false };
            }
            return Guess { window_pages, hit, miss: false };
        }
        // A fault inside a window that was brought in is a page that was evicted unread or not
        // copied: the stream was faster than the Clear. Replace the oldest stream.
        let oldest = self.streams.iter_mut().min_by_key(|s| s.last_use).expect("STREAMS > 0");
        let miss = oldest.window_pages > 1;
        if miss {
            self.misses_in_a_row += 1;
        }
        *oldest = Stream { next_page: page + 1, window_pages: 1, last_use: clock };
        Guess { window_pages: 1, hit: false, miss }
    }

    /// Notes that fewer pages came in than were asked for: the next fault is expected after
    /// `came_pages`, which include pages that were present already.
    pub fn came_short(&mut self, page: u64, asked_pages: u64, came_pages: u64) {
        let expected = page + asked_pages;
        if let Some(stream) = self.streams.iter_mut().find(|s| s.next_page == expected) {
            stream.next_page = page + came_pages.max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_reader_is_followed_and_a_random_one_is_not() {
        let mut ahead = Readahead::default();
        let mut page = 1000;
        let mut faults = 0;
        while page < 1000 + 4096 {
            page += ahead.on_fault(page).window_pages;
            faults += 1;
        }
        assert!(faults < 4096 / 32, "{faults} faults for 4096 sequential pages");

        let mut ahead = Readahead::default();
        let pages: u64 =
            (0..1000u64).map(|i| ahead.on_fault(1 + i * 7919 % 100_003).window_pages).sum();
        assert!(pages < 1010, "{pages} pages for 1000 random faults");
    }

    #[test]
    fn several_readers_keep_their_streams() {
        let mut ahead = Readahead::default();
        let mut at = [1_000u64, 50_000, 900_000];
        for _ in 0..20 {
            for page in &mut at {
                *page += ahead.on_fault(*page).window_pages;
            }
        }
        assert_eq!(ahead.on_fault(at[1]).window_pages, MAX_WINDOW_PAGES);
    }
}
