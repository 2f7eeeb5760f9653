//! Prices beside the length of all wires, and moves that keep every element in a spot of its own.

use casemate_workloads::kernels::annealer::{Moves, Netlist};
use casemate_workloads::random::Random;

/// How long all wires are together.
fn length(netlist: &Netlist) -> i64 {
    let places: Vec<(u32, u32)> = netlist.places().collect();
    let wire = |(from, to): (u32, u32)| {
        let ((x, y), (other_x, other_y)) = (places[from as usize], places[to as usize]);
        i64::from(x.abs_diff(other_x) + y.abs_diff(other_y))
    };
    netlist.wires().map(wire).sum()
}

#[test]
fn a_price_is_what_the_wires_grow_by() {
    let netlist = Netlist::new(6, 2);
    assert_eq!(netlist.wires().count(), 5 * 64);
    let mut random = Random::new(9);
    let mut shorter = 0;
    for _ in 0..500 {
        let (a, b) = (random.below(64) as u32, random.below(64) as u32);
        let (before, price) = (length(&netlist), netlist.price(a, b));
        netlist.swap(a, b);
        assert_eq!(length(&netlist) - before, price, "{a} and {b}");
        shorter += usize::from(price < 0);
    }
    assert!((100..400).contains(&shorter), "{shorter}");
}

#[test]
fn a_batch_pairs_no_element_twice() {
    for scale in [1, 2, 7, 12] {
        for batch in 0..20 {
            let moves = Moves::new(5, batch, scale);
            let pairs = (0..moves.count() as u32).map(|at| moves.pair(at));
            let mut elements: Vec<u32> = pairs.flat_map(|(a, b, _)| [a, b]).collect();
            elements.sort_unstable();
            assert!(elements.windows(2).all(|pair| pair[0] < pair[1]), "{elements:?}");
            assert!(elements.last().is_some_and(|last| *last < 1 << scale));
        }
    }
    // All elements get their turn.
    let mut moved = [false; 256];
    for moves in (0..200).map(|batch| Moves::new(5, batch, 8)) {
        for (a, b, _) in (0..moves.count() as u32).map(|at| moves.pair(at)) {
            (moved[a as usize], moved[b as usize]) = (true, true);
        }
    }
    assert!(moved.iter().all(|moved| *moved));
}

/// A move that is worse by n is made with a probability of 2^(-n / temperature).
#[test]
fn nerve_is_the_logarithm_of_chance() {
    let moves = Moves::new(1, 0, 20);
    let count = moves.count() as f64;
    for n in 1..6 {
        let bold = (0..moves.count() as u32).filter(|at| moves.pair(*at).2 >= f64::from(n));
        let part = bold.count() as f64 / count;
        assert!((part * f64::from(1 << n) - 1.0).abs() < 0.06, "{n}: {part}");
    }
}

#[test]
fn annealing_shortens_wires_the_same_with_any_number_of_threads() {
    let start = length(&Netlist::new(10, 7));
    let annealed = |threads| {
        let netlist = Netlist::new(10, 7);
        netlist.anneal(60, threads, 7);
        let places: Vec<(u32, u32)> = netlist.places().collect();
        let mut spots = places.clone();
        spots.sort_unstable();
        let grid = (0..32).flat_map(|x| (0..32).map(move |y| (x, y)));
        assert!(spots.into_iter().eq(grid));
        (length(&netlist), places)
    };
    let (end, places) = annealed(1);
    assert!(end < start * 3 / 4, "{start} to {end}");
    for threads in [2, 4, 7] {
        assert!(annealed(threads).1 == places, "{threads} threads");
    }
}
