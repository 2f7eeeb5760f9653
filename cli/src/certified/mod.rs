//! Certified execution (LHash, section 3.1): `casemate certify` and `casemate verify-certificate`.

pub mod args;
mod tampering;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::Result;
use casemate_lab::certified;
use casemate_lab::certified::run_certificate::{self, RunCertificate, Written, hash_of_arguments};
use casemate_lab::certified::{
    Certificate, CertificateError, Execution, ExecutionError, Machine, Trap, assemble, certificate,
};
use casemate_lab::processor_key::PublicKey;
use casemate_schemes::unit::memory::{OffChip, SparseMemory};
use serde_json::json;
use zeroize::Zeroizing;

use crate::distribution::{files, read_private_key, read_public_key};
use crate::exit_codes;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::run::certify::hash_of_file;

use args::{CertifyArgs, VerifyCertificateArgs};
use tampering::Tampering;

const CERTIFICATE_MODE: u32 = 0o644;
/// Longest text of a program or an input.
const MOST_TEXT_BYTES: u64 = 64 << 20;

/// Memory of the machine at most.
const MOST_MEMORY_BYTES: u64 = 64 << 20;
/// Memory of the machine at least: a page.
const LEAST_MEMORY_BYTES: u64 = 4096;

/// Runs a program and certifies its result.
pub fn certify(args: &CertifyArgs) -> Result<u8> {
    if args.memory.0 > MOST_MEMORY_BYTES {
        let sentence = "--memory is 64M at most: the machine has no more addresses";
        return Err(Failure::own(sentence).into());
    }
    if args.memory.0 < LEAST_MEMORY_BYTES {
        let sentence = "--memory is 4K at least: the machine has whole pages of that size";
        return Err(Failure::own(sentence).into());
    }
    args.out.apart_from(&args.json)?;
    let key = read_private_key(&args.key)?;
    let program = read_program(&args.program)?;
    let input = read_input(args.input.as_deref())?;
    let executed = match args.tamper {
        Some(patience) => execute_tampered(args, &program, &input, patience)?,
        None => execute(args, &program, &input, SparseMemory::default(), |_| {})?,
    };
    let execution = executed.map_err(|error| refused(&args.program, error))?;
    let certificate = Certificate::issue(&execution, &key)?;
    args.out.create(CERTIFICATE_MODE, &certificate.to_bytes())?;
    let result = execution.result();
    match &args.json.to {
        Some(to) => output::json(
            to,
            &json!({
                "schema": SCHEMA, "file": args.out.to_string(), "result": result,
            }),
        )?,
        None => args.out.say(&lines(result))?,
    }
    Ok(0)
}

/// Says what a certificate proves.
pub fn verify(args: &VerifyCertificateArgs) -> Result<u8> {
    let processor = read_public_key(&args.key)?;
    let bytes = files::read(&args.certificate, certificate::MOST_BYTES as u64)?;
    if bytes.starts_with(&run_certificate::HEAD) {
        return verify_run(args, &processor, &bytes);
    }
    if args.output.is_some() || !args.arguments.is_empty() {
        let shown = args.certificate.display();
        let why = format!("{shown} is no certificate of a run: leave --output and arguments out");
        return Err(Failure::own(why).into());
    }
    let program = read_program(&args.program)?;
    let input = read_input(args.input.as_deref())?;
    let certificate =
        Certificate::from_bytes(&bytes).map_err(|error| proves_nothing(args, error))?;
    let result = certificate.verify(&processor, &program, &input);
    let result = result.map_err(|error| proves_nothing(args, error))?;
    match &args.json.to {
        Some(to) => output::json(to, &json!({ "schema": SCHEMA, "result": result }))?,
        None => output::stdout(&lines(result))?,
    }
    Ok(0)
}

fn proves_nothing(args: &VerifyCertificateArgs, error: CertificateError) -> Failure {
    Failure::no(format!("{}: {error}; it proves nothing here", args.certificate.display()))
}

