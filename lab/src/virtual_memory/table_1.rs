//! AISE/BMT's Table 1, executed: what an operating system can do with pages under each kind of
//! seeds.
//!
//! Each service is run twice: once by a manager that shares and moves ciphertext whatever the seeds
//! are, to see whether it holds; once by one that encrypts anew where it does not, to see what that
//! costs. Both times every (key, seed) pair that reaches the cipher is written down.

mod services;

pub use services::Service;

use super::{Care, MemorySize, VirtualMemory, VmError};
use casemate_schemes::counters::Organisation;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{Capacity, EncryptionKind, IntegrityKind};
use casemate_schemes::unit::seed::SeedScheme;

/// A service with ciphertext shared and moved as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsItIs {
    /// Whether every process read what it should.
    pub right: bool,
    /// Pads that were used before.
    pub pads_used_twice: u64,
}

/// A service with ciphertext encrypted anew where seeds ask for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Careful {
    /// Whether every process read what it should. Anything else is a defect.
    pub right: bool,
    /// Blocks that were.
    pub reencrypted_blocks: u64,
    /// Pads that were used before.
    pub pads_used_twice: u64,
}

/// What came of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// With ciphertext as it is.
    pub as_it_is: AsItIs,
    /// With what it takes. `None` if it cannot be had at all.
    pub careful: Option<Careful>,
}

impl Outcome {
    /// Whether ciphertext could be left as it is: everything was read right, and no pad gave
    /// anything away.
    pub fn holds(&self) -> bool {
        self.as_it_is.right && self.as_it_is.pads_used_twice == 0
    }
}

/// A counter that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Writes of one block until then.
    pub writes: u64,
    /// Blocks that were encrypted anew for it, in memory and on disk.
    pub reencrypted_blocks: u64,
}

/// What the paper's table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaperCells {
    /// The column.
    pub column: &'static str,
    /// *IPC Support*.
    pub ipc_support: &'static str,
    /// *Other Issues*.
    pub other_issues: &'static str,
    ipc: bool,
    reencrypts_on_swap: bool,
}

/// A kind of seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What seeds are made of.
    pub seeds: &'static str,
    /// What the paper says.
    pub paper: PaperCells,
    /// What came of each service, in the order of [`Service::ALL`].
    pub outcomes: [Outcome; Service::ALL.len()],
    /// What an overflow cost; `None` if there was none in [`MOST_WRITES`].
    pub overflow: Option<Overflow>,
    /// Bits of the counter that overflowed, where they are not the scheme's own.
    pub overflow_stands_in: Option<u32>,
}

impl Row {
    /// What came of a service.
    pub fn outcome(&self, service: Service) -> Outcome {
        self.outcomes[service as usize]
    }

    /// Whether IPC and swap came out as the paper says.
    pub fn agrees(&self) -> bool {
        let swap = self.outcome(Service::Swap);
        let reencrypts = swap.careful.is_none_or(|careful| careful.reencrypted_blocks > 0);
        self.outcome(Service::Ipc).holds() == self.paper.ipc
            && reencrypts == self.paper.reencrypts_on_swap
            && swap.holds() != reencrypts
    }
}

/// Writes in which a counter may overflow.
pub const MOST_WRITES: u64 = 1 << 15;
/// A counter that is used up soon, in place of one of 32 bits.
const STAND_IN_BITS: u32 = 14;

const GLOBAL: PaperCells = PaperCells {
    column: "Global Counter",
    ipc_support: "Yes",
    other_issues: "None",
    ipc: true,
    reencrypts_on_swap: false,
};
const PHYSICAL: PaperCells = PaperCells {
    column: "Counter (Phys Addr)",
    ipc_support: "Yes",
    other_issues: "Re-enc on page swap",
    ipc: true,
    reencrypts_on_swap: true,
};
const VIRTUAL: PaperCells = PaperCells {
    column: "Counter (Virt Addr)",
    ipc_support: "No shared-memory IPC",
    other_issues: "VA storage in L2",
    ipc: false,
    reencrypts_on_swap: false,
};
const AISE: PaperCells = PaperCells {
    column: "AISE",
    ipc_support: "Yes",
    other_issues: "None",
    ipc: true,
    reencrypts_on_swap: false,
};

/// The kinds of seeds, with the counters that go with them.
pub const SEEDS: [(&str, EncryptionKind, PaperCells); 6] = [
    ("global counter, 64 bits", EncryptionKind::GlobalCounter { bits: 64 }, GLOBAL),
    ("global counter, 32 bits", EncryptionKind::GlobalCounter { bits: 32 }, GLOBAL),
    ("physical address, block counter", addressed(SeedScheme::PhysicalAddress), PHYSICAL),
    ("virtual address, block counter", addressed(SeedScheme::VirtualAddress), VIRTUAL),
    (
        "process, virtual address, block counter",
        addressed(SeedScheme::ProcessAndVirtualAddress),
        VIRTUAL,
    ),
    (
        "AISE: LPID, minor counter",
        EncryptionKind::CounterMode {
            seeds: SeedScheme::LogicalPage,
            organisation: Organisation::AISE,
        },
        AISE,
    ),
];

