//! All keys: what each takes and means. `casemate sim --list` prints this table, errors look into
//! it, and the resolved configuration has each of them.

use super::value::Kind::{self, Flag, Name, Number, Size, Text, Ways};
use crate::machine::memory::ddr::config::Standard;

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the section.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it means.
    pub meaning: &'static str,
}

/// A section of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub meaning: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// Every key with its section.
pub fn all() -> impl Iterator<Item = (&'static Section, &'static Key)> {
    SECTIONS.iter().flat_map(|section| section.keys.iter().map(move |key| (section, key)))
}

/// The whole name of every key.
pub fn paths() -> impl Iterator<Item = String> {
    all().map(|(section, key)| format!("{}.{}", section.name, key.name))
}

const fn key(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, meaning }
}

/// So many instructions or cycles are more than any run has.
const MANY: u64 = 1 << 62;
/// The longest latency (`machine::cycle::MAX_LATENCY_CYCLES`).
const LATENCY: Kind = Number(0, 1 << 32);

/// A first-level cache of one core.
const L1: &[Key] = &cache(Size(64, 1 << 30));
/// A lower level.
const LOWER: &[Key] = &cache(Size(0, 1 << 30));

const fn cache(size: Kind) -> [Key; 7] {
    [
        key("size_bytes", size, "all lines together"),
        key("ways", Ways(1 << 24), "lines of a set, or \"full\""),
        key("block_bytes", Size(8, 4096), "one line; a power of two"),
        key("latency_cycles", LATENCY, "a look-up; in the first level, from the load to its use"),
        key(
            "replacement",
            REPLACEMENT,
            "which line is evicted when a set is full: lru, fifo, random, random:SEED, tree-plru",
        ),
        key("mshr_registers", Number(1, 4096), "lines that can be on their way at once"),
        key("mshr_waiters_per_register", Number(1, 4096), "misses that can wait for one of them"),
    ]
}

const TLB: &[Key] = &[
    key("entries", Number(0, 1 << 20), "pages that it knows; 0 is every page"),
    key("ways", Ways(1 << 20), "entries of a set, or \"full\""),
    key("miss_latency_cycles", LATENCY, "by how much an access that misses is late"),
];

/// Metadata of one kind on chip.
const METADATA: &[Key] = &[
    key(
        "held_in",
        Name(&["own", "with-counters", "last-level", "nowhere"]),
        "a cache of its own, that of the counters, the last-level cache beside data, or (MACs only) nowhere",
    ),
    key("size_bytes", Size(64, 1 << 30), "all lines of a cache of its own"),
    key("ways", Ways(1 << 24), "lines of a set of a cache of its own, or \"full\""),
    key(
        "replacement",
        REPLACEMENT,
        "which line of a cache of its own is evicted when a set is full",
    ),
    key("latency_cycles", LATENCY, "a look-up, wherever that is"),
];

/// Which block is evicted when a set is full. `random` takes `run.seed`.
const REPLACEMENT: Kind = Text("lru");

