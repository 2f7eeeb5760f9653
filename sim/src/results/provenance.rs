//! Where a result comes from: everything that a run depends on, and the name that this gives its
//! result.

use serde::Serialize;
use serde_json::Value;

use crate::trace::Header;

/// The program that computed a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Casemate {
    /// The version.
    pub version: String,
    /// A hash of the sources of engine and simulator: FNV-1a, 128 bits. A commit would change with
    /// every word of documentation, and would not with what is not committed.
    pub sources: String,
}

impl Casemate {
    /// What is running.
    #[must_use]
    pub fn this() -> Casemate {
        Casemate {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sources: env!("CASEMATE_SOURCES").to_owned(),
        }
    }
}

/// The trace of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TraceIdentity {
    /// How tables and plots call it: the file's name without its ending, or the program's.
    pub name: String,
    /// The format.
    pub format: String,
    /// BLAKE3 of the file; null for a program that ran while it was simulated.
    pub blake3: Option<String>,
    /// The tool that recorded it.
    pub recorded_by: String,
    /// The program's file.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// BLAKE3 of the program's file, or of the foreign trace that was converted.
    pub program_blake3: Option<String>,
    /// Instructions of the program before the trace's first.
    pub skipped_instructions: u64,
}

impl TraceIdentity {
    /// From what a trace says of itself.
    #[must_use]
    pub fn of(name: &str, format: &str, blake3: Option<[u8; 32]>, header: &Header) -> Self {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        TraceIdentity {
            name: name.to_owned(),
            format: format.to_owned(),
            blake3: blake3.map(|hash| hex(&hash)),
            recorded_by: header.recorded_by.clone(),
            program: text(&header.program),
            arguments: header.arguments.iter().map(text).collect(),
            program_blake3: header.hash.map(|hash| hex(&hash)),
            skipped_instructions: header.skipped_instructions,
        }
    }
}

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Provenance {
    /// The program that computed it.
    pub casemate: Casemate,
    /// The trace.
    pub trace: TraceIdentity,
    /// All keys with their values, scheme and seed among them.
    pub config: Value,
}

impl Provenance {
    /// BLAKE3 of all of it: two runs with the same key have the same result, byte for byte. A
    /// program that ran while it was simulated has none, since it may do something else next time.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        self.trace.blake3.as_ref()?;
        let text = serde_json::to_string(self).ok()?;
        Some(hex(blake3::hash(text.as_bytes()).as_bytes()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
