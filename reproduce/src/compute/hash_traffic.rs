//! LHash, section 6.2: what hash trees add to the bus, with hashes counted one by one.
//!
//! ```text
//! added = z * B_hash / B_chunk        z: hashes that go over the bus, for each chunk of data
//! ```
//!
//! A hash cannot be verified without its node, so that what moves is a node of four. The formula
//! counts the one hash that is asked for.

use anyhow::{Context, Result};

use super::{Values, series, shares};
use crate::data::{Figure, Point};
use crate::estimate::Estimate;
use crate::spec::MEAN;

/// Section 6.2's typical configuration: hashes of 16 bytes, chunks of 64.
const HASH_OF_CHUNK: f64 = 16.0 / 64.0;

/// What the formula makes of the shares of the bus that nodes take, where nodes are as large as
/// chunks: a share s are s / (1 - s) nodes for each chunk.
pub(super) fn formula(needed: &[&Figure]) -> Result<Values> {
    let [shares_of_bus] = needed else { anyhow::bail!("it needs one figure") };
    let of = shares_of_bus.series.iter().map(|of| {
        let points = of.points.iter().filter(|point| point.place != MEAN);
        let (places, added): (Vec<&str>, Vec<Estimate>) =
            points.filter_map(|point| Some((&*point.place, added(&point.estimate()?)?))).unzip();
        let mean = Point::of(MEAN, Estimate::mean_of(&added));
        let all = places.into_iter().zip(added);
        let all = all.map(|(place, value)| Point::of(place, Some(value)));
        series(&of.name, all.chain([mean]))
    });
    let all: Vec<_> = of.collect();
    all.first().context("nothing was measured")?;
    Ok(shares(all))
}

/// None if nodes are all that moves.
fn added(nodes_of_bus: &Estimate) -> Option<Estimate> {
    let nodes_of_chunk = nodes_of_bus.over(&nodes_of_bus.scaled(-1.0, 1.0))?;
    Some(nodes_of_chunk.scaled(HASH_OF_CHUNK, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Parts;
    use casemate_sim::results::interval::Ratio;

    /// The typical 1.5 hashes for each chunk are three fifths of the bus, and 37.5 % more.
    #[test]
    fn the_typical_configuration_takes_what_the_paper_says() {
        let of = |share| added(&Estimate::alone(share)).map(|value| value.mean);
        assert!(of(0.6).is_some_and(|added| (added - 0.375).abs() < 1e-12));
        assert_eq!((of(0.0), of(1.0)), (Some(0.0), None));
    }

    /// A share of 1 in 2 and of 3 in 10, each of two windows: (0.5 / 0.5 + 0.3 / 0.7) / 4 / 2. What
    /// is added to a chunk moves by 1 / (1 - s)^2 of what the share s moves by.
    #[test]
    fn what_is_added_is_as_sure_as_the_shares_are() {
        let windows = |parts: [f64; 2]| parts.map(|part| Ratio { part, whole: 10.0 });
        let share = |name: &str, parts| {
            Estimate::of(name, Parts::Windows, &windows(parts), 0.0).expect("there are two")
        };
        let shares = [share("a", [4.0, 6.0]), share("b", [2.0, 4.0])];
        let each = shares.each_ref().map(|share| added(share).expect("something else moves"));
        for (share, added) in shares.iter().zip(&each) {
            let expected = share.half_width().map(|half| half / (1.0 - share.mean).powi(2) / 4.0);
            let (expected, half) = (expected.expect("of two"), added.half_width().expect("of two"));
            assert!((half - expected).abs() < 1e-12, "{half}, {expected}");
        }
        let mean = Estimate::mean_of(&each).expect("there are two");
        assert!((mean.mean - (1.0 + 3.0 / 7.0) / 8.0).abs() < 1e-12, "{mean:?}");
        assert!(mean.half_width().is_some_and(|half| half > 0.0));
    }
}
