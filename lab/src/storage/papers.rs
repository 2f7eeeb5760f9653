//! What the papers say that protection costs in memory, beside the layout that each figure is about.

use super::{Counters, Layout, Storage, Tree};
use casemate_schemes::counters::Organisation;

/// Data blocks of the memory that per cents are counted on: 1 GiB, as in AISE/BMT, section 6.
pub const GIB_BLOCKS: u64 = 1 << 24;

/// A figure of a paper and the same counted here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Where it stands.
    pub source: &'static str,
    /// What it is about.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What the paper says.
    pub paper: f64,
    /// What is counted here.
    pub counted: f64,
    /// Half of the last digit that the paper gives: a difference up to here is rounding.
    pub rounding: f64,
    /// Why the two differ by more than rounding; empty where they do not.
    pub assumption: &'static str,
}

impl Figure {
    /// Whether the paper's figure is what is counted, but for rounding.
    pub fn agrees(&self) -> bool {
        (self.paper - self.counted).abs() <= self.rounding + 1e-9
    }
}

/// Global 64-bit counters under a standard Merkle tree (AISE/BMT, section 7.4).
pub const fn global64_mt(mac_bits: u64) -> Layout {
    Layout {
        counters: Counters::Lines(Organisation::MONOLITHIC_64),
        tree: Tree::OverAll { mac_bits },
        page_root_bits: mac_bits,
        ..Layout::NONE
    }
}

/// AISE under a Bonsai Merkle tree (AISE/BMT, section 7.4).
pub const fn aise_bmt(mac_bits: u64) -> Layout {
    Layout {
        counters: Counters::Lines(Organisation::AISE),
        mac_bits,
        tree: Tree::OverCounters { mac_bits },
        page_root_bits: mac_bits,
        ..Layout::NONE
    }
}

/// SGX's counters and MACs under a tree of counters, 3 KiB of it on chip (Delta/ECC, section 5.1).
pub const SGX: Layout = Layout {
    counters: Counters::Lines(Organisation::SGX),
    mac_bits: 56,
    tree: Tree::OfCounters { arities: &[8], on_chip_bytes: 3 << 10 },
    ..Layout::NONE
};

/// Delta-encoded counters, MACs in the ECC bits (Delta/ECC, sections 3 and 4).
pub const DELTA_ECC: Layout = Layout {
    counters: Counters::Lines(Organisation::DELTA),
    mac_bits: 0,
    tree: Tree::OfCounters { arities: &[8], on_chip_bytes: 3 << 10 },
    ..Layout::NONE
};

/// Split counters under a tree of the same (the baseline SC-64 of Morphable Counters).
pub const SPLIT_TREE: Layout = Layout {
    counters: Counters::Lines(Organisation::SPLIT),
    mac_bits: 64,
    tree: Tree::OfCounters { arities: &[64], on_chip_bytes: 64 },
    ..Layout::NONE
};

/// VAULT: 64 counters in a leaf, then 32, then 16.
pub const VAULT: Layout = Layout {
    counters: Counters::Lines(Organisation::VAULT_LEAF),
    mac_bits: 64,
    tree: Tree::OfCounters { arities: &[32, 16], on_chip_bytes: 64 },
    ..Layout::NONE
};

/// Morphable Counters: 128 everywhere.
pub const MORPHABLE: Layout = Layout {
    counters: Counters::Lines(Organisation::MORPHABLE),
    mac_bits: 64,
    tree: Tree::OfCounters { arities: &[128], on_chip_bytes: 64 },
    ..Layout::NONE
};

