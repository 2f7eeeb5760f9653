//! Morphable Counters: 128 counters in a line, whose format follows their use (Saileshwar, Nair,
//! Ramrakhyani, Elsasser, Joao and Qureshi, "Morphable Counters: Enabling Compact Integrity Trees
//! For Low-Overhead Secure Memories", MICRO 2018). Not in the four papers; architects expect it.
//!
//! Few counters in use: **zero counter compression** (ZCC). Only minors that are not zero are
//! stored, and the fewer there are the larger each may be:
//!
//! ```text
//! bit    0          format: 0
//! bits   1 ..   7   size of a minor in bits
//! bits   7 ..  64   major
//! bits  64 .. 192   bit vector: which slots have a minor that is not zero
//! bits 192 .. 448   those minors, in the order of their slots
//! bits 448 .. 512   MAC
//!
//! minors that are not zero   up to 16   32   36   42   51   64
//! size in bits                     16    8    7    6    5    4
//! ```
//!
//! Many in use: a uniform format with **minor counter rebasing** (MCR). Each half of the slots has
//! a base of its own:
//!
//! ```text
//! bit    0          format: 1
//! bits   1 ..  50   major
//! bits  50 ..  57   base of slots 0 .. 64
//! bits  57 ..  64   base of slots 64 .. 128
//! bits  64 .. 448   slot 0 .. 127, 3-bit minors
//! bits 448 .. 512   MAC
//! ```
//!
//! A counter is major + minor, or major · 128 + base + minor. When a minor overflows:
//! - in ZCC: the major becomes one more than the largest counter, all 128 are re-encrypted;
//! - in ZCC, where a 65th minor would not be zero: the line turns to MCR, by itself if all minors
//!   fit 3 bits, otherwise with a re-encryption of all;
//! - in MCR: the half's smallest minor goes into its base (rebasing); if that is zero the base
//!   takes the largest counter of the half and the half's 64 blocks are re-encrypted; if the base
//!   is at its end, the line turns to ZCC and all 128 are re-encrypted.
//!
//! The sizes of ZCC and the rules of MCR follow a public simulator of the scheme; the paper itself
//! was not at hand. The widths of the majors and of the size field, and the order of the fields,
//! are our choice. Counters have 56 bits, as many as major and base of MCR hold.

use std::ops::Range;

use super::{
    CounterBytes, CounterLayout, Events, Exhausted, Increment, LARGEST_56, LINE_BYTES,
    Organisation, bits,
};

impl Organisation {
    /// 128 counters that change their format.
    pub const MORPHABLE: Self = Self::new(&CounterLayout {
        name: "morphable",
        line: "128 counters in formats that change, 64-bit MAC",
        slots: SLOTS,
        counter_bits: MAC.start,
        mac_field: Some(MAC),
        is_computed: true,
        names_pages: false,
        events: Events { reencodes: true, ..Events::OVERFLOWS },
        initial: |_| Ok(initial()),
        counter,
        increment: |line, slot, _| increment(line, slot),
    });
}

/// Counters in a line.
pub const SLOTS: usize = 128;

/// Where the MAC lies.
pub const MAC: Range<usize> = 448..512;

const ZCC: u64 = 0;
const MCR: u64 = 1;

const SIZE_AT: usize = 1;
const SIZE_BITS: u32 = 6;
const ZCC_MAJOR_AT: usize = 7;
const ZCC_MAJOR_BITS: u32 = 57;
const VECTOR_AT: usize = 64;
const NONZERO_AT: usize = 192;
const NONZERO_BITS: usize = 256;

/// How many minors that are not zero there may be, and the bits of each.
const SIZES: [(usize, u32); 6] = [(16, 16), (32, 8), (36, 7), (42, 6), (51, 5), (64, 4)];

const MCR_MAJOR_AT: usize = 1;
const MCR_MAJOR_BITS: u32 = 49;
const BASE_AT: [usize; 2] = [50, 57];
const BASE_BITS: u32 = 7;
const MINORS_AT: usize = 64;
const MINOR_BITS: u32 = 3;
const HALF: usize = SLOTS / 2;

/// A line of counters that are all zero: ZCC with large minors.
pub(super) fn initial() -> CounterBytes {
    let mut line = [0; LINE_BYTES];
    write_zcc(&mut line, 0, &[0; SLOTS]);
    line
}

