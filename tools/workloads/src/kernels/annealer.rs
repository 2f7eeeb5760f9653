//! A circuit's elements are placed by simulated annealing, on several threads: two elements
//! anywhere, and all that they are wired to, are looked at to see whether they had better change
//! places.
//!
//! Moves come in batches of pairs that have no element in common. All threads judge their share of
//! a batch before any makes its moves, so that the result is the same for any number of threads. A
//! move is judged as if it were the batch's only one, which annealing forgives.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// Inputs of an element.
const FAN_IN: usize = 5;
/// Half of an element's inputs come from so many elements before it.
const NEAR: usize = 1000;
/// An element, its two lists with the allocator's headers, and a spot.
const ELEMENT_BYTES: u64 = 56 + 32 + 48 + 8;
/// Batches of a step of temperature.
const BATCHES: u64 = 16;
/// Of all elements, those that a batch pairs up: 1 / 32.
const BATCH_SHIFT: u32 = 5;
/// The temperature of the first step, for each unit of the grid's side.
const HOT: f64 = 0.25;
/// Of the temperature that stays after a step.
const COOLING: f64 = 0.8;

/// A place in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    x: u32,
    y: u32,
}

/// An element, and what it is wired to.
#[derive(Debug)]
struct Element {
    spot: AtomicU32,
    fan_in: Vec<u32>,
    fan_out: Vec<u32>,
}

/// The circuit, and where its elements are.
#[derive(Debug)]
pub struct Netlist {
    elements: Vec<Element>,
    spots: Vec<Spot>,
    /// The logarithm of how many elements there are.
    scale: u32,
}

impl Netlist {
    /// A random circuit of 2^`scale` elements, each somewhere in a grid with a spot for each.
    #[must_use]
    pub fn new(scale: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 1_usize << scale;
        let shuffle = Shuffle::new(random.word(), scale);
        let mut elements: Vec<Element> = (0..count as u32)
            .map(|at| Element {
                spot: AtomicU32::new(shuffle.of(at)),
                fan_in: Vec::with_capacity(FAN_IN),
                fan_out: Vec::new(),
            })
            .collect();
        for to in 0..count {
            for _ in 0..FAN_IN {
                let near = (to + count - random.index(NEAR.min(count))) % count;
                let from = if random.below(2) == 0 { near } else { random.index(count) };
                elements[to].fan_in.push(from as u32);
                elements[from].fan_out.push(to as u32);
            }
        }
        let width = 1 << scale.div_ceil(2);
        let spot = |at| Spot { x: at % width, y: at / width };
        Netlist { elements, spots: (0..count as u32).map(spot).collect(), scale }
    }

    /// Where each element is: a column and a row of the grid.
    pub fn places(&self) -> impl Iterator<Item = (u32, u32)> {
        self.elements.iter().map(|element| self.spot(element)).map(|Spot { x, y }| (x, y))
    }

    /// All wires: from where, to where.
    pub fn wires(&self) -> impl Iterator<Item = (u32, u32)> {
        let elements = (0..).zip(&self.elements);
        elements.flat_map(|(to, element)| element.fan_in.iter().map(move |from| (*from, to)))
    }

    /// How much longer all wires together are once these two have changed places.
    #[must_use]
    pub fn price(&self, a: u32, b: u32) -> i64 {
        let (one, other) = (&self.elements[a as usize], &self.elements[b as usize]);
        let (here, there) = (self.spot(one), self.spot(other));
        let moved = |element: &Element, from: Spot, to: Spot| -> i64 {
            let wired = element.fan_in.iter().chain(&element.fan_out);
            // A wire between the two is as long afterwards.
            let wired = wired.filter(|wired| **wired != a && **wired != b);
            let ends = wired.map(|wired| self.spot(&self.elements[*wired as usize]));
            ends.map(|end| distance(to, end) - distance(from, end)).sum()
        };
        moved(one, here, there) + moved(other, there, here)
    }

    /// They change places.
    pub fn swap(&self, a: u32, b: u32) {
        let (one, other) = (&self.elements[a as usize].spot, &self.elements[b as usize].spot);
        // No other thread has either of them while moves are made; barriers order the rest.
        let spot = one.load(Ordering::Relaxed);
        one.store(other.load(Ordering::Relaxed), Ordering::Relaxed);
        other.store(spot, Ordering::Relaxed);
    }

