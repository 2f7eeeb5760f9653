//! Epochs with an operating system: processes that fork, pages that leave and come back, and
//! strikes at what lies on disk, at its page roots, and at the pages of two processes (AISE/BMT,
//! section 5.1).

use std::collections::BTreeMap;

use super::epoch::MOST_OPERATIONS;
use super::governor::{self, metadata_cache};
use super::memory::{HostileMemory, Image};
use super::strike::Attack;
use super::unit::FRAMES;
use super::verdict::{Released, Verdict, verdict};
use crate::virtual_memory::{Care, MemorySize, ProcessId, VirtualMemory, VmError};
use casemate_core::checks::Checks;
use casemate_core::random::Random;
use casemate_schemes::unit::port::UnitPort;
use casemate_schemes::unit::scheme::{Residency, SchemeError};
use casemate_schemes::unit::{BLOCK_BYTES, Block, BlockAddress, PAGE_BLOCKS, Scheme};

/// Frames for programs: few, so that pages leave by themselves, too. The unit has more.
const PROGRAM_FRAMES: u64 = 6;
const SWAP_SLOTS: u64 = 10;
/// Pages of a process.
const PAGES: u64 = 3;
/// Processes, with forked ones.
const MOST_PROCESSES: usize = 4;
/// Operations of traffic from one such event to the next, on average.
const SWAP_ONE_IN: u64 = 12;
const FORK_ONE_IN: u64 = 40;

/// A block as a process sees it.
type At = (ProcessId, u64, u64);

/// What the disk and memory were like when a page had left.
struct Old {
    bytes: Vec<u8>,
    memory: Image,
}

/// An epoch under way.
struct Epoch<C: Checks> {
    memory: VirtualMemory<HostileMemory, C>,
    residency: Residency,
    processes: Vec<ProcessId>,
    oracle: BTreeMap<At, Block>,
    random: Random,
    operations: u64,
}

/// Runs one epoch. Returns the verdict and the operations that it took.
pub(super) fn run<C: Checks>(
    scheme: &Scheme,
    residency: Residency,
    attack: Attack,
    seed: u64,
) -> Result<(Verdict, u64), SchemeError> {
    let mut random = Random::new(seed);
    let mut secret = [0; 32];
    random.fill(&mut secret);
    let size = MemorySize {
        frames: PROGRAM_FRAMES,
        unit_frames: FRAMES,
        swap_slots: SWAP_SLOTS,
        metadata_cache: metadata_cache(residency),
    };
    let memory =
        VirtualMemory::<_, C>::new(scheme, HostileMemory::default(), size, Care::Careful, &secret);
    let memory = memory.map_err(|error| match error {
        VmError::Scheme(error) => error,
        VmError::Violation(violation) => SchemeError::Boot(violation),
        other => panic!("an empty memory refuses nothing: {other}"),
    })?;
    let (processes, oracle) = (Vec::new(), BTreeMap::new());
    let mut epoch = Epoch::<C> { memory, residency, processes, oracle, random, operations: 0 };
    let verdict = epoch.attacked(attack).unwrap_or(Verdict::Void);
    Ok((verdict, epoch.operations))
}

impl<C: Checks> Epoch<C> {
    /// The traffic, the strike and the verdict. `None` if the scheme has nothing for this attack.
    fn attacked(&mut self, attack: Attack) -> Option<Verdict> {
        for _ in 0..2 {
            self.spawn();
        }
        self.traffic(MOST_OPERATIONS);
        let victim = self.any_block();
        let struck = match attack {
            Attack::ReplaySwapped => self.replay_swapped(victim),
            Attack::ReplayPageRoot => self.replay_page_root(victim)?,
            Attack::SpliceProcesses => self.splice_processes(victim),
            Attack::SpliceSwapped => self.splice_swapped(victim),
            _ => return None,
        };
        if !struck {
            return Some(Verdict::Void);
        }
        let mut released = Released::default();
        let found = self.read(victim, &mut released).is_err()
            || self.read_everything(&mut released).is_err();
        let unit = self.memory.unit_mut();
        let corrected = unit.port_mut().corrections().blocks > 0;
        Some(verdict(found, &released, unit.checks_at_intervals(), corrected))
    }

