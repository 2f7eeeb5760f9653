//! `/proc`: mappings, resident sizes and family trees of the protected processes.

#[cfg(test)]
pub(crate) mod leaderless;
mod mappings;
mod pins;
mod share;

use super::capabilities::open_closed;
use super::shortage::told;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use mappings::{
    Advised, Described, Mapping, Mounts, ZeroDevice, advised_ranges, described, has_userfault,
    locked_ranges, mappings, may_wait_for_a_program, plain_data_of_files, replaceable_zero_devices,
};
pub use pins::may_pin;
pub use share::{AnonymousShare, shared_anonymous_pages};

/// The text of a file of `/proc`. Names in it (of processes, of files) are bytes of any kind, also
/// a name in UTF-8 that the kernel has cut: what is no text is replaced, so that no process can
/// hide by its name.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    let bytes = told(path.display(), open(path).and_then(|file| whole(&file)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file of `/proc`, to be read.
pub(super) fn open(path: &Path) -> io::Result<File> {
    open_closed(|| File::open(path))
}

/// What a descriptor of a thread is open on.
pub(crate) fn descriptor(tid: i32, fd: i32) -> io::Result<fs::Metadata> {
    open_closed(|| fs::metadata(format!("/proc/{tid}/fd/{fd}")))
}

/// Where a link of `/proc` leads.
pub(crate) fn link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    told(path.display(), open_closed(|| fs::read_link(path)))
}

