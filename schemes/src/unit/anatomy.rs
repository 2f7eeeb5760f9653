//! Where all that belongs to one block lies in untrusted memory: what an adversary would aim at,
//! and what a storage table counts.

use std::ops::Range;

use super::place::Place;
use super::time_stamps::TimeStampLayout;
use casemate_core::port::FixedBytes;

/// Some bits of a line of untrusted memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The line.
    pub place: Place,
    /// Its bits, counted from the lowest bit of its first byte.
    pub bits: Range<usize>,
}

impl Part {
    /// All of a line.
    pub fn whole<L: FixedBytes>(place: Place) -> Part {
        Part { place, bits: 0..L::BYTES * 8 }
    }

    /// Some bytes of a line.
    pub fn of(place: Place, bytes: Range<usize>) -> Part {
        Part { place, bits: bytes.start * 8..bytes.end * 8 }
    }

    /// The bytes that the bits lie in.
    pub fn bytes(&self) -> Range<usize> {
        self.bits.start / 8..self.bits.end.div_ceil(8)
    }
}

/// All that belongs to one block of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anatomy {
    /// Its contents.
    pub data: Part,
    /// Its MAC, if it has one of its own.
    pub mac: Option<Part>,
    /// The line that its counter is in.
    pub counter: Option<Part>,
    /// That line's MAC, if it has one of its own.
    pub counter_mac: Option<Part>,
    /// The tree nodes above it, from the lowest up; the root is on chip.
    pub path: Vec<Part>,
    /// What a log hash keeps beside it, if there is one.
    pub log: Option<LogAnatomy>,
}

/// What a log hash keeps of one block of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogAnatomy {
    /// The block's time stamp.
    pub time_stamp: Part,
    /// The time stamp of the line that its counter is in.
    pub counter_time_stamp: Option<Part>,
    /// The nodes above it, from the lowest up, without the root.
    pub path: Vec<Part>,
    /// Their time stamps.
    pub path_time_stamps: Vec<Part>,
    /// How time stamps lie.
    pub layout: TimeStampLayout,
    /// The time stamps that are given by the same TIMER.
    pub covered: Range<u64>,
}
