//! Kernels that span what programs do to memory: streams, scans, chases, scatters.
//!
//! | kernel | stands for |
//! |---|---|
//! | [`stencil`] | grids that stream through: weather, fluids |
//! | [`scan`] | large weights, read again and again: neural networks that learn by competition |
//! | [`network`] | pointers that are chased through nodes and arcs: network simplex |
//! | [`sparse`] | gathers by an index: sparse matrices |
//! | [`traversal`] | neighbours anywhere: graphs whose degrees follow a power law |
//! | [`join`] | scatters into a table and probes of it: databases |
//! | [`parallel_stencil`] | threads with a band each and neighbours' edges |
//! | [`parallel_join`] | threads that read what other threads wrote |

pub mod join;
pub mod network;
pub mod parallel_join;
pub mod parallel_stencil;
pub mod scan;
pub mod sparse;
pub mod stencil;
pub mod traversal;

/// How much a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// About how much memory its arrays take.
    pub size_bytes: u64,
    /// How often it does its work; each kernel says what one round is.
    pub rounds: u64,
    /// Threads, of kernels that have some.
    pub threads: usize,
    /// What its input is made of.
    pub seed: u64,
}

/// A kernel as the command line knows it.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// Its name there.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Size and rounds where none are given.
    pub default: (u64, u64),
    /// Runs it; the checksum of its results.
    pub run: fn(&Work) -> u64,
}

const MIB: u64 = 1 << 20;

/// All of them.
pub const KERNELS: [Kernel; 8] = [
    Kernel {
        name: "stencil",
        about: "a shallow-water model in thirteen arrays; a round is a step of time",
        default: (16 * MIB, 20),
        run: stencil::run,
    },
    Kernel {
        name: "scan",
        about: "a network that learns by competition; a round is an image shown",
        default: (8 * MIB, 40),
        run: scan::run,
    },
    Kernel {
        name: "network",
        about: "network simplex on a transport problem; a round is 1,000 pivots at most",
        default: (8 * MIB, 10),
        run: network::run,
    },
    Kernel {
        name: "sparse",
        about: "a sparse matrix times a vector; a round is a product",
        default: (16 * MIB, 20),
        run: sparse::run,
    },
    Kernel {
        name: "traversal",
        about: "breadth first through a graph with a power law; a round is a search",
        default: (16 * MIB, 4),
        run: traversal::run,
    },
    Kernel {
        name: "join",
        about: "a hash join of two relations; a round is a join",
        default: (16 * MIB, 2),
        run: join::run,
    },
    Kernel {
        name: "parallel-stencil",
        about: "heat in a plate, a band of it for each thread; a round is a step of time",
        default: (16 * MIB, 20),
        run: parallel_stencil::run,
    },
    Kernel {
        name: "parallel-join",
        about: "a partitioned hash join by several threads; a round is a join",
        default: (16 * MIB, 2),
        run: parallel_join::run,
    },
];

/// The kernel of that name.
#[must_use]
pub fn of_name(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
