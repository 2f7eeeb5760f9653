//! The agent's code and how its region of the program is laid out:
//! guard page, stack, bootstrap page, code.
use casemate_agent::{BOOTSTRAP_BYTES, PAGE_BYTES};
use std::ops::Range;

/// The agent, which has no dependencies, has the number from nowhere else.
const _: () = assert!(PAGE_BYTES == casemate_core::PAGE_BYTES as u64);

const STACK: u64 = 4 * PAGE_BYTES;
const CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.bin"));
/// Offsets of the words that hold addresses within the code.
const GOT: &[usize] = include!(concat!(env!("OUT_DIR"), "/agent_got.rs"));

/// The agent's region in the program's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    base: u64,
    /// It takes the place of memory that the program reserved and never used.
    replaces: bool,
}

impl Region {
    pub(super) const BYTES: u64 =
        PAGE_BYTES + STACK + PAGE_BYTES + (CODE.len() as u64).next_multiple_of(PAGE_BYTES);
    /// The guard page's size.
    pub(super) const GUARD_BYTES: u64 = PAGE_BYTES;
    /// Size of what is written to: stack and bootstrap page.
    pub(super) const DATA_BYTES: u64 = STACK + PAGE_BYTES;

    /// The addresses of regions. The filter (`filter.rs`) lets calls from there pass unannounced.
    /// The range ends below a third of the address space, where the kernel's older layout puts
    /// libraries.
    pub(super) const PLACES: Range<u64> = 0x2000_0000_0000..0x2a00_0000_0000;

    pub(super) fn at(base: u64) -> Region {
        Region { base, replaces: false }
    }

    /// A region in `range`, which has room for it, at a page that `random` draws.
    pub(super) fn within(range: &Range<u64>, random: u64, replaces: bool) -> Region {
        let pages = (range.end - range.start - Self::BYTES) / PAGE_BYTES + 1;
        Region { base: range.start + random % pages * PAGE_BYTES, replaces }
    }

    /// Whether the filter lets calls from there pass.
    pub(super) fn is_in_place(self) -> bool {
        Self::PLACES.start <= self.base && self.range().end <= Self::PLACES.end
    }

    pub(super) fn replaces(self) -> bool {
        self.replaces
    }

    pub(super) fn base(self) -> u64 {
        self.base
    }

    pub(super) fn data(self) -> u64 {
        self.base + PAGE_BYTES
    }

    pub(super) fn bootstrap(self) -> u64 {
        self.base + PAGE_BYTES + STACK
    }

    /// The agent's first instruction.
    pub(super) fn code(self) -> u64 {
        self.bootstrap() + PAGE_BYTES
    }

    pub(super) fn range(self) -> Range<u64> {
        self.base..self.base + Self::BYTES
    }

    /// The bytes of the code at [`Region::code`].
    pub(super) fn code_bytes(self) -> Vec<u8> {
        let mut code = CODE.to_vec();
        for at in GOT {
            let mut word = [0; 8];
            word.copy_from_slice(&code[*at..at + 8]);
            let moved = u64::from_le_bytes(word).wrapping_add(self.code());
            code[*at..at + 8].copy_from_slice(&moved.to_le_bytes());
        }
        code
    }

    /// The filter's address in the bootstrap page: first the `sock_fprog` that `seccomp` reads,
    /// then the instructions. Not needed once the filter is set.
    pub(super) fn filter(self) -> u64 {
        self.bootstrap() + 256
    }

    /// The word that lets the agent make its first call.
    pub(super) fn go(self) -> u64 {
        self.bootstrap() + 24
    }

    /// The word that is not 0 if the first new process is the agent, and no intermediate.
    pub(super) fn adopts(self) -> u64 {
        self.bootstrap() + 28
    }

    /// The bytes of the bootstrap block at [`Region::bootstrap`]. An agent that `waits` makes no
    /// call before [`Region::go`] is written.
    pub(super) fn bootstrap_bytes(self, magic: u64, waits: bool) -> [u8; BOOTSTRAP_BYTES] {
        let mut block = [0; BOOTSTRAP_BYTES];
        block[..8].copy_from_slice(&magic.to_le_bytes());
        block[16..24].copy_from_slice(&self.bootstrap().to_le_bytes());
        block[24..].copy_from_slice(&u64::from(!waits).to_le_bytes());
        block
    }
}
