//! What can go wrong in the stores.

use std::io;
use std::path::PathBuf;

use casemate_pages::StorePlace;

/// Why ciphertext could not be stored or fetched. Nothing that was stored before is lost by it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The Crypt has reached its limit and there is no swap file.
    #[error(
        "the Crypt is full at its limit of {}; raise --crypt-limit or \
         add --swap FILE", size(*limit_bytes)
    )]
    CryptFull {
        /// The limit.
        limit_bytes: u64,
    },
    /// The kernel gives no more memory.
    #[error(
        "no memory for more ciphertext after {}: {source}; set a \
         --crypt-limit below that and add --swap FILE", size(*used_bytes)
    )]
    OutOfMemory {
        /// Ciphertext held in RAM.
        used_bytes: u64,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The swap file cannot grow.
    #[error(
        "swap file {}: no space left after {}; give it more room or \
         raise --crypt-limit", path.display(), size(*used_bytes)
    )]
    SwapFull {
        /// As given by the user; the file has no name any more.
        path: PathBuf,
        /// Ciphertext held in the file.
        used_bytes: u64,
    },
    /// The swap file cannot be read or written.
    #[error(
        "swap file {}: {action} failed: {source}; check the disk under it",
        path.display()
    )]
    SwapIo {
        /// As given by the user; the file has no name any more.
        path: PathBuf,
        /// `reading` or `writing`.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The swap file cannot be created.
    #[error("swap file {}: {}", path.display(), creation(source))]
    SwapCreate {
        /// As given by the user.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The records of what is stored have no more room.
    #[error(
        "no memory for more records and tree lines after {}; allow \
         casemate more address space (`ulimit -v`), or protect a smaller program", size(*used_bytes)
    )]
    MetadataFull {
        /// What records and tree lines take.
        used_bytes: u64,
    },
    /// The stores' own memory cannot be set up.
    #[error("cannot reserve address space for the Crypt: {0}")]
    Reserve(#[source] io::Error),
    /// No page is stored at this place: a stale record, or a defect of ours.
    #[error("no page is stored at place {}", .0.0)]
    NotHeld(StorePlace),
}

impl StoreError {
    /// Whether it would fit where other pages had been released.
    pub fn is_for_want_of_room(&self) -> bool {
        match self {
            Self::CryptFull { .. } | Self::SwapFull { .. } | Self::OutOfMemory { .. } => true,
            Self::SwapIo { .. }
            | Self::SwapCreate { .. }
            | Self::MetadataFull { .. }
            | Self::Reserve(_)
            | Self::NotHeld(_) => false,
        }
    }
}

fn creation(source: &io::Error) -> String {
    match source.raw_os_error() {
        Some(libc::EEXIST) => {
            "exists already; casemate creates its swap file anew and removes its name at once; \
             choose another name"
                .into()
        }
        Some(libc::ELOOP) => "is a symbolic link; name the file itself".into(),
        _ => format!("cannot be created: {source}"),
    }
}

/// Bytes for people: `12.3 MiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_mends_no_broken_disk() {
        let (path, source) = ("/x".into(), io::Error::from_raw_os_error(libc::EIO));
        assert!(!StoreError::SwapIo { path, action: "writing", source }.is_for_want_of_room());
    }

    #[test]
    fn sentences_say_what_happened_and_what_to_do() {
        let full = StoreError::SwapFull { path: "/x".into(), used_bytes: 12_900_000 };
        assert_eq!(
            full.to_string(),
            "swap file /x: no space left after 12.3 MiB; give it more \
             room or raise --crypt-limit"
        );
        assert!(full.is_for_want_of_room());
        assert_eq!(size(0), "0.0 KiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }
}
