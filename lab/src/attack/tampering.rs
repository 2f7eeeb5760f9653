//! What an attack does to memory in one moment, between two operations of the unit.

use std::ops::Range;

use super::memory::{HostileMemory, Image};
use super::strike::Attack;
use casemate_core::random::Random;
use casemate_schemes::ecc::ecc_word::EccWord;
use casemate_schemes::unit::anatomy::{Anatomy, Part};
use casemate_schemes::unit::place::Region;

impl Attack {
    /// Whether a scheme has what this attack is aimed at.
    pub fn applies_to(self, anatomy: &Anatomy) -> bool {
        match self {
            Attack::FlipMac => anatomy.mac.as_ref().is_some_and(|mac| !in_ecc_bits(mac)),
            Attack::FlipEcc
            | Attack::FlipEccMany
            | Attack::FlipDataAndEcc
            | Attack::FlipDataAndEccMany
            | Attack::FlipParity
            | Attack::FlipDataAndParity => anatomy.mac.as_ref().is_some_and(in_ecc_bits),
            Attack::ReplayDataAndMac => anatomy.mac.is_some(),
            Attack::FlipCounter => anatomy.counter.is_some(),
            Attack::ReplayDataMacAndCounter => anatomy.counter.is_some(),
            Attack::ReuseCounter => in_region(&anatomy.counter, Region::Counters),
            Attack::ReuseSequenceNumber => in_region(&anatomy.counter, Region::SequenceNumbers),
            Attack::FlipNode | Attack::ReplaySubtree => !anatomy.path.is_empty(),
            Attack::FlipTimeStamp
            | Attack::ReplayDataAndTimeStamp
            | Attack::ReorderBetweenChecks => anatomy.log.is_some(),
            _ => true,
        }
    }

    /// Strikes at `victim` (and `other`, where two are needed), with what memory was like in `old`.
    /// Returns whether memory is any different now.
    pub fn strike<const LINE: usize>(
        self,
        memory: &mut HostileMemory<LINE>,
        victim: &Anatomy,
        other: &Anatomy,
        old: &Image<LINE>,
        random: &mut Random,
    ) -> bool {
        match self {
            Attack::FlipData
            | Attack::FlipTwo
            | Attack::FlipMany
            | Attack::FlipMac
            | Attack::FlipEcc
            | Attack::FlipEccMany
            | Attack::FlipDataAndEcc
            | Attack::FlipDataAndEccMany
            | Attack::FlipParity
            | Attack::FlipDataAndParity
            | Attack::FlipCounter
            | Attack::FlipNode
            | Attack::FlipTimeStamp => self.flip(memory, victim, random),
            Attack::Spoof => memory.change(victim.data.place, |block| random.fill(block)),
            Attack::SpliceBlocks | Attack::SplicePages => {
                let mut changed = exchange(memory, &victim.data, &other.data);
                if let (Some(mac), Some(other)) = (&victim.mac, &other.mac) {
                    changed |= exchange(memory, mac, other);
                }
                if let (Some(log), Some(other)) = (&victim.log, &other.log) {
                    changed |= exchange(memory, &log.time_stamp, &other.time_stamp);
                }
                changed
            }
            Attack::ReplayData
            | Attack::ReplayDataAndMac
            | Attack::ReplayDataMacAndCounter
            | Attack::ReplaySubtree
            | Attack::RollBack
            | Attack::ReuseCounter
            | Attack::ReuseSequenceNumber
            | Attack::ReplayDataAndTimeStamp => self.replay(memory, victim, old, random),
            // Two strikes in one, and none at memory alone: see `paging`.
            Attack::SpliceProcesses
            | Attack::SpliceSwapped
            | Attack::ReplaySwapped
            | Attack::ReplayPageRoot => false,
            Attack::PutBackBeforeCheck => {
                memory.change(victim.data.place, |block| random.fill(block))
            }
            Attack::ReorderBetweenChecks => {
                let Some(log) = &victim.log else { return false };
                let given = log.layout.parts(log.covered.clone());
                // The newest time stamp in memory is TIMER.
                let timer = given.map(|part| number_in(memory, &part)).max().unwrap_or(0);
                let next = (timer + 1).to_le_bytes();
                let bytes = log.time_stamp.bytes();
                memory.change(log.time_stamp.place, |block| {
                    block[bytes.clone()].copy_from_slice(&next[..bytes.len()]);
                });
                memory.change(victim.data.place, |block| random.fill(block))
            }
            // While operations of the unit go on: see `ambush`.
            Attack::DropWrites | Attack::AnswerTwice | Attack::SpoofReencrypted => false,
            // Nothing is changed: see `looks`.
            Attack::SameValueTwoPlaces
            | Attack::SameValueTwoTimes
            | Attack::CollideSeeds
            | Attack::ResetGlobalCounter => false,
        }
    }

