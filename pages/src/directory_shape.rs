//! The shape of the tree that the page directory lies in.

use casemate_core::port::{Port, Shape};

/// Bytes of a metadata line.
///
/// 128 bytes give a node eight MACs, so the tree adds 1/7 to the lines that it covers: 32-byte
/// records cost 0.78 % of the pages they describe, with the tree 0.89 %. At 64 bytes (four MACs)
/// the tree would add 1/3 and be half as high again; its MAC would be one BLAKE3 compression
/// instead of two, but two thirds of a random miss are latency, and neighbouring pages
/// (four records a line instead of two) would share less.
pub const LINE_BYTES: usize = 128;

/// A metadata line.
pub type Line = [u8; LINE_BYTES];

/// Bytes of a MAC.
pub const MAC_BYTES: usize = 16;

/// A keyed 128-bit MAC over one line.
pub type Mac = [u8; MAC_BYTES];

/// MACs in a tree node.
pub const ARITY: u64 = (LINE_BYTES / MAC_BYTES) as u64;

/// Tree levels in untrusted memory.
///
/// Twelve levels of arity eight cover 2^36 lines, records for 2^38 pages: 1 PiB. The height never
/// changes; levels that hold nothing cost nothing.
pub const LEVELS: usize = 12;

/// The shape of the page directory's tree.
pub const SHAPE: Shape =
    Shape { arity: ARITY, mac_bytes: MAC_BYTES, levels: LEVELS as u8, roots: 1 };

/// Lines on level 0.
pub const CAPACITY_LINES: u64 = SHAPE.capacity_lines();

/// A port to lines of the page directory.
pub trait DirectoryPort: Port<Line = Line, Mac = Mac> {}
impl<P: Port<Line = Line, Mac = Mac>> DirectoryPort for P {}
