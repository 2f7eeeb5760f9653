//! Heat in a plate whose rim is kept warm and cold: Jacobi's iteration. Every thread has a band of
//! rows, and reads its neighbours' edges after every step.

use std::sync::{Barrier, Mutex, PoisonError};

use super::Work;
use crate::checksum::Checksum;

/// Temperature of the upper rim; the others have 0.
const WARM: f64 = 100.0;
const ARRAYS: u64 = 2;

/// The plate after so many steps: `side` x `side` cells, row by row. The same for any number of
/// threads.
#[must_use]
pub fn heat(side: usize, steps: u64, threads: usize) -> Vec<f64> {
    let threads = threads.clamp(1, side.max(1));
    let bound = |at: usize| side * at / threads;
    // The first and the last row of every band, as of the last step.
    let edges: Vec<Mutex<[Vec<f64>; 2]>> =
        (0..threads).map(|_| Mutex::new([vec![0.0; side], vec![0.0; side]])).collect();
    let barrier = Barrier::new(threads);
    let band = |own: usize| -> Vec<f64> {
        let rows = bound(own + 1) - bound(own);
        let mut now = vec![0.0; rows * side];
        let mut new = now.clone();
        for _ in 0..steps {
            let rim = |warm| vec![if warm { WARM } else { 0.0 }; side];
            let edge = |of: usize, which: usize| lock(&edges[of])[which].clone();
            let above = if own == 0 { rim(true) } else { edge(own - 1, 1) };
            let below = if own + 1 == threads { rim(false) } else { edge(own + 1, 0) };
            step(&now, &above, &below, &mut new);
            std::mem::swap(&mut now, &mut new);
            // All threads have read the old edges; then all have written the new ones.
            barrier.wait();
            let mut own = lock(&edges[own]);
            own[0].copy_from_slice(&now[..side]);
            own[1].copy_from_slice(&now[(rows - 1) * side..]);
            drop(own);
            barrier.wait();
        }
        now
    };
    std::thread::scope(|scope| {
        let band = &band;
        let others: Vec<_> = (1..threads).map(|own| scope.spawn(move || band(own))).collect();
        let mut plate = band(0);
        for other in others {
            match other.join() {
                Ok(rows) => plate.extend(rows),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        plate
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every cell of a band becomes the mean of its four neighbours; beyond the sides it is cold.
fn step(now: &[f64], above: &[f64], below: &[f64], new: &mut [f64]) {
    let side = above.len();
    let rows = now.len() / side;
    for row in 0..rows {
        let here = &now[row * side..(row + 1) * side];
        let up = if row == 0 { above } else { &now[(row - 1) * side..row * side] };
        let down = if row + 1 == rows { below } else { &now[(row + 1) * side..(row + 2) * side] };
        let out = &mut new[row * side..(row + 1) * side];
        for column in 0..side {
            let left = if column == 0 { 0.0 } else { here[column - 1] };
            let right = here.get(column + 1).copied().unwrap_or(0.0);
            out[column] = 0.25 * (up[column] + down[column] + left + right);
        }
    }
}

/// So many steps of a plate whose two arrays have that size together.
pub fn run(work: &Work) -> u64 {
    let side = (work.size_bytes / (ARRAYS * 8)).isqrt().max(1);
    let mut sum = Checksum::default();
    sum.add_all(&heat(side as usize, work.rounds, work.threads));
    sum.value()
}