    /// A page on disk, as it was when it was there before.
    fn replay_swapped(&mut self, victim: At) -> bool {
        let (slot, old) = self.leaves_twice(victim);
        self.change_disk(slot, old.bytes)
    }

    /// The same, with the page root that belonged to it. `None` if there is no directory.
    fn replay_page_root(&mut self, victim: At) -> Option<bool> {
        let (slot, old) = self.leaves_twice(victim);
        let record = self.memory.record(slot)?;
        let record = self.memory.unit_mut().anatomy(record);
        // The nodes above it, too, if there are any and the attacker thinks of them.
        let with_nodes = !record.path.is_empty() && self.random.one_in(2);
        let replay =
            if with_nodes { Attack::ReplaySubtree } else { Attack::ReplayDataMacAndCounter };
        let memory = self.memory.unit_mut().port_mut().memory_mut();
        let changed = replay.strike(memory, &record, &record, &old.memory, &mut self.random);
        Some(self.change_disk(slot, old.bytes) && changed)
    }

    /// Two blocks of different processes, in memory, with their MACs; often at one virtual address.
    fn splice_processes(&mut self, victim: At) -> bool {
        let Some(other) = self.block_of_another(victim) else { return false };
        self.write(other);
        self.write(victim);
        self.memory.unit_mut().flush().expect("memory is intact");
        let (Some(victim), Some(other)) = (self.lies_at(victim), self.lies_at(other)) else {
            return false;
        };
        let unit = self.memory.unit_mut();
        let (victim, other) = (unit.anatomy(victim), unit.anatomy(other));
        let memory = unit.port_mut().memory_mut();
        let nothing_old = memory.image();
        Attack::SplicePages.strike(memory, &victim, &other, &nothing_old, &mut self.random)
    }

    /// Two pages on disk.
    fn splice_swapped(&mut self, victim: At) -> bool {
        let Some(other) = self.block_of_another(victim) else { return false };
        self.write(other);
        self.write(victim);
        let (victim, other) = (self.leaves(victim), self.leaves(other));
        let disk = self.memory.disk_mut();
        let (in_victim, in_other) = (disk.read(victim), disk.read(other));
        disk.write(other, in_victim);
        self.change_disk(victim, in_other)
    }

    /// A page leaves with new contents again and again, until a slot is its own for the second
    /// time. What was there the first time is what is replayed.
    fn leaves_twice(&mut self, victim: At) -> (u64, Old) {
        let mut before = BTreeMap::new();
        loop {
            self.write(victim);
            let slot = self.leaves(victim);
            self.memory.unit_mut().flush().expect("memory is intact");
            if let Some(old) = before.remove(&slot) {
                return (slot, old);
            }
            let bytes = self.memory.disk_mut().read(slot);
            let memory = self.memory.unit_mut().port_mut().memory_mut().image();
            before.insert(slot, Old { bytes, memory });
            let few = self.random.below(8);
            self.traffic(few);
        }
    }

    /// Sends a page to disk. That is as many operations as the page has blocks.
    fn leaves(&mut self, (process, page, _): At) -> u64 {
        self.operations += PAGE_BLOCKS;
        self.memory.swap_out(process, page).expect("memory is intact");
        let slot = self.memory.slot(process, page).expect("it is mapped");
        slot.expect("it has just left")
    }

    fn lies_at(&self, (process, page, block): At) -> Option<BlockAddress> {
        let page = self.memory.resident(process, page).expect("it is mapped");
        page.map(|page| page.block(block))
    }

