//! The four loops of STREAM (McCalpin 1995): copy, scale, add and triad, over three arrays that no
//! cache holds.

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

const ARRAYS: u64 = 3;
/// STREAM takes 3; with this one, numbers neither vanish nor overflow in thousands of rounds: a
/// round multiplies them by 2 x 0.4142 + 0.4142^2 = 0.99996.
const SCALAR: f64 = 0.4142;

/// The arrays.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Scaled and added up: what a round begins and ends with.
    pub a: Vec<f64>,
    /// The second.
    pub b: Vec<f64>,
    /// The third.
    pub c: Vec<f64>,
}

impl Stream {
    /// A first array of random numbers, and two that a round overwrites.
    #[must_use]
    pub fn new(elements: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let a = (0..elements.max(1)).map(|_| random.unit()).collect::<Vec<_>>();
        // Written, or their pages would be there only after the first round.
        let (b, c) = (a.iter().map(|x| -x).collect(), a.iter().map(|x| 1.0 - x).collect());
        Stream { a, b, c }
    }

    /// Each of the four loops, once.
    pub fn round(&mut self) {
        let Stream { a, b, c } = self;
        // With + 0.0 it stays a loop: a call of memcpy does something else on every machine.
        c.iter_mut().zip(&*a).for_each(|(c, a)| *c = a + 0.0);
        b.iter_mut().zip(&*c).for_each(|(b, c)| *b = SCALAR * c);
        c.iter_mut().zip(a.iter().zip(&*b)).for_each(|(c, (a, b))| *c = a + b);
        a.iter_mut().zip(b.iter().zip(&*c)).for_each(|(a, (b, c))| *a = b + SCALAR * c);
    }
}

/// So many times the four loops.
pub fn run(work: &Work) -> u64 {
    let mut stream = Stream::new((work.size_bytes / (ARRAYS * 8)) as usize, work.seed);
    (0..work.rounds).for_each(|_| stream.round());
    let mut sum = Checksum::default();
    sum.add_all(&stream.a);
    sum.value()
}
