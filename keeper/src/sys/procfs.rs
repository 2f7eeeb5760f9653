//! `/proc`: mappings, resident sizes and family trees of the protected processes.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

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
fn parse_mapping(line: &str) -> Option<Mapping> {
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

/// Whether a descriptor of a thread is `/dev/zero`, whose private mappings are anonymous memory.
pub fn is_zero_device(tid: i32, fd: i32) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    const ZERO: u64 = 1 << 8 | 5;
    fs::metadata(format!("/proc/{tid}/fd/{fd}"))
        .is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == ZERO)
}

/// Whether a thread is exiting and still has its memory.
pub fn is_ending(pid: i32, tid: i32) -> bool {
    const PF_EXITING: u64 = 1 << 2;
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let field = |n| fields.split(' ').nth(n).and_then(|field| field.parse::<u64>().ok());
    let (flags, memory_bytes) = (field(6), field(20));
    flags.is_some_and(|flags| flags & PF_EXITING != 0)
        && memory_bytes.is_some_and(|bytes| bytes > 0)
}

/// The system call that a thread is in, as far as it can be read.
pub fn current_call(tid: i32) -> CurrentCall {
    let Ok(text) = fs::read_to_string(format!("/proc/{tid}/syscall")) else {
        return CurrentCall::Gone;
    };
    let mut words = text.split_ascii_whitespace();
    let number = words.next().and_then(|number| number.parse().ok());
    let first =
        words.next().and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    match (number, first) {
        (Some(-1), _) => CurrentCall::Outside,
        (Some(number), Some(first)) => CurrentCall::In { number, first },
        _ => CurrentCall::Unknown,
    }
}

/// What [`current_call`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurrentCall {
    /// The thread has ended.
    Gone,
    /// The thread is running, in a call or outside.
    Unknown,
    /// The thread is blocked, but not in a call: in a fault, or stopped.
    Outside,
    /// The thread is blocked in a call, or in a fault of that call.
    In {
        /// The call.
        number: i64,
        /// Its first argument.
        first: u64,
    },
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

/// Whether a process has an io_uring with registered buffers, which stay pinned.
pub fn has_fixed_buffers(pid: i32) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().any(|entry| {
        let is_ring =
            fs::read_link(entry.path()).is_ok_and(|l| l.ends_with("anon_inode:[io_uring]"));
        let number = entry.file_name();
        let info =
            || fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy()));
        is_ring
            && info().map_or(true, |text| {
                let buffers = text.lines().find_map(|l| l.strip_prefix("UserBufs:"));
                buffers.is_none_or(|count| count.trim() != "0")
            })
    })
}

/// Resident sizes of a process, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Mapped in all.
    pub size_pages: u64,
    /// Anonymous pages in RAM.
    pub anon_pages: u64,
    /// Pages of files and shared memory in RAM.
    pub shared_pages: u64,
}

/// `/proc/PID/statm`, kept open because it is read at every tick.
#[derive(Debug)]
pub struct Statm(File);

impl Statm {
    /// Opens it, of a process or of one of its threads.
    pub fn open(pid: i32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/statm")).map(Statm)
    }

    /// Reads it; none when the process is gone.
    pub fn read(&self) -> Option<Resident> {
        let mut buffer = [0u8; 128];
        let n = self.0.read_at(&mut buffer, 0).ok()?;
        let mut numbers = std::str::from_utf8(&buffer[..n]).ok()?.split_ascii_whitespace();
        let mut next = || numbers.next()?.parse::<u64>().ok();
        let (size, resident, shared) = (next()?, next()?, next()?);
        Some(Resident {
            size_pages: size,
            anon_pages: resident.saturating_sub(shared),
            shared_pages: shared,
        })
    }
}

/// `/proc/loadavg`, kept open because it is read at every tick.
#[derive(Debug)]
pub struct Load(File);

/// What [`Load`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadNow {
    /// Threads that run or want to, in the whole system.
    pub runnable: u32,
    /// The pid assigned last in the keeper's namespace: while it is the same, nothing has forked.
    pub last_pid: u64,
}

impl Load {
    /// Opens it.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/loadavg").map(Load)
    }

    /// Reads it; none if that fails (the caller then looks every time).
    pub fn get(&self) -> Option<LoadNow> {
        let mut buffer = [0u8; 128];
        let n = self.0.read_at(&mut buffer, 0).ok()?;
        let mut fields = std::str::from_utf8(&buffer[..n]).ok()?.split_ascii_whitespace();
        let runnable = fields.nth(3)?.split_once('/')?.0.parse().ok()?;
        Some(LoadNow { runnable, last_pid: fields.next()?.parse().ok()? })
    }
}

