//! What every trap needs: a seeded pattern, memory that is checked against it, children that
//! report.

pub mod children;
pub mod pattern;
pub mod region;
pub mod sys;

pub use children::{Child, in_child};
pub use pattern::{Rng, explain, word};
pub use region::{Ballast, Region};
pub use sys::Trouble;

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// 64-bit words in a page.
pub const WORDS: usize = PAGE / 8;

/// What a trap ends with.
pub type Verdict = Result<(), Trouble>;

/// What the command line said.
#[derive(Clone, Debug)]
pub struct Options {
    /// The working set, in MiB.
    pub mib: usize,
    /// Seed of every random choice and of the pattern.
    pub seed: u64,
    /// How many accesses the oracle makes.
    pub accesses: u64,
    /// Threads of the oracle.
    pub threads: usize,
    /// A thread of the oracle forks once in so many accesses.
    pub fork_every: u64,
    /// Steps that the oracle leaves out, in a search for a cause: `drop,move,fork`.
    pub without: String,
    /// The oracle corrupts one byte of its own memory and must notice.
    pub canary: bool,
    /// `glutton` asks for huge pages.
    pub huge: bool,
    /// What `marker` does with its memory: `plain`, `forks`, `moves`, `threads`, `exec`, `filter`,
    /// `data` or `pinned`. `held`: children of `children-write` stay for a while when they have
    /// written.
    pub mode: String,
    /// What `marker` plants, 16 bytes.
    pub marker: [u8; 16],
    /// The longest that `marker` stays, or the first phase of `phases`, in seconds.
    pub seconds: u64,
    /// A file that a trap writes its result to, or works on. The oracle goes on while it is there.
    pub file: Option<std::path::PathBuf>,
    /// How many more times a trap executes itself.
    pub depth: usize,
}

impl Options {
    /// Pages of the whole working set.
    pub fn pages(&self) -> usize {
        self.mib * (1 << 20) / PAGE
    }
}
