//! Files that are read whole, and files that must not exist before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Result;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::size;

/// A whole file of at most so many bytes. Wiped on drop: it may be a key or a program.
pub fn read(path: &Path, most_bytes: u64) -> Result<Zeroizing<Vec<u8>>> {
    let failed = |error: io::Error| {
        Failure::own(format!(
            "cannot read {}: {error} (name a file that you may read)",
            path.display()
        ))
    };
    let file = File::open(path).map_err(failed)?;
    let known = file.metadata().map_err(failed)?.len().min(most_bytes);
    // Room for all of it, and a byte more to see that there is not: a vector that grows leaves
    // copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(known as usize + 1));
    file.take(most_bytes + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most_bytes {
        return Err(Failure::own(format!(
            "{} is longer than the {most_bytes} bytes that it may have here (is it the right file?)",
            path.display()
        ))
        .into());
    }
    Ok(bytes)
}

/// The text of a whole file of at most so many bytes; one that has no end is read no further.
///
/// # Errors
/// It cannot be read, is longer, or is no text.
pub fn text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let why = format!("it is larger than {}", size::format(most_bytes));
        return Err(io::Error::other(why));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
}

/// Creates a file with these permissions and this content. One that could not be written whole is
/// removed.
pub fn create(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => Failure::own(format!("cannot create {shown}: {error} (choose another place)")),
    };
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
        let _ = fs::remove_file(path);
        return Err(failed(error).into());
    }
    Ok(())
}

/// Refuses a path at which there is something, before work is put into what [`create`] would
/// refuse.
pub fn must_be_new(path: &Path) -> Result<()> {
    // A link that leads nowhere is something too.
    match fs::symlink_metadata(path) {
        Ok(_) => Err(is_there(path).into()),
        Err(_) => Ok(()),
    }
}

fn is_there(path: &Path) -> Failure {
    let shown = path.display();
    Failure::own(format!("{shown} exists already, and is not replaced (choose another name)"))
}
