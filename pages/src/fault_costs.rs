//! What a fault costs in a memory of a given size, counted by the protocol that the keeper runs.
//!
//! The memory is one space whose pages all lie outside the Clear, put out in the order of their
//! addresses. Only pages of a sample (and a neighbour of each, so that no table runs empty) get
//! records; for the tables between them the directory's blocks are passed over, so that a record
//! lies where it would lie in the full directory. Memory is taken for the sample alone.

use crate::counts::{CountPages, CountPort, Counts};
use crate::directory_shape::{ARITY, LEVELS};
use crate::page_directory::{Directory, RECORD_TABLE_BITS, SpaceId};
use crate::page_protocol::{forget, page_in, page_out};
use crate::page_record::StorePlace;
use casemate_core::PAGE_BYTES;
use casemate_core::geometry::levels_above;
use casemate_core::gpc::GlobalPageCounter;
use casemate_core::random::Random;
use casemate_core::violation::Violation;

/// Pages of the sample; where there are no more, all of them.
pub const SAMPLED_PAGES: u64 = 1 << 14;
/// Pages of it that a fault is counted for with nothing on chip.
const COLD_PAGES: usize = 1 << 10;
/// Faults for which a page stays in the Clear, at most.
pub const FAULTS_IN_CLEAR: usize = 1 << 10;

const SPACE: SpaceId = SpaceId(1);
/// Ciphertexts have no contents here, and each may lie at the same place.
const PLACE: StorePlace = StorePlace(1);

/// What faults cost in a memory of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FaultCosts {
    /// Pages of the memory.
    pub pages: u64,
    /// Levels of the directory's tree, from the records up to below the root.
    pub levels: usize,
    /// Levels of them that have more than one line in use.
    pub levels_in_use: usize,
    /// Bytes of the directory and of its tree, in untrusted memory.
    pub directory_bytes: u64,
    /// A page comes in and is only read: its record stays. When it leaves, nothing is done.
    pub read: Fault,
    /// A page comes in to be written: its record goes.
    pub written: Fault,
    /// A page that was written goes out.
    pub out: Fault,
}

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// No line is on chip before; all that was changed is written back afterwards.
    pub cold: MeanCounts,
    /// Pages are chosen at random, and go out some [`FAULTS_IN_CLEAR`] faults later: the node cache
    /// holds what it holds then.
    pub warm: MeanCounts,
}

/// [`Counts`] for one fault, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanCounts {
    /// Metadata lines read from untrusted memory.
    pub lines_fetched: f64,
    /// Metadata lines written to it.
    pub lines_stored: f64,
    /// MACs computed, page tags included.
    pub macs: f64,
    /// Bytes of lines and pages to or from untrusted memory.
    pub bytes_moved: f64,
    /// Bytes encrypted or decrypted.
    pub bytes_ciphered: f64,
}

/// Counts what faults cost in a memory of so many bytes, with a node cache of so many.
///
/// # Errors
/// [`DirectoryFull`](casemate_core::violation::Refusal::DirectoryFull) for more than the directory
/// can hold, somewhat less than 1 PiB.
pub fn fault_costs(memory_bytes: u64, node_cache_bytes: usize) -> Result<FaultCosts, Violation> {
    let pages = memory_bytes.div_ceil(PAGE_BYTES as u64).max(1);
    let mut memory = Memory::new(pages, node_cache_bytes)?;
    let directory_bytes = memory.directory.metadata_bytes();
    let [read, written, out] = memory.cold()?;
    let warm_read = memory.warm_reads()?;
    let [warm_written, warm_out] = memory.warm_writes()?;
    Ok(FaultCosts {
        pages,
        levels: LEVELS,
        // Each of them is below another one that is needed.
        levels_in_use: levels_above(memory.directory.lines_in_use(), |_| ARITY).count(),
        directory_bytes,
        read: Fault { cold: read, warm: warm_read },
        written: Fault { cold: written, warm: warm_written },
        out: Fault { cold: out, warm: warm_out },
    })
}

/// A memory whose pages all lie outside the Clear.
struct Memory {
    directory: Directory<CountPort>,
    pages: CountPages,
    gpc: GlobalPageCounter,
    /// The sample, in the order of addresses.
    sample: Vec<u64>,
    random: Random,
}

