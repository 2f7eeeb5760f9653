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

/// The same as indices of a cell's neighbours along each axis: here, after it, before it.
static STEPS: [[usize; 3]; VELOCITIES] = {
    let mut steps = [[0; 3]; VELOCITIES];
    let mut at = 0;
    while at < 3 * VELOCITIES {
        steps[at / 3][at % 3] = DIRECTIONS[at / 3][at % 3].rem_euclid(3) as usize;
        at += 1;
    }
    steps
};

/// Pairs of opposites: the three axes, and six diagonals.
const WAYS: usize = VELOCITIES / 2;
/// Pairs that the force drives, by how far they go along the first axis.
const DRIVEN: [f64; WAYS] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];

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
        let rest = DIRECTIONS.map(|[x, y, z]| WEIGHTS[(x * x + y * y + z * z) as usize]);
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
        let after = |at: usize| if at + 1 == side { 0 } else { at + 1 };
        let before = |at: usize| if at == 0 { side - 1 } else { at - 1 };
        let along = |at: usize| [at, after(at), before(at)];
        for x in 0..side {
            let planes = along(x).map(|x| x * side * side);
            for y in 0..side {
                let rows = along(y).map(|y| y * side);
                let lines = planes.map(|plane| rows.map(|row| plane + row));
                for z in 0..side {
                    let columns = along(z);
                    let leaving = leaving(&self.now[lines[0][0] + z]);
                    for (velocity, [i, j, k]) in STEPS.iter().enumerate() {
                        let to = lines[*i][*j] + columns[*k];
                        self.new[to].moving[velocity] = leaving[velocity];
                    }
                }
            }
        }
        std::mem::swap(&mut self.now, &mut self.new);
    }
}

/// What leaves a cell.
#[inline]
fn leaving(cell: &Cell) -> [f64; VELOCITIES] {
    let moving = &cell.moving;
    let mut leaving = *moving;
    if cell.is_solid {
        (0..WAYS).for_each(|way| leaving.swap(1 + 2 * way, 2 + 2 * way));
        return leaving;
    }
    let (mut density, mut net) = (moving[0], [0.0; WAYS]);
    for way in 0..WAYS {
        let (forth, back) = (moving[1 + 2 * way], moving[2 + 2 * way]);
        density += forth + back;
        net[way] = forth - back;
    }
    // Sums of what goes along each axis, without multiplying by the zeros of the directions.
    let flow = [
        net[0] + net[3] + net[4] + net[5] + net[6],
        net[1] + net[3] - net[4] + net[7] + net[8],
        net[2] + net[5] - net[6] + net[7] - net[8],
    ];
    let [x, y, z] = [flow[0] / density, flow[1] / density, flow[2] / density];
    let along = [x, y, z, x + y, x - y, x + z, x - z, y + z, y - z];
    let slow = 1.0 - 1.5 * (x * x + y * y + z * z);
    leaving[0] += RELAXATION * (WEIGHTS[0] * density * slow - moving[0]);
    for way in 0..WAYS {
        let weight = WEIGHTS[if way < 3 { 1 } else { 2 }];
        let (forth, back) = (moving[1 + 2 * way], moving[2 + 2 * way]);
        // Of the equilibrium, what both directions of a way share, and what they differ in.
        let even = weight * density * (slow + 4.5 * along[way] * along[way]);
        let odd = weight * density * 3.0 * along[way];
        let driven = 3.0 * weight * DRIVEN[way] * FORCE;
        leaving[1 + 2 * way] = forth + RELAXATION * (even + odd - forth) + driven;
        leaving[2 + 2 * way] = back + RELAXATION * (even - odd - back) - driven;
    }
    leaving
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
