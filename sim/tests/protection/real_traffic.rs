//! Cycles against bytes on the traffic of a real program, and its loads against what its processor
//! saw: three units of one scheme, asked the same, one with the program's bytes, one in cycles, one
//! that follows what cycles touch.

use casemate_core::violation::Violation;
use casemate_schemes::catalogue::SCHEMES;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::scheme::UnitSize;
use casemate_schemes::unit::{BlockAddress, PageAddress};
use casemate_sim::lockstep::machine::PlainUnit;
use casemate_sim::lockstep::{BlockUnit, Lockstep, LockstepConfig};
use casemate_sim::machine::backing::Backing;
use casemate_sim::protection::{Difference, ProtectionConfig, Twin};
use casemate_sim::trace::live::{Live, Options, Which};
use casemate_sim::trace::{Instruction, Source};

use super::common::{FREE_BUS, Machine, block, own, page};
use super::tracers::there;

const FRAMES: u64 = 2048;

struct Three {
    bytes: PlainUnit,
    cycles: Machine,
    twin: Twin,
    now: u64,
    followed: Result<(), Difference>,
}

impl Three {
    /// The names that a block has for the unit in cycles: frames are virtual pages there, which is
    /// all the same to it.
    fn block(at: BlockAddress) -> casemate_sim::machine::backing::BlockAddresses {
        let virtual_address = at.virtual_byte_address();
        casemate_sim::machine::backing::BlockAddresses {
            virtual_address,
            ..block(at.physical() * 64)
        }
    }

    fn follow(&mut self) {
        self.cycles.settle();
        let record = self.cycles.unit.take_record();
        if self.followed.is_ok() {
            self.followed = self.twin.follow(&record);
        }
    }

    fn later(&mut self) {
        self.now += 1000;
        self.cycles.pass_until(self.now);
    }
}

impl BlockUnit for Three {
    fn allocate(&mut self, at: PageAddress) -> Result<(), Violation> {
        let virtual_address = at.virtual_page * 4096;
        let page = page(at.frame * 4096);
        let page = casemate_sim::machine::backing::PageAddresses { virtual_address, ..page };
        self.cycles.unit.touch_page(page, &mut self.cycles.timeline);
        self.follow();
        BlockUnit::allocate(&mut self.bytes, at)
    }

    fn read(&mut self, at: BlockAddress) -> Result<[u8; 64], Violation> {
        self.later();
        self.cycles.unit.read(Three::block(at), &mut self.cycles.timeline);
        self.follow();
        BlockUnit::read(&mut self.bytes, at)
    }

    fn write(&mut self, at: BlockAddress, plain: &[u8; 64]) -> Result<(), Violation> {
        self.later();
        self.cycles.unit.write_back(Three::block(at), &mut self.cycles.timeline);
        self.follow();
        BlockUnit::write(&mut self.bytes, at, plain)
    }

    fn drop_clean(&mut self, at: BlockAddress, plain: &[u8; 64]) -> Result<(), Violation> {
        self.later();
        self.cycles.unit.drop_clean(Three::block(at), &mut self.cycles.timeline);
        self.follow();
        BlockUnit::drop_clean(&mut self.bytes, at, plain)
    }

    fn check(&mut self) -> Result<(), Violation> {
        self.later();
        self.cycles.unit.check(&mut self.cycles.timeline);
        self.follow();
        BlockUnit::check(&mut self.bytes)
    }
}

#[test]
fn a_real_program_touches_the_same_blocks_on_bytes_and_in_cycles() {
    let program = "/bin/gzip";
    if !there(Which::Qemu) || !std::path::Path::new(program).exists() {
        eprintln!("SKIPPED: no gzip or no QEMU here");
        return;
    }
    let protection = ProtectionConfig {
        memory_bytes: FRAMES * 4096,
        counters: own(16, 1),
        nodes: own(8, 1),
        ..ProtectionConfig::AISE_BMT
    };
    let lockstep = LockstepConfig { frames: FRAMES, ..LockstepConfig::default() };
    let mut machines: Vec<_> = SCHEMES
        .iter()
        .map(|named| {
            let size = UnitSize::new(FRAMES, 16 << 10);
            let bytes = named.scheme.without_pages(SparseMemory::default(), size, &[1; 32]);
            let mut cycles = Machine::new(&named.name, &protection, FREE_BUS);
            cycles.unit.record();
            let twin = Twin::new(&named.scheme, &protection).expect("it can be built");
            let bytes = bytes.expect("it can be built");
            let three = Three { bytes, cycles, twin, now: 0, followed: Ok(()) };
            (&named.name, Lockstep::above(three, &lockstep).expect("there is such a cache"))
        })
        .collect();
    let command = vec![program.into(), "--help".into()];
    let options = Options { command, skip: 0, length: None, values: true, with: Some(Which::Qemu) };
    let mut live = Live::start(&options).expect("the program starts");
    let mut record = Instruction::default();
    while live.next(&mut record).expect("it is recorded") {
        for (name, machine) in &mut machines {
            assert_eq!(machine.step(&record), Ok(()), "{name}");
        }
    }
    for (name, machine) in &mut machines {
        assert_eq!(machine.check(), Ok(()), "{name}");
        let fetched = machine.compared().fetched_blocks;
        let three = machine.unit_mut();
        assert_eq!(three.followed, Ok(()), "{name}");
        assert!(fetched > 500 && three.twin.compared() > 2 * fetched, "{name}: {fetched}");
    }
}
