//! What a run reports when it ends.

use crate::lock::Hex;
use crate::profile::Profile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the protected program ended, or why it was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Ending {
    /// The program called exit.
    Exited {
        /// Its own code.
        code: i32,
    },
    /// The program was ended by a signal that the keeper did not send.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// The kernel could not execute the program.
    NotExecuted {
        /// One sentence: the kernel's reason.
        what: String,
    },
    /// Untrusted memory did not verify; the program was stopped, unless it was to get SIGBUS.
    Violation {
        /// One sentence: where, and what was wrong; never the contents.
        what: String,
    },
    /// A store ran full or failed; the program was stopped, if it had been started.
    StoreFailed {
        /// One sentence: which store, what happened, what to do.
        what: String,
    },
    /// The program, or one that it started, cannot be protected; it was stopped, if it had been
    /// started.
    Unprotectable {
        /// One sentence that says why.
        what: String,
    },
    /// Less of the run's memory was protected than [`crate::Config::required_percent`]; the program
    /// was stopped.
    TooLittleProtected {
        /// One sentence: the share, and what was required. What lay outside is
        /// [`Statistics::unprotected_largest`].
        what: String,
        /// Protected at that moment.
        protected_bytes: u64,
        /// Not protected at that moment.
        unprotected_bytes: u64,
    },
    /// The keeper itself failed; the program was stopped, if it had been started.
    KeeperFailed {
        /// One sentence.
        what: String,
    },
}

/// What memory is that lies outside the protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnprotectedKind {
    /// A file that is mapped `MAP_SHARED`.
    SharedFile,
    /// A file that is mapped `MAP_PRIVATE`, with the copies that writes made of its pages: programs
    /// and libraries.
    PrivateFile,
    /// `MAP_SHARED | MAP_ANONYMOUS`.
    SharedAnonymous,
    /// A file of memfd_create(2).
    Memfd,
    /// A segment of shmget(2).
    SystemV,
    /// Private memory that the kernel did not let be registered, or of a process that runs
    /// unprotected.
    Anonymous,
}

/// Memory of one name and kind that lies outside the protection, in every process that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnprotectedMemory {
    /// The kernel's name for it, as a rule a path, with what cannot be printed escaped; empty if it
    /// has none.
    pub name: String,
    /// What it is.
    pub kind: UnprotectedKind,
    /// Bytes in RAM, summed over the processes.
    pub bytes: u64,
}

/// A page of RAM in which bits flipped again and again, as [`Statistics::failing_frames`] has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingFrame {
    /// Its first byte in the Crypt.
    pub crypt_offset: u64,
    /// Its first byte in the machine's memory, if the keeper may see that (root).
    pub physical_address: Option<u64>,
    /// How often a page was healed there.
    pub times: u64,
    /// The bits that were put right there.
    pub bits: u64,
}

/// Latency of the faults that the keeper served, from reading the message to waking the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultLatency {
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// The slowest.
    pub max_us: f64,
}

/// What the watcher did before the latest look at which programs without an agent had grown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateLook {
    /// When it was, after the watcher began.
    pub after_us: u64,
    /// How late.
    pub late_us: u64,
    /// The time since the look before in which the watcher waited for a processor, as the kernel
    /// counts it.
    pub waited_us: u64,
    /// Whether it went before ordinary threads then.
    pub before_others: bool,
    /// The time since the look before, by what the watcher did: each step of a look, and `sleep`.
    pub parts_us: BTreeMap<String, u64>,
}

/// What became of a rule for a program ([`crate::config::ProgramRule`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUse {
    /// The program, as the user named it, with what cannot be printed escaped.
    pub program: String,
    /// Processes of it that came under the pager.
    pub processes: u64,
    /// What each of them may have of the Clear; none: as much as the run.
    pub clear_bytes_limit: Option<u64>,
    /// The most plaintext of one of them that was seen, with what the pager cannot hold (copies of
    /// file pages).
    pub clear_bytes_peak: u64,
}