const fn addressed(seeds: SeedScheme) -> EncryptionKind {
    EncryptionKind::CounterMode { seeds, organisation: Organisation::MONOLITHIC_64 }
}

/// Encryption alone: an integrity scheme would stop what is to be seen here.
fn scheme(encryption: EncryptionKind) -> Scheme {
    let (algorithms, mac_placement) = (Algorithms::AISE_BMT, MacPlacement::Region);
    let integrity = IntegrityKind::None;
    Scheme { encryption, integrity, algorithms, mac_placement, line_blocks: 1 }
}

/// Few frames, so that pages go to disk and come back elsewhere.
const SIZE: MemorySize = MemorySize {
    frames: 12,
    unit_frames: 0,
    swap_slots: 24,
    metadata_cache: Capacity::Bytes(2048),
};
/// Nothing here depends on it.
const SECRET: [u8; 32] = [0x71; 32];

/// Memory whose pads are written down.
pub(super) type Recorded = VirtualMemory<SparseMemory>;

/// Runs the table.
///
/// # Errors
/// Everything that the manager refuses or finds beside what the table is about.
pub fn table_1() -> Result<Vec<Row>, VmError> {
    SEEDS.into_iter().map(|(seeds, encryption, paper)| row(seeds, encryption, paper)).collect()
}

fn row(seeds: &'static str, encryption: EncryptionKind, paper: PaperCells) -> Result<Row, VmError> {
    let nothing = Outcome { as_it_is: AsItIs { right: false, pads_used_twice: 0 }, careful: None };
    let mut outcomes = [nothing; Service::ALL.len()];
    for (service, outcome) in Service::ALL.into_iter().zip(&mut outcomes) {
        *outcome = executed(service, encryption)?;
    }
    let stands_in = encryption == EncryptionKind::GlobalCounter { bits: 32 };
    let overflow_stands_in = stands_in.then_some(STAND_IN_BITS);
    let overflow = overflow(match overflow_stands_in {
        Some(bits) => EncryptionKind::GlobalCounter { bits },
        None => encryption,
    })?;
    Ok(Row { seeds, paper, outcomes, overflow, overflow_stands_in })
}

fn executed(service: Service, encryption: EncryptionKind) -> Result<Outcome, VmError> {
    let mut memory = recorded(encryption, Care::Careless)?;
    let right = service.run(&mut memory)?;
    let as_it_is = AsItIs { right, pads_used_twice: pads_used_twice(&mut memory) };
    let mut memory = recorded(encryption, Care::Careful)?;
    let careful = match service.run(&mut memory) {
        Err(VmError::CannotShare) => None,
        Err(error) => return Err(error),
        Ok(right) => Some(Careful {
            right,
            reencrypted_blocks: memory.counts().reencrypted_blocks,
            pads_used_twice: pads_used_twice(&mut memory),
        }),
    };
    Ok(Outcome { as_it_is, careful })
}

/// Writes one block again and again while there are pages in memory and on disk.
fn overflow(encryption: EncryptionKind) -> Result<Option<Overflow>, VmError> {
    let mut memory = recorded(encryption, Care::Careful)?;
    let process = memory.spawn();
    memory.switch_to(process)?;
    for page in 0..SIZE.frames + 4 {
        memory.map(process, page)?;
    }
    // It stays in memory from now on.
    memory.read(0, 0)?;
    let before = memory.counts().reencrypted_blocks;
    for writes in 1..=MOST_WRITES {
        memory.write(0, 0, &[0xc3; 64])?;
        let on_disk = memory.counts().reencrypted_blocks - before;
        let reencrypted_blocks = memory.unit_mut().reencrypted_blocks() + on_disk;
        if reencrypted_blocks > 0 {
            return Ok(Some(Overflow { writes, reencrypted_blocks }));
        }
    }
    Ok(None)
}

fn recorded(encryption: EncryptionKind, care: Care) -> Result<Recorded, VmError> {
    let memory = SparseMemory::default();
    let mut memory = VirtualMemory::new(&scheme(encryption), memory, SIZE, care, &SECRET)?;
    memory.unit_mut().port_mut().log_seeds();
    Ok(memory)
}

/// How many of the pads were used before.
fn pads_used_twice(memory: &mut Recorded) -> u64 {
    let used = &memory.unit_mut().port_mut().used_seeds().log;
    let mut used = used.clone().unwrap_or_default();
    let all = used.len();
    used.sort_unstable();
    used.dedup();
    (all - used.len()) as u64
}
