//! A hash join: the smaller relation is scattered into a table of buckets, the larger one streams
//! by and probes it.

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// A row of a relation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What is joined on.
    pub key: u64,
    /// The rest.
    pub payload: u64,
}

/// What came of a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Pairs of rows with one key.
    pub pairs: u64,
    /// The sum over all pairs of the product of their payloads, modulo 2^64, in any order.
    pub products: u64,
}

/// No row.
const NONE: u32 = u32::MAX;
/// Rows of the larger relation for each of the smaller.
const PROBES: usize = 4;
/// Bytes for each row of the smaller relation: itself, its bucket, its link, and its probes.
const ROW_BYTES: u64 = 16 + 4 + 4 + 16 * PROBES as u64;

/// A table over a relation: chains of rows whose keys have the same hash.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    rows: &'a [Row],
    buckets: Vec<u32>,
    /// The next row of the chain.
    links: Vec<u32>,
    shift: u32,
}

impl<'a> Table<'a> {
    /// Puts all rows in.
    #[must_use]
    pub fn new(rows: &'a [Row]) -> Self {
        let buckets = rows.len().max(2).next_power_of_two();
        let mut table = Table {
            rows,
            buckets: vec![NONE; buckets],
            links: vec![NONE; rows.len()],
            shift: 64 - buckets.ilog2(),
        };
        for (at, row) in rows.iter().enumerate() {
            let bucket = table.bucket(row.key);
            table.links[at] = std::mem::replace(&mut table.buckets[bucket], at as u32);
        }
        table
    }

    fn bucket(&self, key: u64) -> usize {
        (hash(key) >> self.shift) as usize
    }

    /// Joins these rows with those of the table.
    #[must_use]
    pub fn probe(&self, rows: &[Row]) -> Joined {
        let mut joined = Joined::default();
        for row in rows {
            let mut at = self.buckets[self.bucket(row.key)];
            while at != NONE {
                let built = self.rows[at as usize];
                if built.key == row.key {
                    joined.pairs += 1;
                    let product = built.payload.wrapping_mul(row.payload);
                    joined.products = joined.products.wrapping_add(product);
                }
                at = self.links[at as usize];
            }
        }
        joined
    }
}

impl Joined {
    /// Both.
    pub fn add(&mut self, other: Joined) {
        self.pairs += other.pairs;
        self.products = self.products.wrapping_add(other.products);
    }
}

/// Multiplication by the golden ratio: the upper bits are the good ones.
#[must_use]
pub fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The two relations of a join: most keys of the smaller one are there once, and a third of the
/// larger one's rows finds nothing.
#[must_use]
pub fn relations(rows: usize, seed: u64) -> (Vec<Row>, Vec<Row>) {
    let mut random = Random::new(seed);
    let keys = rows.max(1) as u64 * 3 / 2 + 1;
    let mut relation = |rows: usize| -> Vec<Row> {
        (0..rows).map(|_| Row { key: random.below(keys), payload: random.word() }).collect()
    };
    (relation(rows), relation(rows * PROBES))
}

/// How many rows the smaller relation has, for arrays of that size together.
#[must_use]
pub fn rows(size_bytes: u64) -> usize {
    (size_bytes / ROW_BYTES).clamp(1, u64::from(NONE - 1)) as usize
}

/// So many joins of the same two relations, each with a new table.
pub fn run(work: &Work) -> u64 {
    let (small, large) = relations(rows(work.size_bytes), work.seed);
    let mut sum = Checksum::default();
    for _ in 0..work.rounds {
        let joined = Table::new(&small).probe(&large);
        sum.add(joined.pairs);
        sum.add(joined.products);
    }
    sum.value()
}
