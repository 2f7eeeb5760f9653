//! Adaptive resonance to analogue patterns (ART 2; Carpenter and Grossberg 1987): neurons settle on
//! an image, categories compete for it, and the winner must expect what is seen, or it is out; one
//! that may stay learns.
//!
//! Memory is laid out as SPEC CPU2000's art is known to do it: neurons of eight numbers, 64 bytes,
//! in one array, and their weights in rows, one of 11 numbers for each neuron, which are allocated
//! one by one: 96 bytes with the allocator's header. Categories are weighed one after the other,
//! each by a pass over all neurons, which takes one number from every row.

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// Categories.
pub const CATEGORIES: usize = 11;
/// Patterns that images are made of.
const PATTERNS: usize = 5;
/// Neurons, a row and its pointer in both directions, patterns, and the image.
const NEURON_BYTES: u64 = 64 + 2 * (96 + 8) + (PATTERNS as u64 + 1) * 8;

/// How much neurons hold on to what they have settled on (the paper's a and b).
const FEEDBACK: f64 = 10.0;
/// The part of what is expected in the comparison (c).
const COMPARED: f64 = 0.1;
/// What a winning category adds for each 1 of its weight (d).
const EXPECTED: f64 = 0.9;
/// How well the winner must match (rho).
const VIGILANCE: f64 = 0.98;
/// Of the way to their new value that weights go in a lesson.
const RATE: f64 = 0.4;
/// How often neurons settle for each question.
const SETTLINGS: usize = 3;
/// How often a winner learns an image.
const LESSONS: usize = 3;

/// A neuron, with the paper's letters.
#[derive(Clone, Copy, Debug, Default)]
struct Neuron {
    input: f64,
    w: f64,
    x: f64,
    v: f64,
    u: f64,
    p: f64,
    q: f64,
    r: f64,
}

/// A neuron's weights, of one direction.
type Row = Box<[f64; CATEGORIES]>;

/// The network.
#[derive(Clone, Debug)]
pub struct Resonance {
    neurons: Vec<Neuron>,
    /// From neurons to categories.
    up: Vec<Row>,
    /// From categories to neurons.
    down: Vec<Row>,
    /// Below this, what a neuron sees is noise (theta).
    threshold: f64,
}

impl Resonance {
    /// A network that has learnt nothing; categories differ a little.
    #[must_use]
    pub fn new(neurons: usize, seed: u64) -> Self {
        let neurons = neurons.max(1);
        let mut random = Random::new(seed);
        // What the paper bounds first weights by; a twentieth, so that a category that has learnt a
        // similar image is asked before one that has learnt none.
        let most = 1.0 / ((1.0 - EXPECTED) * (neurons as f64).sqrt());
        let mut first = || Box::new(std::array::from_fn(|_| most * (0.05 + 0.01 * random.unit())));
        Resonance {
            neurons: vec![Neuron::default(); neurons],
            up: (0..neurons).map(|_| first()).collect(),
            down: (0..neurons).map(|_| Box::new([0.0; CATEGORIES])).collect(),
            threshold: 1.0 / (neurons as f64).sqrt(),
        }
    }

    /// Shows an image: the category that learns it, or none if none matches.
    pub fn show(&mut self, image: &[f64]) -> Option<usize> {
        self.see(image);
        let mut fits = self.weigh();
        loop {
            let best = (0..CATEGORIES).reduce(|a, b| if fits[b] > fits[a] { b } else { a })?;
            if fits[best] == f64::MIN {
                return None;
            }
            // Asked at once: neurons that listen to a category for long come to agree with it. One
            // that expects nothing yet agrees with any image.
            self.pass(Some(best));
            if self.matched() >= VIGILANCE {
                self.learn(best);
                return Some(best);
            }
            fits[best] = f64::MIN;
            self.see(image);
        }
    }

    /// Weights from neurons to categories, and back, neuron by neuron.
    pub fn weights(&self) -> impl Iterator<Item = (&[f64; CATEGORIES], &[f64; CATEGORIES])> {
        self.up.iter().zip(&self.down).map(|(up, down)| (&**up, &**down))
    }

    /// Neurons forget what was before, and settle on an image.
    fn see(&mut self, image: &[f64]) {
        for (neuron, input) in self.neurons.iter_mut().zip(image) {
            *neuron = Neuron { input: *input, ..Neuron::default() };
        }
        self.settle(None);
    }

