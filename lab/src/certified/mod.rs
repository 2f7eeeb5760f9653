//! Certified execution (LHash, section 3.1): a processor runs a program in memory that an attacker
//! may change, and signs the result only if it was not changed.
//!
//! The processor is a small register machine. Its program and data lie in untrusted memory behind a
//! protection unit with a log hash (section 4.2.1), whose one check at the end covers every access:
//! wrong bytes may have been believed meanwhile, but then nothing is signed.
//!
//! 1. [`instruction`]: what the machine understands; [`assembly`]: the same for people;
//! 2. [`words`]: 64-bit words in a small cache over the unit;
//! 3. [`machine`]: loads, runs, and at the end has memory checked;
//! 4. [`certificate`]: program, input and result, signed; [`run_certificate`]: the same of a run of
//!    a real program, which `casemate run --certify` issues.

pub mod assembly;
pub mod certificate;
pub mod instruction;
pub mod machine;
pub mod run_certificate;
pub mod words;

pub use assembly::{AssemblyError, assemble};
pub use certificate::{Certificate, CertificateError};
pub use machine::{Execution, ExecutionError, Machine, Progress, Trap};

use casemate_schemes::counters::Organisation;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::integrity::LogHashes;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind};
use casemate_schemes::unit::seed::SeedScheme;

/// LHash's two hashes with 32-bit time stamps (Table 2) over AISE: the owner of the machine cannot
/// read what it computes either.
pub const SCHEME: Scheme = Scheme {
    encryption: EncryptionKind::CounterMode {
        seeds: SeedScheme::LogicalPage,
        organisation: Organisation::AISE,
    },
    integrity: IntegrityKind::LogHash { hashes: LogHashes::ReadAndWrite, time_stamp_bits: 32 },
    algorithms: Algorithms::AISE_BMT,
    mac_placement: MacPlacement::Region,
    line_blocks: 1,
};

/// A program or an input as it is hashed and loaded: words, in order.
pub type Words = Vec<u64>;

/// The words as bytes, little-endian.
pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
