//! The mappings of a process: `maps` and `smaps`.

use super::{says_ended, status_field, text};
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
    /// Where in its file it begins, in bytes.
    pub offset: u64,
    /// Major and minor number of the file's file system.
    pub device: (u32, u32),
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

    /// Whether it is a private mapping of a file that may be written and not executed: `.data`, as
    /// a rule.
    pub fn is_data_of_file(&self) -> bool {
        let is_of_file = self.private && self.inode != 0 && !self.is_zero_device();
        is_of_file && self.read && self.write && !self.exec
    }

    /// Whether both are of one file.
    pub fn is_of_file_of(&self, other: &Mapping) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
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

/// The mappings of a process with data of a file that have no property that new memory lacks.
pub fn plain_data_of_files(pid: i32) -> io::Result<Vec<Mapping>> {
    /// Rights, accounting, advice on speed, soft-dirty.
    const HARMLESS: [&str; 12] =
        ["rd", "wr", "mr", "mw", "me", "ac", "nr", "nh", "hg", "sd", "sr", "rr"];
    let mut found = Vec::new();
    for_each_flagged(pid, &mut |mapping, flags, sizes| {
        let is_plain = flags.iter().all(|flag| HARMLESS.contains(flag));
        if mapping.is_data_of_file() && is_plain && sizes.swapped_kib == 0 {
            found.push(mapping.clone());
        }
    })?;
    Ok(found)
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
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = fields.next()?.parse().ok()?;
    if permissions.len() < 4 {
        return None;
    }
    Some(Mapping {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        read: permissions[0] == b'r',
        write: permissions[1] == b'w',
        exec: permissions[2] == b'x',
        private: permissions[3] == b'p',
        offset,
        device,
        inode,
        name: fields.next().unwrap_or("").trim_start().to_owned(),
    })
}

/// A list of mappings, `maps` or `smaps`. A file's name may be no UTF-8: that must not hide the
/// others.
pub(super) fn read(pid: i32, list: &str) -> io::Result<String> {
    text(format!("/proc/{pid}/{list}"))
}

/// All mappings of a process.
pub fn mappings(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = read(pid, "maps")?;
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
    for_each_flagged(pid, &mut |mapping, flags, sizes| {
        if flags.contains(&"dc") || flags.contains(&"wf") {
            advised.unforked.push(mapping.range.clone());
        }
        if flags.contains(&"mg") {
            advised.mergeable.push(mapping.range.clone());
        }
        let freed = if mapping.write { &mut advised.freed } else { &mut advised.freed_unwritable };
        if sizes.freed_kib > 0 {
            freed.push(mapping.range.clone());
        }
    })?;
    Ok(advised)
}

/// A mapping, and what only `smaps` tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The mapping.
    pub mapping: Mapping,
    /// Its missing pages are asked for by a userfaultfd, the pager's or the program's own.
    pub has_userfault: bool,
    /// Children do not inherit it, and core files do not have it (`MADV_DONTFORK` and
    /// `MADV_DONTDUMP`): so it is with all memory of an agent.
    pub is_unforked_and_undumped: bool,
    /// Its pages are locked in RAM.
    pub is_locked: bool,
    /// What of it is in the kernel's own swap.
    pub swapped_bytes: u64,
}

/// All mappings of a process, described.
pub fn described(pid: i32) -> io::Result<Vec<Described>> {
    let mut found = Vec::new();
    for_each_flagged(pid, &mut |mapping, flags, sizes| {
        found.push(Described {
            mapping: mapping.clone(),
            has_userfault: flags.contains(&"um"),
            is_unforked_and_undumped: flags.contains(&"dc") && flags.contains(&"dd"),
            is_locked: flags.contains(&"lo"),
            swapped_bytes: sizes.swapped_kib << 10,
        });
    })?;
    Ok(found)
}

/// Whether any mapping of a process is registered with a userfaultfd, ours or its own. Also true
/// where that cannot be told.
pub fn has_userfault(pid: i32) -> bool {
    match flagged_ranges(pid, &["um", "uw"]) {
        Ok(ranges) => !ranges.is_empty(),
        Err(error) => !says_ended(&error),
    }
}

/// Whether a read of a process's memory that is not in the page table might wait for a program: one
/// that handles a userfaultfd, or one that serves the mapped file's file system (FUSE). Also true
/// where that is not known. Such a file system is not asked itself: it might not answer.
pub fn may_wait_for_a_program(pid: i32, address: u64) -> bool {
    let mut may_wait = true;
    let read = for_each_flagged(pid, &mut |mapping, flags, _| {
        if mapping.range.contains(&address) {
            let is_handled = ["um", "uw", "ui"].iter().any(|flag| flags.contains(flag));
            may_wait = is_handled || !Mounts::of(pid).serve(mapping);
        }
    });
    read.is_err() || may_wait
}

/// The file systems that a process has mounted.
pub struct Mounts(String);

impl Mounts {
    /// Reads them. Where that fails there are none.
    pub fn of(pid: i32) -> Self {
        Mounts(text(format!("/proc/{pid}/mountinfo")).unwrap_or_default())
    }

    /// Whether the kernel itself has the contents of a mapping: it is of no file, of memory that
    /// has the form of one, or of a mounted file system that no program serves.
    pub fn serve(&self, mapping: &Mapping) -> bool {
        const MEMORY: [&str; 3] = ["/memfd:", "/dev/zero", "/SYSV"];
        mapping.inode == 0
            || MEMORY.iter().any(|memory| mapping.name.starts_with(memory))
            || is_mounted_by_kernel(&self.0, mapping.device)
    }
}

