//! The configuration of a run: sizes, limits and policies. The command line has checked the values.

pub use casemate_core::PAGE_BYTES;

use crate::sys::process::machine_memory;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How far the plaintext may exceed the Clear's limit, in bytes (SPEC.md, section 10).
pub const CLEAR_ALLOWANCE_BYTES: u64 = 256 << 10;

/// Bytes of the Bonsai tree's trusted node cache unless the user says otherwise.
pub const DEFAULT_NODE_CACHE_BYTES: usize = 256 * 1024;

/// How large the Clear (the plaintext working set, Cryptkeeper section II) may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearSize {
    /// A fixed number of bytes.
    Bytes(u64),
    /// A share of the anonymous memory that the program uses (Cryptkeeper section VI.B).
    Percent(Share),
}

/// A share of the memory that the program uses, with a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// 1..=100.
    pub percent: u8,
    /// At least [`ClearSize::FLOOR_BYTES`].
    pub floor_bytes: u64,
}

impl ClearSize {
    /// The smallest Clear, as a percentage or as a fixed size, in bytes.
    pub const FLOOR_BYTES: u64 = 2 * 1024 * 1024;
    /// The share if none is configured.
    const DEFAULT_PERCENT: u8 = 25;
    /// The lower bound of the default share, in bytes: a small program with only a quarter of its
    /// memory in the Clear would spend its time paging.
    const DEFAULT_FLOOR_BYTES: u64 = 64 * 1024 * 1024;

    /// A share as the user configured it, bounded from below only by [`ClearSize::FLOOR_BYTES`].
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        ClearSize::Percent(Share { percent, floor_bytes: Self::FLOOR_BYTES })
    }

    /// The least that it comes to, in bytes.
    #[must_use]
    pub fn floor_bytes(self) -> u64 {
        match self {
            ClearSize::Bytes(bytes) => bytes,
            ClearSize::Percent(share) => share.floor_bytes,
        }
    }

    /// The default on a machine with `ram_bytes` of memory: a quarter of what the program uses, at
    /// least 64 MiB, or a quarter of the machine's memory if that is less.
    #[must_use]
    pub fn default_for(ram_bytes: u64) -> Self {
        let floor_bytes = Self::DEFAULT_FLOOR_BYTES.min(ram_bytes / 4).max(ClearSize::FLOOR_BYTES);
        ClearSize::Percent(Share { percent: Self::DEFAULT_PERCENT, floor_bytes })
    }
}

/// A size of the Clear that follows the program's working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoSize {
    /// The smallest, with which the run begins: at least [`ClearSize::FLOOR_BYTES`].
    pub least_bytes: u64,
    /// The largest; what is less than `least_bytes` counts as those.
    pub most: ClearSize,
}

impl AutoSize {
    /// The time after which pages are cold that no thread has asked for, unless
    /// [`Config::idle`] says another: what is in use costs a fault a page in it, 0.3 % of a
    /// processor for 64 MiB.
    pub const COLD_AFTER: Duration = Duration::from_secs(30);
}

impl Default for AutoSize {
    /// From the floor of the default size to that size.
    fn default() -> Self {
        let most = ClearSize::default();
        AutoSize { least_bytes: most.floor_bytes(), most }
    }
}

impl Default for ClearSize {
    fn default() -> Self {
        // A machine whose memory size cannot be read counts as large.
        ClearSize::default_for(machine_memory().map_or(u64::MAX, |(ram, _)| ram))
    }
}

/// What happens to a program when its memory fails verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnViolation {
    /// Every process of the run is killed.
    #[default]
    Kill,
    /// The page is poisoned; a thread that touches it receives SIGBUS. The run still reports the
    /// violation.
    Sigbus,
}

/// When a program starts to announce its memory calls, so that new memory cannot exceed the Clear's
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// From its first instruction.
    Strict,
    /// From when it is armed: a program that fits the Clear has no cost.
    Lazy,
}

impl Bound {
    /// The largest Clear for which `Strict` is the default, in bytes: a larger one has room for
    /// what a program touches while it is being armed.
    pub const MOST_STRICT_BYTES: u64 = 32 << 20;

    /// The default for a Clear of this size.
    #[must_use]
    pub fn default_for(clear: ClearSize) -> Self {
        if clear.floor_bytes() <= Self::MOST_STRICT_BYTES { Bound::Strict } else { Bound::Lazy }
    }
}

/// Where the roots of page keys lie while none is derived from them (Cryptkeeper, section VI-D).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyHiding {
    /// In secret memory, as they are.
    #[default]
    MemfdSecret,
    /// Sealed by a TPM 2.0: this character device, or the Unix socket of a simulator.
    Tpm(PathBuf),
    /// Behind an all-or-nothing transform over so many bytes of memory.
    ExposureResilient(usize),
}

/// When a log hash is checked; in any case at the run's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEvery {
    /// Once in this time, at least [`Config::LEAST_CHECK`].
    Time(Duration),
    /// Once so many pages have come back, or a few milliseconds later.
    PagesIn(u64),
    /// At the run's end only.
    Exit,
}

/// What each process of one program may have of the Clear, and when its pages are idle. A process
/// is of the program whose file it executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRule {
    /// The program, as the user named it.
    pub program: OsString,
    /// The last part of its file's path.
    pub name: Option<OsString>,
    /// The whole path of its file, without symbolic links.
    pub path: Option<PathBuf>,
    /// The most plaintext of one process, at least [`ClearSize::FLOOR_BYTES`]; none: the run's.
    pub clear_bytes: Option<u64>,
    /// As [`Config::idle`]; none: the run's.
    pub idle: Option<Duration>,
}

