//! Breadth first through a graph whose degrees follow a power law (R-MAT; Chakrabarti, Zhan and
//! Faloutsos, SDM 2004): from a node's list of neighbours to their levels, which lie anywhere.

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// Edges for each node.
const DEGREE: u64 = 8;
/// Bytes of a node: its edges in both directions, its start, its level, its place in a queue.
const NODE_BYTES: u64 = 2 * DEGREE * 4 + 4 + 4 + 4;
/// Out of 100: where an edge goes, of the four quarters of the matrix of neighbours.
const QUARTERS: [u64; 3] = [57, 57 + 19, 57 + 19 + 19];

/// The level of a node that cannot be reached.
pub const UNREACHED: u32 = u32::MAX;

/// A graph without directions.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Where each node's neighbours begin, and where the last one's end.
    pub starts: Vec<u32>,
    /// All nodes' neighbours.
    pub neighbours: Vec<u32>,
}

impl Graph {
    /// With 2^`scale` nodes.
    #[must_use]
    pub fn new(scale: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let edges: Vec<_> = (0..DEGREE << scale).map(|_| edge(scale, &mut random)).collect();
        Self::of_edges(1 << scale, &edges)
    }

    /// Of these edges, each of which can be followed in both directions.
    #[must_use]
    pub fn of_edges(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        let both = || edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        both().for_each(|(from, _)| starts[from as usize + 1] += 1);
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0; 2 * edges.len()];
        for (from, to) in both() {
            let at = &mut next[from as usize];
            neighbours[*at as usize] = to;
            *at += 1;
        }
        Graph { starts, neighbours }
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// A node's neighbours.
    #[must_use]
    pub fn of(&self, node: usize) -> &[u32] {
        &self.neighbours[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// How many edges each node is from `source`, or [`UNREACHED`].
    #[must_use]
    pub fn levels(&self, source: u32) -> Vec<u32> {
        let mut levels = vec![UNREACHED; self.nodes()];
        let mut queue = Vec::with_capacity(self.nodes());
        levels[source as usize] = 0;
        queue.push(source);
        let mut served = 0;
        while let Some(&node) = queue.get(served) {
            served += 1;
            let level = levels[node as usize] + 1;
            for &neighbour in self.of(node as usize) {
                let known = &mut levels[neighbour as usize];
                if *known == UNREACHED {
                    *known = level;
                    queue.push(neighbour);
                }
            }
        }
        levels
    }
}

/// One edge: a bit of both ends at a time.
fn edge(scale: u32, random: &mut Random) -> (u32, u32) {
    (0..scale).fold((0, 0), |(from, to), _| {
        let draw = random.below(100);
        let quarter = QUARTERS.iter().filter(|bound| draw >= **bound).count() as u32;
        (from << 1 | quarter >> 1, to << 1 | quarter & 1)
    })
}

/// The scale of a graph that takes, with what is computed of it, at most so many bytes.
#[must_use]
pub fn scale(size_bytes: u64) -> u32 {
    (size_bytes / NODE_BYTES).max(2).ilog2().min(26)
}

/// So many searches, from nodes anywhere that have neighbours.
pub fn run(work: &Work) -> u64 {
    let graph = Graph::new(scale(work.size_bytes), work.seed);
    let mut random = Random::new(!work.seed);
    let mut sum = Checksum::default();
    for _ in 0..work.rounds {
        // The ends of edges, so that the source has a neighbour.
        let source = graph.neighbours[random.index(graph.neighbours.len())];
        graph.levels(source).iter().for_each(|level| sum.add(u64::from(*level)));
    }
    sum.value()
}
