//! io_uring: many reads or writes in one system call, overlapping on the disk.

use std::io;
use std::os::fd::RawFd;

use crate::sys::mutex::Mutex;
use io_uring::{IoUring, opcode, squeue, types::Fd};

use super::backend::{Run, Source, Target};
use crate::sys::sched;

/// Operations in flight on one ring.
const DEPTH: u32 = 64;
/// Rings that are kept for later.
const KEPT: usize = 16;

/// A ring for each thread that needs one at the same time.
pub(super) struct Rings {
    idle: Mutex<Vec<IoUring>>,
}

impl Rings {
    /// Fails where io_uring is not permitted, as in most containers.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { idle: Mutex::new(vec![IoUring::new(DEPTH)?]) })
    }

    /// Writes all runs.
    pub(super) fn write(
        &self,
        fd: RawFd,
        runs: &[Run<'_, Source<'_>>],
        done: &mut Vec<io::Result<usize>>,
    ) {
        let entries = runs.iter().map(|run| {
            let (vectors, count) = run.vectors();
            opcode::Writev::new(Fd(fd), vectors, count).offset(run.offset).build()
        });
        // SAFETY: vectors and pages are borrowed by `runs`, which outlives the call.
        unsafe { self.transfer(entries, runs.len(), done) };
    }

    /// Reads all runs.
    pub(super) fn read(
        &self,
        fd: RawFd,
        runs: &mut [Run<'_, Target<'_>>],
        done: &mut Vec<io::Result<usize>>,
    ) {
        let entries = runs.iter().map(|run| {
            let (vectors, count) = run.vectors();
            opcode::Readv::new(Fd(fd), vectors, count).offset(run.offset).build()
        });
        // SAFETY: vectors and pages are borrowed exclusively by `runs`, which outlives the call.
        unsafe { self.transfer(entries, runs.len(), done) };
    }

    /// Submits the entries and waits for all of them.
    ///
    /// # Safety
    /// What the entries point at must stay valid, and for reads be exclusively ours, until return.
    unsafe fn transfer(
        &self,
        entries: impl Iterator<Item = squeue::Entry>,
        count: usize,
        done: &mut Vec<io::Result<usize>>,
    ) {
        let first = done.len();
        // What is not completed below was not done.
        done.resize_with(first + count, || Ok(0));
        let idle = self.idle.lock().pop();
        let mut ring = match idle.map_or_else(|| IoUring::new(DEPTH), Ok) {
            Ok(ring) => ring,
            Err(e) => {
                let code = e.raw_os_error().unwrap_or(libc::EIO);
                done[first..].fill_with(|| Err(io::Error::from_raw_os_error(code)));
                return;
            }
        };
        let mut entries = entries.zip(first..).peekable();
        let mut in_flight = 0;
        while in_flight > 0 || entries.peek().is_some() {
            while in_flight < DEPTH as usize
                && let Some((entry, number)) = entries.next()
            {
                let entry = entry.user_data(number as u64);
                // SAFETY: what the entry points at is valid until we return, by our contract, and
                // we return only when nothing is in flight.
                if unsafe { ring.submission().push(&entry) }.is_err() {
                    // Cannot be: at most DEPTH are in flight, and the queue holds as many.
                    done[number] = Err(io::ErrorKind::ResourceBusy.into());
                    continue;
                }
                in_flight += 1;
            }
            wait(&mut ring, in_flight);
            for completion in ring.completion() {
                in_flight -= 1;
                let outcome = completion.result();
                if let Some(place) = done.get_mut(completion.user_data() as usize) {
                    *place = usize::try_from(outcome)
                        .map_err(|_| io::Error::from_raw_os_error(-outcome));
                }
            }
        }
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(ring);
        }
    }
}

/// Submits what is queued and waits for at least one completion, if anything is in flight.
///
/// Never gives up: the kernel owns the buffers until it has completed. The errors that
/// io_uring_enter gives for a valid ring (interrupted, out of request memory, completion queue
/// full) all pass.
fn wait(ring: &mut IoUring, in_flight: usize) {
    if in_flight == 0 {
        return;
    }
    if ring.submit_and_wait(1).is_err() && ring.completion().is_empty() {
        sched::give_way();
    }
}
