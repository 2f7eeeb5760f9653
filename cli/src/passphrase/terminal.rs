//! A passphrase from the terminal, without echo.
//!
//! The terminal makes no signals of keys meanwhile: Ctrl-C is read like any other key, so that the
//! terminal is as before when this process ends by it.

use std::fs::{File, OpenOptions};
use std::io::Write;

use anyhow::{Context, Result};
use rustix::io::{Errno, read};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeroize::{Zeroize, Zeroizing};

use super::hide::Hidden;
use super::{MOST_BYTES, Passphrase, accepted};
use crate::failure::Failure;

const PATH: &str = "/dev/tty";
const INTERRUPT: u8 = 0x03;
const END_OF_FILE: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const TAB: u8 = b'\t';
const KILL_LINE: u8 = 0x15;
const QUIT: u8 = 0x1c;
const DELETE: u8 = 0x7f;

/// The terminal that this process belongs to.
pub struct Terminal(File);

impl Terminal {
    pub fn open() -> Result<Self> {
        let opened = OpenOptions::new().read(true).write(true).open(PATH);
        opened.map(Terminal).map_err(|error| {
            Failure::own(format!(
                "there is no terminal to ask for the passphrase on ({PATH}: {error}): give \
                 --passphrase-file"
            ))
            .into()
        })
    }

    /// Asks. A user who interrupts ends this process.
    pub fn ask(&self, prompt: &str, _: Hidden) -> Result<Passphrase> {
        let quiet = Quiet::begin(&self.0)?;
        let answered =
            (&self.0).write_all(prompt.as_bytes()).context("cannot write to the terminal");
        let line = answered.and_then(|()| self.line());
        drop(quiet);
        // The key that ended the line was not shown either.
        let _ = (&self.0).write_all(b"\n");
        match line? {
            Some(line) => accepted(line, "the passphrase"),
            None => {
                let _ = kill_process(getpid(), Signal::INT);
                // It may be ignored.
                Err(Failure::no("interrupted before a passphrase was given").into())
            }
        }
    }

    /// A line; none if the user interrupts.
    fn line(&self) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let mut line = Line::default();
        let mut key = Zeroizing::new([0]);
        loop {
            match read(&self.0, &mut *key) {
                Ok(0) => return Ok(Some(line.0)),
                Ok(_) => match line.take(key[0]) {
                    Typed::More => {}
                    Typed::Done => return Ok(Some(line.0)),
                    Typed::Stop => return Ok(None),
                },
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot read from the terminal"),
            }
        }
    }
}

/// A terminal that shows nothing, until this is dropped.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(terminal: &'a File) -> Result<Quiet<'a>> {
        let cannot = "cannot keep the terminal from showing the passphrase";
        let before = tcgetattr(terminal).context(cannot)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(
            LocalModes::ECHO
                | LocalModes::ECHONL
                | LocalModes::ICANON
                | LocalModes::ISIG
                | LocalModes::IEXTEN,
        );
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before is no answer.
        tcsetattr(terminal, OptionalActions::Flush, &quiet).context(cannot)?;
        Ok(Quiet { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// What is typed, a byte more than may be at most.
struct Line(Zeroizing<Vec<u8>>);

/// What follows from a key.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    More,
    Done,
    Stop,
}

impl Default for Line {
    fn default() -> Self {
        // A vector that grows leaves copies behind.
        Line(Zeroizing::new(Vec::with_capacity(MOST_BYTES + 1)))
    }
}

impl Line {
    fn take(&mut self, key: u8) -> Typed {
        match key {
            b'\n' | b'\r' | END_OF_FILE => return Typed::Done,
            INTERRUPT | QUIT => return Typed::Stop,
            BACKSPACE | DELETE => self.erase(),
            KILL_LINE => self.0.zeroize(),
            // No other key that shows nothing anywhere is part of a passphrase.
            key if key < b' ' && key != TAB => {}
            key if self.0.len() <= MOST_BYTES => self.0.push(key),
            // It is too long already.
            _ => {}
        }
        Typed::More
    }

    /// Takes the last character back, which may be several bytes of UTF-8.
    fn erase(&mut self) {
        let continues = |byte: u8| byte & 0xc0 == 0x80;
        while self.0.pop().is_some_and(continues) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> (Vec<u8>, Typed) {
        let mut line = Line::default();
        for (at, &key) in keys.iter().enumerate() {
            let typed = line.take(key);
            if typed != Typed::More {
                assert_eq!(at + 1, keys.len(), "no key is left");
                return (line.0.to_vec(), typed);
            }
        }
        (line.0.to_vec(), Typed::More)
    }

    #[test]
    fn keys_make_a_line() {
        for (keys, line) in [
            (&b"horse\n"[..], &b"horse"[..]),
            (b"horse\r", b"horse"),
            (b"horse\x04", b"horse"),
            (b"\n", b""),
            (b"horxx\x7f\x08se\n", b"horse"),
            (b"\x7fhorse\n", b"horse"),
            ("ho\u{20ac}\x7frse\n".as_bytes(), b"horse"),
            ("hor\u{e9}\u{20ac}\n".as_bytes(), "hor\u{e9}\u{20ac}".as_bytes()),
            (b"other\x15horse\n", b"horse"),
            (b"ho\x1a\x00rse\n", b"horse"),
            (b"ho\trse\n", b"ho\trse"),
        ] {
            assert_eq!(typed(keys), (line.to_vec(), Typed::Done), "{keys:?}");
        }
        for stop in [&b"horse\x03"[..], b"\x1c"] {
            assert_eq!(typed(stop).1, Typed::Stop, "{stop:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_no_passphrase_and_stays_in_its_place() {
        let mut line = Line::default();
        let place = line.0.as_ptr();
        (0..=2 * MOST_BYTES).for_each(|_| assert_eq!(line.take(b'x'), Typed::More));
        assert_eq!((line.0.len(), line.0.as_ptr()), (MOST_BYTES + 1, place));
        assert!(accepted(line.0, "the passphrase").is_err());
    }
}