impl Memory {
    fn new(pages: u64, node_cache_bytes: usize) -> Result<Self, Violation> {
        let mut random = Random::new(1);
        let sample = sample(pages, &mut random);
        let directory = Directory::over(CountPort::default(), node_cache_bytes);
        let (pages_port, gpc) = (CountPages::default(), GlobalPageCounter::new());
        let mut memory = Memory { directory, pages: pages_port, gpc, sample, random };
        memory.directory.create_space(SPACE)?;
        let mut next_table = 0;
        for at in 0..memory.sample.len() {
            let vpn = memory.sample[at];
            let table = vpn >> RECORD_TABLE_BITS;
            memory.directory.pass_over(table.saturating_sub(next_table))?;
            next_table = table + 1;
            memory.put_out(vpn)?;
            if (vpn ^ 1) < pages {
                memory.put_out(vpn ^ 1)?;
            }
        }
        let last_table = (pages - 1) >> RECORD_TABLE_BITS;
        memory.directory.pass_over((last_table + 1).saturating_sub(next_table))?;
        Ok(memory)
    }

    fn bring_in(&mut self, vpn: u64) -> Result<(), Violation> {
        page_in(&mut self.directory, &self.pages, (SPACE, vpn), |_| &(), &mut ()).map(drop)
    }

    fn bring_in_to_write(&mut self, vpn: u64) -> Result<(), Violation> {
        self.bring_in(vpn)?;
        forget(&mut self.directory, SPACE, vpn).map(drop)
    }

    fn put_out(&mut self, vpn: u64) -> Result<(), Violation> {
        let to = (PLACE, &mut ());
        page_out(&mut self.directory, &self.pages, &self.gpc, (SPACE, vpn), &mut (), to).map(drop)
    }

    /// What `step` costs.
    fn count(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), Violation>,
    ) -> Result<Counts, Violation> {
        let before = (self.directory.port_mut().counts, self.pages.counts());
        step(self)?;
        let (lines, pages) = (self.directory.port_mut().counts, self.pages.counts());
        Ok(lines + pages - (before.0 + before.1))
    }

    /// Faults with nothing on chip: read, to be written, out.
    fn cold(&mut self) -> Result<[MeanCounts; 3], Violation> {
        let every = self.sample.len().div_ceil(COLD_PAGES);
        let chosen: Vec<u64> = self.sample.iter().copied().step_by(every).collect();
        let kinds = [Self::bring_in, Self::bring_in_to_write, Self::put_out];
        let mut sums = [Counts::default(); 3];
        for &vpn in &chosen {
            for (sum, kind) in sums.iter_mut().zip(kinds) {
                self.directory.flush_and_forget()?;
                *sum += self.count(|memory| {
                    kind(memory, vpn)?;
                    memory.directory.flush()
                })?;
            }
        }
        Ok(sums.map(|sum| MeanCounts::of(sum, chosen.len())))
    }

    /// Faults at random that only read, after as many that fill the node cache.
    fn warm_reads(&mut self) -> Result<MeanCounts, Violation> {
        for vpn in self.shuffled() {
            self.bring_in(vpn)?;
        }
        let order = self.shuffled();
        let sum = self.count(|memory| order.iter().try_for_each(|&vpn| memory.bring_in(vpn)))?;
        Ok(MeanCounts::of(sum, order.len()))
    }

    /// Faults at random that write, and what goes out for them.
    fn warm_writes(&mut self) -> Result<[MeanCounts; 2], Violation> {
        let order = self.shuffled();
        let in_clear = FAULTS_IN_CLEAR.min(order.len() / 4);
        let (mut written, mut out) = (Counts::default(), Counts::default());
        let counted_from = order.len() / 2;
        for at in 0..order.len() {
            let came = self.count(|memory| memory.bring_in_to_write(order[at]))?;
            let left = match at.checked_sub(in_clear) {
                Some(oldest) => self.count(|memory| memory.put_out(order[oldest]))?,
                None => Counts::default(),
            };
            if at >= counted_from {
                written += came;
                out += left;
            }
        }
        let faults = order.len() - counted_from;
        Ok([MeanCounts::of(written, faults), MeanCounts::of(out, faults)])
    }

    fn shuffled(&mut self) -> Vec<u64> {
        let mut order = self.sample.clone();
        for last in (1..order.len()).rev() {
            order.swap(last, self.random.index(last + 1));
        }
        order
    }
}

/// The sample, one page of each of as many equal parts, in the order of addresses.
fn sample(pages: u64, random: &mut Random) -> Vec<u64> {
    let count = pages.min(SAMPLED_PAGES);
    let start = |part: u64| (u128::from(part) * u128::from(pages) / u128::from(count)) as u64;
    (0..count).map(|part| start(part) + random.below(start(part + 1) - start(part))).collect()
}

impl MeanCounts {
    fn of(sum: Counts, faults: usize) -> Self {
        let mean = |count: u64| count as f64 / faults as f64;
        Self {
            lines_fetched: mean(sum.lines_fetched),
            lines_stored: mean(sum.lines_stored),
            macs: mean(sum.macs),
            bytes_moved: mean(sum.bytes_moved),
            bytes_ciphered: mean(sum.bytes_ciphered),
        }
    }
}
