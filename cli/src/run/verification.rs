//! `--verify` and `--check-every`: how records of pages are verified, and when.

use std::str::FromStr;
use std::time::Duration;

use casemate_keeper::{CheckEvery, Config};
use clap::ValueEnum;

use crate::time::Time;

/// What `--check-every` is if it is not given.
const USUAL: CheckEvery = CheckEvery::Time(Duration::from_secs(1));

/// A value of `--verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verifying {
    /// By a Bonsai tree, before a page is used
    Tree,
    /// By hashes of what was read and written (LHash): an old content of a page is told from the
    /// last one by the next check only
    LogHash,
}

/// A value of `--check-every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every(pub CheckEvery);

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "exit" {
            return Ok(Every(CheckEvery::Exit));
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse() {
                Ok(pages) if pages > 0 => Ok(Every(CheckEvery::PagesIn(pages))),
                _ => Err(format!("{text} pages: write a number from 1 to {}", u64::MAX)),
            };
        }
        let time: Time = text
            .parse()
            .map_err(|error: String| format!("{error}, a number of pages (10000), or exit"))?;
        if time.0 < Config::LEAST_CHECK {
            let least_ms = Config::LEAST_CHECK.as_millis();
            return Err(format!("{text} is too often; write {least_ms}ms or more"));
        }
        Ok(Every(CheckEvery::Time(time.0)))
    }
}

/// When a log hash is checked, if there is one.
///
/// # Errors
/// A sentence about flags that do not go together.
pub fn log_hash(
    verify: Verifying,
    every: Option<Every>,
    hold_output: bool,
) -> Result<Option<CheckEvery>, String> {
    match (verify, every) {
        (Verifying::LogHash, every) => Ok(Some(every.map_or(USUAL, |every| every.0))),
        (Verifying::Tree, Some(_)) => {
            Err("--check-every needs --verify log-hash: a tree needs no checks".to_owned())
        }
        (Verifying::Tree, None) if hold_output => {
            Err("--hold-output needs --verify log-hash: with a tree nothing unverified is written"
                .to_owned())
        }
        (Verifying::Tree, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_come_after_pages_or_times_or_at_the_end() {
        let every = |text: &str| text.parse::<Every>().map(|every| every.0);
        assert_eq!(every("exit"), Ok(CheckEvery::Exit));
        assert_eq!(every("10000"), Ok(CheckEvery::PagesIn(10_000)));
        assert_eq!(every("2s"), Ok(CheckEvery::Time(Duration::from_secs(2))));
        for wrong in ["", "0", "1ms", "99999999999999999999", "-1", "2d", "exits", "1e3"] {
            assert!(every(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_only_a_log_hash_needs_is_refused_with_a_tree() {
        let every = Some(Every(CheckEvery::Exit));
        assert_eq!(log_hash(Verifying::LogHash, None, true), Ok(Some(USUAL)));
        assert_eq!(log_hash(Verifying::LogHash, every, false), Ok(Some(CheckEvery::Exit)));
        assert_eq!(log_hash(Verifying::Tree, None, false), Ok(None));
        assert!(log_hash(Verifying::Tree, every, false).is_err());
        assert!(log_hash(Verifying::Tree, None, true).is_err());
    }
}
