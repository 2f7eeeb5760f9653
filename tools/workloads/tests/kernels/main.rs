//! Kernels beside the simplest computation of the same thing.

mod annealer;
mod arrays;
mod lattice;
mod network;
mod resonance;

use casemate_workloads::kernels::join::{self, Joined, Row, Table};
use casemate_workloads::kernels::scan::Scan;
use casemate_workloads::kernels::sparse::Sparse;
use casemate_workloads::kernels::stencil::{State, Stencil};
use casemate_workloads::kernels::traversal::{Graph, UNREACHED};
use casemate_workloads::kernels::{KERNELS, Work, of_name, parallel_join, parallel_stencil};

/// The equations of the model, cell by cell, with indices that go round; `old` as the filter leaves
/// it.
fn shallow_water(now: &State, old: &State, side: usize, time_step: f64) -> State {
    let at = |i: i64, j: i64| {
        (i.rem_euclid(side as i64) * side as i64 + j.rem_euclid(side as i64)) as usize
    };
    let (u, v, p) = (|i, j| now.u[at(i, j)], |i, j| now.v[at(i, j)], |i, j| now.p[at(i, j)]);
    let east = |i, j| (p(i, j) + p(i - 1, j)) / 2.0 * u(i, j);
    let north = |i, j| (p(i, j) + p(i, j - 1)) / 2.0 * v(i, j);
    let spin = |i, j| {
        let mean = (p(i - 1, j - 1) + p(i, j - 1) + p(i, j) + p(i - 1, j)) / 4.0;
        ((v(i, j) - v(i - 1, j)) / 1e5 - (u(i, j) - u(i, j - 1)) / 1e5) / mean
    };
    let square = |x: f64| x * x;
    let height = |i, j| {
        p(i, j)
            + (square(u(i + 1, j)) + square(u(i, j))) / 4.0
            + (square(v(i, j + 1)) + square(v(i, j))) / 4.0
    };
    let mut new = old.clone();
    for i in 0..side as i64 {
        for j in 0..side as i64 {
            let here = at(i, j);
            let mean =
                (north(i, j + 1) + north(i - 1, j + 1) + north(i - 1, j) + north(i, j)) / 4.0;
            new.u[here] += time_step * (spin(i, j + 1) + spin(i, j)) / 2.0 * mean
                - time_step * (height(i, j) - height(i - 1, j)) / 1e5;
            let mean = (east(i + 1, j) + east(i, j) + east(i, j - 1) + east(i + 1, j - 1)) / 4.0;
            new.v[here] -= time_step * (spin(i + 1, j) + spin(i, j)) / 2.0 * mean
                + time_step * (height(i, j) - height(i, j - 1)) / 1e5;
            new.p[here] -= time_step * (east(i + 1, j) - east(i, j)) / 1e5
                + time_step * (north(i, j + 1) - north(i, j)) / 1e5;
        }
    }
    new
}

/// `old`, filtered in time.
fn filtered(old: &State, now: &State, new: &State) -> State {
    let mix = |old: &[f64], now: &[f64], new: &[f64]| -> Vec<f64> {
        let cells = old.iter().zip(now).zip(new);
        cells.map(|((old, now), new)| now + 0.001 * (new - 2.0 * now + old)).collect()
    };
    State {
        u: mix(&old.u, &now.u, &new.u),
        v: mix(&old.v, &now.v, &new.v),
        p: mix(&old.p, &now.p, &new.p),
    }
}

fn assert_close(found: &[f64], expected: &[f64], scale: f64) {
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-12 * scale, "{at}: {a} instead of {b}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn the_stencil_solves_its_equations_and_loses_no_water() {
    let mut model = Stencil::new(9);
    let (mut old, mut time_step) = (model.state().clone(), 90.0);
    let water: f64 = model.state().p.iter().sum();
    for _ in 0..30 {
        let now = model.state().clone();
        let expected = shallow_water(&now, &old, 9, time_step);
        model.step();
        assert_close(&model.state().u, &expected.u, 100.0);
        assert_close(&model.state().v, &expected.v, 100.0);
        assert_close(&model.state().p, &expected.p, 1e5);
        (old, time_step) = (filtered(&old, &now, model.state()), 180.0);
    }
    assert!((model.state().p.iter().sum::<f64>() / water - 1.0).abs() < 1e-12);
    assert_ne!(model.state().p, Stencil::new(9).state().p);
}

#[test]
fn the_winner_fits_best_and_alone_learns() {
    let mut network = Scan::new(7, 3);
    for _ in 0..20 {
        let image = network.image();
        let (up, down) = network.weights();
        let (up, down) = (up.to_vec(), down.to_vec());
        // In double precision, category by category.
        let fits = |category: usize| -> f64 {
            (0..image.len())
                .map(|dot| f64::from(image[dot]) * f64::from(up[dot * 7 + category]))
                .sum()
        };
        let all: Vec<f64> = (0..7).map(fits).collect();
        let winner = network.show(&image);
        let best = all.iter().copied().fold(f64::MIN, f64::max);
        assert!((all[winner.category] - best).abs() < 1e-3, "{winner:?} of {all:?}");
        assert!((f64::from(winner.activation) - best).abs() < 1e-2);
        let (new_up, new_down) = network.weights();
        for at in 0..image.len() * 7 {
            let learnt = |old: f32| {
                if at % 7 == winner.category { 0.9 * old + 0.1 * image[at / 7] } else { old }
            };
            assert!((new_up[at] - learnt(up[at])).abs() < 1e-6, "{at}");
            assert!((new_down[at] - learnt(down[at])).abs() < 1e-6, "{at}");
        }
    }
}

