//! Which format a trace has, by its content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{Format, Parse, champsim, compressed, dramsim3, ramulator};
use crate::trace::error::TraceError;
use crate::trace::record::Instruction;

/// How much of a trace is looked at.
const START_BYTES: u64 = 4096;

impl Format {
    /// The format of another tool's trace, compressed or not, by its first bytes. `None` if they
    /// are of no such format, which includes Casemate's own, and of a file that cannot be read
    /// twice.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> Result<Option<Self>, TraceError> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut start = Vec::new();
        // What is compressed and damaged has no format that is known; reading it says why.
        let read = compressed::open(file)?.take(START_BYTES).read_to_end(&mut start);
        Ok(read.ok().and_then(|_| Self::of_start(&start)))
    }

    /// The format of a trace that begins with these bytes.
    #[must_use]
    pub fn of_start(start: &[u8]) -> Option<Self> {
        let formats: [(Format, Parse); 3] = [
            (Format::RamulatorLoadStore, ramulator::load_store),
            (Format::RamulatorSimpleO3, ramulator::simple_o3),
            (Format::Dramsim3, dramsim3::request),
        ];
        if let Some(line) = first_line(start) {
            let is_of =
                |(_, parse): &(Format, Parse)| parse(line, &mut Instruction::default()).is_ok();
            return formats.into_iter().find(is_of).map(|(format, _)| format);
        }
        champsim::is_start(start).then_some(Format::ChampSim)
    }
}

/// The first line, if it is one: printable, and not longer than what was read.
fn first_line(start: &[u8]) -> Option<&str> {
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    let line = std::str::from_utf8(&start[..end]).ok()?;
    let is_printable = |c: char| c.is_ascii_graphic() || c.is_ascii_whitespace();
    (!line.is_empty() && line.chars().all(is_printable)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_formats_of_text() {
        for (text, format) in [
            ("LD 0x12\n", Some(Format::RamulatorLoadStore)),
            ("ST 77", Some(Format::RamulatorLoadStore)),
            ("3 20734016\n", Some(Format::RamulatorSimpleO3)),
            ("3 20734016 4096\r\nnonsense\n", Some(Format::RamulatorSimpleO3)),
            ("0x40 READ 7\n", Some(Format::Dramsim3)),
            ("0x40 write 7\n", Some(Format::Dramsim3)),
            ("3 0x12\n", None),
            ("LD\n", None),
            ("hello\n", None),
            ("", None),
        ] {
            assert_eq!(Format::of_start(text.as_bytes()), format, "{text:?}");
        }
    }

    #[test]
    fn records_of_64_bytes_with_flags_are_champsim() {
        let mut records = vec![0_u8; 128];
        records[0..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
        (records[8], records[9]) = (1, 1);
        assert_eq!(Format::of_start(&records), Some(Format::ChampSim));
        // A record that breaks off is an error later, not another format.
        assert_eq!(Format::of_start(&records[..100]), Some(Format::ChampSim));
        records[64 + 8] = 2;
        assert_eq!(Format::of_start(&records), None);
        assert_eq!(Format::of_start(&records[..63]), None);
        assert_eq!(
            Format::of_start(
                b"\x93CASETRC\x01\x01rest of a header of our own, some 64 bytes long.........."
            ),
            None
        );
    }
}
