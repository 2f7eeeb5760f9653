//! Traces of other tools. What does not follow its format is an error that names the line or
//! byte.

pub mod champsim;
pub mod compressed;
pub mod dramsim3;
pub mod lines;
pub mod ramulator;
mod recognise;
mod requests;

use std::io::{BufRead, Read};

use super::error::{Position, TraceError};
use super::header::Header;
use super::{Instruction, Source};

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ChampSim: 64 bytes an instruction.
    ChampSim,
    /// Ramulator 2, frontend LoadStoreTrace: `LD 0x12`.
    RamulatorLoadStore,
    /// Ramulator 2, frontend SimpleO3: bubbles, load, and perhaps a store.
    RamulatorSimpleO3,
    /// DRAMsim3: address, operation, cycle.
    Dramsim3,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] =
        [Format::ChampSim, Format::RamulatorLoadStore, Format::RamulatorSimpleO3, Format::Dramsim3];

    /// How users call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::ChampSim => "champsim",
            Format::RamulatorLoadStore => "ramulator-ls",
            Format::RamulatorSimpleO3 => "ramulator-o3",
            Format::Dramsim3 => "dramsim3",
        }
    }

    /// The format of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Reads a trace, compressed (gz, xz) or not.
    ///
    /// # Errors
    /// Its first bytes cannot be read, or there are none: no tool writes a trace of nothing, but
    /// many leave an empty file when they fail.
    pub fn read(self, input: impl Read + 'static) -> Result<Box<dyn Source>, TraceError> {
        let mut input = compressed::open(input)?;
        if input.fill_buf().map_err(|error| broken(error, 0))?.is_empty() {
            let what = "the file is empty, and no trace".to_owned();
            return Err(TraceError::Malformed { position: Position::Byte(0), what });
        }
        Ok(match self {
            Format::ChampSim => Box::new(champsim::ChampSim::new(input)),
            Format::RamulatorLoadStore => Box::new(lines::Lines::new(input, ramulator::load_store)),
            Format::RamulatorSimpleO3 => Box::new(lines::Lines::new(input, ramulator::simple_o3)),
            Format::Dramsim3 => Box::new(lines::Lines::new(input, dramsim3::request)),
        })
    }

    /// The header of a trace in this format whose file has this hash.
    #[must_use]
    pub fn header(self, hash: [u8; 32]) -> Header {
        let recorded_by = format!("converted from {}", self.name());
        Header { recorded_by, hash: Some(hash), ..Header::default() }
    }
}

/// An error of reading: the compressed stream is broken, or the system refuses.
fn broken(error: std::io::Error, byte: u64) -> TraceError {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | UnexpectedEof | Other => TraceError::Malformed {
            position: Position::Byte(byte),
            what: format!("the compressed trace is damaged or ends early ({error})"),
        },
        _ => TraceError::Io(error),
    }
}

/// Fills a record from one line; what is wrong with it otherwise.
type Parse = fn(&str, &mut Instruction) -> Result<(), String>;
