//! What the program writes to its standard output and standard error, held until a check of the
//! log hash has passed (`--hold-output`): nothing that depends on memory that was not verified yet
//! leaves the run by these two.
//!
//! The program writes to pipes. A thread reads them, in the order in which it finds what is there;
//! another writes what was released to where the two led before. If more than [`MOST_BYTES`] are
//! held or on their way, the program waits as it would for a slow reader, and a check is made at
//! once.

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
use std::time::{Duration, Instant};
use zeroize::{Zeroize, Zeroizing};

/// The most that is held before the program has to wait, in bytes.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// The most that is read at once, in bytes: what a pipe has room for.
const CHUNK_BYTES: usize = 64 << 10;
/// What a chunk counts beside its bytes, so that many small ones are bounded too.
const CHUNK_COST_BYTES: usize = 128;
/// How often it is looked whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

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
    /// What all chunks count that were read and not yet written.
    held_bytes: usize,
    /// Nothing is released any more: what is read is given up.
    is_given_up: bool,
    given_up_bytes: u64,
    /// Why something that was released could not be written.
    trouble: Option<String>,
    /// What was read so far, in chunks.
    read: u64,
    /// What was released and not yet written.
    released: VecDeque<Chunk>,
    /// All that was released, by stream: its hash, and its length in bytes. None: not wanted. A
    /// hasher keeps the last KiB that it was given.
    digests: Option<[(blake3::Hasher, u64); 2]>,
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
    pub fn new(is_hashed: bool) -> io::Result<(Arc<Self>, Ends)> {
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
            held_bytes: 0,
            is_given_up: false,
            given_up_bytes: 0,
            trouble: None,
            read: 0,
            released: VecDeque::new(),
            digests: is_hashed.then(|| [0, 1].map(|_: u8| (blake3::Hasher::new(), 0))),
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
            if let Some(digests) = &mut held.digests {
                let (hasher, bytes) = &mut digests[chunk.stream];
                hasher.update(&chunk.bytes);
                *bytes += chunk.bytes.len() as u64;
            }
            held.released.push_back(chunk);
        }
        self.moved.notify_all();
    }

    /// A violation was found and the program goes on: what it has written since the last check that
    /// passed, and what it writes from now on, is given up.
    pub fn give_up(&self) {
        let mut held = self.held.lock();
        held.is_given_up = true;
        held.give_up_waiting();
        self.moved.notify_all();
    }

    /// Why something that was released could not be written. Not that its reader had gone.
    pub fn trouble(&self) -> Option<String> {
        self.held.lock().trouble.clone()
    }

    /// What was released, by stream. None: it was not to be hashed, or a stream cannot be written
    /// to any more.
    pub fn digests(&self) -> Option<[OutputDigest; 2]> {
        let held = self.held.lock();
        let digest = |(hasher, bytes): &(blake3::Hasher, u64)| OutputDigest {
            blake3: Hex(*hasher.finalize().as_bytes()),
            bytes: *bytes,
        };
        held.digests.as_ref().map(|digests| digests.each_ref().map(digest))
    }

    /// Waits until everything that was released is written, or as long as `waits` says, which is
    /// told for how long nothing was; gives up the rest: how many bytes that were.
    pub fn finish(&self, waits: impl Fn(Duration) -> bool) -> u64 {
        let mut held = self.held.lock();
        let (mut left, mut since) = (held.held_bytes, Instant::now());
        while held.is_writing || !held.released.is_empty() {
            self.moved.wait_for(&mut held, LOOK);
            if held.held_bytes != left {
                (left, since) = (held.held_bytes, Instant::now());
            }
            if !waits(since.elapsed()) {
                break;
            }
        }
        held.is_over = true;
        self.moved.notify_all();
        held.give_up_waiting();
        let lost: usize = held.released.iter().map(|chunk| chunk.bytes.len()).sum();
        held.pipes = [None, None];
        held.released.clear();
        held.given_up_bytes + lost as u64
    }

    fn read_all(&self, presses: &impl Fn()) {
        loop {
            let fds = {
                let mut held = self.held.lock();
                if held.held_bytes >= MOST_BYTES {
                    presses();
                }
                while held.held_bytes >= MOST_BYTES && !held.is_over {
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
            held.held_bytes -= chunk.cost_bytes();
            if let Err(error) = written {
                // The program is to notice at its next write, as if it had written itself.
                held.give_up_stream(chunk.stream, &error);
            }
            self.moved.notify_all();
        }
    }
}

impl Chunk {
    fn cost_bytes(&self) -> usize {
        self.bytes.len() + CHUNK_COST_BYTES
    }
}

impl Held {
    fn give_up_waiting(&mut self) {
        for chunk in std::mem::take(&mut self.waiting) {
            self.held_bytes -= chunk.cost_bytes();
            self.given_up_bytes += chunk.bytes.len() as u64;
        }
    }

    /// A stream cannot be written to any more.
    fn give_up_stream(&mut self, stream: usize, error: &io::Error) {
        if error.kind() != ErrorKind::BrokenPipe {
            let name = ["standard output", "standard error"][stream];
            self.trouble.get_or_insert_with(|| format!("{name} could not be written: {error}"));
        }
        self.pipes[stream] = None;
        // What was in the pipe is lost, and what the program goes on to write: the hash would be of
        // a part.
        self.digests = None;
        let (gone, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.released).into_iter().partition(|c| c.stream == stream);
        self.held_bytes -= gone.iter().map(Chunk::cost_bytes).sum::<usize>();
        self.released = kept;
    }

    /// Reads what a pipe has at once. Whether there may be more.
    fn read_from(&mut self, stream: usize) -> bool {
        let Some(pipe) = &mut self.pipes[stream] else { return false };
        let mut bytes = Zeroizing::new([0; CHUNK_BYTES]);
        match pipe.read(&mut bytes[..]) {
            Ok(0) => self.pipes[stream] = None,
            Ok(length) if self.is_given_up => {
                self.given_up_bytes += length as u64;
                return true;
            }
            Ok(length) => {
                let chunk = Chunk { stream, bytes: bytes[..length].to_vec() };
                self.held_bytes += chunk.cost_bytes();
                self.read += 1;
                self.waiting.push_back(chunk);
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
