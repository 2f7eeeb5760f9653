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
    /// Kernel and processors.
    pub machine: String,
    /// The day on which they began, as YYYY-MM-DD in UTC.
    pub date: String,
    /// Processes that wanted to run, mean of a minute: at the beginning and at the end.
    pub load: [f64; 2],
    /// The commit of the program that measured.
    pub commit: String,
    /// Whether it was a quick run.
    pub quick: bool,
    /// How often each was run.
    pub rounds: u32,
    /// What was measured.
    pub cells: Vec<Measured>,
    /// What was not, and why.
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