/// Whether `mountinfo` has a device, and its file system is none of FUSE.
fn is_mounted_by_kernel(mounts: &str, (major, minor): (u32, u32)) -> bool {
    let device = format!("{major}:{minor}");
    let on_device = |line: &&str| line.split(' ').nth(2) == Some(&device);
    let kind = |line: &str| Some(line.split_once(" - ")?.1.split(' ').next()?.to_owned());
    mounts.lines().find(on_device).and_then(kind).is_some_and(|kind| !kind.starts_with("fuse"))
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

/// Sizes that `smaps` tells of a mapping.
#[derive(Default)]
struct Sizes {
    /// Freed lazily (`MADV_FREE`).
    freed_kib: u64,
    /// In the kernel's own swap.
    swapped_kib: u64,
}

/// Calls `visit` with each mapping of `smaps`, its flags and its sizes.
fn for_each_flagged(pid: i32, visit: &mut dyn FnMut(&Mapping, &[&str], &Sizes)) -> io::Result<()> {
    let kib = |text: &str| text.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    let text = read(pid, "smaps")?;
    let (mut current, mut sizes) = (None, Sizes::default());
    for line in text.lines() {
        if let Some(have) = line.strip_prefix("VmFlags:") {
            if let Some(mapping) = current.take() {
                let flags: Vec<&str> = have.split_ascii_whitespace().collect();
                visit(&mapping, &flags, &std::mem::take(&mut sizes));
            }
        } else if let Some(size) = line.strip_prefix("LazyFree:") {
            sizes.freed_kib = kib(size);
        } else if let Some(size) = line.strip_prefix("Swap:") {
            sizes.swapped_kib = kib(size);
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
    use std::fs;
    use std::os::fd::AsRawFd;

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
        let library = "7f0000000000-7f0000001000 rw-p 00003000 fe:1a 77   /lib/libc.so.6";
        assert_eq!(parse_mapping(library).map(|m| m.device), Some((0xfe, 0x1a)));
        assert_eq!(parse_mapping("nonsense"), None);
        assert_eq!(parse_mapping("1-2 rw"), None);
    }

    /// Two neighbours, which the kernel would show as one if they had the same marks.
    #[test]
    fn a_description_has_the_marks_of_each_mapping() {
        const BYTES: usize = 1 << 16;
        let (rights, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, whose second half gets advice and is locked.
        let start = unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 2 * BYTES, rights, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let second = start.byte_add(BYTES);
            for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
                assert_eq!(libc::madvise(second, BYTES, advice), 0);
            }
            assert_eq!(libc::mlock(second, BYTES), 0);
            start
        };
        let all = described(std::process::id() as i32).expect("our own");
        let marks = |at: usize| {
            let at = start as u64 + at as u64;
            let one = all.iter().find(|one| one.mapping.range.contains(&at)).expect("it is there");
            (one.is_unforked_and_undumped, one.is_locked, one.has_userfault, one.swapped_bytes)
        };
        assert_eq!([marks(0), marks(BYTES)], [(false, false, false, 0), (true, true, false, 0)]);
        // SAFETY: nothing refers to it.
        unsafe { libc::munmap(start, 2 * BYTES) };
    }

    /// A list that could not be read would leave the process without surveys.
    #[test]
    fn a_file_whose_name_is_no_utf_8_hides_no_mapping() {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"no-\xff-utf-8");
        let path = std::env::temp_dir().join(name).with_extension(std::process::id().to_string());
        fs::write(&path, [1_u8; 4096]).expect("a file");
        let file = fs::File::open(&path).expect("it is there");
        // SAFETY: a new mapping of a page that the file has; nothing else uses it.
        let at = unsafe {
            let (read, private, fd) = (libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd());
            libc::mmap(std::ptr::null_mut(), 4096, read, private, fd, 0)
        };
        fs::remove_file(&path).expect("it is ours");
        let own = std::process::id() as i32;
        let found = mappings(own).map(|all| all.iter().any(|m| m.range.start == at as u64));
        assert!(found.expect("own mappings"));
        assert!(advised_ranges(own).is_ok() && super::super::AnonymousShare::of(own).is_some());
        // SAFETY: unmaps what was mapped above.
        unsafe { libc::munmap(at, 4096) };
    }

    #[test]
    fn only_file_systems_of_the_kernel_are_waited_for() {
        let mounts = "21 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw\n\
            40 21 0:52 / /mnt/a rw shared:9 - fuse.sshfs host: rw\n\
            41 21 0:53 / /mnt/b rw - fuseblk /dev/sdb rw\n\
            42 21 0:54 / /dev/shm rw - tmpfs tmpfs rw\n";
        for (device, expected) in
            [((254, 0), true), ((0, 52), false), ((0, 53), false), ((0, 54), true), ((0, 5), false)]
        {
            assert_eq!(is_mounted_by_kernel(mounts, device), expected, "{device:?}");
        }
    }

    #[test]
    fn own_memory_is_waited_for_and_none_is_not() {
        let word = 7_u64;
        let own = std::process::id() as i32;
        assert!(!may_wait_for_a_program(own, &raw const word as u64));
        assert!(may_wait_for_a_program(own, 8), "nothing is mapped there");
    }
}