#[test]
fn a_sparse_product_is_the_dense_one() {
    let matrix = Sparse::new(150, 11);
    let mut dense = vec![vec![0.0; 150]; 150];
    for (row, elements) in dense.iter_mut().enumerate() {
        for at in matrix.starts[row] as usize..matrix.starts[row + 1] as usize {
            elements[matrix.columns[at] as usize] += matrix.values[at];
        }
    }
    let vector: Vec<f64> = (0..150).map(|i| f64::from(i % 13) - 6.0).collect();
    let mut product = vec![f64::NAN; 150];
    matrix.multiply(&vector, &mut product);
    let expected: Vec<f64> =
        dense.iter().map(|row| row.iter().zip(&vector).map(|(a, b)| a * b).sum()).collect();
    assert_close(&product, &expected, 1000.0);
    // Rows differ in length, or gathers would be regular.
    let lengths: Vec<u32> = matrix.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(lengths.iter().min() < lengths.iter().max());
}

/// Levels by relaxing every edge until nothing changes.
fn relaxed(nodes: usize, edges: &[(u32, u32)], source: u32) -> Vec<u32> {
    let mut levels = vec![UNREACHED; nodes];
    levels[source as usize] = 0;
    loop {
        let before = levels.clone();
        for &(a, b) in edges {
            for (a, b) in [(a as usize, b as usize), (b as usize, a as usize)] {
                levels[b] = levels[b].min(levels[a].saturating_add(1));
            }
        }
        if levels == before {
            return levels;
        }
    }
}

#[test]
fn a_search_finds_every_level() {
    let graph = Graph::new(8, 2);
    let mut edges = Vec::new();
    for node in 0..graph.nodes() {
        let list = graph.starts[node] as usize..graph.starts[node + 1] as usize;
        edges.extend(graph.neighbours[list].iter().map(|neighbour| (node as u32, *neighbour)));
    }
    assert_eq!(edges.len(), 2 * 8 * 256);
    for source in 0..20 {
        assert_eq!(graph.levels(source), relaxed(256, &edges, source), "from {source}");
    }
    // A power law: few nodes have most of the neighbours, and some have none.
    let mut degrees: Vec<u32> = graph.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    degrees.sort_unstable();
    assert!(degrees[0] == 0 && degrees[255] > 10 * 16, "{degrees:?}");
    let line = Graph::of_edges(5, &[(0, 1), (3, 2), (1, 2)]);
    assert_eq!(line.levels(0), [0, 1, 2, 3, UNREACHED]);
}

fn nested_loops(small: &[Row], large: &[Row]) -> Joined {
    let mut joined = Joined::default();
    for a in small {
        for b in large.iter().filter(|b| b.key == a.key) {
            let products = a.payload.wrapping_mul(b.payload);
            joined.add(Joined { pairs: 1, products });
        }
    }
    joined
}

#[test]
fn joins_by_hash_are_joins_by_nested_loops() {
    for seed in 0..20 {
        let (small, large) = join::relations(1 + seed as usize * 7, seed);
        let expected = nested_loops(&small, &large);
        assert_eq!(Table::new(&small).probe(&large), expected, "seed {seed}");
        for threads in [1, 3, 4, 7] {
            assert_eq!(parallel_join::join(&small, &large, threads), expected, "{threads} threads");
        }
    }
    // Keys that meet more than once, and some that meet none.
    let (small, large) = join::relations(1000, 1);
    let found = Table::new(&small).probe(&large);
    assert!(found.pairs > 1000 && found.pairs < 4000, "{found:?}");
    // Enough keys for every partition.
    assert_eq!(parallel_join::join(&small, &large, 4), found);
}

#[test]
fn heat_is_the_same_for_any_number_of_threads() {
    let side = 13;
    let mut plate = vec![vec![0.0; side]; side];
    for _ in 0..40 {
        let at = |i: i64, j: i64| match (usize::try_from(i), usize::try_from(j)) {
            (Err(_), _) => 100.0,
            (Ok(i), Ok(j)) if i < side && j < side => plate[i][j],
            _ => 0.0,
        };
        let mean =
            |i: i64, j: i64| (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1)) / 4.0;
        let row = |i| (0..side as i64).map(|j| mean(i, j)).collect();
        plate = (0..side as i64).map(row).collect();
    }
    let expected: Vec<f64> = plate.concat();
    for threads in [1, 2, 4, 13, 99] {
        assert_close(&parallel_stencil::heat(side, 40, threads), &expected, 100.0);
    }
    assert!(expected[side * side / 2] > 1.0);
}

#[test]
fn every_kernel_depends_on_its_work_and_on_nothing_else() {
    for kernel in &KERNELS {
        let work = Work { size_bytes: 1 << 16, rounds: 2, threads: 2, seed: 1 };
        let sum = (kernel.run)(&work);
        assert_eq!((kernel.run)(&work), sum, "{}", kernel.name);
        assert_eq!((kernel.run)(&Work { threads: 3, ..work }), sum, "{}", kernel.name);
        assert_ne!((kernel.run)(&Work { rounds: 0, ..work }), sum, "{}", kernel.name);
        assert_ne!((kernel.run)(&Work { size_bytes: 1 << 17, ..work }), sum, "{}", kernel.name);
        let is_physics = kernel.name.contains("stencil");
        assert_eq!((kernel.run)(&Work { seed: 2, ..work }) == sum, is_physics, "{}", kernel.name);
        assert!(of_name(kernel.name).is_some());
        // Nothing is too small.
        let least = Work { size_bytes: 0, rounds: 1, threads: 1, seed: 0 };
        (kernel.run)(&least);
    }
}
