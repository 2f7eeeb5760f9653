//! The eight streams of the reference: generated, deterministic, 50,000 requests as a rule.
//!
//! They are the streams that Python's `random.Random(seed)` gives to the script that made the
//! reference: a Mersenne Twister seeded by one word, 53 bits for a fraction, and words that are
//! drawn again until one is below the bound.

use rand_mt::Mt;

use super::stream::TimedRequest;
use crate::machine::Access;
use crate::machine::backing::{BLOCK_BYTES, PAGE_BYTES};
use crate::machine::memory::ddr::Clock;

/// Addresses are below this.
const SPACE_BYTES: u64 = 1 << 30;
/// Data of [`protected`]; its counters, tree nodes and MACs lie above.
const DATA_BYTES: u64 = 1 << 28;

/// A stream by its name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name, as the reference has it.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    requests: fn(usize) -> Vec<TimedRequest>,
}

impl Named {
    /// Its first requests.
    #[must_use]
    pub fn requests(&self, count: usize) -> Vec<TimedRequest> {
        (self.requests)(count)
    }

    /// The stream of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Named> {
        ALL.iter().find(|stream| stream.name == name)
    }
}

/// All of them, in the reference's order.
pub const ALL: [Named; 8] = [
    Named {
        name: "sequential-light",
        meaning: "reads of consecutive blocks, one in 40 clocks",
        requests: |count| sequential(count, 40),
    },
    Named {
        name: "sequential-heavy",
        meaning: "reads of consecutive blocks, one in 5 clocks",
        requests: |count| sequential(count, 5),
    },
    Named {
        name: "random-light",
        meaning: "reads anywhere in 1 GiB, one in 60 clocks",
        requests: |count| random(count, 60, 0.0, 1),
    },
    Named {
        name: "mixed-light",
        meaning: "three writes in ten, anywhere in 1 GiB, one request in 30 clocks",
        requests: |count| random(count, 30, 0.3, 3),
    },
    Named {
        name: "mixed-heavy",
        meaning: "three writes in ten, anywhere in 1 GiB, one request in 10 clocks",
        requests: |count| random(count, 10, 0.3, 4),
    },
    Named {
        name: "row-conflicts",
        meaning: "reads that go to and fro between two rows, one in 50 clocks",
        requests: |count| row_conflicts(count, 50),
    },
    Named {
        name: "sparse-writes",
        meaning: "one write in ten, anywhere in 1 GiB, one request in 100 clocks",
        requests: |count| random(count, 100, 0.1, 6),
    },
    Named {
        name: "protected",
        meaning: "blocks with their counters, tree nodes and MACs, four fifths in sequence",
        requests: |count| protected(count, 40, 7),
    },
];

/// Random numbers as Python's `random.Random(seed)` draws them.
struct Python(Mt);

impl Python {
    fn new(seed: u32) -> Self {
        Python(Mt::new_with_key([seed]))
    }

    /// `random()`: a fraction of 53 bits, below 1.
    fn fraction(&mut self) -> f64 {
        let high = f64::from(self.0.next_u32() >> 5);
        let low = f64::from(self.0.next_u32() >> 6);
        (high * f64::from(1 << 26) + low) / (1_u64 << 53) as f64
    }

    /// `randrange(bound)`, for powers of two below 2^31: a bit more than needed is drawn, until the
    /// number is below the bound.
    fn below(&mut self, bound: u64) -> u64 {
        let bits = u64::BITS - bound.leading_zeros();
        loop {
            let number = u64::from(self.0.next_u32() >> (32 - bits));
            if number < bound {
                return number;
            }
        }
    }

    fn block_below(&mut self, bound: u64) -> u64 {
        self.below(bound) / BLOCK_BYTES * BLOCK_BYTES
    }

    fn is_write(&mut self, share: f64) -> Access {
        if self.fraction() < share { Access::Write } else { Access::Read }
    }
}

fn sequential(count: usize, gap: Clock) -> Vec<TimedRequest> {
    let read = |i| TimedRequest { address: i * BLOCK_BYTES, access: Access::Read, clock: i * gap };
    (0..count as u64).map(read).collect()
}