/// Everything that [`crate::run`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bound on plaintext.
    pub clear: ClearSize,
    /// How that changes: it begins with the smallest, whatever `clear` says. None: it does not.
    pub auto: Option<AutoSize>,
    /// When calls are announced; none: see [`Config::bound`].
    pub bound: Option<Bound>,
    /// Pages that no thread has asked for in this time leave the Clear though it has room; none:
    /// they leave when there is no room. At least [`Config::LEAST_IDLE`].
    pub idle: Option<Duration>,
    /// Rules for programs, the first that names one deciding.
    pub programs: Vec<ProgramRule>,
    /// The most bytes of ciphertext kept in RAM (the Crypt); none: no limit.
    pub crypt_limit_bytes: Option<u64>,
    /// A file, to be created, for pages that do not fit the Crypt.
    pub swap: Option<PathBuf>,
    /// Size of the trusted node cache.
    pub node_cache_bytes: usize,
    /// What a violation does.
    pub on_violation: OnViolation,
    /// One or two flipped bits of a stored page are put right, instead of being a violation.
    pub heal: bool,
    /// Every stored page is verified about once in this time; none: when it is asked for. At least
    /// [`Config::LEAST_SCRUB`].
    pub scrub: Option<Duration>,
    /// Where the roots of page keys lie while none is derived from them.
    pub key_hiding: KeyHiding,
    /// Pages get new keys once in this time; none: never. At least [`Config::LEAST_ROTATE`].
    pub rotate: Option<Duration>,
    /// When the log hash is checked by which records are verified; none: a tree verifies them at
    /// once.
    pub log_hash: Option<CheckEvery>,
    /// What the program writes to its standard output and standard error waits for a check. Only
    /// with [`Config::log_hash`].
    pub hold_output: bool,
    /// The hash of what was written of the held output is known at the end.
    pub hash_output: bool,
    /// Lets `casemate attack --pid` reach the untrusted stores of this run, and only this one.
    pub attackable: bool,
    /// Also runs programs that cannot be protected (setuid, 32-bit), and counts their memory.
    pub allow_unprotected: bool,
    /// The run ends if less than this share of its memory is protected, in percent, 0..=100; 0: no
    /// requirement.
    pub required_percent: u8,
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
}

impl Config {
    /// The shortest time after which pages count as idle. Each page in use costs a fault in this
    /// time: a tenth of a processor for 64 MiB in a second.
    pub const LEAST_IDLE: Duration = Duration::from_secs(1);

    /// The shortest time for all stored pages to be verified in: a GiB takes half a second of a
    /// processor.
    pub const LEAST_SCRUB: Duration = Duration::from_secs(1);

    /// The shortest time in which keys are rotated: a GiB takes about two seconds of a processor.
    pub const LEAST_ROTATE: Duration = Duration::from_secs(1);

    /// The shortest time between two checks of a log hash: to check the records of a GiB takes a
    /// twentieth of a second, while which faults wait.
    pub const LEAST_CHECK: Duration = Duration::from_millis(100);

    /// The size that the run begins with.
    #[must_use]
    pub fn first_clear(&self) -> ClearSize {
        self.auto.map_or(self.clear, |auto| ClearSize::Bytes(auto.least_bytes))
    }

    /// When calls are announced: as the user says, else strict where a program has a part of the
    /// Clear, else as the Clear's size has it.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let has_quota = self.programs.iter().any(|rule| rule.clear_bytes.is_some());
        let default = match has_quota {
            true => Bound::Strict,
            false => Bound::default_for(self.first_clear()),
        };
        self.bound.unwrap_or(default)
    }

    /// A run of `command` with every default.
    #[must_use]
    pub fn new(command: Vec<OsString>) -> Self {
        Config {
            clear: ClearSize::default(),
            auto: None,
            bound: None,
            idle: None,
            programs: Vec::new(),
            crypt_limit_bytes: None,
            swap: None,
            node_cache_bytes: DEFAULT_NODE_CACHE_BYTES,
            on_violation: OnViolation::default(),
            heal: false,
            scrub: None,
            key_hiding: KeyHiding::default(),
            rotate: None,
            log_hash: None,
            hold_output: false,
            hash_output: false,
            attackable: false,
            allow_unprotected: false,
            required_percent: 0,
            command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_has_no_room_to_be_late_is_strict() {
        assert_eq!(Bound::default_for(ClearSize::Bytes(32 << 20)), Bound::Strict);
        assert_eq!(Bound::default_for(ClearSize::Bytes((32 << 20) + 1)), Bound::Lazy);
        assert_eq!(Bound::default_for(ClearSize::percent(50)), Bound::Strict);
        assert_eq!(Bound::default_for(ClearSize::default_for(1 << 30)), Bound::Lazy);
    }

    #[test]
    fn the_default_clear_has_a_floor_that_small_machines_can_bear() {
        for (ram_mib, floor_mib) in [(4, 2), (64, 16), (256, 64), (1 << 20, 64)] {
            let floor_bytes = floor_mib << 20;
            let wanted = ClearSize::Percent(Share { percent: 25, floor_bytes });
            assert_eq!(ClearSize::default_for(ram_mib << 20), wanted, "{ram_mib} MiB of RAM");
        }
    }
}
