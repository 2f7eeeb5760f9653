//! PageRank (Page et al. 1999) of a graph whose degrees follow a power law, by pulling: every node
//! gathers what its neighbours give, from anywhere.

use super::Work;
use super::traversal::{self, Graph};
use crate::checksum::Checksum;

/// Of a rank that goes to the neighbours; the rest is spread evenly.
const DAMPING: f32 = 0.85;

/// The ranks after so many rounds; a node without neighbours gives nothing.
#[must_use]
pub fn ranks(graph: &Graph, rounds: u64) -> Vec<f32> {
    let nodes = graph.nodes() as f32;
    let mut ranks = vec![1.0 / nodes; graph.nodes()];
    let mut given = vec![0.0; graph.nodes()];
    for _ in 0..rounds {
        let bounds = graph.starts.windows(2);
        for ((given, rank), bounds) in given.iter_mut().zip(&ranks).zip(bounds) {
            *given = rank / (bounds[1] - bounds[0]).max(1) as f32;
        }
        for (node, rank) in ranks.iter_mut().enumerate() {
            let taken: f32 = graph.of(node).iter().map(|from| given[*from as usize]).sum();
            *rank = (1.0 - DAMPING) / nodes + DAMPING * taken;
        }
    }
    ranks
}

/// So many rounds of a graph that is made as for [`traversal`].
pub fn run(work: &Work) -> u64 {
    let graph = Graph::new(traversal::scale(work.size_bytes), work.seed);
    let mut sum = Checksum::default();
    ranks(&graph, work.rounds).iter().for_each(|rank| sum.add(u64::from(rank.to_bits())));
    sum.value()
}
