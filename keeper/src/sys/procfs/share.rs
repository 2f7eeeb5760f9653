//! What a process has of the anonymous memory that processes share, by the kernel's `smaps`.

use super::{kib_of, mappings, status_field, text};
use crate::config::PAGE_BYTES;

/// A process's part of anonymous memory in RAM: each page divided by the number of processes that
/// share it. In units of 512 bytes: rounded to pages, the parts of a hundred processes would be off
/// by a hundred pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnonymousShare {
    /// In private mappings of no file.
    own_units: u64,
    /// In private mappings of files: copies of their pages, and pages of the file that were written
    /// and are not on disk yet.
    copied_units: u64,
}

impl AnonymousShare {
    /// That of `pid`. None if it cannot be read; nothing for a process that has ended or is
    /// exiting.
    pub fn of(pid: i32) -> Option<Self> {
        match mappings::read(pid, "smaps") {
            Ok(text) => {
                let share = Self::in_smaps(&text);
                // The kernel walks page by page: what leaves behind it and comes back before it
                // counts twice. What is resident at one moment does not.
                let resident = status_field(pid, "RssAnon").and_then(|text| kib_of(&text));
                let most_units = resident.map_or(u64::MAX, |kib| kib * UNITS_PER_KIB);
                Some(AnonymousShare { own_units: share.own_units.min(most_units), ..share })
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {
                Some(AnonymousShare::default())
            }
            Err(_) => None,
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        AnonymousShare {
            own_units: self.own_units + other.own_units,
            copied_units: self.copied_units + other.copied_units,
        }
    }

    /// What is in mappings of no file.
    pub fn without_copies(self) -> Self {
        AnonymousShare { copied_units: 0, ..self }
    }

    /// What is in mappings of no file, in pages.
    pub fn own_pages(self) -> u64 {
        self.own_units.div_ceil(UNITS_PER_PAGE)
    }

    /// Copies of file pages, in pages.
    pub fn copied_pages(self) -> u64 {
        self.copied_units.div_ceil(UNITS_PER_PAGE)
    }

    /// `Pss`, and where a file is behind a mapping the part of it that is dirty (Linux 6.0).
    fn in_smaps(text: &str) -> Self {
        let (mut is_own, mut is_copy, mut share) = (false, false, Self::default());
        for line in text.lines() {
            if let Some(shown) = line.strip_prefix("Pss:") {
                share.own_units += if is_own { units(shown) } else { 0 };
            } else if let Some(shown) = line.strip_prefix("Pss_Dirty:") {
                share.copied_units += if is_copy { units(shown) } else { 0 };
            } else if let Some(mapping) = mappings::parse_mapping(line) {
                is_own = mapping.private && (mapping.inode == 0 || mapping.is_zero_device());
                is_copy = mapping.private && !is_own;
            }
        }
        share
    }
}

const UNITS_PER_KIB: u64 = 2;
const UNITS_PER_PAGE: u64 = PAGE_BYTES as u64 / 1024 * UNITS_PER_KIB;

/// A share of a mapping that is shown in KiB, rounded down: half a KiB more in the mean. Whole
/// pages are taken for pages that are not shared.
fn units(shown: &str) -> u64 {
    let units = kib_of(shown).unwrap_or(0) * UNITS_PER_KIB;
    units + u64::from(!units.is_multiple_of(UNITS_PER_PAGE))
}

/// A process's part of the anonymous pages that it shares, and all that it has alone, in whatever
/// mappings. None if that cannot be read; 0 for a process that has ended or is exiting.
pub fn shared_anonymous_pages(pid: i32) -> Option<u64> {
    match text(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => {
            let share = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
            Some(share.and_then(kib_of)?.div_ceil(4))
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_file_pages_are_told_from_memory_of_no_file() {
        let text = "\
            10000-20000 rw-p 00000000 00:00 0 \nRss: 64 kB\nPss: 30 kB\nPss_Dirty: 30 kB\n\
            20000-30000 rw-p 00000000 08:01 7 /lib/libc.so.6\nPss: 40 kB\nPss_Dirty: 9 kB\n\
            30000-40000 rw-s 00000000 00:01 8 /dev/zero (deleted)\nPss: 64 kB\nPss_Dirty: 64 kB\n\
            40000-50000 r--p 00000000 08:01 7 /lib/libc.so.6\nPss: 20 kB\nPss_Dirty: 3 kB\n";
        // 30.5 KiB are 7.6 pages; 9.5 and 3.5 are 3.25 pages.
        let share = AnonymousShare::in_smaps(text);
        assert_eq!(share, AnonymousShare { own_units: 61, copied_units: 26 });
        assert_eq!((share.own_pages(), share.copied_pages()), (8, 4));
    }
}
