//! Network simplex beside successive shortest paths.

use casemate_workloads::kernels::network::{self, Arc, Network};
use casemate_workloads::random::Random;

/// The cost of the cheapest flow by successive shortest paths (Bellman and Ford), a unit at a time.
fn cheapest(supplies: &[i32], arcs: &[Arc]) -> Option<i64> {
    let mut left = supplies.to_vec();
    let mut flows = vec![0; arcs.len()];
    let mut cost = 0;
    while let Some(from) = left.iter().position(|supply| *supply > 0) {
        let mut distance = vec![i64::MAX; supplies.len()];
        let mut last: Vec<Option<(usize, bool)>> = vec![None; supplies.len()];
        distance[from] = 0;
        for _ in 0..supplies.len() {
            for (at, arc) in arcs.iter().enumerate() {
                let (a, b) = (arc.from as usize, arc.to as usize);
                if flows[at] < arc.capacity
                    && distance[a] != i64::MAX
                    && distance[a] + arc.cost < distance[b]
                {
                    (distance[b], last[b]) = (distance[a] + arc.cost, Some((at, true)));
                }
                if flows[at] > 0 && distance[b] != i64::MAX && distance[b] - arc.cost < distance[a]
                {
                    (distance[a], last[a]) = (distance[b] - arc.cost, Some((at, false)));
                }
            }
        }
        let wanting = (0..supplies.len()).filter(|node| left[*node] < 0);
        let to = wanting.filter(|node| distance[*node] != i64::MAX).min_by_key(|n| distance[*n])?;
        let mut node = to;
        while node != from {
            let (at, forward) = last[node]?;
            flows[at] += if forward { 1 } else { -1 };
            node = if forward { arcs[at].from } else { arcs[at].to } as usize;
        }
        (left[from], left[to]) = (left[from] - 1, left[to] + 1);
        cost += distance[to];
    }
    Some(cost)
}

/// Whether every node sends on what it has and gets.
fn is_conserved(network: &Network, supplies: &[i32], arcs: &[Arc]) -> bool {
    let mut left = supplies.to_vec();
    for (arc, flow) in arcs.iter().zip(network.flows()) {
        if !(0..=arc.capacity).contains(&flow) {
            return false;
        }
        left[arc.from as usize] -= flow;
        left[arc.to as usize] += flow;
    }
    left.iter().all(|left| *left == 0)
}

#[test]
fn network_simplex_finds_the_cheapest_flow() {
    let mut random = Random::new(5);
    let mut solved = 0;
    for round in 0..200 {
        let nodes = 2 + random.index(9);
        let mut supplies = vec![0; nodes];
        for _ in 0..random.index(2 * nodes) {
            let (a, b) = (random.index(nodes), random.index(nodes));
            supplies[a] += 1;
            supplies[b] -= 1;
        }
        let arcs: Vec<Arc> = (0..random.index(5 * nodes))
            .map(|_| Arc {
                from: random.index(nodes) as u32,
                to: random.index(nodes) as u32,
                cost: random.below(30) as i64,
                capacity: 1 + random.below(4) as i32,
            })
            .collect();
        let mut network = Network::of(&supplies, &arcs);
        let pivots = (0..100_000).take_while(|_| network.pivot()).count();
        assert!(pivots < 100_000, "round {round} goes on for ever");
        let expected = cheapest(&supplies, &arcs);
        assert_eq!(
            expected.is_some(),
            network.unmet() == 0,
            "round {round}: {supplies:?} {arcs:?}"
        );
        if let Some(expected) = expected {
            assert_eq!(network.cost(), expected, "round {round}: {supplies:?} {arcs:?}");
            assert!(is_conserved(&network, &supplies, &arcs), "round {round}");
            solved += usize::from(expected > 0);
        }
    }
    assert!(solved > 30, "only {solved} problems had something to solve");
}

#[test]
fn a_generated_network_has_a_solution() {
    let mut network = Network::new(60, 9);
    assert!(network.unmet() > 0);
    while network.pivot() {}
    assert_eq!(network.unmet(), 0);
    assert!(network.cost() > 0);
}

/// From chains, the first flow is one that is allowed, potentials are what the tree says, and the
/// cheapest flow is the one that a start from the star finds, too.
#[test]
fn a_network_of_chains_is_solved_like_any_other() {
    for nodes in [2, 40, 300] {
        let (supplies, arcs) = network::chains(nodes, 9);
        let mut network = Network::of_chains(&supplies, &arcs);
        assert!(is_conserved(&network, &supplies, &arcs), "{nodes} nodes");
        assert_eq!(network.unmet(), 0);
        let mut star = Network::of(&supplies, &arcs);
        while star.pivot() {}
        let dear = network.cost();
        while network.pivot() {
            let potentials: Vec<i64> = network.potentials().collect();
            network.renew();
            assert!(network.potentials().eq(potentials), "{nodes} nodes");
        }
        assert!(is_conserved(&network, &supplies, &arcs), "{nodes} nodes");
        assert_eq!(network.cost(), star.cost(), "{nodes} nodes");
        assert!(nodes < 10 || network.cost() < dear / 2, "{dear} to {}", network.cost());
    }
}