/// The counter of a slot.
pub(super) fn counter(line: &CounterBytes, slot: usize) -> u128 {
    let (start, minor) = match format(line) {
        ZCC => (zcc_major(line), zcc_minor(line, slot)),
        _ => (mcr_start(line, slot / HALF), mcr_minor(line, slot)),
    };
    u128::from(start + minor)
}

/// Counts a write.
pub(super) fn increment(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    if counter(line, slot) >= LARGEST_56.into() {
        return Err(Exhausted);
    }
    match format(line) {
        ZCC => increment_zcc(line, slot),
        _ => increment_mcr(line, slot),
    }
}

fn format(line: &CounterBytes) -> u64 {
    bits::get(line, 0, 1)
}

fn zcc_major(line: &CounterBytes) -> u64 {
    bits::get(line, ZCC_MAJOR_AT, ZCC_MAJOR_BITS)
}

fn zcc_size(line: &CounterBytes) -> u32 {
    bits::get(line, SIZE_AT, SIZE_BITS) as u32
}

fn vector(line: &CounterBytes) -> u128 {
    let half = |at| u128::from(bits::get(line, at, 64));
    half(VECTOR_AT) | half(VECTOR_AT + 64) << 64
}

/// Where a slot's minor lies, if it is not zero. A line that we wrote has room for each; in one
/// that we did not, those without room are read as zero.
fn nonzero_at(line: &CounterBytes, slot: usize) -> Option<(usize, u32)> {
    let (vector, size) = (vector(line), zcc_size(line));
    let rank = (vector & ((1 << slot) - 1)).count_ones() as usize;
    let end = (rank + 1) * size as usize;
    let there = vector >> slot & 1 == 1 && (1..=16).contains(&size) && end <= NONZERO_BITS;
    there.then(|| (NONZERO_AT + end - size as usize, size))
}

fn zcc_minor(line: &CounterBytes, slot: usize) -> u64 {
    nonzero_at(line, slot).map_or(0, |(at, size)| bits::get(line, at, size))
}

/// The size of minors if `nonzero` of them are not zero; none if there are too many.
fn size_for(nonzero: usize) -> Option<u32> {
    SIZES.iter().find(|(most, _)| nonzero <= *most).map(|(_, size)| *size)
}

fn increment_zcc(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    // A minor that is stored already and has room: by far the most frequent case.
    if let Some((at, size)) = nonzero_at(line, slot) {
        let minor = bits::get(line, at, size);
        if minor < bits::mask(size) {
            bits::set(line, at, size, minor + 1);
            return Ok(Increment::Counted);
        }
    }
    let mut minors: [u64; SLOTS] = std::array::from_fn(|slot| zcc_minor(line, slot));
    minors[slot] += 1;
    let (major, largest) = (zcc_major(line), largest(&minors));
    match size_for(minors.iter().filter(|minor| **minor > 0).count()) {
        Some(size) if largest <= bits::mask(size) => {
            let same_size = size == zcc_size(line);
            write_zcc(line, major, &minors);
            Ok(if same_size { Increment::Counted } else { Increment::Reencoded })
        }
        Some(_) => {
            write_zcc(line, unused(major, &minors, slot)?, &[0; SLOTS]);
            Ok(Increment::Overflow(0..SLOTS))
        }
        None if largest <= bits::mask(MINOR_BITS) => {
            write_mcr(line, major, &minors);
            Ok(Increment::Reencoded)
        }
        None => {
            write_mcr(line, unused(major, &minors, slot)?, &[0; SLOTS]);
            Ok(Increment::Overflow(0..SLOTS))
        }
    }
}

/// A counter that no slot has had: the largest that is, if it is the one just counted; otherwise
/// the largest is used, and the next one is not.
fn unused(start: u64, counted: &[u64; SLOTS], slot: usize) -> Result<u64, Exhausted> {
    let others = counted.iter().enumerate().filter(|(other, _)| *other != slot);
    let others = others.fold(0, |largest, (_, minor)| largest.max(minor + 1));
    let unused = start + others.max(counted[slot]);
    if unused > LARGEST_56 { Err(Exhausted) } else { Ok(unused) }
}

