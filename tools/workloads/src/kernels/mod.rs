//! Kernels that span what programs do to memory: streams, scans, chases, scatters.
//!
//! | kernel | stands for |
//! |---|---|
//! | [`stencil`] | grids that stream through: weather, fluids |
//! | [`scan`] | large weights, read again and again: neural networks that learn by competition |
//! | [`resonance`] | neurons and their rows of weights, category by category: SPEC CPU2000's art |
//! | [`network`] | pointers that are chased through nodes and arcs: network simplex |
//! | [`sparse`] | gathers by an index: sparse matrices |
//! | [`lattice`] | cells that are written to all sides: lattice Boltzmann |
//! | [`stream`] | loops over arrays: what a memory's bandwidth is measured with |
//! | [`traversal`] | neighbours anywhere: graphs whose degrees follow a power law |
//! | [`page_rank`] | gathers from neighbours anywhere |
//! | [`join`] | scatters into a table and probes of it: databases |
//! | [`parallel_stencil`] | threads with a band each and neighbours' edges |
//! | [`parallel_join`] | threads that read what other threads wrote |
//! | [`annealer`] | threads that look at pairs anywhere, and at all that is wired to them |

pub mod annealer;
pub mod join;
pub mod lattice;
pub mod network;
pub mod page_rank;
pub mod parallel_join;
pub mod parallel_stencil;
pub mod resonance;
pub mod scan;
pub mod sparse;
pub mod stencil;
pub mod stream;
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
pub const KERNELS: [Kernel; 14] = [
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
    Kernel {
        name: "resonance",
        about: "adaptive resonance in art's memory layout; a round is an image shown",
        default: (3 * MIB, 20),
        run: resonance::run,
    },
    Kernel {
        name: "network-large",
        about: "network simplex from chains, a round is 50 pivots at most",
        default: (128 * MIB, 10),
        run: network::run_large,
    },
    Kernel {
        name: "lattice",
        about: "a lattice-Boltzmann flow in two grids; a round is a step of time",
        default: (64 * MIB, 2),
        run: lattice::run,
    },
    Kernel {
        name: "stream",
        about: "copy, scale, add and triad over three arrays; a round is all four",
        default: (48 * MIB, 4),
        run: stream::run,
    },
    Kernel {
        name: "page-rank",
        about: "PageRank of a graph with a power law; a round ranks every node",
        default: (16 * MIB, 4),
        run: page_rank::run,
    },
    Kernel {
        name: "annealer",
        about: "elements of a circuit are placed by several threads; a round is a temperature",
        default: (36 * MIB, 4),
        run: annealer::run,
    },
];

/// The kernel of that name.
#[must_use]
pub fn of_name(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