    /// So many steps of falling temperature, by so many threads, of which the caller is the first.
    pub fn anneal(&self, steps: u64, threads: usize, seed: u64) {
        let threads = threads.max(1);
        let barrier = Barrier::new(threads);
        let work = |own: usize| {
            let mut temperature = HOT * f64::from(1_u32 << (self.scale / 2));
            for step in 0..steps {
                for batch in 0..BATCHES {
                    let moves = Moves::new(seed, step * BATCHES + batch, self.scale);
                    let bound = |at: usize| (moves.count() * at / threads) as u32;
                    let share = (bound(own)..bound(own + 1)).map(|at| moves.pair(at));
                    let is_made = |(a, b, nerve): &(u32, u32, f64)| {
                        self.price(*a, *b) as f64 <= temperature * nerve
                    };
                    let made: Vec<_> = share.filter(is_made).collect();
                    barrier.wait();
                    made.iter().for_each(|(a, b, _)| self.swap(*a, *b));
                    barrier.wait();
                }
                temperature *= COOLING;
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            (1..threads).for_each(|own| {
                scope.spawn(move || work(own));
            });
            work(0);
        });
    }

    fn spot(&self, element: &Element) -> Spot {
        self.spots[element.spot.load(Ordering::Relaxed) as usize]
    }
}

fn distance(a: Spot, b: Spot) -> i64 {
    i64::from(a.x.abs_diff(b.x)) + i64::from(a.y.abs_diff(b.y))
}

/// The moves of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    shuffle: Shuffle,
    seed: u64,
}

impl Moves {
    /// Of the batch of that number, between 2^`scale` elements.
    #[must_use]
    pub fn new(seed: u64, batch: u64, scale: u32) -> Self {
        let seed = Random::new(seed ^ batch.wrapping_mul(0xd134_2543_de82_ef95)).word();
        Moves { shuffle: Shuffle::new(seed, scale), seed }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        (1 << self.shuffle.bits >> BATCH_SHIFT >> 1).max(1)
    }

    /// The two elements of one of them, and how much worse it may be, for each 1 of temperature.
    ///
    /// That is the binary logarithm of a random number, by straight lines between its whole values
    /// (at most 0.09 too low): the C library's would depend on the machine.
    #[must_use]
    pub fn pair(&self, at: u32) -> (u32, u32, f64) {
        let word = Random::new(self.seed ^ u64::from(at)).word() | 1;
        let zeros = word.leading_zeros();
        let beyond = (word << zeros) as f64 / (1_u64 << 63) as f64 - 1.0;
        (self.shuffle.of(2 * at), self.shuffle.of(2 * at + 1), f64::from(zeros + 1) - beyond)
    }
}

/// All numbers of some bits, in another order.
#[derive(Clone, Copy, Debug)]
struct Shuffle {
    bits: u32,
    keys: [u32; 3],
}

impl Shuffle {
    fn new(seed: u64, bits: u32) -> Self {
        let mut random = Random::new(seed);
        Shuffle { bits, keys: [0; 3].map(|_| random.word() as u32) }
    }

    /// Each of its steps can be undone, so that no two numbers become one.
    fn of(&self, number: u32) -> u32 {
        let mask = (1 << self.bits) - 1;
        self.keys.iter().fold(number & mask, |number, key| {
            let number = number.wrapping_add(*key).wrapping_mul(0x9e37_79b1) & mask;
            number ^ (number >> (self.bits / 2).max(1))
        })
    }
}

/// So many steps of temperature.
pub fn run(work: &Work) -> u64 {
    let scale = (work.size_bytes / ELEMENT_BYTES).max(2).ilog2().min(24);
    let netlist = Netlist::new(scale, work.seed);
    netlist.anneal(work.rounds, work.threads, work.seed);
    let mut sum = Checksum::default();
    netlist.places().for_each(|(x, y)| sum.add(u64::from(x) << 32 | u64::from(y)));
    sum.value()
}
