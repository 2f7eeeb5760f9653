//! Figures that are not simulated: what the engine counts or executes.

mod beyond;
mod break_even;
mod ecc;
mod hash_traffic;
mod seeds;
mod storage;

use anyhow::{Result, bail};

use crate::data::{Figure, Point, Series};
use crate::estimate::Estimate;
use crate::spec;

/// What a function makes of a figure.
pub(crate) struct Values {
    series: Vec<Series>,
    percent: bool,
}

/// A figure of the function that the spec names. It sees those of `others` that the spec needs.
///
/// # Errors
/// There is no such function, or the engine failed at it.
pub fn figure(spec: &spec::Figure, others: &[Figure]) -> Result<Figure> {
    let name = spec.compute.as_deref().unwrap_or_default();
    let needed: Vec<&Figure> =
        others.iter().filter(|other| spec.needs.contains(&other.id)).collect();
    let values = match name {
        "storage-table-2" => storage::aise_bmt_table_2()?,
        "storage-table-1" => storage::aise_bmt_table_1()?,
        "table-1-addresses" => storage::aise_bmt_addresses(),
        "otp-addresses" => storage::otp_addresses(),
        "lhash-levels" => storage::lhash_levels()?,
        "storage-lhash-table-1" => storage::lhash_table_1()?,
        "seeds-table-1" => seeds::table_1()?,
        "ecc-figure-1" => storage::delta_ecc_figure_1()?,
        "ecc-levels" => storage::delta_ecc_levels()?,
        "ecc-coverage" => ecc::coverage()?,
        "ecc-trials" => ecc::trials(),
        "scatter-overhead-storage-detection" => beyond::scatter(&needed)?,
        "hash-traffic" => hash_traffic::formula(&needed)?,
        "break-even" => break_even::periods(&needed)?,
        "scaling" => beyond::scaling()?,
        "scaling-levels" => beyond::scaling_levels()?,
        _ => bail!("figure {}: nothing computes {name}", spec.id),
    };
    let mut figure = spec.with(values.percent, values.series);
    for series in &mut figure.series {
        let Some(numbers) = spec.paper.get(&series.name) else { continue };
        for point in &mut series.points {
            point.paper = numbers.get(&point.place).copied().or(point.paper);
        }
    }
    Ok(figure)
}

/// A series of values by place.
fn series(name: &str, points: impl IntoIterator<Item = Point>) -> Series {
    Series { name: name.to_owned(), points: points.into_iter().collect() }
}

/// A value at a place.
fn point(place: impl Into<String>, value: f64) -> Point {
    Point::of(&place.into(), Some(Estimate::alone(value)))
}

/// Values that are shares of one.
fn shares(series: Vec<Series>) -> Values {
    Values { series, percent: true }
}

/// Values that are what they are.
fn numbers(series: Vec<Series>) -> Values {
    Values { series, percent: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::PAPERS;

    /// LHash's break-even is of Figures 10 (a) to (d), whatever else was drawn.
    #[test]
    fn a_figure_sees_what_it_needs_and_nothing_else() {
        let lhash = PAPERS.iter().find(|paper| paper.slug == "lhash").expect("it is one");
        let (spec, _) = lhash.read().expect("it is right");
        let of = |id: &str| spec.figures.iter().find(|figure| figure.id == id).expect("known");
        let drawn = |id: &str| {
            let series = |(name, never): (&str, f64)| {
                let points = [point("10^5", 0.5), point("never", never)];
                super::series(name, points)
            };
            let all = [("CHTree", 0.8), ("LHash", 1.0), ("H-LHash", 0.9)].map(series);
            of(id).with(true, all.into())
        };
        let without = of("6").with(false, vec![super::series("256 KB", [])]);
        let others = [without, drawn("10a"), drawn("10b"), drawn("10c"), drawn("10d")];
        let found = figure(of("10-break-even"), &others).expect("it has all that it needs");
        let places: Vec<&str> = found.series[0].points.iter().map(|p| &*p.place).collect();
        assert_eq!(places, ["10a", "10b", "10c", "10d"]);
    }

    /// What is computed without runs comes out, and claims about it can be judged.
    #[test]
    fn claims_on_what_is_computed_have_their_numbers() {
        for paper in PAPERS {
            let (spec, claims) = paper.read().expect("it is right");
            let mut figures = Vec::new();
            for of in spec.figures.iter().filter(|figure| figure.compute.is_some()) {
                // Computed of what is simulated.
                if !of.needs.is_empty() {
                    continue;
                }
                let figure = figure(of, &figures);
                let figure = figure.unwrap_or_else(|e| panic!("{}: {e:#}", paper.slug));
                assert!(figure.series.iter().all(|series| !series.points.is_empty()));
                for (series, numbers) in &of.paper {
                    let found = figure.series.iter().find(|s| s.name == *series);
                    let found = found.unwrap_or_else(|| panic!("figure {}: {series}", of.id));
                    let places: Vec<&str> = found.points.iter().map(|p| &*p.place).collect();
                    let known = numbers.keys().all(|place| places.contains(&&**place));
                    assert!(known, "figure {}: {numbers:?} of {places:?}", of.id);
                }
                figures.push(figure);
            }
            for (who, cell) in claims.cells() {
                let is_computed = figures.iter().any(|figure| figure.id == cell.figure);
                assert!(
                    !is_computed || cell.value(&figures).is_some(),
                    "{}: {who}: {cell:?}",
                    paper.slug
                );
            }
        }
    }
}
