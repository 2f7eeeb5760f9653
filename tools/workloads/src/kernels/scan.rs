//! A network that learns by competition (adaptive resonance): each image is weighed by every
//! category, and the one that it fits best learns it. All weights are read for every image, a
//! category's weights with a stride, and nearly nothing is written.

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// Of a category's weight that stays when it learns.
const KEPT: f32 = 0.9;
/// Dots of an image.
const DOTS: usize = 1024;

/// The network.
#[derive(Clone, Debug)]
pub struct Scan {
    categories: usize,
    /// From dot to category: `[dot * categories + category]`.
    up: Vec<f32>,
    /// From category to dot, in the same order.
    down: Vec<f32>,
    random: Random,
}

/// What became of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Winner {
    /// The category that it fits best: of equal ones the first.
    pub category: usize,
    /// How well it fits.
    pub activation: f32,
    /// Which part of the image the category expected.
    pub resonance: f32,
}

impl Scan {
    /// Random weights.
    #[must_use]
    pub fn new(categories: usize, seed: u64) -> Self {
        let categories = categories.max(1);
        let mut random = Random::new(seed);
        let mut weights = || (0..categories * DOTS).map(|_| random.unit() as f32).collect();
        let (up, down) = (weights(), weights());
        Scan { categories, up, down, random }
    }

    /// Weights from dots to categories, and back; both `[dot * categories + category]`.
    #[must_use]
    pub fn weights(&self) -> (&[f32], &[f32]) {
        (&self.up, &self.down)
    }

    /// An image of random dots.
    pub fn image(&mut self) -> Vec<f32> {
        (0..DOTS).map(|_| self.random.unit() as f32).collect()
    }

    /// Shows an image: finds the winner, which learns it.
    pub fn show(&mut self, image: &[f32]) -> Winner {
        let mut best = (0, f32::MIN);
        for category in 0..self.categories {
            let weights = self.up[category..].iter().step_by(self.categories);
            let activation = image.iter().zip(weights).map(|(dot, weight)| dot * weight).sum();
            if activation > best.1 {
                best = (category, activation);
            }
        }
        let (category, activation) = best;
        let mut expected = 0.0;
        for (dot, lit) in image.iter().enumerate() {
            let at = dot * self.categories + category;
            expected += lit.min(self.down[at]);
            self.up[at] = KEPT * self.up[at] + (1.0 - KEPT) * lit;
            self.down[at] = KEPT * self.down[at] + (1.0 - KEPT) * lit;
        }
        let resonance = expected / image.iter().sum::<f32>();
        Winner { category, activation, resonance }
    }
}

/// So many images, shown to a network whose weights have that size.
pub fn run(work: &Work) -> u64 {
    let categories = work.size_bytes / (2 * 4 * DOTS as u64);
    let mut network = Scan::new(categories as usize, work.seed);
    let mut sum = Checksum::default();
    for _ in 0..work.rounds {
        let image = network.image();
        let Winner { category, activation, resonance } = network.show(&image);
        sum.add(category as u64);
        sum.add_all(&[f64::from(activation), f64::from(resonance)]);
    }
    sum.value()
}
