//! Flow through a porous block by the lattice Boltzmann method, with 19 velocities (D3Q19; Qian,
//! d'Humières and Lallemand 1992): every cell is read from one grid, and what leaves it is written
//! to 19 cells of the other.
//!
//! The block goes on periodically to all sides. A force drives the fluid along the first axis; what
//! enters a solid cell leaves it the way it came (full-way bounce-back).

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// Velocities.
pub const VELOCITIES: usize = 19;
/// One cell of so many is solid.
const SOLID: u64 = 8;
/// 1 / relaxation time, in steps.
pub const RELAXATION: f64 = 1.2;
/// What a cell of fluid gains of momentum in a step.
pub const FORCE: f64 = 1e-5;
const CELL_BYTES: u64 = size_of::<Cell>() as u64;

/// The velocities, each beside its opposite but for the first, which is rest.
#[rustfmt::skip]
pub const DIRECTIONS: [[i32; 3]; VELOCITIES] = [
    [0, 0, 0],
    [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1],
    [1, 1, 0], [-1, -1, 0], [1, -1, 0], [-1, 1, 0],
    [1, 0, 1], [-1, 0, -1], [1, 0, -1], [-1, 0, 1],
    [0, 1, 1], [0, -1, -1], [0, 1, -1], [0, -1, 1],
];

/// The weight of a velocity in the equilibrium, by how many axes it goes along.
const WEIGHTS: [f64; 3] = [1.0 / 3.0, 1.0 / 18.0, 1.0 / 36.0];

/// A cell: 160 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The fluid's distribution over the velocities.
    pub moving: [f64; VELOCITIES],
    /// Whether fluid is thrown back here.
    pub is_solid: bool,
}

/// A cube of cells.
#[derive(Clone, Debug)]
pub struct Lattice {
    side: usize,
    now: Vec<Cell>,
    new: Vec<Cell>,
}

impl Lattice {
    /// Fluid at rest, with solid cells anywhere.
    #[must_use]
    pub fn new(side: usize, seed: u64) -> Self {
        let side = side.max(2);
        let mut random = Random::new(seed);
        let rest = DIRECTIONS.map(weight);
        let cell = |_| Cell { moving: rest, is_solid: random.below(SOLID) == 0 };
        let now: Vec<Cell> = (0..side * side * side).map(cell).collect();
        Lattice { side, new: now.clone(), now }
    }

    /// The cells: the third axis changes first.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.now
    }

    /// A step of time.
    pub fn step(&mut self) {
        let side = self.side;
        // Where a cell's neighbours are along an axis: here, after it, before it.
        let along = |at: usize| [at, (at + 1) % side, (at + side - 1) % side];
        for x in 0..side {
            let planes = along(x).map(|x| x * side * side);
            for y in 0..side {
                let rows = along(y).map(|y| y * side);
                for z in 0..side {
                    let columns = along(z);
                    let leaving = leaving(&self.now[planes[0] + rows[0] + z]);
                    for (velocity, [i, j, k]) in DIRECTIONS.into_iter().enumerate() {
                        let [i, j, k] = [i, j, k].map(|step| step.rem_euclid(3) as usize);
                        let to = &mut self.new[planes[i] + rows[j] + columns[k]];
                        to.moving[velocity] = leaving[velocity];
                    }
                }
            }
        }
        std::mem::swap(&mut self.now, &mut self.new);
    }
}

/// What leaves a cell.
fn leaving(cell: &Cell) -> [f64; VELOCITIES] {
    let moving = &cell.moving;
    if cell.is_solid {
        // The opposite of 1 is 2, of 2 is 1, and so on.
        return std::array::from_fn(|to| moving[if to == 0 { 0 } else { ((to - 1) ^ 1) + 1 }]);
    }
    let density: f64 = moving.iter().sum();
    let mut speed = [0.0; 3];
    for (share, direction) in moving.iter().zip(DIRECTIONS) {
        for axis in 0..3 {
            speed[axis] += share * f64::from(direction[axis]) / density;
        }
    }
    let square = speed.iter().map(|speed| speed * speed).sum::<f64>();
    std::array::from_fn(|velocity| {
        let direction = DIRECTIONS[velocity];
        let projected: f64 = (0..3).map(|axis| f64::from(direction[axis]) * speed[axis]).sum();
        let shape = 1.0 + 3.0 * projected + 4.5 * projected * projected - 1.5 * square;
        let equilibrium = weight(direction) * density * shape;
        let driven = 3.0 * weight(direction) * f64::from(direction[0]) * FORCE;
        moving[velocity] + RELAXATION * (equilibrium - moving[velocity]) + driven
    })
}

const fn weight([x, y, z]: [i32; 3]) -> f64 {
    WEIGHTS[(x * x + y * y + z * z) as usize]
}

/// So many steps of a block whose two grids have that size together.
pub fn run(work: &Work) -> u64 {
    let cells = work.size_bytes / (2 * CELL_BYTES);
    let side = (1..1024).take_while(|side| side * side * side <= cells).count();
    let mut lattice = Lattice::new(side, work.seed);
    (0..work.rounds).for_each(|_| lattice.step());
    let mut sum = Checksum::default();
    lattice.cells().iter().for_each(|cell| sum.add_all(&cell.moving));
    sum.value()
}
