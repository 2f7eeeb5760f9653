//! `sys::procfs` over the simulated kernel.

use crate::kernel::{PAGE, Task};
use crate::scheduler;
use std::io;
use std::ops::Range;

/// Some of it is read by unit tests of the pager's only.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(dead_code)]
pub struct Mapping {
    pub range: Range<u64>,
    pub read: bool,
    pub write: bool,
    pub exec: bool,
    pub private: bool,
    pub offset: u64,
    pub device: (u32, u32),
    pub inode: u64,
    pub name: String,
}

impl Mapping {
    /// Whether it is of no file.
    pub fn is_protectable(&self) -> bool {
        self.inode == 0
    }

    pub fn is_zero_device(&self) -> bool {
        false
    }

    pub fn is_of_file_of(&self, other: &Mapping) -> bool {
        self.inode == other.inode
    }

    /// None of those here is replaced.
    pub fn is_data_of_file(&self) -> bool {
        false
    }
}

/// Nor are there file systems.
pub struct Mounts;

impl Mounts {
    pub fn of(_pid: i32) -> Self {
        Mounts
    }
}

/// There are none here.
#[derive(Debug, Clone)]
pub struct ZeroDevice {
    pub mapping: Mapping,
    pub is_unreserved: bool,
    pub is_unforked: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Advised {
    pub unforked: Vec<Range<u64>>,
    pub mergeable: Vec<Range<u64>>,
    pub freed: Vec<Range<u64>>,
    pub freed_unwritable: Vec<Range<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurrentCall {
    Gone,
    Unknown,
    Outside,
    In { number: i64, first: u64 },
}

fn task(tid: i32) -> Option<Task> {
    scheduler::kernel().lock().tasks.get(&tid).cloned()
}

fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

/// The mappings of a process, as (range in bytes, mapping).
fn all(pid: i32) -> io::Result<Vec<(Range<u64>, crate::kernel::Mapping)>> {
    scheduler::point();
    let mm = task(pid).ok_or_else(gone)?.mm;
    let kernel = scheduler::kernel();
    let mut state = kernel.lock();
    let mappings = state.mm(mm).mappings.iter();
    Ok(mappings.map(|(start, m)| (start * PAGE..m.end * PAGE, m.clone())).collect())
}

pub fn mappings(pid: i32) -> io::Result<Vec<Mapping>> {
    let found = all(pid)?.into_iter().map(|(range, m)| {
        let (read, write, exec) = (m.rights.read, m.rights.write, m.rights.exec);
        let inode = u64::from(m.of_file);
        let (device, name) = ((0, 0), String::new());
        Mapping { range, read, write, exec, private: true, offset: 0, device, inode, name }
    });
    Ok(found.collect())
}

pub fn locked_ranges(_pid: i32) -> io::Result<Vec<Range<u64>>> {
    Ok(Vec::new())
}

pub fn advised_ranges(pid: i32) -> io::Result<Advised> {
    let lost = all(pid)?.into_iter().filter(|(_, m)| m.not_forked || m.wiped_on_fork);
    Ok(Advised {
        unforked: lost.map(|(range, _)| range).collect(),
        mergeable: Vec::new(),
        freed: Vec::new(),
        freed_unwritable: Vec::new(),
    })
}

pub fn is_ending(_pid: i32, _tid: i32) -> bool {
    false
}

pub fn replaceable_zero_devices(_pid: i32) -> io::Result<Vec<ZeroDevice>> {
    Ok(Vec::new())
}

pub fn plain_data_of_files(_pid: i32) -> io::Result<Vec<Mapping>> {
    Ok(Vec::new())
}

pub fn has_lease(_mapping: &Mapping) -> bool {
    false
}

pub fn may_pin(_pid: i32, _mappings: &[Mapping]) -> bool {
    false
}

pub fn is_zero_device(_tid: i32, _fd: i32) -> bool {
    false
}

pub fn current_call(tid: i32) -> CurrentCall {
    scheduler::point();
    match task(tid) {
        None => CurrentCall::Gone,
        // It runs, as it may while its fault is under way.
        Some(_) if scheduler::random(3) == 0 => CurrentCall::Unknown,
        Some(task) => match task.call {
            None => CurrentCall::Outside,
            Some(number) => CurrentCall::In { number, first: 0 },
        },
    }
}

pub fn may_wait_for_a_program(_pid: i32, _address: u64) -> bool {
    false
}

pub fn stack_pointer(_tid: i32) -> Option<u64> {
    None
}

pub fn threads(pid: i32) -> Vec<i32> {
    scheduler::point();
    scheduler::kernel().lock().threads_of(pid)
}

/// As there, the number of any thread will do.
pub fn living_thread(pid: i32) -> Option<i32> {
    threads(process_of(pid)?).first().copied()
}

pub fn arguments_and_environment(_pid: i32) -> [Range<u64>; 2] {
    [0..0, 0..0]
}

pub fn tracer(_tid: i32) -> Option<i32> {
    None
}

pub fn sleeps_for_good(_pid: i32) -> bool {
    false
}

pub fn executable(_pid: i32) -> io::Result<std::path::PathBuf> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

pub fn start_of_heap(_pid: i32) -> Option<u64> {
    None
}

pub fn process_of(tid: i32) -> Option<i32> {
    task(tid).map(|task| task.pid)
}

pub fn status_field(_pid: i32, _key: &str) -> Option<String> {
    Some("0 kB".to_owned())
}

pub fn state_and_parent(tid: i32) -> Option<(char, i32)> {
    task(tid).map(|_| ('S', 1))
}

pub fn has_ended(pid: i32) -> bool {
    threads(pid).is_empty()
}

pub fn is_gone(tid: i32) -> bool {
    task(tid).is_none()
}

pub fn status_bytes(_pid: i32, _key: &str) -> Option<u64> {
    None
}

pub fn says_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}