    /// Flips bits; false also of an attack that does not.
    fn flip<const LINE: usize>(
        self,
        memory: &mut HostileMemory<LINE>,
        victim: &Anatomy,
        random: &mut Random,
    ) -> bool {
        match self {
            Attack::FlipData => flip(memory, &victim.data, random),
            Attack::FlipTwo => flip_several(memory, &victim.data, 2, random),
            Attack::FlipMany => flip_several(memory, &victim.data, many(random), random),
            Attack::FlipMac | Attack::FlipEcc => {
                victim.mac.as_ref().is_some_and(|mac| flip(memory, mac, random))
            }
            Attack::FlipEccMany => {
                let mac = victim.mac.as_ref();
                mac.is_some_and(|mac| flip_several(memory, mac, many(random), random))
            }
            Attack::FlipDataAndEcc => {
                flip(memory, &victim.data, random)
                    && flip_ecc(memory, victim, 0..PARITY.start, random)
            }
            Attack::FlipDataAndEccMany => {
                flip_several(memory, &victim.data, many(random), random)
                    && victim
                        .mac
                        .as_ref()
                        .is_some_and(|mac| flip_several(memory, mac, many(random), random))
            }
            Attack::FlipParity => flip_ecc(memory, victim, PARITY, random),
            Attack::FlipDataAndParity => {
                flip(memory, &victim.data, random) && flip_ecc(memory, victim, PARITY, random)
            }
            Attack::FlipCounter => {
                victim.counter.as_ref().is_some_and(|counter| flip(memory, counter, random))
            }
            Attack::FlipNode => {
                random.pick(&victim.path).is_some_and(|node| flip(memory, &node, random))
            }
            Attack::FlipTimeStamp => {
                victim.log.as_ref().is_some_and(|log| flip(memory, &log.time_stamp, random))
            }
            _ => false,
        }
    }

    /// Puts back what was there in `old`; false also of an attack that does not.
    fn replay<const LINE: usize>(
        self,
        memory: &mut HostileMemory<LINE>,
        victim: &Anatomy,
        old: &Image<LINE>,
        random: &mut Random,
    ) -> bool {
        match self {
            Attack::ReplayData => put_back(memory, &victim.data, old),
            Attack::ReplayDataAndMac => {
                // The block must differ, or nothing was replayed.
                let changed = put_back(memory, &victim.data, old);
                if let Some(mac) = &victim.mac {
                    put_back(memory, mac, old);
                }
                changed
            }
            Attack::ReplayDataMacAndCounter => {
                let changed = put_back(memory, &victim.data, old);
                for part in victim.mac.iter().chain(&victim.counter) {
                    put_back(memory, part, old);
                }
                if let Some(mac) = &victim.counter_mac {
                    put_back(memory, mac, old);
                }
                changed
            }
            Attack::ReplaySubtree => {
                let changed = put_back(memory, &victim.data, old);
                for part in victim.mac.iter().chain(&victim.counter) {
                    put_back(memory, part, old);
                }
                let levels = 1 + random.below(victim.path.len() as u64) as usize;
                for node in &victim.path[..levels] {
                    put_back(memory, node, old);
                }
                if let Some(log) = &victim.log {
                    let leaves = log.counter_time_stamp.iter().chain([&log.time_stamp]);
                    for time_stamp in leaves.chain(&log.path_time_stamps[..levels]) {
                        put_back(memory, time_stamp, old);
                    }
                }
                changed
            }
            Attack::RollBack => {
                let changed = memory.line(victim.data.place) != old.line(victim.data.place);
                memory.roll_back(old, |_| true);
                changed
            }
            Attack::ReuseCounter | Attack::ReuseSequenceNumber => {
                let Some(counter) = &victim.counter else { return false };
                let changed = put_back(memory, counter, old);
                let time_stamp = victim.log.iter().flat_map(|log| &log.counter_time_stamp);
                for part in victim.counter_mac.iter().chain(time_stamp) {
                    put_back(memory, part, old);
                }
                let levels = random.below(1 + victim.path.len() as u64) as usize;
                for node in &victim.path[..levels] {
                    put_back(memory, node, old);
                }
                changed
            }
            Attack::ReplayDataAndTimeStamp => {
                let changed = put_back(memory, &victim.data, old);
                if let Some(log) = &victim.log {
                    put_back(memory, &log.time_stamp, old);
                    for part in victim.counter.iter().chain(&log.counter_time_stamp) {
                        put_back(memory, part, old);
                    }
                }
                changed
            }
            _ => false,
        }
    }

