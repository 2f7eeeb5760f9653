//! What is said of a program that was stopped, or never started. A program that ended by itself
//! needs no words.

use casemate_keeper::{Config, Ending, OnViolation, Outcome};

use super::outside;
use crate::doctor::Check;
use crate::size::format as size;

/// The sentence for a machine, or a user, where no program can be protected, of which
/// --require-protected asks for `required` percent.
pub fn cannot_protect(obstacle: &Check, required: u8) -> String {
    let otherwise = match required {
        0 => "--allow-unprotected runs it all the same",
        _ => "--allow-unprotected runs it all the same, without --require-protected",
    };
    format!(
        "programs cannot be protected here, so none was started: {}: {} -> {} (`casemate doctor` says \
         more; {otherwise})",
        obstacle.id,
        obstacle.found,
        obstacle.remedy.as_deref().unwrap_or("see `casemate doctor`")
    )
}

/// The sentence for a program that --allow-unprotected would run though none of it can be
/// protected, for the reason `why`, and --require-protected asks for `required` percent.
pub fn nothing_of(why: &str, required: u8) -> String {
    format!(
        "none of the program's memory can be protected, and --require-protected asks for {required} %, \
         so it was not started: {}",
        trim(why)
    )
}

/// The sentence for a run inside a run, whose keeper knows no requirement of this one.
pub fn cannot_require_inside(keeper: u32) -> String {
    format!(
        "already inside a protected run (keeper {keeper}), which cannot be held to --require-protected \
         from here, so the program was not started; give the flag to the outer `casemate run`"
    )
}

/// The sentence for a run inside a run, whose keeper verifies in its own way.
pub fn cannot_hold_inside(keeper: u32) -> String {
    format!(
        "already inside a protected run (keeper {keeper}), which holds no output for this one, so the \
         program was not started; give --hold-output to the outer `casemate run`"
    )
}

/// The sentence for a run that did not go as the program wanted; none if it did.
pub fn of(outcome: &Outcome, config: &Config) -> Option<String> {
    let fate = fate(outcome.started);
    let (what, consequence) = match &outcome.ending {
        Ending::Exited { .. } | Ending::Signaled { .. } => return None,
        Ending::Violation { what } => return Some(violation(what, config)),
        Ending::NotExecuted { what } => {
            return Some(format!("the program could not be executed: {}", trim(what)));
        }
        Ending::StoreFailed { what } if outcome.started => {
            (what, format!("{fate}; it read nothing wrong"))
        }
        Ending::StoreFailed { what } => (what, fate.to_owned()),
        Ending::Unprotectable { what } => {
            (what, format!("{fate}; see `casemate doctor`, or --allow-unprotected"))
        }
        Ending::TooLittleProtected { what, protected_bytes, unprotected_bytes } => {
            let largest = match outside::items(&outcome.statistics) {
                items if items.is_empty() => "no process showed what".to_owned(),
                items => format!("now the largest: {}", items.join(", ")),
            };
            let (protected, unprotected) = (size(*protected_bytes), size(*unprotected_bytes));
            return Some(format!(
                "{}: {protected} against {unprotected} outside, {largest} \
                 ({fate}; keep data in private memory, or ask for less)",
                trim(what)
            ));
        }
        Ending::KeeperFailed { what } => (what, format!("the keeper failed and {fate}")),
    };
    Some(format!("{} ({consequence})", trim(what)))
}

/// What became of the program when the run could not go on.
fn fate(started: bool) -> &'static str {
    if started { "the program was stopped" } else { "the program was never started" }
}

fn violation(what: &str, config: &Config) -> String {
    // The keeper's sentence begins with the same words, in small letters.
    let place = what.strip_prefix("integrity violation").map(str::trim_start);
    let consequence = match config.on_violation {
        // By a log hash, what was replayed is believed until a check.
        OnViolation::Kill if config.log_hash.is_some() => {
            "The program was stopped; what it read since the last check may be old."
        }
        OnViolation::Kill => "The program was stopped before it could read what was changed.",
        OnViolation::Sigbus => "Instead of what was changed the program gets SIGBUS.",
    };
    format!("INTEGRITY VIOLATION {}. {consequence}", trim(place.unwrap_or(what)))
}

fn trim(what: &str) -> &str {
    what.trim_end().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_keeper::{Statistics, UnprotectedKind, UnprotectedMemory};

    fn said(ending: Ending, started: bool, policy: OnViolation) -> String {
        let outcome = Outcome { ending, started, statistics: Statistics::default() };
        let config = Config { on_violation: policy, ..Config::new(Vec::new()) };
        of(&outcome, &config).expect("a sentence")
    }

    #[test]
    fn a_violation_is_named_once_with_its_place() {
        let place = "page 0x7f00: the page with LPID 7 does not match its tag";
        let ending = Ending::Violation { what: format!("integrity violation at {place}") };
        let sentence = said(ending.clone(), true, OnViolation::Kill);
        assert!(sentence.starts_with(&format!("INTEGRITY VIOLATION at {place}. ")), "{sentence}");
        assert_eq!(sentence.to_lowercase().matches("integrity violation").count(), 1, "{sentence}");
        // A program that gets SIGBUS may live on.
        let sentence = said(ending, true, OnViolation::Sigbus);
        assert!(sentence.contains("SIGBUS") && !sentence.contains("was stopped"), "{sentence}");
    }

    #[test]
    fn what_is_outside_is_named_largest_first_with_what_to_do() {
        let largest = |name: &str, kind, mib: u64| UnprotectedMemory {
            name: name.to_owned(),
            kind,
            bytes: mib << 20,
        };
        let statistics = Statistics {
            unprotected_largest: vec![
                largest("/dev/zero", UnprotectedKind::SharedAnonymous, 128),
                largest("/tmp/x", UnprotectedKind::SharedFile, 64),
            ],
            ..Statistics::default()
        };
        let ending = Ending::TooLittleProtected {
            what: "only 25.0 % of the run's memory is protected; 50 % is required".to_owned(),
            protected_bytes: 64 << 20,
            unprotected_bytes: 192 << 20,
        };
        let mut outcome = Outcome { ending, started: true, statistics };
        let sentence = of(&outcome, &Config::new(Vec::new())).expect("a sentence");
        assert_eq!(
            sentence,
            "only 25.0 % of the run's memory is protected; 50 % is required: 64 MiB against 192 MiB \
             outside, now the largest: 128 MiB /dev/zero (shared anonymous), 64 MiB /tmp/x (file, \
             shared) (the program was stopped; keep data in private memory, or ask for less)"
        );
        outcome.statistics = Statistics::default();
        let sentence = of(&outcome, &Config::new(Vec::new())).expect("a sentence");
        assert!(sentence.contains("no process showed what (the program was stopped"), "{sentence}");
    }

    #[test]
    fn only_a_program_that_was_started_was_stopped() {
        let what = || "something.".to_owned();
        for ending in [
            Ending::StoreFailed { what: what() },
            Ending::Unprotectable { what: what() },
            Ending::KeeperFailed { what: what() },
        ] {
            let before = said(ending.clone(), false, OnViolation::Kill);
            assert!(before.contains("never started") && !before.contains("stopped"), "{before}");
            assert!(!before.contains("read nothing"), "{before}");
            let after = said(ending, true, OnViolation::Kill);
            assert_eq!(after.matches("the program was stopped").count(), 1, "{after}");
        }
    }
}
