//! One run of one scheme.

use std::hint::black_box;

use anyhow::{Context, Result};
use casemate_core::UntrustedMemory;
use casemate_core::checks::AllChecks;
use casemate_schemes::unit::bytes::BytesUnit;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, UnitSize};
use casemate_schemes::unit::{Block, BlockAddress, PageAddress, ProtectionUnit, Scheme};

use rustix::time::{ClockId, clock_gettime};

use super::bare::BareCrypto;
use crate::bench::numbers::Spread;
use casemate_core::random::Random;

/// Page frames whose counters and nodes all fit [`HIT_CACHE_BYTES`], under every scheme. Few, so
/// that all of it stays in the processor's own caches, as the bare cryptography's blocks do: what
/// memory costs is not what is asked.
pub const HIT_FRAMES: u64 = 16;
/// Page frames whose counters and nodes do not fit the smallest cache, by far.
pub const MISS_FRAMES: u64 = 1024;
const HIT_CACHE_BYTES: usize = 256 << 10;
const BATCHES: usize = 11;
/// Accesses of a batch, at random.
const ACCESSES: usize = 2048;

/// What is timed.
#[derive(Clone, Copy)]
pub enum Access {
    ReadHit,
    WriteHit,
    ReadMiss,
    WriteMiss,
}

/// What a run gave: medians over its batches.
pub struct Sample {
    /// Nanoseconds for a block, by [`Access`].
    pub ns: [f64; 4],
    /// Metadata lines fetched by a read that hits, on average.
    pub lines_per_read_hit: f64,
    /// And by one that misses.
    pub lines_per_read_miss: f64,
    /// The cryptography alone, where it was asked for.
    pub bare: Option<BareTimes>,
}

/// Nanoseconds for the cryptography of a block.
#[derive(Clone, Copy)]
pub struct BareTimes {
    pub open_ns: f64,
    pub seal_ns: f64,
}

/// Memory that counts the metadata lines that are fetched.
#[derive(Default)]
struct CountingMemory {
    memory: SparseMemory,
    lines_read: u64,
}

impl UntrustedMemory<Place, Block> for CountingMemory {
    fn read(&mut self, place: Place) -> Block {
        let line = matches!(place.region, Region::Counters | Region::Nodes(_));
        self.lines_read += u64::from(line);
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.memory.write(place, block);
    }

    fn write_part(&mut self, place: Place, at: usize, bytes: &[u8]) {
        self.memory.write_part(place, at, bytes);
    }
}

type Unit = ProtectionUnit<BytesUnit<CountingMemory, AllChecks>>;

/// Whether a scheme keeps anything in a node cache.
pub fn caches_metadata(scheme: &Scheme) -> bool {
    // A Sequence Number Cache is another cache.
    let counted = matches!(
        scheme.encryption,
        EncryptionKind::CounterMode { .. } | EncryptionKind::GlobalCounter { .. }
    );
    let nodes = !matches!(
        scheme.integrity,
        IntegrityKind::None | IntegrityKind::AddressedMac | IntegrityKind::LogHash { .. }
    );
    counted || nodes
}

/// A run: units are built, and everything is timed in turns.
pub fn run(scheme: &Scheme, with_bare: bool) -> Result<Sample> {
    let mut hits = Load::new(scheme, HIT_FRAMES, HIT_CACHE_BYTES)?;
    let mut misses = Load::new(scheme, MISS_FRAMES, 0)?;
    let bare = with_bare.then(|| BareCrypto::new(scheme.algorithms, &hits.accesses)).transpose()?;
    let mut ns: [Vec<f64>; 4] = Default::default();
    let (mut open_ns, mut seal_ns) = (Vec::new(), Vec::new());
    let (mut hit_lines, mut miss_lines) = (Vec::new(), Vec::new());
    hits.warm_up()?;
    for batch in 0..=BATCHES {
        let (read_hit, hit_fetches) = hits.reads()?;
        let bare_times = bare.as_ref().map(bare_batch).transpose()?;
        let write_hit = hits.writes()?;
        let (read_miss, miss_fetches) = misses.reads()?;
        let times = [read_hit, write_hit, read_miss, misses.writes()?];
        if batch == 0 {
            continue; // The first finds the processor's caches and predictors cold.
        }
        ns.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
        hit_lines.push(hit_fetches);
        miss_lines.push(miss_fetches);
        if let Some(times) = bare_times {
            open_ns.push(times.open_ns);
            seal_ns.push(times.seal_ns);
        }
    }
    let median = |numbers: &[f64]| Spread::of(numbers).median;
    Ok(Sample {
        ns: ns.map(|times| median(&times)),
        lines_per_read_hit: median(&hit_lines),
        lines_per_read_miss: median(&miss_lines),
        bare: bare.map(|_| BareTimes { open_ns: median(&open_ns), seal_ns: median(&seal_ns) }),
    })
}