fn random(count: usize, gap: Clock, writes: f64, seed: u32) -> Vec<TimedRequest> {
    let mut numbers = Python::new(seed);
    (0..count as u64)
        .map(|i| {
            let address = numbers.block_below(SPACE_BYTES);
            TimedRequest { address, access: numbers.is_write(writes), clock: i * gap }
        })
        .collect()
}

/// Two rows 64 MiB apart take turns, block by block; after 128 requests both move on by 128 MiB.
fn row_conflicts(count: usize, gap: Clock) -> Vec<TimedRequest> {
    let address = |i: u64| {
        (i % 2) * (1 << 26) + (i / 2 % 64) * BLOCK_BYTES + (i / 128) * (1 << 27) % SPACE_BYTES
    };
    let read = |i| TimedRequest { address: address(i), access: Access::Read, clock: i * gap };
    (0..count as u64).map(read).collect()
}

/// A block in every `gap` clocks; a counter line for 4 KiB and the tree node above it, a MAC line
/// for 256 bytes, when they are others than the last ones.
fn protected(count: usize, gap: Clock, seed: u32) -> Vec<TimedRequest> {
    const COUNTERS: u64 = DATA_BYTES;
    const NODES: u64 = DATA_BYTES + (1 << 26);
    const MACS: u64 = 1 << 29;
    let mut numbers = Python::new(seed);
    let mut requests = Vec::with_capacity(count + 3);
    let (mut clock, mut position) = (0, 0);
    let (mut last_counter, mut last_mac) = (None, None);
    while requests.len() < count {
        let address = if numbers.fraction() < 0.2 {
            numbers.block_below(DATA_BYTES)
        } else {
            let here = position;
            position = (position + BLOCK_BYTES) % DATA_BYTES;
            here
        };
        let access = numbers.is_write(0.25);
        let counter = COUNTERS + address / PAGE_BYTES * BLOCK_BYTES;
        let mac = MACS + address / 256 * BLOCK_BYTES;
        requests.push(TimedRequest { address, access, clock });
        if last_counter.replace(counter) != Some(counter) {
            let node = NODES + counter % (1 << 24) / 512 * BLOCK_BYTES;
            requests.push(TimedRequest { address: counter, access: Access::Read, clock });
            requests.push(TimedRequest { address: node, access: Access::Read, clock: clock + 2 });
        }
        if last_mac.replace(mac) != Some(mac) {
            requests.push(TimedRequest { address: mac, access: Access::Read, clock: clock + 1 });
        }
        clock += gap;
    }
    requests.truncate(count);
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of the script's own output, computed in Python: h = h * 1099511628211 ^ v (modulo
    /// 2^64) over address, 1 for a write, clock.
    const HASHES: [(&str, u64); 8] = [
        ("sequential-light", 0x3fc6_3d79_9248_6700),
        ("sequential-heavy", 0x66a7_b247_59bb_0c00),
        ("random-light", 0x4bc4_0cd2_0623_6680),
        ("mixed-light", 0x37ee_fcf4_95da_35ba),
        ("mixed-heavy", 0xebd9_7857_accb_d7d1),
        ("row-conflicts", 0xe161_9643_fd91_d6c0),
        ("sparse-writes", 0x7a50_f134_aa39_5e89),
        ("protected", 0x5ee6_e1e8_9cde_cbcb),
    ];

    #[test]
    fn streams_are_those_that_the_reference_was_given() {
        for (stream, (name, expected)) in ALL.iter().zip(HASHES) {
            assert_eq!(stream.name, name);
            let hash = stream.requests(50_000).iter().fold(0_u64, |hash, request| {
                let is_write = u64::from(request.access == Access::Write);
                [request.address, is_write, request.clock]
                    .iter()
                    .fold(hash, |hash, value| hash.wrapping_mul(1_099_511_628_211) ^ value)
            });
            assert_eq!(hash, expected, "{name}");
        }
    }
}
