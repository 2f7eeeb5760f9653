//! What schemes cost in memory, counted from layouts (`casemate storage`).

use anyhow::Result;
use casemate_lab::storage::papers::{Figure, aise_bmt_table_2 as table_2, other_figures};
use casemate_lab::storage::{Storage, node_levels, size_of};
use casemate_lab::virtual_memory::table_1::SEEDS;
use casemate_schemes::choice::named;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::scheme::{EncryptionKind, UnitSize};
use casemate_schemes::unit::seed::SeedScheme;

use super::{Values, numbers, point, series, shares};
use crate::data::{Point, Series};

/// AISE/BMT, Table 2: all metadata as a share of memory, for each size of MAC; and its parts.
pub fn aise_bmt_table_2() -> Result<Values> {
    let rows = table_2()?;
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        if !names.contains(&row.scheme) {
            names.push(row.scheme);
        }
    }
    let of = |scheme: &str, what: &str| {
        let cells = rows.iter().filter(|row| row.scheme == scheme).filter_map(|row| {
            let cell = row.figures.iter().find(|figure| figure.what == what)?;
            Some(with_paper(format!("{}-bit", row.mac_bits), cell))
        });
        cells.collect::<Vec<Point>>()
    };
    let mut all = Vec::new();
    for scheme in names {
        all.push(series(scheme, of(scheme, "all")));
        for part in ["tree and MACs", "page roots", "counters"] {
            all.push(series(&format!("{scheme}: {part}"), of(scheme, part)));
        }
    }
    Ok(shares(all))
}

/// AISE/BMT, Table 1: what counters take beside the data, for memory of 1 GiB as in section 6.
pub fn aise_bmt_table_1() -> Result<Values> {
    let of = |name: &str, scheme_name: &str| -> Result<Series> {
        let storage = Storage::of(&scheme(scheme_name)?, size_of(1 << 30, 0))?;
        let share = storage.percent_of_data(storage.counters) / 100.0;
        Ok(series(name, [point("counters beside data", share)]))
    };
    let global = of("global counter, 64 bits", "global64/none")?;
    let aise = of("AISE: LPID, minor counter", "aise")?;
    let large = of("address, block counter of 64 bits", "mono64/none")?;
    let small = of("address, block counter of 7 bits", "split/none")?;
    Ok(shares(vec![global, aise, large, small]))
}

/// AISE/BMT, Table 1: what virtual addresses take beside the lines of the L2, which has physical
/// ones. What a page is told apart by is kept; the rest is the same in both.
pub fn aise_bmt_addresses() -> Values {
    const BITS_KEPT: f64 = 48.0 - 12.0;
    const LINE_BITS: f64 = 8.0 * 64.0;
    let beside = SEEDS.map(|(name, encryption, _)| {
        let is_virtual = match encryption {
            EncryptionKind::CounterMode { seeds, .. } => {
                matches!(seeds, SeedScheme::VirtualAddress | SeedScheme::ProcessAndVirtualAddress)
            }
            _ => false,
        };
        point(name, if is_virtual { BITS_KEPT / LINE_BITS } else { 0.0 })
    });
    shares(vec![series("address beside a line", beside)])
}

/// OTP/SNC, section 3.4.2: what virtual addresses take beside the lines of the L2, as a write-back
/// finds its sequence number by them. What the index says of an address is not kept.
pub fn otp_addresses() -> Values {
    const BITS_KEPT: f64 = 40.0;
    let beside = |line_bytes: u32| {
        point(format!("{line_bytes} bytes"), BITS_KEPT / (8.0 * f64::from(line_bytes)))
    };
    shares(vec![series("40 of 48 bits", [64, 128, 256].map(beside))])
}

/// LHash, Table 1: what each scheme keeps beside data.
pub fn lhash_table_1() -> Result<Values> {
    let found: Vec<Figure> =
        other_figures()?.into_iter().filter(|figure| figure.source.starts_with("LHash")).collect();
    let points = found.iter().map(|figure| with_paper(short(figure.what), figure));
    Ok(shares(vec![series("beside data", points)]))
}

/// LHash, section 7.3: levels of nodes of each tree over 4 GB. The hash tree's top node is on chip
/// here, where the paper has its one hash; the log hash's is in memory.
pub fn lhash_levels() -> Result<Values> {
    let in_memory = |name: &str| -> Result<f64> {
        Ok(node_levels(&scheme(name)?, size_of(4 << 30, 0))? as f64)
    };
    let points =
        [point("CHTree", in_memory("chtree")? + 1.0), point("H-LHash", in_memory("h-lhash")?)];
    Ok(numbers(vec![series("levels", points)]))
}

/// The scheme's name, in front of what it is counted with.
fn short(what: &str) -> &str {
    what.split([',', ':']).next().unwrap_or(what)
}

/// Delta/ECC, Figure 1: 56-bit counters and MACs beside data, against delta counters with the MAC
/// in the ECC bits. The paper counts the former without gaps.
pub fn delta_ecc_figure_1() -> Result<Values> {
    let size = size_of(512 << 20, UnitSize::SGX_ON_CHIP_TREE_BYTES);
    let of = |name: &str, storage: Storage| {
        let share = |bytes: u64| storage.percent_of_data(bytes) / 100.0;
        series(
            name,
            [
                point("counters", share(storage.counters)),
                point("MACs", share(storage.macs)),
                point("tree", share(storage.nodes)),
                point("all", share(storage.overhead())),
            ],
        )
    };
    let before = Storage::without_gaps(&scheme("mono56+bmt")?, size)?;
    let after = Storage::of(&scheme("delta+ecc")?, size)?;
    Ok(shares(vec![of("56-bit counters, MACs", before), of("Delta counters, MAC in ECC", after)]))
}

fn scheme(name: &str) -> Result<Scheme> {
    Ok(named(name)?.scheme)
}

/// Delta/ECC, sections 5.1 and 5.2: levels of the tree in memory.
pub fn delta_ecc_levels() -> Result<Values> {
    let all = other_figures()?;
    let levels = |what: &str, place: &str| -> Option<Point> {
        let figure =
            all.iter().find(|figure| figure.unit == "levels" && figure.what.contains(what))?;
        Some(Point { paper: Some(figure.paper), ..point(place, figure.counted) })
    };
    let points = [levels("56-bit", "56-bit counters"), levels("delta", "delta counters")];
    Ok(numbers(vec![series("levels", points.into_iter().flatten())]))
}

fn with_paper(place: impl Into<String>, figure: &Figure) -> Point {
    Point { paper: Some(figure.paper / 100.0), ..point(place, figure.counted / 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_2_has_both_schemes_and_all_sizes() {
        let values = aise_bmt_table_2().expect("the schemes are in the catalogue");
        let names: Vec<&str> = values.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names.len(), 8, "{names:?}");
        assert!(names.contains(&"AISE+BMT") && names.contains(&"global64+MT"));
        let places: Vec<&str> = values.series[0].points.iter().map(|p| &*p.place).collect();
        assert_eq!(places, ["256-bit", "128-bit", "64-bit", "32-bit"]);
    }
}
