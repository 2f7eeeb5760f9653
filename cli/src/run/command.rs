//! Finds the program to run, and says up-front why it cannot be run or protected.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags};

use super::elf;
use crate::exit_codes::{NOT_EXECUTABLE, NOT_FOUND};
use crate::failure::Failure;

/// Where commands are looked for when there is no PATH, as execvp(3) does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Interpreters of interpreters that the kernel follows.
const INTERPRETER_DEPTH: usize = 4;

/// Finds `name` as execvp(3) would, and the file that the kernel will in the end execute: for a
/// script, its interpreter.
pub fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let mut file = look_up(name)?;
    for _ in 0..=INTERPRETER_DEPTH {
        match interpreter(&file) {
            Ok(Some(interpreter)) => {
                if let Err(error) = executable(&interpreter) {
                    return Err(Failure::new(
                        NOT_EXECUTABLE,
                        format!(
                            "cannot execute {}: its interpreter {} {}",
                            file.display(),
                            interpreter.display(),
                            reason(&error)
                        ),
                    ));
                }
                file = interpreter;
            }
            // A program that may be executed but not read is still a program.
            Ok(None) | Err(_) => return Ok(file),
        }
    }
    Ok(file)
}

/// Finds `name` as execvp(3) would.
pub(super) fn look_up(name: &OsStr) -> Result<PathBuf, Failure> {
    let shown = name.display();
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(not_started(name, &error)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut refused = None;
    for folder in std::env::split_paths(&path) {
        let candidate = if folder.as_os_str().is_empty() {
            Path::new(".").join(name)
        } else {
            folder.join(name)
        };
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused.get_or_insert((candidate, error));
            }
            Err(_) => {}
        }
    }
    match refused {
        Some((candidate, error)) => Err(not_started(candidate.as_os_str(), &error)),
        None => Err(Failure::new(
            NOT_FOUND,
            format!("{shown}: command not found in PATH (write ./{shown} for a file here)"),
        )),
    }
}

/// The sentence for a command that did not start.
pub fn not_started(name: &OsStr, error: &io::Error) -> Failure {
    let missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let (code, shown) = (if missing { NOT_FOUND } else { NOT_EXECUTABLE }, name.display());
    match missing {
        true => Failure::new(code, format!("{shown}: command not found: there is no such file")),
        false => Failure::new(code, format!("cannot execute {shown}: it {}", reason(error))),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "is not executable for you (see chmod +x)".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("could not be opened: {error}"),
    }
}

/// Whether this process may execute `path`.
fn executable(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(rustix::fs::access(path, Access::EXEC_OK)?)
}

/// The interpreter that a script names in its first line.
fn interpreter(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut head = Vec::with_capacity(256);
    File::open(path)?.take(256).read_to_end(&mut head)?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
    let blank = |b: &u8| matches!(*b, b' ' | b'\t' | b'\r');
    let word: Vec<u8> =
        line.iter().skip_while(|b| blank(b)).take_while(|b| !blank(b)).copied().collect();
    Ok((!word.is_empty()).then(|| PathBuf::from(OsString::from_vec(word))))
}

/// Why the keeper could not protect the file, in one sentence; none if it may try.
pub fn unprotectable(path: &Path) -> Option<String> {
    let shown = path.display();
    if let Some(how) = changes_credentials(path) {
        return Some(format!(
            "cannot protect {shown}: {how}, and a program that gains privileges is out of the \
             keeper's reach (run it without casemate, or give --allow-unprotected: it then runs \
             with those privileges and without protection)"
        ));
    }
    let why = elf::refusal(path)?;
    Some(format!("cannot protect {shown}: {why} (give --allow-unprotected to run it all the same)"))
}

/// How executing the file would change this process's credentials.
fn changes_credentials(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if rustix::fs::statvfs(path).ok()?.f_flag.contains(StatVfsMountFlags::NOSUID) {
        return None;
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mode = metadata.mode();
    if mode & libc::S_ISUID != 0 && metadata.uid() != user.as_raw() {
        return Some(format!("it is setuid to user {}", metadata.uid()));
    }
    let set_group = libc::S_ISGID | libc::S_IXGRP;
    if mode & set_group == set_group && metadata.gid() != group.as_raw() {
        return Some(format!("it is setgid to group {}", metadata.gid()));
    }
    // Root has every capability already.
    let mut none: [u8; 0] = [];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut none);
    if !user.is_root() && capabilities.is_ok_and(|bytes| bytes > 0) {
        return Some("it has file capabilities".to_owned());
    }
    None
}