/// All sections in the order of a file.
pub static SECTIONS: [Section; 17] = [
    Section {
        name: "run",
        meaning: "What is simulated, in instructions of the trace",
        keys: &[
            key("scheme", Text("aise+bmt"), "protection scheme: a name or ENCRYPTION/INTEGRITY"),
            key(
                "seed",
                Number(0, u64::MAX >> 1),
                "seed of everything random (replacement = \"random\")",
            ),
            key("skip_instructions", Number(0, MANY), "left out at the beginning"),
            key("warmup_instructions", Number(0, MANY), "simulated after that, and counted apart"),
            key("length_instructions", Number(0, MANY), "simulated after that; 0 is to the end"),
            key(
                "every_instructions",
                Number(0, MANY),
                "a sample each so many instructions; 0 is none",
            ),
            key(
                "sample_windows",
                Number(0, MANY),
                "windows that are measured, spread evenly; 0 is all of it in detail",
            ),
            key(
                "sample_points",
                Text("\"12:0.25 40:0.75\", or none"),
                "instead, these windows of the region, each with the share of it that it stands for",
            ),
            key("sample_window_instructions", Number(1, MANY), "of each window"),
            key(
                "sample_warmup_instructions",
                Number(0, MANY),
                "in detail in front of each window, and not counted",
            ),
        ],
    },
    Section {
        name: "core",
        meaning: "The cores, all alike",
        keys: &[
            key("cores", Number(1, 8), "how many; thread t of a trace runs on core t modulo this"),
            key(
                "order",
                Name(&["out-of-order", "in-order", "in-order-blocking"]),
                "out-of-order; in-order: an instruction that waits for an operand blocks those \
                 behind it; in-order-blocking: a cache miss does too",
            ),
            key("issue_width", Number(1, 64), "instructions that enter the window in a cycle"),
            key("commit_width", Number(1, 64), "instructions that leave it in a cycle"),
            key("window_entries", Number(1, 1 << 14), "instructions between: the reorder buffer"),
            key("load_queue_entries", Number(1, 1 << 14), "loads among them"),
            key(
                "store_queue_entries",
                Number(1, 1 << 14),
                "stores among them, and those that wait for their line after",
            ),
            key(
                "store_forwarding",
                Flag,
                "whether a load takes its bytes from a store in the queue that has them all",
            ),
            key(
                "memory_ports",
                Number(0, 64),
                "loads and stores that begin in a cycle; 0 is any number",
            ),
            key(
                "units",
                Name(&["ideal", "simplescalar", "golden-cove"]),
                "what executes operations: as many units as are wanted, a cycle each (ideal), or \
                 as many as the machine named has, with its latencies",
            ),
            key(
                "branch_predictor",
                Name(&["perfect", "bimodal", "gshare"]),
                "which way branches are expected to go: the right one, or as a table of two-bit \
                 counters says, by address (bimodal) or address XOR history (gshare)",
            ),
            key("branch_predictor_entries", Number(1, 1 << 24), "its counters; a power of two"),
            key(
                "misprediction_penalty_cycles",
                LATENCY,
                "from the end of a branch that went the other way to the entering of the next",
            ),
            key(
                "look_ahead_instructions",
                Number(1, 1 << 20),
                "several cores: read ahead for each",
            ),
            key(
                "quantum_cycles",
                LATENCY,
                "several cores: by how much one may be ahead of the others",
            ),
        ],
    },
    Section { name: "l1i", meaning: "Instruction cache of each core", keys: L1 },
    Section { name: "l1d", meaning: "Data cache of each core", keys: L1 },
    Section { name: "l2", meaning: "Second level, for instructions and data", keys: LOWER },
    Section {
        name: "l3",
        meaning: "Third level that all cores share; size_bytes = 0 is none",
        keys: LOWER,
    },
    Section { name: "itlb", meaning: "Instruction TLB of each core", keys: TLB },
    Section { name: "dtlb", meaning: "Data TLB of each core", keys: TLB },
    Section {
        name: "hierarchy",
        meaning: "What the levels have in common",
        keys: &[
            key("l2_shared", Flag, "whether all cores share one second level"),
            key(
                "prefetcher",
                Name(&["none", "next-line", "stride"]),
                "what the second level asks for beforehand: the lines behind one that is missing \
                 or used first, or those to which an instruction's stride leads",
            ),
            key("prefetch_degree_lines", Number(1, 64), "lines that it asks for at a time"),
            key(
                "prefetch_table_entries",
                Number(1, 1 << 20),
                "stride: instructions that it remembers; a power of two",
            ),
            key(
                "coherence_cycles",
                LATENCY,
                "to get a line that another core changed, or have its copy thrown away",
            ),
            key(
                "write_buffer_entries",
                Number(1, 1 << 16),
                "blocks that can be on their way to memory",
            ),
        ],
    },
    Section {
        name: "memory",
        meaning: "What is behind the last cache",
        keys: &[
            key(
                "kind",
                Name(&["flat", "ddr"]),
                "fixed latency and a bus, or a DDR memory bank by bank",
            ),
            key(
                "size_bytes",
                Size(1 << 20, 1 << 40),
                "memory that pages of programs are given from",
            ),
            key(
                "controller_cycles",
                LATENCY,
                "what the memory's controller adds to the answer of each read, once",
            ),
        ],
    },
    Section {
        name: "memory.flat",
        meaning: "The papers' memory; only with memory.kind = \"flat\"",
        keys: &[
            key("first_chunk_cycles", LATENCY, "from a read to the end of its first chunk"),
            key("bus_bytes", Number(1, 4096), "width of the bus: bytes of a chunk"),
            key(
                "chunk_cycles",
                LATENCY,
                "how long a chunk is on the bus; with 0 the bus delays nothing",
            ),
        ],
    },
    Section {
        name: "memory.ddr",
        meaning: "A DDR memory; only with memory.kind = \"ddr\"",
        keys: &[
            key(
                "core_mhz",
                Number(1, 100_000),
                "the core's clock, in which all cycles are counted",
            ),
            key("standard", Name(&Standard::NAMES), "timing: DDR3-1600K or DDR4-2400R (JEDEC)"),
            key("channels", Number(1, 64), "independent channels"),
            key("ranks", Number(1, 16), "ranks of a channel"),
            key(
                "mapping",
                Name(&["open-row", "spread"]),
                "bursts on end stay in open rows, or go round all banks",
            ),
            key(
                "scheduler",
                Name(&["fr-fcfs", "fcfs"]),
                "which of the bursts that wait is served next",
            ),
            key("read_queue", Number(1, 4096), "bursts to be read that a channel holds"),
            key("write_queue", Number(1, 4096), "bursts to be written that a channel holds"),
            key("write_high", Number(1, 4096), "with so many writes waiting, they go before reads"),
            key("write_low", Number(0, 4095), "until so many are left"),
        ],
    },
    Section {
        name: "protection",
        meaning: "The protection unit; which parts of it a scheme has is the scheme's",
        keys: &[
            key(
                "on_chip_tree_bytes",
                Size(0, 1 << 30),
                "the top of a tree on chip; 0 is its root alone",
            ),
            key(
                "verification",
                Name(&["timely", "precise"]),
                "whether the processor may work with a block that is decrypted and not yet verified",
            ),
            key(
                "line_bytes",
                Number(64, 256),
                "64, 128 or 256: encrypted and verified at once; the last level's lines are whole ones",
            ),
            key(
                "mac_bits",
                Number(0, 256),
                "32 to 160 (HMAC-SHA-1) or 256 (HMAC-SHA-256) of all MACs; 0 is the scheme's own MAC",
            ),
            key(
                "subspace_bytes",
                Size(0, 1 << 30),
                "what a node of a hierarchical log hash covers; 0 is the scheme's own",
            ),
            key(
                "sequence_numbers_bytes",
                Size(2, 1 << 30),
                "Sequence Number Cache, two bytes a number",
            ),
            key("sequence_numbers_ways", Number(0, 1 << 29), "its ways; 0 is fully associative"),
            key(
                "sequence_numbers_enter",
                Name(&["first-write-back", "first-touch"]),
                "when the number of a line comes on chip for the first time",
            ),
            key(
                "snc_on_switch",
                Name(&["scheme", "flush", "tag"]),
                "what a switch to another process does to sequence numbers: goes to memory, or stays",
            ),
            key(
                "instruction_pages",
                Name(&["as-data", "constant-seeds"]),
                "pages first touched by a fetch: with sequence numbers or, of one-time pads, without",
            ),
            key(
                "plaintext_pages",
                Text("\"7f0000000000-7fffffffffff\", or none"),
                "pages that one-time pads leave in plain, by virtual addresses: shared libraries, input",
            ),
            key(
                "switch_interval_instructions",
                Number(0, MANY),
                "another process runs, and this one goes on at once, after each so many; 0 is never",
            ),
            key(
                "time_stamp_cache_blocks",
                Number(1, 1 << 24),
                "time stamps of log hashes on chip, in words of eight bytes",
            ),
            key("time_stamp_cache_ways", Number(0, 1 << 24), "its ways; 0 is fully associative"),
            key(
                "hash_buffer_blocks",
                Number(0, 1 << 20),
                "blocks that can wait for their verification; 0 is any number",
            ),
            key(
                "metadata_mshr_registers",
                Number(0, 1 << 20),
                "fetches of metadata that can be under way at once; 0 is any number",
            ),
            key(
                "log_check_interval_accesses",
                Number(0, MANY),
                "log hashes are compared after so many reads and write-backs; 0 is not before time stamps end",
            ),
        ],
    },
    Section { name: "protection.counters", meaning: "Lines of counters on chip", keys: METADATA },
    Section { name: "protection.nodes", meaning: "Nodes of trees on chip", keys: METADATA },
    Section { name: "protection.macs", meaning: "Blocks of MACs on chip", keys: METADATA },
    Section {
        name: "protection.timing",
        meaning: "How long the unit's operations take; an interval of 0 has no limit to its throughput",
        keys: &[
            key(
                "cipher_latency_cycles",
                LATENCY,
                "a block of the cipher's own size (16 bytes of AES, 8 of DES)",
            ),
            key("cipher_interval_cycles", LATENCY, "from the beginning of one to that of the next"),
            key("mac_latency_cycles", LATENCY, "a MAC over a block or node"),
            key("mac_interval_cycles", LATENCY, "from the beginning of one to that of the next"),
            key(
                "log_hash_latency_cycles",
                LATENCY,
                "an element of a log hash: address, block and time stamp",
            ),
            key(
                "log_hash_interval_cycles",
                LATENCY,
                "from the beginning of one to that of the next",
            ),
            key("xor_cycles", LATENCY, "a block and its pad"),
            key(
                "counter_decode_cycles",
                LATENCY,
                "to compute a counter from its line, if the line holds it in parts",
            ),
        ],
    },
];
