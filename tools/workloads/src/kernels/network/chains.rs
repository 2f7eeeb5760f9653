//! A large problem that begins, as mcf's does, with chains: from a deep tree instead of a star, so
//! that cycles are long and subtrees large from the first pivot on.

use super::{Arc, DEAREST, DEGREE, Edge, NODE_BYTES, NONE, Network, State, solve, supplies};
use crate::kernels::Work;
use crate::random::Random;

/// A node hangs on one of so many before it.
const NEAR: usize = 1 << 16;
/// Of all arcs, those that are looked through before the best is taken: 1 / 100. With the tree this
/// deep, a pivot spends about as long on them as on the tree.
const BLOCKS: usize = 100;

/// A problem with as many nodes and arcs as [`Network::new`]: supplies and arcs. A node's first two
/// arcs go to one of the 65,536 before it, and back; they are dear, and take any flow.
#[must_use]
pub fn chains(nodes: usize, seed: u64) -> (Vec<i32>, Vec<Arc>) {
    let mut random = Random::new(seed);
    let supplies = supplies(nodes, &mut random);
    let nodes = supplies.len();
    let mut arcs = Vec::with_capacity(nodes * DEGREE);
    for node in 0..nodes {
        let above = node.saturating_sub(1 + random.index(node.clamp(1, NEAR)));
        let (node, above) = (node as u32, above as u32);
        for (from, to) in [(node, above), (above, node)] {
            arcs.push(Arc { from, to, cost: DEAREST as i64, capacity: i32::MAX });
        }
        arcs.extend((2..DEGREE).map(|_| Arc {
            from: node,
            to: random.index(nodes) as u32,
            cost: 1 + random.below(DEAREST) as i64,
            capacity: 1 + random.below(30) as i32,
        }));
    }
    (supplies, arcs)
}

impl Network {
    /// A problem of [`chains`], whose first basis is the tree of these dear arcs.
    #[must_use]
    pub fn of_chains(supplies: &[i32], arcs: &[Arc]) -> Self {
        let mut network = Self::of(supplies, arcs);
        network.block = (arcs.len() / BLOCKS).max(1);
        network.hang_on_chains(supplies.to_vec());
        network
    }

    /// Potentials of the whole tree anew, by its pointers. (Here they are exact, and nothing
    /// changes; mcf renews them from time to time all the same.)
    pub fn renew(&mut self) {
        let mut node = self.nodes[self.nodes.len() - 1].first_child;
        while node != NONE {
            self.refresh(node);
            node = self.nodes[node as usize].next;
        }
    }

    /// From the star to the tree of each node's first two arcs, up and down. Flow goes where what
    /// is below a node has too much, or is wanting; without any, the arc up is in the basis, which
    /// keeps the tree strongly feasible.
    fn hang_on_chains(&mut self, mut surplus: Vec<i32>) {
        for node in (0..surplus.len()).rev() {
            let left = surplus[node];
            self.edges[self.arcs + node].flow = 0;
            if node == 0 {
                break;
            }
            self.edges[self.arcs + node].state = State::Empty;
            let edge = node * DEGREE + usize::from(left < 0);
            let Edge { arc, flow, state } = &mut self.edges[edge];
            (*flow, *state) = (left.abs(), State::Tree);
            let above = if left < 0 { arc.from } else { arc.to };
            surplus[above as usize] += left;
            self.detach(node as u32);
            self.attach(node as u32, above, edge as u32);
        }
        self.renew();
    }
}

/// So many times fifty pivots from chains; potentials are renewed after every fifty.
pub fn run_large(work: &Work) -> u64 {
    let (supplies, arcs) = chains((work.size_bytes / NODE_BYTES) as usize, work.seed);
    let network = Network::of_chains(&supplies, &arcs);
    drop(arcs);
    solve(network, work.rounds.saturating_mul(50), Network::renew)
}
