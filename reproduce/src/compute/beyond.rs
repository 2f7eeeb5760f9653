//! What none of the papers could draw: all schemes beside each other, and at any size of memory.

use anyhow::{Context, Result};
use casemate_lab::attack::promise::{Promise, promise};
use casemate_lab::attack::strike::Attack;
use casemate_lab::storage::{Storage, node_levels, size_of};
use casemate_schemes::choice::named;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind};

use super::{Values, numbers, point, series};
use crate::data::{Figure, Point, Series};
use crate::spec::MEAN;

const GIB: u64 = 1 << 30;
/// Sizes of memory.
const SIZES: [(&str, u64); 4] =
    [("1 GB", GIB), ("16 GB", 16 * GIB), ("256 GB", 256 * GIB), ("1 TB", 1024 * GIB)];
/// Schemes whose trees grow in different ways.
const GROWING: [&str; 8] =
    ["aise+bmt", "global64+mt", "mono56+bmt", "delta+ecc", "sgx", "vault", "morphable", "h-lhash"];

/// Overhead in time (mean of figure "overheads") over metadata as a share of 1 GB of data; a series
/// for each class of what attacks find.
pub fn scatter(needed: &[&Figure]) -> Result<Values> {
    let overheads = needed.iter().find(|figure| figure.id == "overheads");
    let overheads = overheads.context("it needs figure overheads")?;
    let mut classes: Vec<Series> = Found::ALL.map(|found| series(found.words(), [])).into();
    for known in &overheads.series {
        let scheme = scheme(&known.name)?;
        let has_numbers = matches!(scheme.encryption, EncryptionKind::OneTimePad(_));
        if has_numbers && scheme.integrity != IntegrityKind::None {
            // Its tree covers the sequence numbers of every page that can ever exist, so its size
            // does not compare with trees over the pages of one memory.
            continue;
        }
        let mean = known.points.iter().find(|point| point.place == MEAN);
        let shown = Point {
            x: Some(metadata_bytes(&scheme, GIB)? as f64 / GIB as f64),
            ..Point::of(&known.name, mean.and_then(Point::estimate))
        };
        place(&mut classes[Found::of(&scheme) as usize].points, shown);
    }
    classes.retain(|class| !class.points.is_empty());
    Ok(super::shares(classes))
}

/// Adds a dot, or its name to that of a dot that lies on the same spot.
fn place(dots: &mut Vec<Point>, dot: Point) {
    const NEAR: f64 = 0.01;
    let is_near = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < NEAR,
        _ => false,
    };
    let same = |known: &&mut Point| is_near(known.x, dot.x) && is_near(known.value, dot.value);
    match dots.iter_mut().find(same) {
        Some(known) => known.place = format!("{}, {}", known.place, dot.place),
        None => dots.push(dot),
    }
}

/// What becomes of those attacks of the engine's matrix that change memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    All,
    AtNextCheck,
    Some,
    None,
}

impl Found {
    const ALL: [Found; 4] = [Found::All, Found::AtNextCheck, Found::Some, Found::None];

    fn words(self) -> &'static str {
        match self {
            Found::All => "every attack is found at once",
            Found::AtNextCheck => "every attack is found by the next check",
            Found::Some => "some attacks are found",
            Found::None => "no attack is found",
        }
    }

    fn of(scheme: &Scheme) -> Found {
        let changes = Attack::ALL.into_iter().filter(|attack| !attack.only_looks());
        let promises: Vec<Promise> = changes
            .map(|attack| promise(scheme, attack))
            .filter(|promise| !matches!(promise, Promise::NothingToAttack(_)))
            .collect();
        let none = promises.iter().all(|p| matches!(p, Promise::Undetected(_)));
        if none {
            return Found::None;
        }
        if promises.iter().any(|p| matches!(p, Promise::Undetected(_))) {
            return Found::Some;
        }
        let later = promises.iter().any(|p| matches!(p, Promise::AtNextCheck(_)));
        if later { Found::AtNextCheck } else { Found::All }
    }
}

/// Metadata as a share of the data, for memory of each size.
pub fn scaling() -> Result<Values> {
    let share = |scheme: &Scheme, bytes| Ok(metadata_bytes(scheme, bytes)? as f64 / bytes as f64);
    Ok(super::shares(grow(share)?))
}

/// Levels of nodes in memory, for memory of each size.
pub fn scaling_levels() -> Result<Values> {
    let levels = |scheme: &Scheme, bytes| Ok(node_levels(scheme, size_of(bytes, 0))? as f64);
    Ok(numbers(grow(levels)?))
}

fn grow(value: impl Fn(&Scheme, u64) -> Result<f64>) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for name in GROWING {
        let scheme = scheme(name)?;
        let mut points = Vec::new();
        for (place, bytes) in SIZES {
            points.push(point(place, value(&scheme, bytes)?));
        }
        all.push(series(name, points));
    }
    Ok(all)
}

fn scheme(name: &str) -> Result<Scheme> {
    Ok(named(name)?.scheme)
}

/// All that the layout has beside the data.
fn metadata_bytes(scheme: &Scheme, memory_bytes: u64) -> Result<u64> {
    let storage = Storage::of(scheme, size_of(memory_bytes, 0))?;
    Ok(storage.overhead() + storage.reserved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_on_one_spot_share_it() {
        let dot = |name: &str, x: f64, y: f64| Point { x: Some(x), ..point(name, y) };
        let mut dots = Vec::new();
        for (name, x, y) in [("a", 0.1, 0.2), ("b", 0.105, 0.195), ("c", 0.1, 0.3)] {
            place(&mut dots, dot(name, x, y));
        }
        let names: Vec<&str> = dots.iter().map(|dot| &*dot.place).collect();
        assert_eq!(names, ["a, b", "c"]);
    }

    #[test]
    fn classes_are_those_of_the_matrix() {
        let of = |name: &str| Found::of(&scheme(name).expect("it is one")).words();
        assert_eq!(of("aise+bmt"), Found::All.words());
        assert_eq!(of("lhash"), Found::AtNextCheck.words());
        assert_eq!(of("mac"), Found::Some.words());
        assert_eq!(of("aise"), Found::None.words());
    }

    /// AISE/BMT with MACs of 128 bits: a quarter of the data for MACs, 1/64 for counters, a third
    /// of that for nodes.
    #[test]
    fn metadata_is_what_the_layout_has() {
        let bytes = metadata_bytes(&scheme("aise+bmt").expect("it is one"), GIB).expect("it fits");
        let share = bytes as f64 / GIB as f64;
        let expected = 0.25 + (1.0 + 1.0 / 3.0) / 64.0;
        assert!((share - expected).abs() < 0.0005, "{share}, {expected}");
    }
}
