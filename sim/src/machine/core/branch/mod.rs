//! Which way a branch goes, before it is executed.
//!
//! A trace says which instructions are branches and which way each went; of one that a table
//! predicts otherwise the core learns when it has been executed. Only the direction is predicted:
//! targets are always known, as if no branch target buffer and no stack of return addresses ever
//! failed. Traces do not tell conditional branches from jumps, calls and returns, which are always
//! taken: they are predicted by the same table.
//!
//! Lists of requests have no branches, and traces of lackey only those that were taken, which these
//! tables always predict: a predictor changes nothing there.
//!
//! In reading order:
//!
//! - `Predictor`: one of those there are;
//! - `counters`: two-bit counters, of which every table here consists;
//! - `bimodal`, `gshare`: which counter a branch has.
//!
//! Predictors are asked and trained in the order of the program, when a branch enters. So what they
//! predict does not depend on latencies, and is the same without time.

mod bimodal;
mod counters;
mod gshare;

use serde::{Deserialize, Serialize};

use bimodal::Bimodal;
use gshare::Gshare;

/// The name of a predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorName {
    /// Every branch goes the way that is predicted.
    Perfect,
    /// A two-bit counter by the branch's address (Smith, ISCA 1981).
    Bimodal,
    /// A two-bit counter by the address XOR the last directions (McFarling, WRL TN-36, 1993).
    Gshare,
}

/// A predictor at work.
#[derive(Clone, Debug)]
pub(super) enum Predictor {
    Perfect,
    Bimodal(Bimodal),
    Gshare(Gshare),
}

impl Predictor {
    /// With a table of so many counters, a power of two.
    pub(super) fn new(name: PredictorName, entries: u64) -> Predictor {
        match name {
            PredictorName::Perfect => Predictor::Perfect,
            PredictorName::Bimodal => Predictor::Bimodal(Bimodal::new(entries)),
            PredictorName::Gshare => Predictor::Gshare(Gshare::new(entries)),
        }
    }

    /// Predicts the branch at `pc` and learns that it was taken, or was not; whether that had been
    /// predicted.
    #[inline]
    pub(super) fn predicts(&mut self, pc: u64, taken: bool) -> bool {
        match self {
            Predictor::Perfect => true,
            Predictor::Bimodal(bimodal) => bimodal.predicts(pc, taken),
            Predictor::Gshare(gshare) => gshare.predicts(pc, taken),
        }
    }
}
