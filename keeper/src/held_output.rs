//! What the program writes to its standard output and standard error, held until a check of the
//! log hash has passed (`--hold-output`): nothing that depends on memory that was not verified yet
//! leaves the run by these two.
//!
//! The program writes to pipes. A thread reads them, in the order in which it finds what is there;
//! another writes what was released to where the two led before. If more than [`MOST_BYTES`] are
//! held, the program waits as it would for a slow reader, and a check is made at once.

use crate::front::pipe;
use crate::lock::Hex;
use crate::outcome::OutputDigest;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use zeroize::Zeroize;

/// The most that is held before the program has to wait, in bytes.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// The most that is read at once, in bytes: what a pipe has room for.
const CHUNK_BYTES: usize = 64 << 10;

/// The two streams, by their descriptors' numbers.
const STREAMS: [i32; 2] = [1, 2];

/// The ends of pipes that become the program's standard output and standard error.
pub(crate) struct Ends([OwnedFd; 2]);

/// Output that is held.
pub(crate) struct HeldOutput {
    held: Mutex<Held>,
    /// Told when something was released, or was written.
    moved: Condvar,
}

struct Held {
    /// What the program writes to, by stream; none once it is closed.
    pipes: [Option<File>; 2],
    /// What was read and not yet released, in order.
    waiting: VecDeque<Chunk>,
    waiting_bytes: usize,
    /// What was read so far, in chunks.
    read: u64,
    /// What was released and not yet written.
    released: VecDeque<Chunk>,
    /// All that was released, by stream: its hash, and its length in bytes.
    digests: [(blake3::Hasher, u64); 2],
    /// A chunk is being written.
    is_writing: bool,
    /// Nothing is released any more.
    is_over: bool,
}

