//! What it costs to correct flipped bits: by syndrome, beside flip-and-check (Delta/ECC, 3.4).
//!
//! `cargo run --release -p casemate-schemes --example ecc_correction`

use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use casemate_core::random::Random;
use casemate_schemes::ecc::correction::EccMac;
use casemate_schemes::ecc::flip_and_check::FlipAndCheck;
use casemate_schemes::ecc::polynomial_mac::{PolynomialMac, RandomBlocks, Tabulated};
use casemate_schemes::ecc::syndrome::{SyndromeDecoder, SyndromeTable, Walk};
use casemate_schemes::ecc::{Block, LinearMac, Locate};

const SAMPLES: usize = 41;
const NONCE: u128 = 1;

/// Counts the MACs that are computed.
struct Counting<'a, M> {
    mac: &'a M,
    count: &'a Cell<u64>,
}

impl<M: LinearMac> LinearMac for Counting<'_, M> {
    fn hash(&self, block: &Block) -> u64 {
        self.count.set(self.count.get() + 1);
        self.mac.hash(block)
    }
    fn pad(&self, nonce: u128) -> u64 {
        self.mac.pad(nonce)
    }
}

/// Least, median, most of the samples.
struct Spread<T> {
    least: T,
    median: T,
    most: T,
}

impl<T: Copy + PartialOrd> Spread<T> {
    fn of(mut samples: Vec<T>) -> Self {
        samples.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        let last = samples.len() - 1;
        Self { least: samples[0], median: samples[last / 2], most: samples[last] }
    }
}

/// Opens blocks with so many flipped bits, checks what comes out, and prints a line. Returns the
/// median of microseconds.
fn measure<M: LinearMac, L: Locate>(name: &str, mac: &M, locate: L, flips: u32, calls: u32) -> f64 {
    let mut random = Random::new(flips.into());
    let count = Cell::new(0);
    let ecc = EccMac::new(Counting { mac, count: &count }, locate);
    let (mut times, mut macs) = (Vec::new(), Vec::new());
    for _ in 0..=SAMPLES {
        let block = random.block();
        let word = ecc.seal(&block, NONCE);
        let error = random.error(flips);
        let bad: Block = std::array::from_fn(|byte| block[byte] ^ error[byte]);
        count.set(0);
        let start = Instant::now();
        for _ in 0..calls {
            black_box(ecc.open(black_box(&bad), word, NONCE).map(|opened| opened.flips).ok());
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(calls));
        macs.push(count.get() / u64::from(calls));
        let opened = ecc.open(&bad, word, NONCE).expect("corrected");
        assert!(opened.block == block && opened.flips.count() == flips);
    }
    times.remove(0); // warming up
    macs.remove(0);
    let (times, macs) = (Spread::of(times), Spread::of(macs));
    println!(
        "  {name:<34} {:>10.2} {:>10.2} {:>10.2} {:>9} {:>9} {:>9}",
        times.least, times.median, times.most, macs.least, macs.median, macs.most
    );
    times.median
}

fn compare<M: LinearMac>(title: &str, mac: &M) {
    println!("{title}");
    for flips in [0, 1, 2] {
        println!(" {flips} flipped");
        let decoder =
            |walk| SyndromeDecoder::with(SyndromeTable::new(mac).expect("suitable"), walk);
        let look_up = measure("syndrome, look-up", mac, decoder(Walk::LookUp), flips, 200);
        let scan = measure("syndrome, scan (default)", mac, decoder(Walk::Scan), flips, 20);
        if flips == 0 {
            continue;
        }
        let first = measure("flip-and-check, first fit", mac, FlipAndCheck::FIRST_FIT, flips, 1);
        let all =
            measure("flip-and-check, refusing ambiguity", mac, FlipAndCheck::CAREFUL, flips, 1);
        println!(
            "  faster by (medians): look-up {:.0}x and {:.0}x, scan {:.0}x and {:.0}x",
            first / look_up,
            all / look_up,
            first / scan,
            all / scan
        );
    }
}

fn main() {
    let mac: PolynomialMac = Random::new(1).mac();
    let quick = Tabulated::new(&mac);
    println!(
        "{:<36} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}",
        "opening a block", "µs min", "median", "max", "MACs min", "median", "max"
    );
    compare("a quick MAC (tables; some 64 loads)", &quick);
    compare("a plain MAC (bit by bit)", &mac);

    let mut times = Vec::new();
    for seed in 0..SAMPLES as u64 {
        let mac = Tabulated::new(Random::new(seed).mac());
        let start = Instant::now();
        black_box(SyndromeTable::new(&mac).is_ok());
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let Spread { least, median, most } = Spread::of(times);
    println!(
        "a key's table with the proof that it is suitable: {median:.2} ms (min {least:.2}, max \
         {most:.2}), {} bytes",
        size_of::<SyndromeTable>()
    );
}
