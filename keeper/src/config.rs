//! What a run is told: sizes, limits and policies. Values arrive checked from the command line.

use std::ffi::OsString;
use std::path::PathBuf;

/// Bytes in a page; the unit in which the keeper moves memory.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of the Bonsai tree's trusted node cache unless the user says otherwise.
pub const DEFAULT_NODE_CACHE_BYTES: usize = 256 * 1024;

/// How large the Clear (the plaintext working set, Cryptkeeper section II) may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearSize {
    /// A fixed number of bytes.
    Bytes(u64),
    /// A share, in percent (1..=100), of the anonymous memory that the program uses
    /// (Cryptkeeper section VI.B), never below [`ClearSize::FLOOR_BYTES`].
    Percent(u8),
}

impl ClearSize {
    /// The least that a percentage can come to, and the least that a fixed size may be.
    pub const FLOOR_BYTES: u64 = 2 * 1024 * 1024;
}

impl Default for ClearSize {
    fn default() -> Self {
        ClearSize::Percent(25)
    }
}

/// What becomes of a program whose memory was tampered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnViolation {
    /// Every process of the run is killed.
    #[default]
    Kill,
    /// The page is poisoned; whoever touches it receives SIGBUS. The run still reports the violation.
    Sigbus,
}

/// Everything that [`crate::run`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bound on plaintext.
    pub clear: ClearSize,
    /// The most bytes of ciphertext kept in RAM (the Crypt); none: no limit.
    pub crypt_limit_bytes: Option<u64>,
    /// A file to be created for pages that do not fit the Crypt.
    pub swap: Option<PathBuf>,
    /// Size of the trusted node cache.
    pub node_cache_bytes: usize,
    /// What a violation does.
    pub on_violation: OnViolation,
    /// Lets `casemate attack --pid` reach the untrusted stores of this run, and only this one.
    pub attackable: bool,
    /// Runs what cannot be protected (setuid, 32-bit) all the same, and counts it.
    pub allow_unprotected: bool,
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
}

impl Config {
    /// A run of `command` with every default.
    #[must_use]
    pub fn new(command: Vec<OsString>) -> Self {
        Config {
            clear: ClearSize::default(),
            crypt_limit_bytes: None,
            swap: None,
            node_cache_bytes: DEFAULT_NODE_CACHE_BYTES,
            on_violation: OnViolation::default(),
            attackable: false,
            allow_unprotected: false,
            command,
        }
    }
}