/// A row of AISE/BMT, Table 2: MAC bits, name, layout, and per cent of memory for tree and MACs, page
/// roots, counters, all.
type Table2Row = (u64, &'static str, Layout, [f64; 4]);

const TABLE_2: [Table2Row; 8] = [
    (256, "global64+MT", global64_mt(256), [49.83, 0.35, 5.54, 55.71]),
    (256, "AISE+BMT", aise_bmt(256), [33.50, 0.51, 1.02, 35.03]),
    (128, "global64+MT", global64_mt(128), [24.94, 0.26, 8.31, 33.51]),
    (128, "AISE+BMT", aise_bmt(128), [20.02, 0.31, 1.23, 21.55]),
    (64, "global64+MT", global64_mt(64), [12.48, 0.15, 9.71, 22.34]),
    (64, "AISE+BMT", aise_bmt(64), [11.11, 0.17, 1.36, 12.65]),
    (32, "global64+MT", global64_mt(32), [6.24, 0.08, 10.41, 16.73]),
    (32, "AISE+BMT", aise_bmt(32), [5.88, 0.09, 1.45, 7.42]),
];

/// A row of the table as it is printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Bits of a MAC.
    pub mac_bits: u64,
    /// Which scheme.
    pub scheme: &'static str,
    /// Tree and MACs, page roots, counters, all; per cent of memory.
    pub figures: [Figure; 4],
}

/// AISE/BMT, Table 2. Like the paper, it leaves out the nodes above the page root directory.
pub fn aise_bmt_table_2() -> Vec<Row> {
    TABLE_2
        .iter()
        .map(|(mac_bits, scheme, layout, paper)| {
            let storage = layout.of(GIB_BLOCKS);
            let parts = [
                storage.nodes + storage.macs,
                storage.directory,
                storage.counters,
                storage.overhead(),
            ];
            let names = ["tree and MACs", "page roots", "counters", "all"];
            let figures = std::array::from_fn(|i| Figure {
                source: "AISE/BMT, Table 2",
                what: names[i],
                unit: "% of memory",
                paper: paper[i],
                counted: storage.percent_of_memory(parts[i]),
                rounding: 0.005,
                assumption: "",
            });
            Row { mac_bits: *mac_bits, scheme, figures }
        })
        .collect()
}

/// AISE/BMT, section 4.6; LHash, Table 1; Delta/ECC, Figure 1 and sections 4 and 5.2; and what the
/// papers on VAULT and Morphable Counters say of trees over 16 GiB.
pub fn other_figures() -> Vec<Figure> {
    let mut figures = aise_and_lhash();
    figures.extend(delta_ecc());
    figures.extend(counter_trees());
    figures
}

fn aise_and_lhash() -> Vec<Figure> {
    let page = aise_bmt(128).of(super::PAGE_BLOCKS);
    let gib = |layout: Layout| layout.of(GIB_BLOCKS);
    let of_data = |layout: Layout| {
        let storage = gib(layout);
        storage.percent_of_data(storage.overhead())
    };
    let lhash = Layout { time_stamp_bits: 32, ..Layout::NONE };
    let lhash_of = |what, paper, counted, rounding| Figure {
        source: "LHash, Table 1",
        what,
        unit: "% of data",
        paper,
        counted,
        rounding,
        assumption: "",
    };
    vec![
        Figure {
            source: "AISE/BMT, section 4.6",
            what: "LPID and counters of a page",
            unit: "bytes",
            paper: 64.0,
            counted: page.counters as f64,
            rounding: 0.0,
            assumption: "",
        },
        lhash_of("MAC", 25.0, of_data(Layout { mac_bits: 128, ..Layout::NONE }), 0.5),
        lhash_of(
            "CHTree",
            33.0,
            of_data(Layout { tree: Tree::OverAll { mac_bits: 128 }, ..Layout::NONE }),
            0.5,
        ),
        lhash_of("LHash", 6.25, of_data(lhash), 0.005),
        lhash_of("H-LHash", 7.9, hierarchical(&gib(lhash)), 0.05),
    ]
}

