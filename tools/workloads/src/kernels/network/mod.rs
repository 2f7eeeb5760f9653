//! Network simplex: cheapest flow from nodes that have something to nodes that want it. Arcs are
//! looked through block by block, each with the potentials of two nodes anywhere; the tree of the
//! basis is climbed and hung over by its pointers.
//!
//! Primal, with strongly feasible trees against cycling (Cunningham 1976) and block search. Every
//! node begins on an arc of its own to a root, at a price that nothing else costs.

mod chains;
mod tree;

pub use chains::{chains, run_large};

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

const NONE: u32 = u32::MAX;
/// Arcs for each node.
const DEGREE: usize = 12;
/// Bytes of a node and its arcs, with the one to the root.
const NODE_BYTES: u64 = 40 + 32 * (DEGREE as u64 + 1);
/// The dearest arc that is generated.
const DEAREST: u64 = 10_000;

/// An arc as it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// Where its flow comes from.
    pub from: u32,
    /// And goes to.
    pub to: u32,
    /// For each unit of flow.
    pub cost: i64,
    /// The largest flow.
    pub capacity: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not in the basis, without flow.
    Empty,
    /// Not in the basis, with all the flow that it takes.
    Full,
    /// In the basis.
    Tree,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    arc: Arc,
    flow: i32,
    state: State,
}

/// A node of the basis's tree.
#[derive(Clone, Copy, Debug)]
struct Node {
    potential: i64,
    parent: u32,
    /// The arc to the parent, in either direction.
    edge: u32,
    depth: u32,
    first_child: u32,
    next: u32,
    previous: u32,
}

/// The problem, and how far it is solved.
#[derive(Clone, Debug)]
pub struct Network {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Arcs that were given; those to the root follow them.
    arcs: usize,
    /// Where the search for an arc goes on.
    search: usize,
    block: usize,
}

/// What stops a flow round a cycle.
struct Leaving {
    delta: i32,
    /// The node below the edge that leaves the basis, and the end of the entering arc on its side
    /// first; `None` if the entering arc itself is full first.
    cut: Option<(u32, bool)>,
}

impl Network {
    /// A problem that has a solution: half of the nodes supply the other half.
    #[must_use]
    pub fn new(nodes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let supplies = supplies(nodes, &mut random);
        let nodes = supplies.len();
        let mut arcs = Vec::with_capacity(nodes * DEGREE);
        for from in 0..nodes as u32 {
            // A ring that is wide and dear, so that there is a way.
            let (to, cost) = ((from + 1) % nodes as u32, DEAREST as i64);
            arcs.push(Arc { from, to, cost, capacity: i32::MAX });
            for _ in 1..DEGREE {
                let to = random.index(nodes) as u32;
                let cost = 1 + random.below(DEAREST) as i64;
                arcs.push(Arc { from, to, cost, capacity: 1 + random.below(30) as i32 });
            }
        }
        Self::of(&supplies, &arcs)
    }

    /// A given problem: what each node has (or wants, below 0), and the arcs.
    #[must_use]
    pub fn of(supplies: &[i32], arcs: &[Arc]) -> Self {
        let root = supplies.len() as u32;
        let dearest = arcs.iter().map(|arc| arc.cost.abs()).max().unwrap_or(0);
        let price = (dearest + 1) * (i64::from(root) + 1);
        let blank = Node {
            potential: 0,
            parent: NONE,
            edge: NONE,
            depth: 0,
            first_child: NONE,
            next: NONE,
            previous: NONE,
        };
        let given = arcs.iter().map(|arc| Edge { arc: *arc, flow: 0, state: State::Empty });
        let mut network = Network {
            nodes: vec![blank; supplies.len() + 1],
            edges: given.collect(),
            arcs: arcs.len(),
            search: 0,
            block: arcs.len().isqrt().max(1),
        };
        for (node, supply) in (0..root).zip(supplies) {
            let (from, to) = if *supply < 0 { (root, node) } else { (node, root) };
            let arc = Arc { from, to, cost: price, capacity: i32::MAX };
            network.edges.push(Edge { arc, flow: supply.abs(), state: State::Tree });
            network.attach(node, root, network.edges.len() as u32 - 1);
            network.refresh(node);
        }
        network
    }

    /// Brings one arc into the basis; `false` if that would save nothing: it is solved.
    pub fn pivot(&mut self) -> bool {
        let Some(entering) = self.entering() else { return false };
        let Edge { arc, state, .. } = self.edges[entering as usize];
        // Flow is sent from `first` to `second`, and back through the tree.
        let (first, second) =
            if state == State::Empty { (arc.from, arc.to) } else { (arc.to, arc.from) };
        let join = self.join(first, second);
        let Leaving { delta, cut } = self.leaving(entering, first, second, join);
        self.push(entering, first, second, join, delta);
        let edge = &mut self.edges[entering as usize];
        match cut {
            None => {
                edge.state = if state == State::Empty { State::Full } else { State::Empty };
            }
            Some((below, on_first)) => {
                edge.state = State::Tree;
                let left = self.nodes[below as usize].edge;
                let left = &mut self.edges[left as usize];
                left.state = if left.flow == 0 { State::Empty } else { State::Full };
                let (inner, outer) = if on_first { (first, second) } else { (second, first) };
                self.hang_over(inner, outer, entering, below);
            }
        }
        true
    }

