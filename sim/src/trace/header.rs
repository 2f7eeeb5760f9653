//! What a trace says of itself.

/// Which program a trace is of, and which tool recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The tool, with its version: "QEMU 7.2.22 plugin", "ChampSim".
    pub recorded_by: String,
    /// The executable's path; empty where it is not known.
    pub program: Vec<u8>,
    /// Its arguments, without its own name.
    pub arguments: Vec<Vec<u8>>,
    /// BLAKE3 of the executable, or of the foreign trace that was converted.
    pub hash: Option<[u8; 32]>,
    /// Instructions of the program that were executed before the first record.
    pub skipped_instructions: u64,
}

/// BLAKE3 of a file.
///
/// # Errors
/// It cannot be read.
pub fn hash_of(path: &std::path::Path) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(path)?)?;
    Ok(*hasher.finalize().as_bytes())
}
