//! Runs a program that has no name in any file system: from a memfd, which ends with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{MemfdFlags, SealFlags};
use zeroize::Zeroizing;

use crate::exit_codes;
use crate::failure::Failure;

const ELF: &[u8] = b"\x7fELF";
const SCRIPT: &[u8] = b"#!";

/// Replaces this process by the program. Returns only if that fails.
pub fn run(program: Zeroizing<Vec<u8>>, image: &Path, arguments: &[OsString]) -> Failure {
    let failed = |what: &str, error: io::Error| {
        let shown = image.display();
        let sentence = format!("cannot run the program in {shown}: {what}: {error}");
        Failure::new(exit_codes::NOT_EXECUTABLE, sentence)
    };
    // The C library would give anything else to a shell, line by line.
    if !program.starts_with(SCRIPT) && !program.starts_with(ELF) {
        let error = io::Error::other("it is neither an ELF executable nor a script");
        return failed("the image was opened", error);
    }
    let file = match in_memory(&program) {
        Ok(file) => file,
        Err(error) => return failed("there is no memory for it", error),
    };
    drop(program);
    // Not /dev/fd: /proc says plainly that it is this process's.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let error = Command::new(path).arg0(image).args(arguments).exec();
    failed("the kernel refused it", error)
}

/// A file in memory that is sealed against all changes.
fn in_memory(program: &[u8]) -> io::Result<File> {
    // An interpreter opens its script again by the descriptor, so that this must outlive the exec.
    let script = program.starts_with(SCRIPT);
    let close = if script { MemfdFlags::empty() } else { MemfdFlags::CLOEXEC };
    let mut file =
        File::from(rustix::fs::memfd_create("casemate", close | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(program)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}
