//! Lattice Boltzmann in two loops: everything collides, then everything moves.

use casemate_workloads::kernels::lattice::{
    Cell, DIRECTIONS, FORCE, Lattice, RELAXATION, VELOCITIES,
};

fn collided(cell: &Cell) -> Vec<f64> {
    if cell.is_solid {
        let back = |[x, y, z]: [i32; 3]| {
            let opposite = DIRECTIONS.iter().position(|other| *other == [-x, -y, -z]);
            cell.moving[opposite.expect("every velocity has an opposite")]
        };
        return DIRECTIONS.into_iter().map(back).collect();
    }
    let density: f64 = cell.moving.iter().sum();
    let flow = |axis: usize| -> f64 {
        let shares = DIRECTIONS.iter().zip(&cell.moving);
        shares.map(|(direction, share)| f64::from(direction[axis]) * share).sum()
    };
    let u = [flow(0) / density, flow(1) / density, flow(2) / density];
    let after = |(direction, share): (&[i32; 3], &f64)| {
        let weight = match direction.iter().filter(|step| **step != 0).count() {
            0 => 12.0 / 36.0,
            1 => 2.0 / 36.0,
            _ => 1.0 / 36.0,
        };
        let cu: f64 = (0..3).map(|axis| f64::from(direction[axis]) * u[axis]).sum();
        let uu: f64 = u.iter().map(|x| x * x).sum();
        let equilibrium = weight * density * (1.0 + 3.0 * cu + 9.0 / 2.0 * cu * cu - 1.5 * uu);
        (1.0 - RELAXATION) * share
            + RELAXATION * equilibrium
            + 3.0 * weight * FORCE * f64::from(direction[0])
    };
    DIRECTIONS.iter().zip(&cell.moving).map(after).collect()
}

/// Where each share comes from: the cell before, in its direction.
fn moved(cells: &[Vec<f64>], side: i32) -> Vec<Vec<f64>> {
    let at = |x: i32, y: i32, z: i32| {
        ((x.rem_euclid(side) * side + y.rem_euclid(side)) * side + z.rem_euclid(side)) as usize
    };
    let mut new = Vec::new();
    for x in 0..side {
        for y in 0..side {
            for z in 0..side {
                let from = |(to, [i, j, k]): (usize, [i32; 3])| cells[at(x - i, y - j, z - k)][to];
                new.push(DIRECTIONS.into_iter().enumerate().map(from).collect());
            }
        }
    }
    new
}

#[test]
fn a_step_is_a_collision_and_a_move() {
    let mut lattice = Lattice::new(5, 8);
    for step in 0..30 {
        let cells: Vec<Vec<f64>> = lattice.cells().iter().map(collided).collect();
        let expected = moved(&cells, 5);
        lattice.step();
        for (cell, expected) in lattice.cells().iter().zip(&expected) {
            super::assert_close(&cell.moving, expected, 1.0);
        }
        let mass: f64 = lattice.cells().iter().flat_map(|cell| cell.moving).sum();
        assert!((mass / 125.0 - 1.0).abs() < 1e-12, "step {step}: {mass}");
    }
    let solid = lattice.cells().iter().filter(|cell| cell.is_solid).count();
    assert!((5..30).contains(&solid), "{solid}");
}

/// The force is all that a fluid at rest gains in its first step, less what solid cells took.
#[test]
fn the_force_drives_every_cell_of_fluid() {
    let mut lattice = Lattice::new(6, 4);
    let fluid = lattice.cells().iter().filter(|cell| !cell.is_solid).count();
    lattice.step();
    let momentum = |axis: usize| -> f64 {
        let shares = lattice.cells().iter().flat_map(|cell| DIRECTIONS.iter().zip(&cell.moving));
        shares.map(|(direction, share)| f64::from(direction[axis]) * share).sum()
    };
    assert!((momentum(0) - fluid as f64 * FORCE).abs() < 1e-12);
    assert!(momentum(1).abs() < 1e-12 && momentum(2).abs() < 1e-12);
    assert_eq!(size_of::<Cell>(), 8 * (VELOCITIES + 1));
}
