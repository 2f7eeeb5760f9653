//! STREAM's loops element by element, and PageRank with a full matrix.

use casemate_workloads::kernels::page_rank;
use casemate_workloads::kernels::stream::Stream;
use casemate_workloads::kernels::traversal::Graph;

#[test]
fn the_loops_do_to_each_element_what_they_say() {
    let mut stream = Stream::new(1000, 6);
    let mut first = stream.a.clone();
    for _ in 0..3 {
        stream.round();
        for (at, x) in first.iter_mut().enumerate() {
            let scaled = 0.4142 * *x;
            assert_eq!((stream.b[at], stream.c[at]), (scaled, *x + scaled), "{at}");
            *x = scaled + 0.4142 * (*x + scaled);
            assert_eq!(stream.a[at], *x, "{at}");
        }
    }
}

/// The matrix of who gives what to whom, times the ranks.
#[test]
fn ranks_are_those_of_the_full_matrix() {
    let graph = Graph::new(7, 4);
    let nodes = graph.nodes();
    let mut matrix = vec![vec![0.0; nodes]; nodes];
    let edges = (0..nodes).flat_map(|from| graph.of(from).iter().map(move |to| (from, *to)));
    edges.for_each(|(from, to)| matrix[to as usize][from] += 1.0 / graph.of(from).len() as f64);
    let mut expected = vec![1.0 / nodes as f64; nodes];
    for _ in 0..20 {
        let taken = |row: &Vec<f64>| row.iter().zip(&expected).map(|(a, b)| a * b).sum::<f64>();
        expected = matrix.iter().map(|row| 0.15 / nodes as f64 + 0.85 * taken(row)).collect();
    }
    let ranks = page_rank::ranks(&graph, 20);
    for (rank, expected) in ranks.iter().zip(&expected) {
        assert!((f64::from(*rank) / expected - 1.0).abs() < 1e-4, "{rank} and not {expected}");
    }
    let ends = Graph::of_edges(3, &[(0, 1)]);
    let even: f64 = f64::from(page_rank::ranks(&ends, 0)[2]);
    assert!((even - 1.0 / 3.0).abs() < 1e-6);
    // Node 2 gets nothing; the two others give each other all.
    assert!((f64::from(page_rank::ranks(&ends, 50)[2]) - 0.05).abs() < 1e-6);
}
