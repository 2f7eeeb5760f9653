//! Software for one processor: `casemate processor-key`, `seal-image` and `open-image` (OTP/SNC,
//! section 2.1).

pub mod args;
pub mod files;
mod launch;

use std::path::Path;

use anyhow::Result;
use casemate_lab::distribution;
use casemate_lab::distribution::{MOST_PROGRAM_BYTES, OVERHEAD_BYTES, OpenError};
use casemate_lab::processor_key::{
    KeyError, PRIVATE_KEY_BYTES, PUBLIC_KEY_BYTES, ProcessorKey, PublicKey,
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::exit_codes;
use crate::failure::Failure;
use crate::out;
use crate::output::{self, Json, JsonTo, SCHEMA};

use args::{OpenImageArgs, ProcessorKeyArgs, SealImageArgs};

/// Only the owner reads a private key.
const PRIVATE_MODE: u32 = 0o600;
const PUBLIC_MODE: u32 = 0o644;
/// A program that was sealed because others are not to read it.
const PROGRAM_MODE: u32 = 0o700;

/// Makes a key pair.
pub fn processor_key(args: &ProcessorKeyArgs) -> Result<u8> {
    out::not_standard(&args.out, "it makes two files; name the private key's")?;
    let mut public_name = args.out.clone().into_os_string();
    public_name.push(".pub");
    if let Some(JsonTo::File(report)) = &args.json.to
        && [args.out.as_path(), Path::new(&public_name)]
            .iter()
            .any(|key| output::is_one_file(key, report))
    {
        let sentence = format!("{}: the report would replace the key", report.display());
        return Err(Failure::own(format!("{sentence}; name another")).into());
    }
    let key = ProcessorKey::generate()?;
    let public = key.public_key()?;
    files::create(&args.out, PRIVATE_MODE, &key.to_bytes())?;
    if let Err(error) = files::create(Path::new(&public_name), PUBLIC_MODE, &public.to_bytes()) {
        // Half a pair is of no use, and the name would be taken the next time.
        let _ = std::fs::remove_file(&args.out);
        return Err(error);
    }
    let (fingerprint, private) = (public.fingerprint().to_string(), args.out.display().to_string());
    match &args.json.to {
        Some(to) => output::json(
            to,
            &json!({
                "schema": SCHEMA, "processor": fingerprint,
                "private_key": private, "public_key": format!("{private}.pub"),
            }),
        )?,
        None => output::stdout(&format!("processor {fingerprint}\n"))?,
    }
    Ok(0)
}

/// Seals a program.
pub fn seal_image(args: &SealImageArgs) -> Result<u8> {
    args.out.apart_from(&args.json)?;
    let public = read_public_key(&args.processor)?;
    let program = files::read(&args.program, MOST_PROGRAM_BYTES)?;
    let image = distribution::seal(&program, &public)
        .map_err(|error| Failure::no(format!("{}: {error}", args.program.display())))?;
    args.out.create(PUBLIC_MODE, &image)?;
    if let Some(to) = &args.json.to {
        output::json(
            to,
            &json!({
                "schema": SCHEMA, "file": args.out.to_string(), "bytes": image.len(),
                "processor": public.fingerprint().to_string(),
            }),
        )?;
    }
    Ok(0)
}

/// Opens an image and runs the program, or writes it out. Until the program runs, 120 says that the
/// image was changed, 123 that it is not for this processor.
pub fn open_image(args: &OpenImageArgs) -> Result<u8> {
    if let Some(out) = &args.out {
        out.apart_from(&Json { to: args.json.clone() })?;
    }
    let key = read_private_key(&args.key)?;
    let image = files::read(&args.image, MOST_PROGRAM_BYTES + OVERHEAD_BYTES as u64)?;
    let program = distribution::open(&image, &key).map_err(|error| refused(&args.image, error))?;
    // The program that runs next must not find the key in memory.
    drop(key);
    match &args.out {
        Some(out) => {
            out.create(PROGRAM_MODE, &program)?;
            if let Some(to) = &args.json {
                let (file, bytes) = (out.to_string(), program.len());
                output::json(to, &json!({ "schema": SCHEMA, "file": file, "bytes": bytes }))?;
            }
            Ok(0)
        }
        None => Err(launch::run(program, &args.image, &args.arguments).into()),
    }
}

fn refused(image: &Path, error: OpenError) -> Failure {
    let shown = image.display();
    match error {
        error if error.is_tampering() => Failure::new(
            exit_codes::VIOLATION,
            format!("{shown}: {error}; nothing of it was used (ask the vendor for it again)"),
        ),
        OpenError::OtherProcessor(_) => Failure::new(
            exit_codes::UNPROTECTABLE,
            format!("{shown}: {error} (give that one's key, or have it sealed for this one)"),
        ),
        _ => Failure::own(format!("{shown}: {error} (casemate seal-image makes one)")),
    }
}

/// A processor's public key.
pub fn read_public_key(path: &Path) -> Result<PublicKey> {
    let bytes = files::read(path, PUBLIC_KEY_BYTES as u64 + 1)?;
    PublicKey::from_bytes(&bytes).map_err(|error| bad_key(path, error).into())
}

/// A processor's private key.
pub fn read_private_key(path: &Path) -> Result<ProcessorKey> {
    let bytes: Zeroizing<Vec<u8>> = files::read(path, PRIVATE_KEY_BYTES as u64 + 1)?;
    ProcessorKey::from_bytes(&bytes).map_err(|error| bad_key(path, error).into())
}

fn bad_key(path: &Path, error: KeyError) -> Failure {
    let shown = path.display();
    Failure::own(format!("{shown}: {error} (casemate processor-key makes a pair)"))
}
