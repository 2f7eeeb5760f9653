//! A partitioned hash join by several threads: each scatters its share of both relations into
//! partitions by the keys' hash; then each joins the partitions that are its own, out of what all
//! threads wrote.

use std::sync::{Barrier, Mutex, OnceLock, PoisonError};

use super::Work;
use super::join::{self, Joined, Row, Table};
use crate::checksum::Checksum;

/// Partitions of each relation.
const PARTITIONS: usize = 64;

/// A relation in partitions.
type Parts = Vec<Vec<Row>>;

/// Joins two relations with so many threads, of which the caller is the first.
#[must_use]
pub fn join(small: &[Row], large: &[Row], threads: usize) -> Joined {
    let threads = threads.max(1);
    let written: Vec<OnceLock<[Parts; 2]>> = (0..threads).map(|_| OnceLock::new()).collect();
    let barrier = Barrier::new(threads);
    let joined = Mutex::new(Joined::default());
    let work = |own: usize| {
        let parts = [small, large].map(|relation| scatter(share(relation, own, threads)));
        // Each thread sets its own, once.
        let _ = written[own].set(parts);
        barrier.wait();
        let mut found = Joined::default();
        for partition in (own..PARTITIONS).step_by(threads) {
            let gather = |side: usize| -> Vec<Row> {
                let all = written.iter().filter_map(OnceLock::get);
                all.flat_map(|parts| &parts[side][partition]).copied().collect()
            };
            found.add(Table::new(&gather(0)).probe(&gather(1)));
        }
        joined.lock().unwrap_or_else(PoisonError::into_inner).add(found);
    };
    std::thread::scope(|scope| {
        let work = &work;
        (1..threads).for_each(|own| {
            scope.spawn(move || work(own));
        });
        work(0);
    });
    joined.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's part of a relation.
fn share(relation: &[Row], own: usize, threads: usize) -> &[Row] {
    let bound = |at: usize| relation.len() * at / threads;
    &relation[bound(own)..bound(own + 1)]
}

fn scatter(rows: &[Row]) -> Parts {
    let expected = 2 * rows.len() / PARTITIONS;
    let mut parts: Parts = (0..PARTITIONS).map(|_| Vec::with_capacity(expected)).collect();
    for row in rows {
        // Bits below those that choose a bucket of the tables.
        parts[(join::hash(row.key) >> 8) as usize % PARTITIONS].push(*row);
    }
    parts
}

/// So many joins of the same two relations.
pub fn run(work: &Work) -> u64 {
    // Rows are there twice: as they were, and in partitions.
    let (small, large) = join::relations(join::rows(work.size_bytes / 2), work.seed);
    let mut sum = Checksum::default();
    for _ in 0..work.rounds {
        let joined = join(&small, &large, work.threads);
        sum.add(joined.pairs);
        sum.add(joined.products);
    }
    sum.value()
}
