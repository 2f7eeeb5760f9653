//! A value of `run --clear`: fixed, or one that follows the working set.

use std::str::FromStr;

use casemate_keeper::{AutoSize, ClearSize};

use crate::size::{self, Clear};

/// `SIZE`, `PERCENT` or `auto[:MIN..MAX]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearOrAuto {
    /// It stays as it is.
    Fixed(Clear),
    /// It follows the working set.
    Auto(AutoSize),
}

impl FromStr for ClearOrAuto {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLES: &str = "write for example auto:64M..1G or auto:64M..25%";
        let Some(rest) = text.trim().strip_prefix("auto") else {
            return text.parse().map(ClearOrAuto::Fixed);
        };
        if rest.is_empty() {
            return Ok(ClearOrAuto::Auto(AutoSize::default()));
        }
        let sizes = rest.strip_prefix(':').and_then(|rest| rest.split_once(".."));
        let (least, most) = sizes.ok_or_else(|| format!("{text:?} has no MIN..MAX; {EXAMPLES}"))?;
        let (least, Clear(most)) = (least.parse::<Clear>()?.0, most.parse::<Clear>()?);
        let ClearSize::Bytes(least_bytes) = least else {
            return Err(format!("in {text:?} MIN is a share, and must be a size; {EXAMPLES}"));
        };
        match most {
            ClearSize::Bytes(most_bytes) if most_bytes < least_bytes => Err(format!(
                "in {text:?} MAX, {}, is less than MIN, {}; {EXAMPLES}",
                size::format(most_bytes),
                size::format(least_bytes)
            )),
            most => Ok(ClearOrAuto::Auto(AutoSize { least_bytes, most })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(least_mib: u64, most: ClearSize) -> Result<ClearOrAuto, String> {
        Ok(ClearOrAuto::Auto(AutoSize { least_bytes: least_mib << 20, most }))
    }

    #[test]
    fn a_size_that_follows_has_a_least_and_a_most() {
        assert_eq!("auto:8M..64M".parse(), auto(8, ClearSize::Bytes(64 << 20)));
        assert_eq!(" auto:2M..2M ".parse(), auto(2, ClearSize::Bytes(2 << 20)));
        assert_eq!("auto:8M..50%".parse(), auto(8, ClearSize::percent(50)));
        assert_eq!("auto".parse(), Ok(ClearOrAuto::Auto(AutoSize::default())));
        assert_eq!("64M".parse(), Ok(ClearOrAuto::Fixed(Clear(ClearSize::Bytes(64 << 20)))));
    }

    #[test]
    fn what_is_no_such_size_is_told_why() {
        for (text, why) in [
            ("auto:", "no MIN..MAX"),
            ("auto8M..64M", "no MIN..MAX"),
            ("auto:8M", "no MIN..MAX"),
            ("auto:8M..", "a size is missing"),
            ("auto:..8M", "a size is missing"),
            ("auto:1M..8M", "1M is less than the 2 MiB"),
            ("auto:8M..1M", "1M is less than the 2 MiB"),
            ("auto:8M..4M", "MAX, 4 MiB, is less than MIN, 8 MiB"),
            ("auto:10%..20%", "must be a size"),
            ("auto:8M..0%", "no percentage"),
            ("automatic", "no MIN..MAX"),
        ] {
            let error = text.parse::<ClearOrAuto>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