/// What one run counted, over all its processes. Bytes are bytes, pages are 4096 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Wall-clock time of the run.
    pub elapsed_s: f64,
    /// Processes of the run that were seen alive, agents not counted. One that lives for less than
    /// the time between two looks can be missed.
    pub processes_seen: u64,
    /// Processes that received an agent because the Clear ran short.
    pub processes_armed: u64,
    /// Times that programs were stopped because they used room faster than eviction could make it.
    pub standstills: u64,
    /// The longest time between two looks of the watcher beyond the pause that it meant to make, in
    /// microseconds: its own work, and what it waited for a processor. Programs that are not
    /// stopped grow unseen for as long.
    pub look_late_us_peak: u64,
    /// The latest look of those that find growth: only there does it matter.
    pub late_look: LateLook,
    /// Times that handlers of the idle class got no processor, and others took over.
    pub starvations: u64,
    /// Faults served (missing and write-protect).
    pub faults: u64,
    /// Each rule for a program, and what came of it.
    pub programs: Vec<ProgramUse>,
    /// Pages decrypted and verified into the Clear, read-ahead included.
    pub pages_in: u64,
    /// Pages encrypted out of the Clear.
    pub pages_out: u64,
    /// Faults on pages never written, served without crypto.
    pub zero_fills: u64,
    /// Faults on pages never written, or dropped, in the place of a mapping of a file.
    pub file_fills: u64,
    /// Private mappings of files (`.data`) whose place plain memory took.
    pub data_mappings_replaced: u64,
    /// Pages found all zero when evicted, dropped without crypto.
    pub zero_evictions: u64,
    /// Pages evicted without encryption because they had not changed since they came in.
    pub clean_evictions: u64,
    /// Pages that left the Clear because no thread had asked for them in a while, or because their
    /// program slept and another lacked room.
    pub idle_evictions: u64,
    /// Pages that the kernel moved out without counting them, found where they were.
    pub uncounted_moves: u64,
    /// Calls that changed an address space and were announced before they took effect.
    pub calls_announced: u64,
    /// Changes of armed address spaces that the keeper learnt of only after they had happened.
    pub unannounced_changes: u64,
    /// Processes whose calls are not announced, since the kernel refused the filter.
    pub processes_unannounced: u64,
    /// The reason of the first refusal; empty if there was none.
    pub processes_unannounced_why: String,
    /// Times that an armed program wanted to register memory of the pager's with a userfaultfd of
    /// its own, which the kernel refuses (EBUSY).
    pub userfaults_refused: u64,
    /// Times that an armed program asked for a seccomp listener of its own, which the kernel
    /// refuses (EBUSY).
    pub listeners_refused: u64,
    /// Calls that gave a process more memory although it could not be given an agent first.
    pub grown_without_agent: u64,
    /// Faults that were served though there was no room: none was to be had, or not in time.
    pub filled_without_room: u64,
    /// Pages in RAM that the keeper did not know of, found by comparing its records with the
    /// kernel's page table.
    pub reconciled_pages: u64,
    /// Pages taken back from the grace list before they were encrypted (second chance).
    pub grace_hits: u64,
    /// Pages brought in ahead of the program.
    pub readahead_pages: u64,
    /// Windows of read-ahead that the program used to their end.
    pub readahead_hits: u64,
    /// Windows of read-ahead that the program did not use to their end.
    pub readahead_misses: u64,
    /// Fault latency.
    pub fault_latency: FaultLatency,
    /// Plaintext and ciphertext of the run's private anonymous memory together, peak.
    pub protected_bytes_peak: u64,
    /// Resident bytes that are not protected, of any kind: file mappings, copied .data, shared
    /// memory, agents, and [`Statistics::unprotectable_bytes_peak`]. Peak.
    pub unprotected_bytes_peak: u64,
    /// Resident private anonymous bytes, such as heap, that could not be placed under the pager:
    /// the kernel refused to register them, or their process runs unprotected. Peak.
    pub unprotectable_bytes_peak: u64,
    /// The largest parts of `unprotected_bytes_peak`, the largest first, five at most, when they
    /// were listed last: at a new peak, or when the run was ended for them.
    pub unprotected_largest: Vec<UnprotectedMemory>,
    /// The largest Clear seen: pages in programs, and the keeper's grace list.
    pub clear_bytes_peak: u64,
    /// The largest bound on the Clear: a percentage follows what the program uses, and a size may
    /// be changed.
    pub clear_bytes_limit: u64,
    /// The smallest size that was in force. Of a percentage the largest bound counts.
    pub clear_bytes_limit_least: u64,
    /// The size in force at the end, in the same way.
    pub clear_bytes_limit_last: u64,
    /// The most by which the Clear was larger than the bound in force then.
    pub clear_bytes_excess_peak: u64,
    /// The most above a bound by the keeper's account alone, where no pages were shared, so that
    /// the kernel was not asked.
    pub excess_uncounted_bytes_peak: u64,
    /// The most above a bound by the kernel's count while pages moved, where it could not be
    /// counted while none did.
    pub excess_moving_bytes_peak: u64,
    /// Pages in the Clear that forked children did not share with their parents, since these were
    /// not write-protected.
    pub forked_unshared_pages: u64,
    /// How often the size was changed.
    pub clear_size_changes: u64,
    /// The largest Crypt: ciphertext pages in RAM.
    pub crypt_bytes_peak: u64,
    /// The largest amount of ciphertext in the swap file.
    pub swap_bytes_peak: u64,
    /// Pages written to, and read from, the swap file.
    pub swap_pages_out: u64,
    /// See `swap_pages_out`.
    pub swap_pages_in: u64,
    /// The largest size of the untrusted metadata: records, tree nodes and slot tables.
    pub metadata_bytes_peak: u64,
    /// Size of the trusted state: keys, root, GPC and node cache. Does not depend on the program.
    pub trusted_bytes: u64,
    /// Where the keys were: secret memory, or its replacement.
    pub key_memory: String,
    /// Changes to untrusted memory that were detected.
    pub violations: u64,
    /// Checks of the log hash that passed; 0 where a tree verifies records at once.
    pub checks: u64,
    /// Lines of the directory that were read for them.
    pub checked_lines: u64,
    /// The longest that one took.
    pub check_us_peak: u64,
    /// Output that was held and given up, since no check passed after it was written.
    pub output_bytes_given_up: u64,
    /// Why output that was held could not be written once it was checked: one sentence.
    pub output_trouble: Option<String>,
    /// What was written of the held output: standard output and standard error. None: it was not
    /// held, not hashed ([`crate::Config::hash_output`]), or not written to its end.
    pub output: Option<[OutputDigest; 2]>,
    /// Stored pages of which one or two bits had flipped, which were put right.
    pub healed_pages: u64,
    /// The bits of `healed_pages`.
    pub healed_bits: u64,
    /// Places of the Crypt where bits flipped again and again, five at most.
    pub failing_frames: Vec<FailingFrame>,
    /// Times that a stored page was verified by the scrubber.
    pub scrubbed_pages: u64,
    /// Stored pages that were sealed anew because their keys were rotated, each in each process
    /// that shares it.
    pub resealed_pages: u64,
    /// Rotations of keys that came to their end: nothing is left that was sealed before.
    pub key_rotations: u64,
    /// Keys of segments that were derived, again where they had been forgotten.
    pub page_keys_derived: u64,
    /// Times that the roots of keys were taken out of where they are hidden.
    pub root_reveals: u64,
    /// The longest that took.
    pub root_reveal_us_peak: u64,
    /// User and system CPU time of the keeper.
    pub keeper_cpu_s: f64,
    /// How the threads that serve faults spent their time.
    pub profile: Profile,
}

/// What a program wrote to one of its streams. If both lead to one place, all is in the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputDigest {
    /// The BLAKE3 hash.
    pub blake3: Hex<32>,
    /// How much.
    pub bytes: u64,
}

/// A run's end and what it counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    #[serde(flatten)]
    pub ending: Ending,
    /// Whether the program had been started by then.
    pub started: bool,
    /// What it cost.
    pub statistics: Statistics,
}
