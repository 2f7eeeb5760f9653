//! Compressed traces, told by their first bytes.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::trace::TraceError;

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// The trace without its compression.
///
/// # Errors
/// The first bytes cannot be read.
pub fn open(input: impl Read + 'static) -> Result<Box<dyn BufRead>, TraceError> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let start = input.fill_buf()?;
    Ok(if start.starts_with(GZIP) {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input)))
    } else if start.starts_with(XZ) {
        Box::new(BufReader::with_capacity(1 << 16, XzReader::new(input, true)))
    } else {
        Box::new(input)
    })
}