/// A unit and the accesses to it.
struct Load {
    unit: Unit,
    accesses: Vec<BlockAddress>,
}

impl Load {
    fn new(scheme: &Scheme, frames: u64, metadata_cache_bytes: usize) -> Result<Self> {
        let size = UnitSize::new(frames, metadata_cache_bytes);
        let unit = scheme
            .on_bytes(CountingMemory::default(), size, &[3; 32])
            .context("cannot build the unit")?;
        let mut rng = Random::new(frames);
        let accesses = (0..ACCESSES)
            .map(|_| {
                let page = PageAddress::identical(rng.index(frames as usize) as u64);
                page.block(rng.next() % 64)
            })
            .collect();
        Ok(Load { unit, accesses })
    }

    /// Brings all metadata in.
    fn warm_up(&mut self) -> Result<()> {
        for frame in 0..HIT_FRAMES {
            for at in PageAddress::identical(frame).blocks() {
                read(&mut self.unit, at)?;
            }
        }
        Ok(())
    }

    /// Nanoseconds for a read, and the metadata lines that it fetched.
    fn reads(&mut self) -> Result<(f64, f64)> {
        let unit = &mut self.unit;
        let before = unit.port_mut().memory_mut().lines_read;
        let ns = per_access(&self.accesses, |at| {
            black_box(read(unit, *at)?);
            Ok(())
        })?;
        let fetched = unit.port_mut().memory_mut().lines_read - before;
        Ok((ns, fetched as f64 / self.accesses.len() as f64))
    }

    fn writes(&mut self) -> Result<f64> {
        let (unit, block) = (&mut self.unit, [7; 64]);
        per_access(&self.accesses, |at| Ok(unit.write(*at, black_box(&block))?))
    }
}

/// Into the program's cache and out again, unchanged: log hashes must be told.
fn read(unit: &mut Unit, at: BlockAddress) -> Result<Block> {
    let block = unit.read(at)?;
    unit.drop_clean(at, &block)?;
    Ok(block)
}

fn bare_batch(bare: &BareCrypto) -> Result<BareTimes> {
    let numbers: Vec<usize> = (0..ACCESSES).collect();
    let mut sealed = vec![([7; 64], [0; 16]); ACCESSES];
    let seal_ns = per_access(&numbers, |number| {
        let (block, mac) = &mut sealed[*number];
        bare.seal(*number, black_box(block), mac);
        Ok(())
    })?;
    let open_ns = per_access(&numbers, |number| {
        let (block, mac) = &sealed[*number];
        black_box(bare.open(*number, black_box(block), mac)?);
        Ok(())
    })?;
    Ok(BareTimes { open_ns, seal_ns })
}

/// Nanoseconds of processor time for each access. All is done in one thread, and time that the
/// processor gives to others meanwhile does not count.
fn per_access<T>(all: &[T], mut access: impl FnMut(&T) -> Result<()>) -> Result<f64> {
    let now = || clock_gettime(ClockId::ThreadCPUTime);
    let start = now();
    for one in all {
        access(one)?;
    }
    let spent = now() - start;
    Ok((spent.tv_sec as f64 * 1e9 + spent.tv_nsec as f64) / all.len() as f64)
}