/// Says what the certificate of a run proves.
fn verify_run(args: &VerifyCertificateArgs, processor: &PublicKey, bytes: &[u8]) -> Result<u8> {
    let input = match &args.input {
        Some(path) => hash_of_file(path)?,
        None => *blake3::hash(&[]).as_bytes(),
    };
    let arguments = hash_of_arguments(args.arguments.iter().map(|argument| argument.as_bytes()));
    let program = hash_of_file(&args.program)?;
    let said = RunCertificate::from_bytes(bytes)
        .and_then(|certificate| certificate.verify(processor, program, arguments, input).copied())
        .map_err(|error| proves_nothing(args, error))?;
    let [output, errors] = said.written;
    if let Some(path) = &args.output
        && hash_of_file(path)? != output.hash
    {
        let (shown, path) = (args.certificate.display(), path.display());
        return Err(
            Failure::no(format!("{shown}: the program wrote something else than {path}")).into()
        );
    }
    let hex = |hash: [u8; 32]| blake3::Hash::from_bytes(hash).to_hex().to_string();
    let written = |written: Written| json!({ "bytes": written.bytes, "blake3": hex(written.hash) });
    match &args.json.to {
        Some(to) => output::json(
            to,
            &json!({
                "schema": SCHEMA, "exit_code": said.exit_code,
                "stdout": written(output), "stderr": written(errors),
            }),
        )?,
        None => output::stdout(&format!(
            "exit code {}\nstandard output, {} bytes, BLAKE3 {}\nstandard error, {} bytes, BLAKE3 {}\n",
            said.exit_code,
            output.bytes,
            hex(output.hash),
            errors.bytes,
            hex(errors.hash)
        ))?,
    }
    Ok(0)
}

fn execute<M: OffChip>(
    args: &CertifyArgs,
    program: &[u64],
    input: &[u64],
    memory: M,
    when_loaded: impl FnOnce(&mut M),
) -> Result<Result<Execution, ExecutionError>> {
    let mut secret = Zeroizing::new([0; 32]);
    aws_lc_rs::rand::fill(&mut *secret)
        .map_err(|_| Failure::own("there is no randomness for the unit's keys (try again)"))?;
    let memory_words = args.memory.0 / 8;
    let run = || {
        let mut machine = Machine::<M>::load(program, input, memory_words, memory, &secret)?;
        when_loaded(machine.unit_mut().port_mut().memory_mut());
        machine.run(args.steps)?;
        machine.finish()
    };
    Ok(run())
}

/// The same in memory of which a bit is flipped.
///
/// # Errors
/// None was, since fewer blocks were read before.
fn execute_tampered(
    args: &CertifyArgs,
    program: &[u64],
    input: &[u64],
    patience: u64,
) -> Result<Result<Execution, ExecutionError>> {
    let memory = Tampering::default();
    let flipped = memory.flipped();
    let executed = execute(args, program, input, memory, |memory| memory.begin(patience))?;
    if executed.is_ok() && !flipped.get() {
        let shown = args.program.display();
        let sentence = format!(
            "{shown}: --tamper={patience} flipped no bit, since fewer blocks were read; nothing \
             was signed (choose a smaller number)"
        );
        return Err(Failure::own(sentence).into());
    }
    Ok(executed)
}

fn refused(program: &Path, error: ExecutionError) -> Failure {
    let shown = program.display();
    match error {
        ExecutionError::Tampered(_) => {
            Failure::new(exit_codes::VIOLATION, format!("{shown}: {error}; nothing was signed"))
        }
        ExecutionError::Trap(Trap::StillRunning(_)) => {
            Failure::no(format!("{shown}: {error}; nothing was signed (allow more --steps)"))
        }
        ExecutionError::DoesNotFit { .. } => {
            Failure::no(format!("{shown}: {error} (allow more --memory, at most 64M)"))
        }
        _ => Failure::no(format!("{shown}: {error}; nothing was signed")),
    }
}

fn read_program(path: &Path) -> Result<certified::Words> {
    let text = read_text(path)?;
    assemble(&text).map_err(|error| Failure::own(format!("{}: {error}", path.display())).into())
}

/// Numbers between blanks.
fn read_input(path: Option<&Path>) -> Result<certified::Words> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let number = |word: &str| {
        word.parse().map_err(|_| {
            let shown = path.display();
            Failure::own(format!("{shown}: {word} is no number from 0 to {}", u64::MAX)).into()
        })
    };
    read_text(path)?.split_ascii_whitespace().map(number).collect()
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = files::read(path, MOST_TEXT_BYTES)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Failure::own(format!("{} is no text in UTF-8", path.display())))?;
    Ok(text.to_owned())
}

fn lines(words: &[u64]) -> String {
    words.iter().map(|word| format!("{word}\n")).collect()
}