    fn change_disk(&mut self, slot: u64, bytes: Vec<u8>) -> bool {
        let disk = self.memory.disk_mut();
        let changed = disk.read(slot) != bytes;
        disk.write(slot, bytes);
        changed
    }

    fn spawn(&mut self) {
        let process = self.memory.spawn();
        for page in 0..PAGES {
            self.memory.map(process, page).expect("there is room for every process");
        }
        self.processes.push(process);
    }

    fn fork(&mut self) {
        if self.processes.len() == MOST_PROCESSES {
            return;
        }
        let Some(parent) = self.random.pick(&self.processes) else { return };
        let child = self.memory.fork(parent).expect("memory is intact");
        let inherited = self.oracle.range((parent, 0, 0)..=(parent, u64::MAX, u64::MAX));
        let inherited: Vec<_> = inherited.map(|((_, page, at), b)| (*page, *at, *b)).collect();
        for (page, block, contents) in inherited {
            self.oracle.insert((child, page, block), contents);
        }
        self.processes.push(child);
    }

    fn traffic(&mut self, most: u64) {
        for _ in 0..1 + self.random.below(most.max(1)) {
            let at = self.any_block();
            if self.random.one_in(2) {
                self.write(at);
            } else {
                // Before any attack: an error here is the scheme's own fault, and shows.
                let mut released = Released::default();
                let read = self.read(at, &mut released);
                assert_eq!((read, released.wrong), (Ok(()), false), "before any attack, at {at:?}");
            }
            if self.random.one_in(SWAP_ONE_IN) {
                let at = self.any_block();
                self.leaves(at);
            }
            if self.random.one_in(FORK_ONE_IN) {
                self.fork();
            }
        }
    }

    fn write(&mut self, at: At) {
        let mut block = [0; BLOCK_BYTES];
        self.random.fill(&mut block);
        let (process, page, number) = at;
        let switched = self.memory.switch_to(process);
        let written = switched.and_then(|()| self.memory.write(page, number, &block));
        written.expect("memory is intact");
        self.operations += 1;
        self.oracle.insert(at, block);
        self.throw_out().expect("memory is intact");
    }

    /// Lines of metadata leave the chip, if they are not replaced by others.
    fn throw_out(&mut self) -> Result<(), VmError> {
        let memory = self.memory.unit_mut().port_mut().memory_mut();
        let victims = governor::victims(self.residency, memory, &mut self.random);
        victims.into_iter().try_for_each(|line| self.memory.unit_mut().evict_metadata(line))?;
        Ok(())
    }

    fn read(&mut self, at: At, released: &mut Released) -> Result<(), VmError> {
        self.operations += 1;
        let (process, page, number) = at;
        self.memory.switch_to(process)?;
        let block = self.memory.read(page, number)?;
        let expected = self.oracle.get(&at).copied().unwrap_or([0; BLOCK_BYTES]);
        released.wrong |= block != expected;
        self.throw_out()
    }

    /// Reads all that any process sees, and has it checked.
    fn read_everything(&mut self, released: &mut Released) -> Result<(), VmError> {
        for process in self.processes.clone() {
            for page in 0..PAGES {
                (0..PAGE_BLOCKS).try_for_each(|at| self.read((process, page, at), released))?;
            }
        }
        Ok(self.memory.unit_mut().check()?)
    }

    /// Few blocks, so that some are written often.
    fn any_block(&mut self) -> At {
        let process = self.random.pick(&self.processes).expect("there are two from the beginning");
        (process, self.random.below(PAGES), self.random.below(8))
    }

    fn block_of_another(&mut self, (process, page, block): At) -> Option<At> {
        let others: Vec<_> = self.processes.iter().copied().filter(|p| *p != process).collect();
        let other = self.random.pick(&others)?;
        // Often the same place of both: an identity that is a virtual address would miss it.
        if self.random.one_in(2) {
            return Some((other, page, block));
        }
        Some((other, self.random.below(PAGES), self.random.below(PAGE_BLOCKS)))
    }
}
