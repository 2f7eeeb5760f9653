//! A paper whose figures are measured on the machine at hand, and not simulated: Cryptkeeper.
//!
//! - [`spec`]: which benchmarks are run, and which figures are made of them;
//! - [`Measurements`]: what they gave, as the program that can run them hands it over;
//! - [`paper`]: figures and claims of that.
//!
//! The benchmarks themselves are `casemate bench`, which this crate knows nothing of.

pub mod paper;
pub mod spec;

use serde::{Deserialize, Serialize};

/// What all benchmarks gave: `measurements.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurements {
    /// Whether they were quick.
    pub quick: bool,
    /// When and where, in their order.
    pub sessions: Vec<Session>,
    /// What was measured.
    pub cells: Vec<Measured>,
}

/// Benchmarks that were run together. Nothing is compared over two of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Which.
    pub benchmarks: Vec<String>,
    /// Kernel and processors.
    pub machine: String,
    /// The day on which they began, as YYYY-MM-DD in UTC.
    pub date: String,
    /// Processes that wanted to run, mean of a minute: at the beginning and at the end.
    pub load: [f64; 2],
    /// The commit of the program that measured.
    pub commit: String,
    /// How often each was run.
    pub rounds: u32,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

/// What one benchmark gave at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Which benchmark.
    pub benchmark: String,
    /// Where: a number of pages, a Clear, a program.
    pub place: String,
    /// Under which system.
    pub system: String,
    /// What of it: microseconds a page, or seconds.
    pub quantity: String,
    /// What each round gave, in their order.
    pub rounds: Vec<f64>,
}

impl Measurements {
    /// These, and what `before` has of other benchmarks. Nothing of it if one was quick and the
    /// other was not.
    #[must_use]
    pub fn with(mut self, before: Measurements) -> Measurements {
        if self.quick != before.quick {
            return self;
        }
        let anew: Vec<&String> = self.sessions.iter().flat_map(|of| &of.benchmarks).collect();
        let is_kept = |benchmark: &String| !anew.contains(&benchmark);
        let mut sessions = before.sessions;
        sessions.iter_mut().for_each(|session| session.benchmarks.retain(is_kept));
        sessions.retain(|session| !session.benchmarks.is_empty());
        let mut cells = before.cells;
        cells.retain(|cell| is_kept(&cell.benchmark));
        sessions.append(&mut self.sessions);
        cells.append(&mut self.cells);
        Measurements { quick: self.quick, sessions, cells }
    }

    /// What each round gave of one thing; none if it was not measured.
    #[must_use]
    pub fn rounds(
        &self,
        (benchmark, place, system, quantity): (&str, &str, &str, &str),
    ) -> Option<&[f64]> {
        let is_it = |cell: &&Measured| {
            (&*cell.benchmark, &*cell.place, &*cell.system, &*cell.quantity)
                == (benchmark, place, system, quantity)
        };
        self.cells.iter().find(is_it).map(|cell| &cell.rounds[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(benchmarks: &[&str], value: f64) -> Measurements {
        let cell = |benchmark: &&str| Measured {
            benchmark: (*benchmark).to_owned(),
            place: "p".to_owned(),
            system: "s".to_owned(),
            quantity: "q".to_owned(),
            rounds: vec![value],
        };
        let session = Session {
            benchmarks: benchmarks.iter().map(|name| (*name).to_owned()).collect(),
            ..Session::default()
        };
        let cells = benchmarks.iter().map(cell).collect();
        Measurements { quick: false, sessions: vec![session], cells }
    }

    #[test]
    fn what_is_measured_anew_replaces_what_was_there() {
        let both = session(&["b"], 2.0).with(session(&["a", "b"], 1.0));
        let of = |benchmark| both.rounds((benchmark, "p", "s", "q")).map(<[f64]>::to_vec);
        assert_eq!((of("a"), of("b")), (Some(vec![1.0]), Some(vec![2.0])));
        assert_eq!(both.cells.len(), 2);
        let named: Vec<_> = both.sessions.iter().map(|session| &session.benchmarks[..]).collect();
        assert_eq!(named, [["a"], ["b"]]);
        // Nothing of a session is left, or a quick one is beside a full one.
        assert_eq!(session(&["a"], 2.0).with(session(&["a"], 1.0)), session(&["a"], 2.0));
        let quick = Measurements { quick: true, ..session(&["a"], 1.0) };
        assert_eq!(session(&["b"], 2.0).with(quick), session(&["b"], 2.0));
    }
}
