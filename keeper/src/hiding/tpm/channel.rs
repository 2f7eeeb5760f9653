//! The bytes between this process and a TPM: a command goes, a response comes.
//!
//! They are not wiped: what is secret in them is encrypted by the session.

use super::error::{TpmError, is_transient};
use super::wire::{self, Command, HEADER_BYTES};
use crate::sys::poll::readable;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A TPM that makes a key takes seconds. The kernel itself gives up after minutes.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Between attempts while the TPM is busy.
const PAUSE: Duration = Duration::from_millis(20);
/// The largest response that the kernel passes on.
const MOST_BYTES: usize = 4096;

/// A connection with a TPM.
pub struct Channel {
    file: File,
    time_limit: Duration,
    /// An exchange has not ended, so that responses would be taken for those of other commands.
    is_given_up: bool,
}

impl Channel {
    /// Opens a TPM's character device, or the socket of a simulated one.
    pub fn open(path: &Path) -> io::Result<Self> {
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_socket() {
            let stream = UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            return Ok(Self::new(OwnedFd::from(stream).into()));
        }
        if kind.is_char_device() {
            // Else a write returns only when the response is there, however long that takes.
            let options = libc::O_NONBLOCK;
            let file =
                OpenOptions::new().read(true).write(true).custom_flags(options).open(path)?;
            return Ok(Self::new(file));
        }
        let why = "a TPM is a character device or a socket, and this is neither";
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// Over a file that does not block.
    pub fn new(file: File) -> Self {
        Self { file, time_limit: TIME_LIMIT, is_given_up: false }
    }

    /// With another time limit.
    #[cfg(test)]
    pub fn with_time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    /// Does a command, with the area of its authorisation if it needs one: the whole response.
    pub fn exchange(
        &mut self,
        command: &Command<'_>,
        authorisation: Option<&[u8]>,
    ) -> Result<Vec<u8>, TpmError> {
        if self.is_given_up {
            return Err(TpmError::GivenUp);
        }
        let bytes = command.bytes(authorisation);
        let until = Instant::now() + self.time_limit;
        self.is_given_up = true;
        let response = loop {
            self.send(&bytes)?;
            let response = self.receive(until)?;
            let code = wire::response_code(command.code, &response)?;
            if !is_transient(code) || Instant::now() + PAUSE >= until {
                break response;
            }
            thread::sleep(PAUSE);
        };
        self.is_given_up = false;
        Ok(response)
    }

    /// A command is taken at once and as a whole: by the device always, and by a socket since
    /// nothing else is under way.
    fn send(&mut self, bytes: &[u8]) -> Result<(), TpmError> {
        loop {
            return match self.file.write(bytes) {
                Ok(written) if written == bytes.len() => Ok(()),
                Ok(_) => Err(TpmError::Closed),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(TpmError::Closed),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// A response as its header tells its size, and not a byte more.
    fn receive(&mut self, until: Instant) -> Result<Vec<u8>, TpmError> {
        let mut bytes = vec![0; MOST_BYTES];
        let mut filled = 0;
        loop {
            // The device gives a response to one read; a rest would be lost.
            filled += self.read(&mut bytes[filled..], until)?;
            let size = match bytes[..filled].first_chunk::<HEADER_BYTES>() {
                Some(header) => wire::told_size(*header),
                None => MOST_BYTES,
            };
            let is_possible = (HEADER_BYTES..=MOST_BYTES).contains(&size) && filled <= size;
            if filled == size || !is_possible {
                // If the size is wrong, who takes the response apart says so.
                bytes.truncate(filled);
                return Ok(bytes);
            }
        }
    }

    fn read(&mut self, room: &mut [u8], until: Instant) -> Result<usize, TpmError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TpmError::NoAnswer(self.time_limit));
            }
            let (can_read, is_closed) = readable(&self.file, Some(left));
            if !can_read && !is_closed {
                continue;
            }
            match self.file.read(room) {
                Ok(0) => return Err(TpmError::Closed),
                Ok(bytes) => return Ok(bytes),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
                    io::ErrorKind::ConnectionReset => return Err(TpmError::Closed),
                    _ => return Err(error.into()),
                },
            }
        }
    }
}
