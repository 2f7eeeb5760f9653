//! CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH on the binary, permitted only, written as setcap(8)
//! would.

use std::io;
use std::path::Path;

use anyhow::Result;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::Work;
use super::record::BinaryBefore;
use crate::failure::Failure;

const ATTRIBUTE: &str = "security.capability";
/// `VFS_CAP_REVISION_2`, without the effective flag.
const REVISION_2: u32 = 0x0200_0000;
/// `setcap`'s words for [`capability`].
const WORDS: &str = "cap_dac_read_search,cap_sys_ptrace=p";
const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_SYS_PTRACE: u32 = 19;

/// `struct vfs_cap_data` with both, and none in effect.
pub fn capability() -> [u8; 20] {
    attribute(1 << CAP_DAC_READ_SEARCH | 1 << CAP_SYS_PTRACE)
}

fn attribute(permitted: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&REVISION_2.to_le_bytes());
    bytes[4..8].copy_from_slice(&permitted.to_le_bytes());
    bytes
}

/// Whether a binary's attribute is what `setup` writes, or what it wrote before it granted
/// CAP_DAC_READ_SEARCH.
fn is_ours(attribute_of_file: &[u8]) -> bool {
    attribute_of_file == capability() || attribute_of_file == attribute(1 << CAP_SYS_PTRACE)
}

/// Whether this binary has CAP_SYS_PTRACE among its permitted capabilities.
pub fn has_capability() -> io::Result<bool> {
    let held = get(&std::env::current_exe()?)?;
    Ok(held.is_some_and(|bytes| {
        bytes
            .get(4..8)
            .and_then(|low| low.try_into().ok())
            .is_some_and(|low| u32::from_le_bytes(low) & (1 << CAP_SYS_PTRACE) != 0)
    }))
}

fn get(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = [0_u8; 64];
    match rustix::fs::getxattr(path, ATTRIBUTE, &mut bytes) {
        Ok(length) => Ok(Some(bytes[..length].to_vec())),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn set(path: &Path, bytes: Option<&[u8]>) -> io::Result<()> {
    match bytes {
        Some(bytes) => rustix::fs::setxattr(path, ATTRIBUTE, bytes, XattrFlags::empty())?,
        None => match rustix::fs::removexattr(path, ATTRIBUTE) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        },
    }
    Ok(())
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::no(format!(
        "cannot change the file capabilities of {}: {error} (put the binary on a file system with \
         extended attributes, such as ext4, and run setup as root there)",
        path.display()
    ))
}

/// Gives the binary the capabilities.
pub fn apply(work: &mut Work, path: &Path) -> Result<()> {
    let before = get(path).map_err(|error| refused(path, &error))?;
    if before.as_deref() == Some(&capability()) {
        return Ok(());
    }
    if !work.record.binaries.iter().any(|binary| binary.path == path) {
        let entry = BinaryBefore { path: path.to_owned(), capability: before };
        work.note(|record| record.binaries.push(entry))?;
    }
    work.done.push(format!("set the file capabilities {WORDS} on {}", path.display()));
    if !work.dry_run {
        set(path, Some(&capability())).map_err(|error| refused(path, &error))?;
    }
    Ok(())
}

/// Takes them back from every binary that got them; without a record, from this one.
pub fn undo(work: &mut Work, this: &Path) -> Result<()> {
    let mut binaries = std::mem::take(&mut work.record.binaries);
    if !binaries.iter().any(|binary| binary.path == this) {
        binaries.push(BinaryBefore { path: this.to_owned(), capability: None });
    }
    for BinaryBefore { path, capability: before } in &binaries {
        // A binary that was moved, replaced or given other capabilities since is no longer ours.
        if !get(path).ok().flatten().is_some_and(|bytes| is_ours(&bytes)) {
            continue;
        }
        work.done.push(format!("take the file capabilities back from {}", path.display()));
        if !work.dry_run {
            set(path, before.as_deref()).map_err(|error| refused(path, &error))?;
        }
    }
    Ok(())
}
