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
        let added: Vec<(&str, f64)> =
            points.filter_map(|point| Some((&*point.place, added(point.value?)))).collect();
        let mean = added.iter().map(|(_, value)| value).sum::<f64>() / added.len() as f64;
        let all = added.iter().copied().chain([(MEAN, mean)]);
        series(&of.name, all.map(|(place, value)| Point::of(place, Some(Estimate::alone(value)))))
    });
    let all: Vec<_> = of.collect();
    all.first().context("nothing was measured")?;
    Ok(shares(all))
}

fn added(nodes_of_bus: f64) -> f64 {
    nodes_of_bus / (1.0 - nodes_of_bus) * HASH_OF_CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The typical 1.5 hashes for each chunk are three fifths of the bus, and 37.5 % more.
    #[test]
    fn the_typical_configuration_takes_what_the_paper_says() {
        assert!((added(0.6) - 0.375).abs() < 1e-12);
        assert_eq!(added(0.0), 0.0);
    }
}