/// Nodes of 64 bytes (two hashes and a timer) over subspaces of 4 KiB; nodes are chunks with time stamps
/// themselves (LHash, section 6.3, with m = 64).
fn hierarchical(data: &Storage) -> f64 {
    let mut nodes = 0;
    let mut below = data.data / super::BLOCK_BYTES as u64;
    while below > 1 {
        below = below.div_ceil(64);
        nodes += below;
    }
    let node_bytes = nodes * super::BLOCK_BYTES as u64;
    let stamped = data.data + node_bytes;
    let stamps = stamped / super::BLOCK_BYTES as u64 * 4;
    data.percent_of_data(node_bytes + stamps)
}

fn delta_ecc() -> Vec<Figure> {
    const MIB_512: u64 = (512 << 20) / 64;
    let raw = Layout { counters: Counters::Packed { bits: 56 }, mac_bits: 56, ..Layout::NONE };
    let raw = raw.of(GIB_BLOCKS);
    let delta = DELTA_ECC.of(MIB_512);
    let smaller = 56.0 / Organisation::DELTA.bits_per_block();
    let figure = |source, what, unit, paper, counted, rounding, assumption| Figure {
        source,
        what,
        unit,
        paper,
        counted,
        rounding,
        assumption,
    };
    vec![
        figure(
            "Delta/ECC, section 1",
            "56-bit counters",
            "% of data",
            11.0,
            raw.percent_of_data(raw.counters),
            0.5,
            "",
        ),
        figure(
            "Delta/ECC, section 1",
            "56-bit counters and MACs",
            "% of data",
            21.9,
            raw.percent_of_data(raw.overhead()),
            0.05,
            "",
        ),
        figure(
            "Delta/ECC, Figure 1",
            "delta counters, MAC in ECC, tree",
            "% of data",
            2.0,
            delta.percent_of_data(delta.overhead()),
            0.5,
            "",
        ),
        figure(
            "Delta/ECC, section 4.2",
            "counters smaller than of 56 bits",
            "times",
            6.0,
            smaller,
            0.5,
            "64 deltas of 7 bits and a 56-bit reference are 7.9 bits a block against 56; the paper says 6",
        ),
        figure(
            "Delta/ECC, section 5.1",
            "levels in memory, 512 MiB, 56-bit counters",
            "levels",
            5.0,
            SGX.levels_in_memory(MIB_512).into(),
            0.0,
            "",
        ),
        figure(
            "Delta/ECC, section 5.2",
            "levels in memory, 512 MiB, delta counters",
            "levels",
            4.0,
            DELTA_ECC.levels_in_memory(MIB_512).into(),
            0.0,
            "",
        ),
    ]
}

fn counter_trees() -> Vec<Figure> {
    const GIB_16: u64 = (16 << 30) / 64;
    let mib = |layout: Layout| layout.of(GIB_16).nodes as f64 / f64::from(1 << 20);
    let figure = |what, paper, counted, rounding| Figure {
        source: "Morphable Counters (MICRO 2018)",
        what,
        unit: "MiB of nodes for 16 GiB",
        paper,
        counted,
        rounding,
        assumption: "",
    };
    vec![
        figure("VAULT", 8.5, mib(VAULT), 0.05),
        figure("split counters, 64 in a line", 4.0, mib(SPLIT_TREE), 0.5),
        figure("Morphable, 128 in a line", 1.0, mib(MORPHABLE), 0.05),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_table_2_is_met() {
        let rows = aise_bmt_table_2();
        assert_eq!(rows.len(), 8);
        for row in rows {
            for figure in row.figures {
                assert!(figure.agrees(), "{} bits, {}: {figure:?}", row.mac_bits, row.scheme);
            }
        }
    }

    #[test]
    fn other_figures_agree_or_say_why_not() {
        for figure in other_figures() {
            assert_eq!(figure.agrees(), figure.assumption.is_empty(), "{figure:?}");
        }
    }

    /// With one assumption changed the table must not come out any more.
    #[test]
    fn canary_a_wrong_layout_is_noticed() {
        let storage = Layout { page_root_bits: 64, ..aise_bmt(128) }.of(GIB_BLOCKS);
        assert!((storage.percent_of_memory(storage.directory) - 0.31).abs() > 0.005);
    }
}
