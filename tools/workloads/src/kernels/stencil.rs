//! A shallow-water model on a torus, in Sadourny's discretisation (J. Atmos. Sci. 32, 1975):
//! fluxes, potential vorticity and height of every cell from its neighbours', then new velocities
//! and pressure, then all fields smoothed in time (leapfrog with Asselin's filter). Every step
//! streams through thirteen arrays.

use super::Work;
use crate::checksum::Checksum;

const DX: f64 = 1e5;
const DY: f64 = 1e5;
const DT: f64 = 90.0;
const SMOOTHING: f64 = 0.001;
const ARRAYS: u64 = 13;

/// A field of `side` x `side` cells, row by row.
type Field = Vec<f64>;

/// Velocities and pressure.
#[derive(Clone, Debug)]
pub struct State {
    /// Eastward velocity.
    pub u: Field,
    /// Northward velocity.
    pub v: Field,
    /// Pressure.
    pub p: Field,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Stencil {
    side: usize,
    now: State,
    old: State,
    new: State,
    flux_east: Field,
    flux_north: Field,
    vorticity: Field,
    height: Field,
    time_step: f64,
}

impl Stencil {
    /// A wave on a torus of `side` x `side` cells, at least 2 x 2.
    #[must_use]
    pub fn new(side: usize) -> Self {
        let side = side.max(2);
        let cells = side * side;
        let angle = std::f64::consts::TAU / side as f64;
        let amplitude = 1e6;
        let mut stream = vec![0.0; cells];
        let mut p = vec![0.0; cells];
        for row in 0..side {
            for column in 0..side {
                let (x, y) = (angle * (row as f64 + 0.5), angle * (column as f64 + 0.5));
                stream[row * side + column] = amplitude * x.sin() * y.sin();
                p[row * side + column] = 5e4 + 1e3 * ((2.0 * x).cos() + (2.0 * y).cos());
            }
        }
        let (mut u, mut v) = (vec![0.0; cells], vec![0.0; cells]);
        for row in 0..side {
            let below = (row + 1) % side;
            for column in 0..side {
                let right = (column + 1) % side;
                let here = stream[row * side + column];
                u[row * side + column] = -(stream[row * side + right] - here) / DY;
                v[row * side + column] = (stream[below * side + column] - here) / DX;
            }
        }
        let zeros = || vec![0.0; cells];
        let now = State { u, v, p };
        Stencil {
            side,
            old: now.clone(),
            new: now.clone(),
            now,
            flux_east: zeros(),
            flux_north: zeros(),
            vorticity: zeros(),
            height: zeros(),
            time_step: DT,
        }
    }

    /// Cells of a side.
    #[must_use]
    pub fn side(&self) -> usize {
        self.side
    }

    /// The state after the steps so far.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.now
    }

    /// One step of time.
    pub fn step(&mut self) {
        self.derive();
        self.move_on();
        self.smooth();
        self.time_step = 2.0 * DT;
    }

    /// Fluxes, vorticity and height from the state.
    fn derive(&mut self) {
        let (side, State { u, v, p }) = (self.side, &self.now);
        for row in 0..side {
            let (here, above) = (row * side, (row + side - 1) % side * side);
            for column in 0..side {
                let left = (column + side - 1) % side;
                let at = here + column;
                let (west, north, corner) = (here + left, above + column, above + left);
                self.flux_east[at] = 0.5 * (p[at] + p[north]) * u[at];
                self.flux_north[at] = 0.5 * (p[at] + p[west]) * v[at];
                let spin = 4.0 / DX * (v[at] - v[north]) - 4.0 / DY * (u[at] - u[west]);
                self.vorticity[at] = spin / (p[corner] + p[north] + p[at] + p[west]);
                let (below, right) = ((row + 1) % side * side, (column + 1) % side);
                let east = u[below + column] * u[below + column] + u[at] * u[at];
                let south = v[here + right] * v[here + right] + v[at] * v[at];
                self.height[at] = p[at] + 0.25 * (east + south);
            }
        }
    }

    /// The new state from the old one and what was derived.
    fn move_on(&mut self) {
        let side = self.side;
        let (in_x, in_y) = (self.time_step / DX, self.time_step / DY);
        let turn = self.time_step / 8.0;
        let (east, north) = (&self.flux_east, &self.flux_north);
        let (z, h) = (&self.vorticity, &self.height);
        for row in 0..side {
            let (here, above) = (row * side, (row + side - 1) % side * side);
            let below = (row + 1) % side * side;
            for column in 0..side {
                let left = (column + side - 1) % side;
                let right = (column + 1) % side;
                let at = here + column;
                let crossing =
                    north[here + right] + north[at] + north[above + right] + north[above + column];
                self.new.u[at] = self.old.u[at] + turn * (z[here + right] + z[at]) * crossing
                    - in_x * (h[at] - h[above + column]);
                let crossing =
                    east[below + column] + east[below + left] + east[here + left] + east[at];
                self.new.v[at] = self.old.v[at]
                    - turn * (z[below + column] + z[at]) * crossing
                    - in_y * (h[at] - h[here + left]);
                self.new.p[at] = self.old.p[at]
                    - in_x * (east[below + column] - east[at])
                    - in_y * (north[here + right] - north[at]);
            }
        }
    }

    /// The old state becomes a mean of three, the new one the present.
    fn smooth(&mut self) {
        for (old, now, new) in [
            (&mut self.old.u, &mut self.now.u, &self.new.u),
            (&mut self.old.v, &mut self.now.v, &self.new.v),
            (&mut self.old.p, &mut self.now.p, &self.new.p),
        ] {
            for ((old, now), new) in old.iter_mut().zip(now).zip(new) {
                *old = *now + SMOOTHING * (*new - 2.0 * *now + *old);
                *now = *new;
            }
        }
    }

    /// Of velocities and pressure.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        let mut sum = Checksum::default();
        for field in [&self.now.u, &self.now.v, &self.now.p] {
            sum.add_all(field);
        }
        sum.value()
    }
}

/// So many steps on a torus whose arrays have that size together.
pub fn run(work: &Work) -> u64 {
    let side = (work.size_bytes / (ARRAYS * 8)).isqrt();
    let mut model = Stencil::new(side as usize);
    (0..work.rounds).for_each(|_| model.step());
    model.checksum()
}