    /// Puts back what was there before the strike.
    pub fn cover_tracks<const LINE: usize>(
        self,
        memory: &mut HostileMemory<LINE>,
        victim: &Anatomy,
        before: &Image<LINE>,
    ) {
        put_back(memory, &victim.data, before);
        if let Some(log) = &victim.log {
            put_back(memory, &log.time_stamp, before);
        }
    }
}

fn flip<const LINE: usize>(
    memory: &mut HostileMemory<LINE>,
    part: &Part,
    random: &mut Random,
) -> bool {
    let bit = part.bits.start + random.below(part.bits.len() as u64) as usize;
    memory.change(part.place, |block| block[bit / 8] ^= 1 << (bit % 8))
}

/// More flipped bits than can be corrected.
fn many(random: &mut Random) -> usize {
    3 + random.below(14) as usize
}

/// Flips so many different bits.
fn flip_several<const LINE: usize>(
    memory: &mut HostileMemory<LINE>,
    part: &Part,
    bits: usize,
    random: &mut Random,
) -> bool {
    let mut flipped = Vec::new();
    while flipped.len() < bits {
        let bit = part.bits.start + random.below(part.bits.len() as u64) as usize;
        if !flipped.contains(&bit) {
            flipped.push(bit);
        }
    }
    memory.change(part.place, |block| {
        flipped.iter().for_each(|bit| block[bit / 8] ^= 1 << (bit % 8));
    })
}

/// The scrub's parity bit in an ECC word.
const PARITY: Range<usize> = EccWord::PARITY_BIT as usize..EccWord::BITS as usize;

/// Flips one of these bits of a block's ECC word.
fn flip_ecc<const LINE: usize>(
    memory: &mut HostileMemory<LINE>,
    victim: &Anatomy,
    bits: Range<usize>,
    random: &mut Random,
) -> bool {
    victim.mac.as_ref().is_some_and(|word| {
        let first = word.bits.start;
        flip(memory, &Part { bits: first + bits.start..first + bits.end, ..word.clone() }, random)
    })
}

fn in_region(part: &Option<Part>, region: Region) -> bool {
    part.as_ref().is_some_and(|part| part.place.region == region)
}

fn in_ecc_bits(mac: &Part) -> bool {
    mac.place.region == Region::Ecc
}

fn number_in<const LINE: usize>(memory: &HostileMemory<LINE>, part: &Part) -> u64 {
    let block = memory.line(part.place);
    let mut number = [0; 8];
    number[..part.bytes().len()].copy_from_slice(&block[part.bytes()]);
    u64::from_le_bytes(number)
}

fn exchange<const LINE: usize>(memory: &mut HostileMemory<LINE>, a: &Part, b: &Part) -> bool {
    let (in_a, in_b) = (memory.line(a.place), memory.line(b.place));
    let changed =
        memory.change(a.place, |block| block[a.bytes()].copy_from_slice(&in_b[b.bytes()]));
    memory.change(b.place, |block| block[b.bytes()].copy_from_slice(&in_a[a.bytes()])) | changed
}

fn put_back<const LINE: usize>(
    memory: &mut HostileMemory<LINE>,
    part: &Part,
    old: &Image<LINE>,
) -> bool {
    let before = old.line(part.place);
    memory.change(part.place, |block| block[part.bytes()].copy_from_slice(&before[part.bytes()]))
}
