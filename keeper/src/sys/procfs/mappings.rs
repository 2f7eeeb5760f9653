//! The mappings of a process: `maps` and `smaps`.

use super::status_field;
use std::fs;
use std::io;
use std::ops::Range;

/// One line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Addresses in bytes.
    pub range: Range<u64>,
    /// May be read.
    pub read: bool,
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub exec: bool,
    /// Private (copy on write), not shared.
    pub private: bool,
    /// Inode number; 0 for anonymous memory.
    pub inode: u64,
    /// What follows: a path, `[heap]`, or nothing.
    pub name: String,
}

impl Mapping {
    /// Whether the pager can hold this mapping: private, anonymous, and not the kernel's own.
    pub fn is_protectable(&self) -> bool {
        let name_ok = match self.name.as_str() {
            "" | "[heap]" | "[stack]" => true,
            other => other.starts_with("[anon:"),
        };
        self.private && self.inode == 0 && name_ok
    }

    /// Whether it is a private mapping of `/dev/zero`: anonymous memory that shows a file.
    pub fn is_zero_device(&self) -> bool {
        self.private && self.name == "/dev/zero"
    }
}

/// A private mapping of `/dev/zero` whose place plain anonymous memory can take.
#[derive(Debug, Clone)]
pub struct ZeroDevice {
    /// Where it is.
    pub mapping: Mapping,
    /// `MAP_NORESERVE`.
    pub is_unreserved: bool,
    /// `MADV_DONTFORK`.
    pub is_unforked: bool,
}

/// The `/dev/zero` mappings of a process that are readable and writable and have no property that
/// new memory lacks.
pub fn replaceable_zero_devices(pid: i32) -> io::Result<Vec<ZeroDevice>> {
    /// Rights, accounting, advice on forks and speed, soft-dirty, a userfaultfd.
    const HARMLESS: [&str; 17] = [
        "rd", "wr", "ex", "mr", "mw", "me", "ac", "nr", "dc", "nh", "hg", "mg", "sd", "um", "uw",
        "sr", "rr",
    ];
    let mut found = Vec::new();
    for_each_flagged(pid, &mut |mapping, flags, _| {
        let is_plain = flags.iter().all(|flag| HARMLESS.contains(flag));
        if mapping.is_zero_device() && mapping.read && mapping.write && is_plain {
            found.push(ZeroDevice {
                mapping: mapping.clone(),
                is_unreserved: flags.contains(&"nr"),
                is_unforked: flags.contains(&"dc"),
            });
        }
    })?;
    Ok(found)
}

/// Parses one line; none if it is not of the kernel's form.
pub(super) fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?.as_bytes();
    let inode = fields.nth(2)?.parse().ok()?;
    if permissions.len() < 4 {
        return None;
    }
    Some(Mapping {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        read: permissions[0] == b'r',
        write: permissions[1] == b'w',
        exec: permissions[2] == b'x',
        private: permissions[3] == b'p',
        inode,
        name: fields.next().unwrap_or("").trim_start().to_owned(),
    })
}

/// All mappings of a process.
pub fn mappings(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(text.lines().filter_map(parse_mapping).collect())
}

/// The mappings of a process that are locked in RAM.
pub fn locked_ranges(pid: i32) -> io::Result<Vec<Range<u64>>> {
    // Locking is rare: the status line tells without the walk that smaps costs.
    match status_field(pid, "VmLck") {
        Some(kb) if kb.starts_with("0 ") => Ok(Vec::new()),
        _ => flagged_ranges(pid, &["lo"]),
    }
}

/// Mappings of a process with advice of madvise(2) in force.
#[derive(Debug, Clone, Default)]
pub struct Advised {
    /// Mappings whose contents a child of fork does not get: not inherited (`MADV_DONTFORK`), or
    /// empty in the child (`MADV_WIPEONFORK`).
    pub unforked: Vec<Range<u64>>,
    /// Mappings whose pages the kernel may merge with equal ones (`MADV_MERGEABLE`).
    pub mergeable: Vec<Range<u64>>,
    /// Mappings with pages that the kernel may drop whenever it likes, until they are written
    /// (`MADV_FREE`).
    pub freed: Vec<Range<u64>>,
    /// The same, of mappings that cannot be written now.
    pub freed_unwritable: Vec<Range<u64>>,
}

/// Reads it off `smaps`.
pub fn advised_ranges(pid: i32) -> io::Result<Advised> {
    let mut advised = Advised::default();
    for_each_flagged(pid, &mut |mapping, flags, has_freed| {
        if flags.contains(&"dc") || flags.contains(&"wf") {
            advised.unforked.push(mapping.range.clone());
        }
        if flags.contains(&"mg") {
            advised.mergeable.push(mapping.range.clone());
        }
        let freed = if mapping.write { &mut advised.freed } else { &mut advised.freed_unwritable };
        if has_freed {
            freed.push(mapping.range.clone());
        }
    })?;
    Ok(advised)
}

/// Whether any mapping of a process is registered with a userfaultfd, ours or its own.
pub fn has_userfault(pid: i32) -> bool {
    flagged_ranges(pid, &["um", "uw"]).is_ok_and(|ranges| !ranges.is_empty())
}

/// The mappings that bear one of `flags` in `smaps`.
fn flagged_ranges(pid: i32, flags: &[&str]) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    for_each_flagged(pid, &mut |mapping, have, _| {
        if have.iter().any(|flag| flags.contains(flag)) {
            found.push(mapping.range.clone());
        }
    })?;
    Ok(found)
}

/// Calls `visit` with each mapping of `smaps`, its flags, and whether any of its pages is freed
/// lazily.
fn for_each_flagged(pid: i32, visit: &mut dyn FnMut(&Mapping, &[&str], bool)) -> io::Result<()> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps"))?;
    let (mut current, mut has_freed) = (None, false);
    for line in text.lines() {
        if let Some(have) = line.strip_prefix("VmFlags:") {
            if let Some(mapping) = current.take() {
                let flags: Vec<&str> = have.split_ascii_whitespace().collect();
                visit(&mapping, &flags, std::mem::take(&mut has_freed));
            }
        } else if let Some(kb) = line.strip_prefix("LazyFree:") {
            has_freed = kb.trim() != "0 kB";
        } else if !line.ends_with(" kB")
            && let Some(mapping) = parse_mapping(line)
        {
            current = Some(mapping);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_the_kernel_prints() {
        let heap = parse_mapping("55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0      [heap]");
        let heap = heap.expect("the kernel's own form");
        assert_eq!(heap.range, 0x55d0_c8a0_0000..0x55d0_c8a2_1000);
        assert!(heap.is_protectable() && heap.write && !heap.exec);
        for (line, protectable) in [
            ("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ", true),
            ("7f0000000000-7f0000001000 rw-p 00000000 00:00 0", true),
            ("7f0000000000-7f0000001000 rw-p 00000000 00:00 0    [anon:arena]", true),
            ("7f0000000000-7f0000001000 rw-s 00000000 00:01 7    /dev/zero (deleted)", false),
            ("7f0000000000-7f0000001000 rw-p 00003000 fe:00 77   /lib/libc.so.6", false),
            ("7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0    [vdso]", false),
            ("7ffd00000000-7ffd00002000 r--p 00000000 00:00 0    [vvar]", false),
        ] {
            assert_eq!(
                parse_mapping(line).map(|m| m.is_protectable()),
                Some(protectable),
                "{line}"
            );
        }
        assert_eq!(parse_mapping("nonsense"), None);
        assert_eq!(parse_mapping("1-2 rw"), None);
    }
}
