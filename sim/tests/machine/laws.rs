//! Conservation laws of the whole: a cache with miss registers and a write buffer over a memory.

use casemate_sim::machine::cache::mshr::Entered;
use casemate_sim::machine::cache::write_buffer::Buffered;
use casemate_sim::machine::cache::{Cache, CacheConfig, Mshrs, Replacement, Ways, WriteBuffer};
use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{Ddr, FlatBus, Memory, Request};
use casemate_sim::machine::{Access, Content, Cycle};
use proptest::prelude::*;

/// Above all waiters' names: answers to write-backs wake no waiter.
const WRITE_BACK: u64 = 1 << 63;

/// The smallest driver that uses every part. It counts by itself what it asks of memory.
struct Driver<M> {
    cache: Cache,
    mshrs: Mshrs<(usize, Access, Content)>,
    buffer: WriteBuffer,
    memory: M,
    now: Cycle,
    answers: Vec<u32>,
    sent: [u64; 2],
    answered_by_memory: u64,
}

impl<M: Memory> Driver<M> {
    fn new(memory: M, accesses: usize) -> Self {
        let replacement = Replacement::Lru;
        let ways = Ways::Set(2);
        let config = CacheConfig { size_bytes: 512, ways, block_bytes: 64, replacement };
        Driver {
            cache: Cache::new(&config).expect("valid"),
            mshrs: Mshrs::new(4, 3).expect("valid"),
            buffer: WriteBuffer::new(2).expect("valid"),
            memory,
            now: 0,
            answers: vec![0; accesses],
            sent: [0; 2],
            answered_by_memory: 0,
        }
    }

    /// Moves to the next event of memory, and serves the accesses that waited for it.
    fn wait(&mut self) {
        let next = self.memory.next_event().expect("something to wait for");
        self.now = self.now.max(next);
        let mut completions = Vec::new();
        self.memory.advance(self.now, &mut completions);
        for completion in completions {
            assert!((next..=self.now).contains(&completion.at), "an answer in time");
            self.answered_by_memory += 1;
            if completion.id & WRITE_BACK == 0 {
                self.fill(completion.id);
            }
        }
    }

    fn fill(&mut self, block: u64) {
        let mut waiters = Vec::new();
        assert!(self.mshrs.answer(block, &mut waiters), "no request waited for {block:#x}");
        let dirty = waiters.iter().any(|&(_, access, _)| access == Access::Write);
        for &(index, ..) in &waiters {
            self.answers[index] += 1;
        }
        let Some(evicted) = self.cache.fill(block, dirty, waiters[0].2) else { return };
        if evicted.dirty {
            while self.buffer.push(evicted) == Buffered::Refused {
                self.drain_one();
            }
        }
    }

    fn drain_one(&mut self) {
        let Some(block) = self.buffer.pop() else { return };
        self.send(block.address | WRITE_BACK, block.address, Access::Write, block.content);
    }

    fn send(&mut self, id: u64, address: u64, access: Access, content: Content) {
        let request = Request { id, address, size_bytes: 64, access, content };
        while self.memory.send(self.now, request).is_err() {
            self.wait();
        }
        self.sent[usize::from(access == Access::Write)] += 1;
    }

    fn access(&mut self, index: usize, address: u64, access: Access, content: Content) {
        if self.cache.access(address, access, content) {
            self.answers[index] += 1;
            return;
        }
        let block = self.cache.block_of(address);
        loop {
            match self.mshrs.enter(block, (index, access, content)) {
                Entered::First => break self.send(block, block, Access::Read, content),
                Entered::Merged => break,
                Entered::Refused => self.wait(),
            }
        }
    }

    fn finish(&mut self) {
        while self.memory.next_event().is_some() || !self.buffer.is_empty() {
            self.drain_one();
            if self.memory.next_event().is_some() {
                self.wait();
            }
        }
    }
}

type Step = (u64, u64, bool, bool);

fn run<M: Memory>(memory: M, steps: &[Step]) -> Driver<M> {
    let mut driver = Driver::new(memory, steps.len());
    for (index, &(gap, block, write, metadata)) in steps.iter().enumerate() {
        driver.now += gap;
        let access = if write { Access::Write } else { Access::Read };
        let content = if metadata { Content::Metadata } else { Content::Data };
        driver.access(index, block * 64 + 8, access, content);
    }
    driver.finish();
    driver
}

