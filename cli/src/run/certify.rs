//! `--certify`: signs what a run came to, if all checks of its memory passed (LHash, section 3.1).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use casemate_keeper::{Ending, Outcome};
use casemate_lab::certified::run_certificate::{
    RunCertificate, RunStatement, Written, hash_of_arguments,
};
use rustix::fs::FileType;

use super::args::RunArgs;
use super::command;
use crate::distribution::{files, read_private_key};
use crate::failure::Failure;

const CERTIFICATE_MODE: u32 = 0o644;

/// What is known of a run before it begins.
pub struct Certifying {
    to: PathBuf,
    key: PathBuf,
    program: [u8; 32],
    arguments: [u8; 32],
    input: [u8; 32],
}

impl Certifying {
    /// Looks at the program's file, its arguments and its standard input, if a certificate is
    /// wanted.
    ///
    /// # Errors
    /// If there is something of these that cannot be named.
    pub fn prepare(args: &RunArgs) -> Result<Option<Self>> {
        let (to, key) = match (&args.certify, &args.certify_key) {
            (None, None) => return Ok(None),
            (Some(to), Some(key)) => (to.clone(), key.clone()),
            (Some(_), None) => {
                let why = "--certify needs --certify-key (casemate processor-key makes a pair)";
                return Err(Failure::own(why).into());
            }
            (None, Some(_)) => return Err(Failure::own("--certify-key needs --certify").into()),
        };
        if !args.hold_output {
            let why = "--certify needs --verify log-hash and --hold-output: what is certified is \
                       what was checked";
            return Err(Failure::own(why).into());
        }
        if args.allow_unprotected {
            let why = "--certify and --allow-unprotected do not go together: nothing is verified of \
                       memory that is not protected";
            return Err(Failure::own(why).into());
        }
        files::must_be_new(&to)?;
        // It is read again to sign: while the program runs, the key is not in memory of ours.
        drop(read_private_key(&key)?);
        let program = hash_of_file(&command::look_up(&args.command[0])?)?;
        let arguments =
            hash_of_arguments(args.command[1..].iter().map(|argument| argument.as_bytes()));
        Ok(Some(Certifying { to, key, program, arguments, input: hash_of_input()? }))
    }

    /// Writes the certificate if the program ended by itself and all of its output was written.
    ///
    /// # Errors
    /// If there is nothing to certify, or it cannot be written.
    pub fn finish(&self, outcome: &Outcome) -> Result<()> {
        let Ending::Exited { code } = outcome.ending else {
            let why = "the program did not end by itself, so nothing was certified";
            return Err(Failure::own(why).into());
        };
        let statistics = &outcome.statistics;
        let (Some(written), 0, None) =
            (&statistics.output, statistics.output_bytes_given_up, &statistics.output_trouble)
        else {
            return Err(Failure::own("not all output was written, so nothing was certified").into());
        };
        let statement = RunStatement {
            program: self.program,
            arguments: self.arguments,
            input: self.input,
            written: [0, 1].map(|stream: usize| Written {
                hash: written[stream].blake3.0,
                bytes: written[stream].bytes,
            }),
            exit_code: code as u8,
        };
        let key = read_private_key(&self.key)?;
        let certificate = RunCertificate::issue(statement, &key)?;
        files::create(&self.to, CERTIFICATE_MODE, &certificate.to_bytes())
    }
}

/// BLAKE3 of a whole file.
///
/// # Errors
/// If it cannot be read.
pub fn hash_of_file(path: &Path) -> Result<[u8; 32]> {
    let cannot = || format!("cannot read {} to name it", path.display());
    let file = File::open(path).with_context(cannot)?;
    hash_of(file).with_context(cannot)
}

fn hash_of(reader: impl Read) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(reader)?;
    Ok(*hasher.finalize().as_bytes())
}

/// BLAKE3 of the standard input from where it stands, if it is a file; of nothing, if nothing can
/// be read from it.
fn hash_of_input() -> Result<[u8; 32]> {
    let input = io::stdin();
    let Ok(copy) = input.as_fd().try_clone_to_owned() else { return hash_of_nothing() };
    let stat = rustix::fs::fstat(&copy).context("cannot look at the standard input")?;
    let null = rustix::fs::stat("/dev/null").map(|null| null.st_rdev).unwrap_or(0);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice if stat.st_rdev == null => hash_of_nothing(),
        FileType::RegularFile => {
            let mut file = File::from(copy);
            let cannot = "cannot read the standard input to name it";
            let from = file.stream_position().context(cannot)?;
            let hash = hash_of(&file).context(cannot)?;
            // The place is shared with the program.
            file.seek(SeekFrom::Start(from)).context(cannot)?;
            Ok(hash)
        }
        _ => {
            let why = "--certify: the standard input is neither a file nor /dev/null, so what the \
                       program reads from it could not be certified (write < FILE)";
            Err(Failure::own(why).into())
        }
    }
}

fn hash_of_nothing() -> Result<[u8; 32]> {
    Ok(hash_of(io::empty())?)
}