    /// What the flow through the given arcs costs.
    #[must_use]
    pub fn cost(&self) -> i64 {
        let given = &self.edges[..self.arcs];
        given.iter().map(|edge| i64::from(edge.flow) * edge.arc.cost).sum()
    }

    /// What has not found its way through the given arcs.
    #[must_use]
    pub fn unmet(&self) -> i64 {
        self.edges[self.arcs..].iter().map(|edge| i64::from(edge.flow)).sum()
    }

    /// The flow through each of the given arcs.
    pub fn flows(&self) -> impl Iterator<Item = i32> {
        self.edges[..self.arcs].iter().map(|edge| edge.flow)
    }

    /// What a unit is worth at each node, the root last.
    pub fn potentials(&self) -> impl Iterator<Item = i64> {
        self.nodes.iter().map(|node| node.potential)
    }

    /// The arc that saves most in the first block that has one that saves.
    fn entering(&mut self) -> Option<u32> {
        let (mut best, mut saving) = (None, 0);
        for looked in 1..=self.edges.len() {
            let edge = &self.edges[self.search];
            let saved = match edge.state {
                State::Tree => 0,
                State::Empty => -self.reduced_cost(edge),
                State::Full => self.reduced_cost(edge),
            };
            if saved > saving {
                (best, saving) = (Some(self.search as u32), saved);
            }
            self.search = if self.search + 1 == self.edges.len() { 0 } else { self.search + 1 };
            if looked % self.block == 0 && best.is_some() {
                break;
            }
        }
        best
    }

    fn reduced_cost(&self, edge: &Edge) -> i64 {
        let potential = |node: u32| self.nodes[node as usize].potential;
        edge.arc.cost + potential(edge.arc.from) - potential(edge.arc.to)
    }

    /// Where the ways up from two nodes meet.
    fn join(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            let (above, below) = (&self.nodes[a as usize], &self.nodes[b as usize]);
            if above.depth >= below.depth {
                a = above.parent;
            } else {
                b = below.parent;
            }
        }
        a
    }

    /// How much fits round the cycle, and which edge says so: of equal ones the last in the
    /// direction of the flow from the join, which keeps trees strongly feasible.
    fn leaving(&self, entering: u32, first: u32, second: u32, join: u32) -> Leaving {
        let mut leaving = Leaving { delta: self.edges[entering as usize].arc.capacity, cut: None };
        for (from, on_first) in [(first, true), (second, false)] {
            let mut node = from;
            while node != join {
                let Node { parent, edge, .. } = self.nodes[node as usize];
                let Edge { arc, flow, .. } = self.edges[edge as usize];
                // Down on the side of `first`, up on that of `second`.
                let with_arc = (arc.from == node) != on_first;
                let room = if with_arc { arc.capacity - flow } else { flow };
                if room < leaving.delta || (room == leaving.delta && !on_first) {
                    leaving = Leaving { delta: room, cut: Some((node, on_first)) };
                }
                node = parent;
            }
        }
        leaving
    }

    fn push(&mut self, entering: u32, first: u32, second: u32, join: u32, delta: i32) {
        let edge = &mut self.edges[entering as usize];
        edge.flow += if edge.state == State::Empty { delta } else { -delta };
        for (from, on_first) in [(first, true), (second, false)] {
            let mut node = from;
            while node != join {
                let Node { parent, edge, .. } = self.nodes[node as usize];
                let edge = &mut self.edges[edge as usize];
                let with_arc = (edge.arc.from == node) != on_first;
                edge.flow += if with_arc { delta } else { -delta };
                node = parent;
            }
        }
    }

    /// Hangs the subtree of `below` over, so that `inner`, a node of it, is its root, below
    /// `outer`.
    fn hang_over(&mut self, inner: u32, outer: u32, entering: u32, below: u32) {
        let (mut node, mut parent, mut edge) = (inner, outer, entering);
        loop {
            let old = self.nodes[node as usize];
            self.detach(node);
            self.attach(node, parent, edge);
            if node == below {
                break;
            }
            (parent, edge, node) = (node, old.edge, old.parent);
        }
        self.refresh(inner);
    }
}

/// Half of the nodes have what the other half wants.
fn supplies(nodes: usize, random: &mut Random) -> Vec<i32> {
    let pair = |_| {
        let supply = 1 + random.below(20) as i32;
        [supply, -supply]
    };
    (0..nodes.max(2) / 2).flat_map(pair).collect()
}

/// So many thousands of pivots, or fewer if it is solved before.
pub fn run(work: &Work) -> u64 {
    let network = Network::new((work.size_bytes / NODE_BYTES) as usize, work.seed);
    solve(network, work.rounds.saturating_mul(1000), |_| ())
}

fn solve(mut network: Network, pivots: u64, after_fifty: fn(&mut Network)) -> u64 {
    let mut done = 0;
    while done < pivots && network.pivot() {
        done += 1;
        if done % 50 == 0 {
            after_fifty(&mut network);
        }
    }
    let mut sum = Checksum::default();
    sum.add(done);
    sum.add(network.unmet() as u64);
    network.flows().for_each(|flow| sum.add(flow as u64));
    sum.value()
}
