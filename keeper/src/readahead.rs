//! Read-ahead: decrypts ahead of a program that touches pages in order, upwards, downwards or at
//! equal distances, and backs off when it guesses wrong (Cryptkeeper section VI.A, speculative
//! decryption).

/// The most pages that one fault brings in.
pub const MAX_WINDOW_PAGES: u64 = 64;
/// The least and the most pages of a window of neighbours.
const WINDOWS: (u64, u64) = (4, MAX_WINDOW_PAGES);
/// The same where they are no neighbours: each is filled on its own, and three faults in line may
/// be chance.
const SCATTERED_WINDOWS: (u64, u64) = (2, 16);
/// The greatest distance between two pages of one stream: a column of a matrix whose rows have
/// 16 MiB.
const MAX_STEP_PAGES: u64 = 4096;
const STREAMS: usize = 8;
/// As many of the latest faults are searched for two that the next is in line with.
const LATEST: usize = 4;
/// A fault that so many have followed begins no stream any more: a reader at equal distances that
/// comes by later, beside where another had begun, would be taken for one that reads all pages.
const RECENT_FAULTS: u64 = 2 * STREAMS as u64;

/// One run of faults at equal distances.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The last fault.
    page: u64,
    /// The distance to the next, in pages; not 0.
    step: i64,
    window_pages: u64,
    last_use: u64,
}

impl Stream {
    /// One that has had a single fault, and may go either way.
    fn begun(page: u64, last_use: u64) -> Self {
        Stream { page, step: 1, window_pages: 1, last_use }
    }

    /// Where the next fault is expected: one past the last window.
    fn next_page(&self) -> u64 {
        along(self.page, self.step, self.window_pages)
    }

    /// The step by which a fault on `page`, the one numbered `clock`, goes on with this stream.
    fn step_to(&self, page: u64, clock: u64) -> Option<i64> {
        let is_begun = self.window_pages == 1;
        if is_begun && clock - self.last_use > RECENT_FAULTS {
            return None;
        }
        let is_back = is_begun && self.step == 1 && self.page.checked_sub(1) == Some(page);
        (self.next_page() == page).then_some(self.step).or(is_back.then_some(-1))
    }
}

/// The page that is `count` steps from `page`.
pub fn along(page: u64, step: i64, count: u64) -> u64 {
    page.wrapping_add_signed(step.wrapping_mul(count as i64))
}

/// What to do about a fault.
#[derive(Debug, PartialEq, Eq)]
pub struct Guess {
    /// Pages to bring in, the faulting one first; at least 1.
    pub window_pages: u64,
    /// The distance from each to the next, in pages.
    pub step: i64,
    /// The previous window of the same stream was used to its end.
    pub hit: bool,
    /// A stream that had read ahead was given up for this one.
    pub miss: bool,
}

/// The streams of one address space.
#[derive(Debug)]
pub struct Readahead {
    streams: [Stream; STREAMS],
    /// The latest faults that went on with no stream, the newest first, and when they were.
    latest: [(u64, u64); LATEST],
    clock: u64,
    /// Windows that were not used since the last one that was; new streams start slower after many.
    misses_in_a_row: u32,
}

impl Default for Readahead {
    fn default() -> Self {
        // No program has pages there.
        let nowhere = Stream::begun(u64::MAX / 2, 0);
        let latest = [(u64::MAX, 0); LATEST];
        Readahead { streams: [nowhere; STREAMS], latest, clock: 0, misses_in_a_row: 0 }
    }
}