fn largest(minors: &[u64]) -> u64 {
    minors.iter().fold(0, |largest, minor| largest.max(*minor))
}

fn write_zcc(line: &mut CounterBytes, major: u64, minors: &[u64; SLOTS]) {
    let nonzero = || minors.iter().filter(|minor| **minor > 0);
    let size = size_for(nonzero().count()).expect("the caller counted them");
    clear(line);
    bits::set(line, 0, 1, ZCC);
    bits::set(line, SIZE_AT, SIZE_BITS, size.into());
    bits::set(line, ZCC_MAJOR_AT, ZCC_MAJOR_BITS, major);
    for (slot, minor) in minors.iter().enumerate() {
        bits::set(line, VECTOR_AT + slot, 1, u64::from(*minor > 0));
    }
    for (rank, minor) in nonzero().enumerate() {
        bits::set(line, NONZERO_AT + rank * size as usize, size, *minor);
    }
}

fn mcr_major(line: &CounterBytes) -> u64 {
    bits::get(line, MCR_MAJOR_AT, MCR_MAJOR_BITS)
}

fn base(line: &CounterBytes, half: usize) -> u64 {
    bits::get(line, BASE_AT[half], BASE_BITS)
}

/// What a half's minors are added to.
fn mcr_start(line: &CounterBytes, half: usize) -> u64 {
    mcr_major(line) << BASE_BITS | base(line, half)
}

fn mcr_minor(line: &CounterBytes, slot: usize) -> u64 {
    bits::get(line, MINORS_AT + slot * MINOR_BITS as usize, MINOR_BITS)
}

fn set_mcr_minor(line: &mut CounterBytes, slot: usize, minor: u64) {
    bits::set(line, MINORS_AT + slot * MINOR_BITS as usize, MINOR_BITS, minor);
}

fn increment_mcr(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    let counted = mcr_minor(line, slot) + 1;
    if counted <= bits::mask(MINOR_BITS) {
        set_mcr_minor(line, slot, counted);
        return Ok(Increment::Counted);
    }
    let half = slot / HALF;
    let slots = half * HALF..(half + 1) * HALF;
    let smallest = slots.clone().fold(u64::MAX, |least, slot| least.min(mcr_minor(line, slot)));
    // All of the half get what the fullest has now, unless its smallest minor can be taken away.
    let (step, reencoded) = if smallest > 0 { (smallest, true) } else { (counted, false) };
    let base = base(line, half) + step;
    if base > bits::mask(BASE_BITS) {
        return leave_mcr(line);
    }
    bits::set(line, BASE_AT[half], BASE_BITS, base);
    for other in slots.clone() {
        let minor = if reencoded { mcr_minor(line, other) - step } else { 0 };
        set_mcr_minor(line, other, minor);
    }
    if reencoded {
        set_mcr_minor(line, slot, counted - step);
        return Ok(Increment::Reencoded);
    }
    Ok(Increment::Overflow(slots))
}

/// Both halves are re-encrypted under one more than the largest counter of either.
fn leave_mcr(line: &mut CounterBytes) -> Result<Increment, Exhausted> {
    let largest = (0..SLOTS)
        .map(|slot| mcr_start(line, slot / HALF) + mcr_minor(line, slot))
        .fold(0, u64::max);
    if largest >= LARGEST_56 {
        return Err(Exhausted);
    }
    write_zcc(line, largest + 1, &[0; SLOTS]);
    Ok(Increment::Overflow(0..SLOTS))
}

fn write_mcr(line: &mut CounterBytes, start: u64, minors: &[u64; SLOTS]) {
    clear(line);
    bits::set(line, 0, 1, MCR);
    bits::set(line, MCR_MAJOR_AT, MCR_MAJOR_BITS, start >> BASE_BITS);
    for at in BASE_AT {
        bits::set(line, at, BASE_BITS, start & bits::mask(BASE_BITS));
    }
    minors.iter().enumerate().for_each(|(slot, minor)| set_mcr_minor(line, slot, *minor));
}

/// Zeros, but for the MAC.
fn clear(line: &mut CounterBytes) {
    line[..MAC.start / 8].fill(0);
}

#[cfg(test)]
mod tests;