struct Chunk {
    stream: usize,
    bytes: Vec<u8>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

/// Everything that was read up to some moment.
#[derive(Clone, Copy)]
pub(crate) struct Mark(u64);

impl Ends {
    /// Makes them the standard output and standard error of this process. Called between fork and
    /// exec: system calls only.
    pub fn take(&self) -> io::Result<()> {
        for (end, stream) in self.0.iter().zip(STREAMS) {
            // SAFETY: both are open descriptors, or the call fails.
            if unsafe { libc::dup2(end.as_raw_fd(), stream) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

impl HeldOutput {
    /// Pipes for a program, and what holds what it writes to them. The ends must be dropped once
    /// the program has them. If both streams lead to one place, they share one pipe, so that what
    /// is written to them stays in order.
    pub fn new() -> io::Result<(Arc<Self>, Ends)> {
        let (first_in, first_out) = pipe()?;
        let (second_in, second_out) = match same_place()? {
            true => (None, first_out.try_clone()?),
            false => pipe().map(|(read, write)| (Some(read), write))?,
        };
        let pipes = [Some(first_in), second_in];
        for end in pipes.iter().flatten() {
            set_nonblocking(end)?;
        }
        let held = Held {
            pipes: pipes.map(|end| end.map(File::from)),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            read: 0,
            released: VecDeque::new(),
            digests: [0, 1].map(|_: u8| (blake3::Hasher::new(), 0)),
            is_writing: false,
            is_over: false,
        };
        let output = HeldOutput { held: Mutex::new(held), moved: Condvar::new() };
        Ok((Arc::new(output), Ends([first_out, second_out])))
    }

    /// Starts the thread that reads and the one that writes. `presses` is called when a check is
    /// wanted at once.
    pub fn start(self: &Arc<Self>, presses: impl Fn() + Send + 'static) -> io::Result<()> {
        let (reads, writes) = (Arc::clone(self), Arc::clone(self));
        let spawn = |name: &str| std::thread::Builder::new().name(name.to_owned());
        spawn("held-output").spawn(move || reads.read_all(&presses))?;
        spawn("output").spawn(move || writes.write_all())?;
        Ok(())
    }

    /// Whether anything is held.
    pub fn holds_any(&self) -> bool {
        let held = self.held.lock();
        held.is_writing || !(held.waiting.is_empty() && held.released.is_empty())
    }

    /// Everything that was read so far.
    pub fn mark(&self) -> Mark {
        Mark(self.held.lock().read)
    }

    /// Everything that the program has written so far, when it has ended.
    pub fn mark_all(&self) -> Mark {
        let mut held = self.held.lock();
        for stream in 0..STREAMS.len() {
            while held.read_from(stream) {}
        }
        Mark(held.read)
    }

    /// A check has passed that began after `mark`: what was read before may be written.
    pub fn release(&self, mark: Mark) {
        let mut held = self.held.lock();
        let stay = usize::try_from(held.read - mark.0).unwrap_or(usize::MAX);
        while held.waiting.len() > stay
            && let Some(chunk) = held.waiting.pop_front()
        {
            held.waiting_bytes -= chunk.bytes.len();
            let (hasher, bytes) = &mut held.digests[chunk.stream];
            hasher.update(&chunk.bytes);
            *bytes += chunk.bytes.len() as u64;
            held.released.push_back(chunk);
        }
        self.moved.notify_all();
    }

    /// What was released, by stream.
    pub fn digests(&self) -> [OutputDigest; 2] {
        let held = self.held.lock();
        [0, 1].map(|stream: usize| {
            let (hasher, bytes) = &held.digests[stream];
            OutputDigest { blake3: Hex(*hasher.finalize().as_bytes()), bytes: *bytes }
        })
    }

    /// Waits until everything that was released is written, and gives up the rest: how many bytes
    /// that were.
    pub fn finish(&self) -> u64 {
        let mut held = self.held.lock();
        while held.is_writing || !held.released.is_empty() {
            self.moved.wait(&mut held);
        }
        held.is_over = true;
        self.moved.notify_all();
        let given_up = held.waiting_bytes as u64;
        (held.waiting_bytes, held.pipes) = (0, [None, None]);
        held.waiting.clear();
        given_up
    }

    fn read_all(&self, presses: &impl Fn()) {
        loop {
            let fds = {
                let mut held = self.held.lock();
                if held.waiting_bytes >= MOST_BYTES {
                    presses();
                }
                while held.waiting_bytes >= MOST_BYTES && !held.is_over {
                    self.moved.wait(&mut held);
                }
                if held.is_over || held.pipes.iter().all(Option::is_none) {
                    return;
                }
                [0, 1].map(|at| held.pipes[at].as_ref().map_or(-1, AsRawFd::as_raw_fd))
            };
            let mut fds = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
            // A pipe that is closed meanwhile is not read: `read_from` looks again, under the lock.
            // SAFETY: the array is live for the call and its length is passed.
            unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, 1000) };
            let mut held = self.held.lock();
            for (stream, fd) in fds.iter().enumerate() {
                if fd.revents != 0 {
                    held.read_from(stream);
                }
            }
        }
    }

    fn write_all(&self) {
        loop {
            let chunk = {
                let mut held = self.held.lock();
                while held.released.is_empty() && !held.is_over {
                    self.moved.wait(&mut held);
                }
                let Some(chunk) = held.released.pop_front() else { return };
                held.is_writing = true;
                chunk
            };
            let written = write(STREAMS[chunk.stream], &chunk.bytes);
            let mut held = self.held.lock();
            held.is_writing = false;
            if written.is_err() {
                // Whoever read it has gone: the program is to notice at its next write.
                held.pipes[chunk.stream] = None;
                held.released.retain(|other| other.stream != chunk.stream);
            }
            self.moved.notify_all();
        }
    }
}

impl Held {
    /// Reads what a pipe has at once. Whether there may be more.
    fn read_from(&mut self, stream: usize) -> bool {
        let Some(pipe) = &mut self.pipes[stream] else { return false };
        let mut bytes = vec![0; CHUNK_BYTES];
        match pipe.read(&mut bytes) {
            Ok(0) => self.pipes[stream] = None,
            Ok(length) => {
                bytes.truncate(length);
                self.waiting_bytes += length;
                self.read += 1;
                self.waiting.push_back(Chunk { stream, bytes });
                return true;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.pipes[stream] = None,
        }
        false
    }
}

/// Writes to one of this process's own streams, which may be set not to block.
fn write(stream: i32, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor is not closed here, since the file is never dropped.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(stream) });
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fd = libc::pollfd { fd: stream, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one live block is passed.
                unsafe { libc::poll(&raw mut fd, 1, -1) };
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether standard output and standard error lead to one file, pipe or terminal.
fn same_place() -> io::Result<bool> {
    let place = |stream: i32| {
        // SAFETY: the block is valid for any contents, and the kernel fills it.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the block is live for the call.
        match unsafe { libc::fstat(stream, &raw mut stat) } {
            0 => Ok((stat.st_dev, stat.st_ino, stat.st_rdev)),
            _ => Err(io::Error::last_os_error()),
        }
    };
    Ok(place(STREAMS[0])? == place(STREAMS[1])?)
}

fn set_nonblocking(end: &OwnedFd) -> io::Result<()> {
    // SAFETY: changes flags of a descriptor that is open.
    let done = unsafe {
        let flags = libc::fcntl(end.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(end.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
