//! `sys::process` over the simulated kernel. There are no limits and no robust mutexes.

use crate::scheduler;
use std::io;

pub fn same_memory(a: i32, b: i32) -> bool {
    let kernel = scheduler::kernel();
    let state = kernel.lock();
    let mm = |tid: i32| state.tasks.get(&tid).map(|task| task.mm);
    mm(a).is_some() && mm(a) == mm(b)
}

pub fn is_limited(_pid: i32) -> bool {
    false
}

pub fn copy_limits(_from: i32, _to: i32, _more: u64) {}

pub fn lift_limits(_pid: i32) {}

pub fn robust_list(_tid: i32) -> Option<u64> {
    None
}

pub fn lock_limit(_tid: i32) -> Option<u64> {
    None
}

/// The keeper's threads touch no program's memory.
pub fn is_own_thread(_tid: i32) -> bool {
    false
}

pub fn exists(tid: i32) -> bool {
    scheduler::kernel().lock().tasks.contains_key(&tid)
}

pub fn read_u64(_pid: i32, _address: u64) -> io::Result<u64> {
    Err(io::Error::from_raw_os_error(libc::EFAULT))
}
