//! How many pages are measured: `FROM:TO:STEP`.

use std::str::FromStr;

use casemate_keeper::PAGE_BYTES;

use crate::count::count;
use crate::failure::Failure;
use crate::size;

/// Most numbers of pages in one invocation: each is run several times under each system.
const MOST_POINTS: u64 = 64;

/// Numbers of pages at equal distances: at least one, none of them zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    first: u64,
    step: u64,
    count: u64,
}

impl FromStr for Points {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [from, to, step] = parts[..] else {
            return Err(format!("{text:?} is not FROM:TO:STEP; write for example 8192:40960:8192"));
        };
        let (from, to, step) = (count(from)?, count(to)?, count(step)?);
        if from == 0 {
            return Err("FROM is 0 pages; begin with 1 at least".to_owned());
        }
        if step == 0 {
            return Err("STEP is 0 pages, and TO is never reached; choose 1 at least".to_owned());
        }
        if to < from {
            return Err(format!("TO ({to}) is less than FROM ({from}); exchange them"));
        }
        let steps = (to - from) / step;
        if steps >= MOST_POINTS {
            return Err(format!(
                "from {from} to {to} in steps of {step} are more than {MOST_POINTS} numbers of \
                 pages; choose a larger STEP"
            ));
        }
        Ok(Points { first: from, step, count: steps + 1 })
    }
}

impl Points {
    /// From the least to the greatest.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |i| self.first + i * self.step)
    }

    fn greatest(self) -> u64 {
        self.first + (self.count - 1) * self.step
    }

    /// Refuses what does not fit a machine with so many bytes of memory to spare: all pages, and a
    /// Clear beside their ciphertext.
    pub fn check_fit(self, clear_bytes: u64, available_bytes: u64) -> Result<(), Failure> {
        let pages = self.greatest();
        let bytes = pages.saturating_mul(PAGE_BYTES as u64);
        if bytes.saturating_add(clear_bytes) <= available_bytes {
            return Ok(());
        }
        Err(Failure::own(format!(
            "--pages goes up to {pages} pages ({}), and beside a Clear of {} there is only {} of \
             memory; choose a smaller TO",
            size::format(bytes),
            size::format(clear_bytes),
            size::format(available_bytes)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u64> {
        text.parse::<Points>().expect(text).iter().collect()
    }

    #[test]
    fn a_range_has_both_ends_where_the_step_meets_them() {
        assert_eq!(numbers("8192:40960:8192"), [8192, 16384, 24576, 32768, 40960]);
        assert_eq!(numbers("1:6:2"), [1, 3, 5]);
        assert_eq!(numbers("1:7:2"), [1, 3, 5, 7]);
        assert_eq!(numbers("5:5:1000"), [5], "one number");
        assert_eq!(numbers("1k:2_000:1k"), [1000, 2000]);
        assert_eq!(numbers("1:64:1").len(), 64);
        assert_eq!(numbers("18446744073709551615:18446744073709551615:1"), [u64::MAX]);
    }

    #[test]
    fn what_is_no_range_is_refused_with_what_to_do() {
        let wrong = [
            ("1:65:1", "larger STEP"),
            ("1:18446744073709551615:1", "larger STEP"),
            ("1:2:0", "STEP is 0"),
            ("0:2:1", "FROM is 0"),
            ("2:1:1", "TO (1) is less than FROM (2)"),
            ("1:2", "write for example"),
            ("1:2:3:4", "write for example"),
            ("", "write for example"),
            ("::", "write for example"),
            ("-1:2:1", "write for example"),
            ("1:x:1", "write for example"),
            ("1:18446744073709551616:1", "write for example"),
        ];
        for (text, says) in wrong {
            let error = text.parse::<Points>().expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn more_memory_than_there_is_is_refused() {
        // 256 pages of 4 KiB are 1 MiB.
        let points: Points = "128:300:128".parse().expect("a range");
        assert_eq!(points.greatest(), 256);
        assert!(points.check_fit(2 << 20, 3 << 20).is_ok());
        let error = points.check_fit(2 << 20, (3 << 20) - 1).expect_err("a byte too few");
        assert!(error.to_string().contains("up to 256 pages (1 MiB)"), "{error}");
        let most: Points = "1:18446744073709551615:18446744073709551614".parse().expect("a range");
        assert!(most.check_fit(2 << 20, 1 << 40).is_err());
    }
}