impl Readahead {
    /// Learns of a fault on `page` and says how far to read. Random faults cost little: a window
    /// opens only when a fault lands exactly beside a stream's last page, or with two of the latest
    /// in a line of equal distances.
    pub fn on_fault(&mut self, page: u64) -> Guess {
        self.clock += 1;
        let steps = self.streams.iter().map(|stream| stream.step_to(page, self.clock));
        let known = steps.enumerate().find_map(|(i, step)| step.map(|step| (i, step)));
        if let Some((index, step)) = known {
            return self.go_on(index, page, step);
        }
        // A fault inside a window that was brought in is a page that was evicted unread or not
        // copied: the stream was faster than the Clear. Replace the oldest stream.
        let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.last_use);
        let index = oldest.map_or(0, |(index, _)| index);
        let miss = self.streams[index].window_pages > 1;
        self.misses_in_a_row += u32::from(miss);
        self.streams[index] = Stream::begun(page, self.clock);
        if let Some(step) = self.in_line(page) {
            return Guess { miss, ..self.go_on(index, page, step) };
        }
        self.latest.rotate_right(1);
        self.latest[0] = (page, self.clock);
        Guess { window_pages: 1, step: 1, hit: false, miss }
    }

    /// The stream at `index` has reached `page` by `step`.
    fn go_on(&mut self, index: usize, page: u64, step: i64) -> Guess {
        let stream = &mut self.streams[index];
        let hit = stream.window_pages > 1;
        let (least, most) = if step.abs() == 1 { WINDOWS } else { SCATTERED_WINDOWS };
        let mut window_pages = (stream.window_pages * 2).clamp(least, most);
        if hit {
            self.misses_in_a_row = 0;
        }
        // After many wrong guesses a stream must be confirmed twice before pages are read ahead.
        if self.misses_in_a_row > 16 && !hit {
            self.misses_in_a_row -= 1;
            window_pages = 1;
        }
        *stream = Stream { page, step, window_pages, last_use: self.clock };
        Guess { window_pages, step, hit, miss: false }
    }

    /// The step from one of the latest faults to `page`, if another is as far behind that one.
    fn in_line(&self, page: u64) -> Option<i64> {
        let is_recent = |when: u64| self.clock - when <= RECENT_FAULTS;
        let was_recent =
            |page| self.latest.iter().any(|&(other, when)| other == page && is_recent(when));
        let recent = self.latest.iter().filter(|&&(_, when)| is_recent(when));
        recent.map(|&(last, _)| page.wrapping_sub(last) as i64).find(|step| {
            (2..=MAX_STEP_PAGES).contains(&step.unsigned_abs()) && was_recent(along(page, -step, 2))
        })
    }

    /// Notes that fewer pages came in than were asked for: the next fault is expected after
    /// `came_pages`, which include pages that were present already.
    pub fn came_short(&mut self, page: u64, asked_pages: u64, came_pages: u64) {
        let is_it = |s: &&mut Stream| s.page == page && s.window_pages == asked_pages;
        if let Some(stream) = self.streams.iter_mut().find(is_it) {
            // The window stays as large as it was for the next one to be larger.
            let behind = asked_pages as i64 - came_pages.max(1) as i64;
            stream.page = stream.page.wrapping_add_signed(-behind * stream.step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

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

    /// How many faults it takes to read so many pages in order.
    fn faults_of(step: i64, pages: u64) -> u64 {
        let mut ahead = Readahead::default();
        let (mut page, mut left, mut faults) = (10_000_000, pages, 0);
        while left > 0 {
            let guess = ahead.on_fault(page);
            assert!(guess.window_pages == 1 || guess.step == step);
            page = along(page, step, guess.window_pages);
            left = left.saturating_sub(guess.window_pages);
            faults += 1;
        }
        faults
    }

    #[test]
    fn readers_downwards_and_at_equal_distances_are_followed() {
        // 1, then windows of 4, 8, 16, 32, 64 and on.
        for step in [1, -1] {
            assert_eq!(faults_of(step, 1 + 4 + 8 + 16 + 32 + 10 * 64), 15, "step {step}");
        }
        // 1 and 1, then windows of 2, 4, 8, 16 and on.
        for step in [2, -3, 4096, -4096] {
            assert_eq!(faults_of(step, 1 + 1 + 2 + 4 + 8 + 10 * 16), 15, "step {step}");
        }
        assert_eq!(faults_of(4097, 100), 100, "too far apart");
    }

    /// Two that read a column each: each fault lies between two of the other's.
    #[test]
    fn strides_that_take_turns_are_told_apart() {
        let mut ahead = Readahead::default();
        let mut at = [1_000u64, 80_000];
        let mut faults = 0;
        while at[0] < 1_000 + 7 * 512 {
            for page in &mut at {
                let guess = ahead.on_fault(*page);
                *page = along(*page, 7, guess.window_pages);
                faults += 1;
            }
        }
        assert!(faults < 2 * 512 / 8, "{faults} faults for 1024 pages");
    }

    /// A reader of columns begins each beside where it began the last one.
    #[test]
    fn columns_one_after_the_other_are_no_run() {
        for step in [2, 4, 3, 64] {
            let mut ahead = Readahead::default();
            let mut brought_in = 0;
            for column in 0..step {
                let mut there = HashSet::new();
                for page in (1_000_000 + column..1_000_000 + 16_384).step_by(step as usize) {
                    if !there.contains(&page) {
                        let Guess { window_pages, step, .. } = ahead.on_fault(page);
                        there.extend((0..window_pages).map(|count| along(page, step, count)));
                        brought_in += window_pages;
                    }
                }
            }
            assert!(brought_in < 16_384 + 16_384 / 8, "step {step}: {brought_in} for 16384 pages");
        }
    }

    #[test]
    fn what_came_short_is_expected_next_whichever_way() {
        for step in [1, -1, 5] {
            let mut ahead = Readahead::default();
            let pages = [0, 1, 2].map(|count| along(50_000, step, count));
            let guess = pages.map(|page| ahead.on_fault(page)).into_iter().next_back();
            // The third fault of neighbours lies in a window; of others it opens one.
            let (page, asked) = match step.abs() {
                1 => (pages[1], 4),
                _ => (pages[2], guess.map_or(0, |guess| guess.window_pages)),
            };
            ahead.came_short(page, asked, 3);
            let guess = ahead.on_fault(along(page, step, 3));
            assert!(guess.hit && guess.step == step, "step {step}: {guess:?}");
        }
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
