//! A stream of timed requests, out of a file in DRAMsim3's format (`casemate trace misses --format
//! dramsim3` writes such files).

use std::io::Read;

use crate::machine::Access;
use crate::machine::memory::ddr::Clock;
use crate::trace::error::TraceError;
use crate::trace::foreign::Format;
use crate::trace::record::{Instruction, Kind};

/// A request for one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// First byte.
    pub address: u64,
    /// Read or write.
    pub access: Access,
    /// When it is sent, in clocks of the memory: no earlier than the request before it, and later
    /// while the queue is full.
    pub clock: Clock,
}

/// A stream that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The file cannot be read, or a line of it is no request.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Its refreshes alone would take hours.
    #[error(
        "request {number} is sent at clock {clock}; replay a part of the stream, 10^12 clocks at most"
    )]
    TooLate {
        /// Which request, from 1.
        number: usize,
        /// When it is sent.
        clock: u64,
    },
    /// More than is held in memory.
    #[error("the stream has more than {most} requests; replay a part of it")]
    TooLong {
        /// How many are taken.
        most: usize,
    },
}

/// The last clock that a request is taken at.
const LAST_CLOCK: u64 = 1_000_000_000_000;
/// Requests that are taken at most: some 6 GB with their commands.
const MOST_REQUESTS: usize = 50_000_000;

/// Reads a whole stream, compressed (gz, xz) or not.
///
/// # Errors
/// It cannot be read or is empty, a line is no request, there are more than 50 million, or one is
/// later than clock 10^12.
pub fn read(input: impl Read + 'static) -> Result<Vec<TimedRequest>, StreamError> {
    let mut source = Format::Dramsim3.read(input)?;
    let mut requests = Vec::new();
    let mut one = Instruction::default();
    while source.next(&mut one)? {
        let clock = one.arrival_cycle.unwrap_or(0);
        if clock > LAST_CLOCK {
            return Err(StreamError::TooLate { number: requests.len() + 1, clock });
        }
        requests.extend(one.references.iter().map(|reference| TimedRequest {
            address: reference.address,
            access: if reference.kind == Kind::Load { Access::Read } else { Access::Write },
            clock,
        }));
        if requests.len() > MOST_REQUESTS {
            return Err(StreamError::TooLong { most: MOST_REQUESTS });
        }
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let text = b"0x40 READ 3\n0xFFFFFFFFFFFFFFC0 WRITE 3\n";
        let read = read(&text[..]).expect("it is a stream");
        let first = TimedRequest { address: 64, access: Access::Read, clock: 3 };
        let second = TimedRequest { address: !63, access: Access::Write, clock: 3 };
        assert_eq!(read, [first, second]);
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let refusal = read(&b""[..]).expect_err("empty").to_string();
        assert!(refusal.contains("is empty"), "{refusal}");
        let text = &b"0x0 READ 0\n0x40 READ 18446744073709551615\n"[..];
        let refusal = read(text).expect_err("too late").to_string();
        assert!(refusal.contains("request 2 is sent at clock 1844"), "{refusal}");
        let text = &b"0x0 READ 0\n0x40 FETCH 1\n"[..];
        let refusal = read(text).expect_err("no operation").to_string();
        assert!(refusal.contains("line 2") && refusal.contains("FETCH"), "{refusal}");
    }
}