/// The threads of a process.
pub fn threads(pid: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A thread of a process that runs or sleeps: as a rule the first, which may have ended before the
/// others.
pub fn living_thread(pid: i32) -> Option<i32> {
    if !is_gone(pid) {
        return Some(pid);
    }
    threads(pid).into_iter().find(|&tid| !is_gone(tid))
}

/// Whether no thread of a process lives any more: the first may have ended before the others.
pub fn has_ended(pid: i32) -> bool {
    living_thread(pid).is_none()
}

/// Where a process's arguments and environment lie: what `/proc/PID/cmdline` and `environ` show.
pub fn arguments_and_environment(pid: i32) -> [Range<u64>; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rfind(')').map_or("", |at| &text[at + 1..]).split_ascii_whitespace();
    // Fields 48 to 51; the iterator starts at field 3.
    let mut numbers = fields.skip(48 - 3).map(|field| field.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    [next()..next(), next()..next()]
}

/// The start of a process's heap, whose end `brk` moves.
pub fn start_of_heap(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    // Field 47; the iterator starts at field 3.
    fields.nth(47 - 3)?.parse().ok().filter(|&start| start > 0)
}

/// The children of a process (of all its threads).
pub fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for tid in threads(pid) {
        if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")) {
            found.extend(text.split_ascii_whitespace().filter_map(|p| p.parse::<i32>().ok()));
        }
    }
    found
}

/// All descendants of a process, children before grandchildren.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut at = 0;
    while at < found.len() {
        let more = children(found[at]);
        found.extend(more);
        at += 1;
    }
    found
}

/// The process of a thread.
pub fn process_of(tid: i32) -> Option<i32> {
    status_field(tid, "Tgid")?.parse().ok()
}

/// The value of a line `Key:\t…` in `/proc/PID/status`.
pub fn status_field(pid: i32, key: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|l| l.strip_prefix(key).is_some_and(|r| r.starts_with(':')))?;
    Some(line[key.len() + 1..].trim().to_owned())
}

/// Signals that wait for a process as a whole, a bit each, the lowest for signal 1.
pub fn pending_signals(pid: i32) -> Option<u64> {
    u64::from_str_radix(&status_field(pid, "ShdPnd")?, 16).ok()
}

/// State letter and parent of a process (`/proc/PID/stat`).
pub fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Resident pages of a process in private mappings of no file, each page divided by the number of
/// processes that share it. None if that cannot be read; 0 for a process that has ended or is
/// exiting.
pub fn anonymous_share(pid: i32) -> Option<u64> {
    let text = match fs::read_to_string(format!("/proc/{pid}/smaps")) {
        Ok(text) => text,
        Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {
            return Some(0);
        }
        Err(_) => return None,
    };
    let (mut counts, mut kib) = (false, 0);
    for line in text.lines() {
        if let Some(share) = line.strip_prefix("Pss:") {
            let share = share.trim().trim_end_matches(" kB");
            kib += if counts { share.parse().unwrap_or(0) } else { 0 };
        } else if let Some(mapping) = parse_mapping(line) {
            counts = mapping.private && (mapping.inode == 0 || mapping.is_zero_device());
        }
    }
    Some(u64::div_ceil(kib, 4))
}

/// The thread that traces a thread, if one does.
pub fn tracer(tid: i32) -> Option<i32> {
    let tracer = status_field(tid, "TracerPid")?.parse().ok()?;
    (tracer != 0).then_some(tracer)
}

/// Whether a process has one thread, which cannot be stopped, such as the parent in a vfork.
pub fn sleeps_for_good(pid: i32) -> bool {
    matches!(state_and_parent(pid), Some(('D', _))) && threads(pid).len() == 1
}

/// The CPU time of a process, user and system, at the resolution of clock ticks.
pub fn processor_time(pid: i32) -> Option<Duration> {
    /// `USER_HZ`: a part of the kernel's interface.
    const TICKS_PER_SECOND: u64 = 100;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut times = text[text.rfind(')')? + 1..].split_ascii_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1000 / TICKS_PER_SECOND))
}

/// The name that a process gave itself.
pub fn name(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|s| s.trim_end().to_owned())
}

/// A thread that has ended but was not reaped has no memory any more.
pub fn is_gone(pid: i32) -> bool {
    state_and_parent(pid).is_none_or(|(state, _)| state == 'Z' || state == 'X')
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

    #[test]
    fn sees_this_process() {
        let me = std::process::id() as i32;
        let heap = start_of_heap(me).expect("a program has a heap");
        // SAFETY: asks where the break is.
        let end = unsafe { libc::sbrk(0) } as u64;
        assert!(heap <= end && end - heap < 1 << 40, "{heap:#x}..{end:#x}");
        let statm = Statm::open(me).and_then(|s| s.read().ok_or(io::ErrorKind::Other.into()));
        assert!(statm.expect("own statm").anon_pages > 0);
        assert!(mappings(me).expect("own maps").iter().any(|m| m.name == "[stack]"));
        assert!(!is_gone(me));
    }
}