fn check<M: Memory>(driver: &Driver<M>) -> Result<(), TestCaseError> {
    prop_assert!(
        driver.answers.iter().all(|&answers| answers == 1),
        "every access is answered once"
    );
    let sent: u64 = driver.sent.iter().sum();
    prop_assert_eq!(driver.answered_by_memory, sent);
    prop_assert_eq!(driver.mshrs.busy_registers(), 0);
    let traffic = driver.memory.traffic();
    prop_assert_eq!(traffic.requests(), sent);
    let occupied: u64 = Content::ALL.iter().map(|&c| driver.cache.occupancy_lines(c)).sum();
    prop_assert_eq!(occupied, driver.cache.valid_lines());
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..60u64, 0..24u64, any::<bool>(), any::<bool>()), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Over a flat memory. All blocks are 64 bytes: 8 chunks of 5 cycles each.
    #[test]
    fn flat_memory_conserves(steps in steps()) {
        let driver = run(FlatBus::new(FlatBusConfig::LHASH).expect("valid"), &steps);
        check(&driver)?;
        let sent: u64 = driver.sent.iter().sum();
        prop_assert_eq!(driver.memory.traffic().bytes(), sent * 64);
        prop_assert_eq!(driver.memory.bus_busy_cycles(), sent * 8 * 5);
    }

    /// Over a DDR memory, whose bursts are as large as the blocks.
    #[test]
    fn ddr_memory_conserves(steps in steps()) {
        for config in [DdrConfig::ddr3_1600(2, 3200), DdrConfig::ddr4_2400(1, 2000)] {
            let driver = run(Ddr::new(config.expect("valid")).expect("valid"), &steps);
            check(&driver)?;
            let statistics = driver.memory.statistics();
            let over_the_bus = driver.sent.iter().sum::<u64>() - statistics.forwarded_reads;
            prop_assert_eq!(driver.memory.traffic().bytes(), over_the_bus * 64);
            prop_assert_eq!(statistics.bus_busy_clocks, over_the_bus * 4);
            let rows = statistics.row_hits + statistics.row_misses + statistics.row_conflicts;
            prop_assert_eq!(rows, over_the_bus);
        }
    }

    /// Requests of any size and alignment: the flat bus moves whole chunks, DDR every burst that is
    /// touched, and each request is answered once.
    #[test]
    fn the_bus_moves_whole_transfers(requests in prop::collection::vec((0..9u64, 0..2000u64, 0..700u32), 1..60)) {
        let mut flat = FlatBus::new(FlatBusConfig::LHASH).expect("valid");
        let mut ddr = Ddr::new(DdrConfig::ddr3_1600(2, 3200).expect("valid")).expect("valid");
        let (mut chunks, mut bursts) = (0, 0);
        for memory in [&mut flat as &mut dyn Memory, &mut ddr] {
            let (mut now, mut answered) = (0, Vec::new());
            for (id, &(gap, address, size_bytes)) in requests.iter().enumerate() {
                now += gap;
                let (access, content) = (Access::Read, Content::Data);
                let request = Request { id: id as u64, address, size_bytes, access, content };
                while memory.send(now, request).is_err() {
                    now = now.max(memory.next_event().expect("an answer makes room"));
                    memory.advance(now, &mut answered);
                }
            }
            while let Some(next) = memory.next_event() {
                memory.advance(next, &mut answered);
            }
            let mut ids: Vec<_> = answered.iter().map(|completion| completion.id).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..requests.len() as u64).collect::<Vec<_>>());
        }
        for &(_, address, size_bytes) in &requests {
            // Byte by byte: which chunks of the request, which blocks of memory. An empty request
            // is one.
            let bytes = 0..u64::from(size_bytes.max(1));
            chunks += bytes.clone().map(|i| i / 8).collect::<std::collections::BTreeSet<_>>().len();
            bursts += bytes.map(|i| (address + i) / 64).collect::<std::collections::BTreeSet<_>>().len();
        }
        prop_assert_eq!(flat.traffic().bytes(), chunks as u64 * 8);
        prop_assert_eq!(ddr.traffic().bytes(), bursts as u64 * 64);
    }
}