/// The numbers that name what is in a folder of `/proc`: processes, threads, descriptors.
pub(crate) fn numbers(path: impl AsRef<Path>) -> io::Result<Vec<i32>> {
    let path = path.as_ref();
    let mut found = Vec::new();
    for entry in told(path.display(), open_closed(|| fs::read_dir(path)))? {
        let entry = told(path.display(), entry)?;
        found.extend(entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

/// Whether an error says that a process, or a thread, has ended. Every other one leaves that open.
pub fn says_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// What is left of a file of `/proc`. These have no sizes, so that the standard library would ask
/// for one, and read 32 bytes first, then as many again: eight calls for a process's `stat`, which
/// the watcher reads for every process.
fn whole(mut file: &fs::File) -> io::Result<Vec<u8>> {
    // The kernel gives no more than a page at a time.
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The file that a process executes, as the kernel names it: ` (deleted)` follows the path of one
/// that was removed.
pub fn executable(pid: i32) -> io::Result<PathBuf> {
    link(format!("/proc/{pid}/exe"))
}

/// Whether a descriptor of a thread is `/dev/zero`, whose private mappings are anonymous memory.
pub fn is_zero_device(tid: i32, fd: i32) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    const ZERO: u64 = 1 << 8 | 5;
    descriptor(tid, fd)
        .is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == ZERO)
}

/// Whether some process has a lease on the file of a mapping, which another's opening of it breaks.
/// Also true where that cannot be told.
pub fn has_lease(mapping: &Mapping) -> bool {
    let (major, minor) = mapping.device;
    let file = format!(" {major:02x}:{minor:02x}:{} ", mapping.inode);
    let is_its = |line: &str| line.contains(" LEASE ") && line.contains(&file);
    text("/proc/locks").map_or(true, |locks| locks.lines().any(is_its))
}

/// Whether a thread is exiting and still has its memory.
pub fn is_ending(pid: i32, tid: i32) -> bool {
    const PF_EXITING: u64 = 1 << 2;
    let text = text(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let field = |n| fields.split(' ').nth(n).and_then(|field| field.parse::<u64>().ok());
    let (flags, memory_bytes) = (field(6), field(20));
    flags.is_some_and(|flags| flags & PF_EXITING != 0)
        && memory_bytes.is_some_and(|bytes| bytes > 0)
}

/// The system call that a thread is in, as far as it can be read.
pub fn current_call(tid: i32) -> CurrentCall {
    let text = match text(format!("/proc/{tid}/syscall")) {
        Ok(text) => text,
        Err(error) if says_ended(&error) => return CurrentCall::Gone,
        Err(_) => return CurrentCall::Unknown,
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

/// The stack pointer of a thread that is blocked.
pub fn stack_pointer(tid: i32) -> Option<u64> {
    let text = text(format!("/proc/{tid}/syscall")).ok()?;
    // The last but one; a thread that runs has one word only.
    let word = text.split_ascii_whitespace().rev().nth(1)?;
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// What [`current_call`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurrentCall {
    /// The thread has ended.
    Gone,
    /// The thread is running, in a call or outside; or it cannot be told.
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

/// A file of `/proc`, kept open because it is read at every tick.
#[derive(Debug)]
pub(super) struct KeptOpen(File);

impl KeptOpen {
    pub fn open(path: &str) -> io::Result<Self> {
        open(Path::new(path)).map(KeptOpen)
    }

    /// What `of` makes of its text, of which 1 KiB is read; none when there is none any more.
    pub fn read<T>(&self, of: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let mut buffer = [0u8; 1024];
        let n = self.0.read_at(&mut buffer, 0).ok()?;
        of(std::str::from_utf8(&buffer[..n]).ok()?)
    }
}

/// `/proc/PID/statm`.
#[derive(Debug)]
pub struct Statm(KeptOpen);

impl Statm {
    /// Opens it, of a process or of one of its threads.
    pub fn open(pid: i32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/statm");
        told(&path, KeptOpen::open(&path)).map(Statm)
    }

    /// Of a thread of process `pid` that has memory, with that thread and its sizes now: as a rule
    /// the first, which may have ended before the others. None if no thread has any.
    pub fn of_process(pid: i32) -> Option<(i32, Statm, Resident)> {
        let of_thread = |tid: i32| {
            let statm = Statm::open(tid).ok()?;
            let resident = statm.read().filter(|resident| resident.size_pages > 0)?;
            Some((tid, statm, resident))
        };
        of_thread(pid).or_else(|| threads(pid).into_iter().find_map(of_thread))
    }

    /// Reads it; none when the process is gone.
    pub fn read(&self) -> Option<Resident> {
        self.0.read(|text| {
            let mut numbers = text.split_ascii_whitespace();
            let mut next = || numbers.next()?.parse::<u64>().ok();
            let (size, resident, shared) = (next()?, next()?, next()?);
            Some(Resident {
                size_pages: size,
                anon_pages: resident.saturating_sub(shared),
                shared_pages: shared,
            })
        })
    }
}

/// Why the kernel does not show the sizes of a process; none if it does, or the process is gone.
pub fn refused_sizes(pid: i32) -> Option<io::Error> {
    text(format!("/proc/{pid}/statm")).err().filter(|error| !says_ended(error))
}

/// `/proc/loadavg`.
#[derive(Debug)]
pub struct Load(KeptOpen);

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
        KeptOpen::open("/proc/loadavg").map(Load)
    }

    /// Reads it; none if that fails (the caller then looks every time).
    pub fn get(&self) -> Option<LoadNow> {
        self.0.read(|text| {
            let mut fields = text.split_ascii_whitespace();
            let runnable = fields.nth(3)?.split_once('/')?.0.parse().ok()?;
            Some(LoadNow { runnable, last_pid: fields.next()?.parse().ok()? })
        })
    }
}

/// The threads of a process.
pub fn threads(pid: i32) -> Vec<i32> {
    numbers(format!("/proc/{pid}/task")).unwrap_or_default()
}

/// A thread of a process that has its memory: as a rule the first, which may have ended before the
/// others. What `/proc` and `kcmp` say of a process's number is what they say of its first thread,
/// and of one that has ended that it has no memory and no descriptors.
pub fn living_thread(pid: i32) -> Option<i32> {
    Statm::of_process(pid).map(|(tid, ..)| tid)
}

/// Whether no thread of a process lives any more: the first may have ended before the others.
pub fn has_ended(pid: i32) -> bool {
    is_gone(pid) && threads(pid).into_iter().all(is_gone)
}

/// Where a process's arguments and environment lie: what `/proc/PID/cmdline` and `environ` show.
pub fn arguments_and_environment(pid: i32) -> [Range<u64>; 2] {
    let text = text(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rfind(')').map_or("", |at| &text[at + 1..]).split_ascii_whitespace();
    // Fields 48 to 51; the iterator starts at field 3.
    let mut numbers = fields.skip(48 - 3).map(|field| field.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    [next()..next(), next()..next()]
}

/// The start of a process's heap, whose end `brk` moves.
pub fn start_of_heap(pid: i32) -> Option<u64> {
    let text = text(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    // Field 47; the iterator starts at field 3.
    fields.nth(47 - 3)?.parse().ok().filter(|&start| start > 0)
}

/// All processes of the machine. One that lives throughout is among them, whichever its parent is.
pub fn processes() -> Vec<i32> {
    numbers("/proc").unwrap_or_default()
}

/// The children of a process (of all its threads); none if it has ended.
pub fn children(pid: i32) -> Vec<i32> {
    children_of(pid).unwrap_or_default()
}

/// The same, of a process that lives.
fn children_of(pid: i32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for tid in numbers(format!("/proc/{pid}/task"))? {
        match text(format!("/proc/{pid}/task/{tid}/children")) {
            Ok(text) => {
                found.extend(text.split_ascii_whitespace().filter_map(|p| p.parse::<i32>().ok()))
            }
            // The thread has; its children are another's by then.
            Err(error) if says_ended(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// All descendants of a process, children before grandchildren.
pub fn descendants(pid: i32) -> Vec<i32> {
    descendants_but(pid, &[])
}

/// The same without some processes and all that descend from those.
pub fn descendants_but(pid: i32, but: &[i32]) -> Vec<i32> {
    let children = |pid| children(pid).into_iter().filter(|child| !but.contains(child));
    let mut found: Vec<i32> = children(pid).collect();
    let mut at = 0;
    while at < found.len() {
        let more = children(found[at]);
        found.extend(more);
        at += 1;
    }
    found
}

/// The children of this process that live, or have ended just now. If there are none, none of its
/// descendants lives, as long as it is a subreaper and only the calling thread reaps.
///
/// Whatever lives has an ancestor among them. One whose parent ends becomes a child of this process
/// before the parent counts as ended: so it is in a list that is read after that.
///
/// # Errors
/// If the lists cannot be read: whether anything lives is not known then.
pub fn living_branches() -> io::Result<Vec<i32>> {
    let own = std::process::id() as i32;
    let ended: Vec<i32> = children_of(own)?.into_iter().filter(|&pid| has_ended(pid)).collect();
    Ok(children_of(own)?.into_iter().filter(|pid| !ended.contains(pid)).collect())
}

/// The process of a thread.
pub fn process_of(tid: i32) -> Option<i32> {
    status_field(tid, "Tgid")?.parse().ok()
}

/// The value of a line `Key:\t…` in `/proc/PID/status`.
pub fn status_field(pid: i32, key: &str) -> Option<String> {
    let text = text(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|l| l.strip_prefix(key).is_some_and(|r| r.starts_with(':')))?;
    Some(line[key.len() + 1..].trim().to_owned())
}

/// The same of a size: in bytes.
pub fn status_bytes(pid: i32, key: &str) -> Option<u64> {
    Some(status_field(pid, key)?.strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// A soft limit of a process, by its name in `/proc/PID/limits`.
pub fn soft_limit(pid: i32, name: &str) -> Option<u64> {
    let text = text(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(libc::RLIM64_INFINITY),
        number => number.parse().ok(),
    }
}

/// Signals that wait for a process as a whole, a bit each, the lowest for signal 1.
pub fn pending_signals(pid: i32) -> Option<u64> {
    u64::from_str_radix(&status_field(pid, "ShdPnd")?, 16).ok()
}

/// State letter and parent of a process (`/proc/PID/stat`).
pub fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    state_and_parent_in(&text(format!("/proc/{pid}/stat")).ok()?)
}

fn state_and_parent_in(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// A number of `kB`.
fn kib_of(text: &str) -> Option<u64> {
    text.trim().trim_end_matches(" kB").parse().ok()
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

/// Whether a thread of a process runs, or waits for a processor.
pub fn runs(pid: i32) -> bool {
    threads(pid).into_iter().any(|tid| matches!(state_and_parent(tid), Some(('R', _))))
}

/// The name that a process gave itself.
pub fn name(pid: i32) -> Option<String> {
    text(format!("/proc/{pid}/comm")).ok().map(|s| s.trim_end().to_owned())
}

/// The name that a process gave itself, and when it was started, in clock ticks since boot.
pub fn name_and_start(pid: i32) -> Option<(String, u64)> {
    let text = text(format!("/proc/{pid}/stat")).ok()?;
    let (name, end) = (text.find('(')?, text.rfind(')')?);
    // The state is the third field, the start the twenty-second.
    let start = text[end + 1..].split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some((text.get(name + 1..end)?.to_owned(), start))
}

/// A name as a message may have it: a program chooses it, and may put a terminal's commands there.
pub fn printable(name: &str) -> String {
    let keep = |c: char| matches!(c, '\\' | '\'' | '"');
    let mut text = String::new();
    for c in name.chars() {
        if keep(c) { text.push(c) } else { text.extend(c.escape_debug()) }
    }
    text
}

/// Whether a thread has ended, be it that it was not reaped yet. (Its memory it gives back before.)
pub fn is_gone(tid: i32) -> bool {
    match text(format!("/proc/{tid}/stat")) {
        Ok(text) => state_and_parent_in(&text).is_some_and(|(state, _)| matches!(state, 'Z' | 'X')),
        Err(error) => says_ended(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::leaderless::Leaderless;
    use super::*;

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

    #[test]
    fn a_name_cannot_command_a_terminal() {
        let name = "/tmp/a\u{1b}[2Jb\u{202e}c\u{9b}d \\012 \u{e9}";
        assert_eq!(printable(name), "/tmp/a\\u{1b}[2Jb\\u{202e}c\\u{9b}d \\012 \u{e9}");
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_asked_by_another() {
        let leaderless = Leaderless::begin();
        let (pid, thread) = (leaderless.pid, leaderless.thread);
        assert!(is_gone(pid) && !has_ended(pid) && pid != thread);
        assert_eq!(living_thread(pid), Some(thread));
        let (asked, _, resident) = Statm::of_process(pid).expect("it has memory");
        assert_eq!(asked, thread);
        assert!(resident.anon_pages > 0);
    }
}