    /// What each category makes of what the neurons say.
    fn weigh(&self) -> [f64; CATEGORIES] {
        std::array::from_fn(|category| {
            self.neurons.iter().zip(&self.up).map(|(neuron, row)| neuron.p * row[category]).sum()
        })
    }

    fn settle(&mut self, winner: Option<usize>) {
        (0..SETTLINGS).for_each(|_| self.pass(winner));
    }

    /// Every neuron once through its circle, of which each norm needs a pass.
    fn pass(&mut self, winner: Option<usize>) {
        let threshold = self.threshold;
        let heard = |x: f64| if x < threshold { 0.0 } else { x };
        let mut squares = 0.0;
        for neuron in &mut self.neurons {
            neuron.w = neuron.input + FEEDBACK * neuron.u;
            squares += neuron.w * neuron.w;
        }
        let norm = norm(squares);
        let mut squares = 0.0;
        for neuron in &mut self.neurons {
            neuron.x = neuron.w / norm;
            neuron.v = heard(neuron.x) + FEEDBACK * heard(neuron.q);
            squares += neuron.v * neuron.v;
        }
        let norm = self::norm(squares);
        let mut squares = 0.0;
        for (neuron, row) in self.neurons.iter_mut().zip(&self.down) {
            neuron.u = neuron.v / norm;
            neuron.p = neuron.u + winner.map_or(0.0, |winner| EXPECTED * row[winner]);
            squares += neuron.p * neuron.p;
        }
        let norm = self::norm(squares);
        self.neurons.iter_mut().for_each(|neuron| neuron.q = neuron.p / norm);
    }

    /// How far what is expected is what is seen: 1 where both agree, or nothing is expected.
    fn matched(&mut self) -> f64 {
        let (mut seen, mut expected) = (0.0, 0.0);
        for neuron in &self.neurons {
            seen += neuron.u * neuron.u;
            expected += neuron.p * neuron.p;
        }
        let whole = norm(seen) + COMPARED * norm(expected);
        let mut squares = 0.0;
        for neuron in &mut self.neurons {
            neuron.r = (neuron.u + COMPARED * neuron.p) / whole;
            squares += neuron.r * neuron.r;
        }
        squares.sqrt()
    }

    fn learn(&mut self, winner: usize) {
        for _ in 0..LESSONS {
            self.settle(Some(winner));
            for ((neuron, up), down) in self.neurons.iter().zip(&mut self.up).zip(&mut self.down) {
                up[winner] += RATE * (neuron.p - up[winner]);
                down[winner] += RATE * (neuron.p - down[winner]);
            }
        }
    }
}

/// The root of a sum of squares, never 0.
fn norm(squares: f64) -> f64 {
    squares.sqrt().max(f64::MIN_POSITIVE)
}

/// Images: each is one of a few patterns, with noise.
#[derive(Clone, Debug)]
pub struct Images {
    patterns: Vec<Vec<f64>>,
    random: Random,
}

impl Images {
    /// Of so many dots.
    #[must_use]
    pub fn new(dots: usize, seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let mut dot = |_| if random.below(4) == 0 { random.unit() } else { 0.0 };
        let patterns = (0..PATTERNS).map(|_| (0..dots).map(&mut dot).collect()).collect();
        Images { patterns, random }
    }

    /// The next one, and the number of its pattern.
    pub fn draw(&mut self) -> (usize, Vec<f64>) {
        let pattern = self.random.index(PATTERNS);
        let dots = self.patterns[pattern].iter();
        (pattern, dots.map(|dot| dot + 0.02 * self.random.unit()).collect())
    }
}

/// So many images, shown to a network that has that size together with them.
pub fn run(work: &Work) -> u64 {
    let neurons = (work.size_bytes / NEURON_BYTES).max(1) as usize;
    let mut network = Resonance::new(neurons, work.seed);
    let mut images = Images::new(neurons, work.seed);
    let mut sum = Checksum::default();
    for _ in 0..work.rounds {
        let (_, image) = images.draw();
        sum.add(network.show(&image).map_or(u64::MAX, |category| category as u64));
    }
    for (up, down) in network.weights() {
        sum.add_all(up);
        sum.add_all(down);
    }
    sum.value()
}
