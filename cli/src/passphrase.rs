//! Passphrases: where they come from.
//!
//! ```text
//! hide       first: what is read can be dumped by no other process   passphrase/hide.rs
//! terminal   asked for, without echo                                 passphrase/terminal.rs
//! first_line of a file or of standard input                          passphrase.rs
//! ```

pub mod hide;
mod terminal;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rustix::io::{Errno, read};
use zeroize::Zeroizing;

use crate::failure::Failure;
use hide::Hidden;
use terminal::Terminal;

/// The longest passphrase, in bytes.
pub const MOST_BYTES: usize = 1024;

/// A passphrase, not empty, wiped when dropped.
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// What the private key is made of.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(test)]
    pub fn of(bytes: &[u8]) -> Self {
        Passphrase(Zeroizing::new(bytes.to_vec()))
    }
}

/// Where a passphrase comes from: the terminal, if nothing else is said.
#[derive(Debug, Args)]
pub struct Source {
    /// Take the passphrase from the first line of FILE instead of asking on the terminal; - is
    /// standard input
    #[arg(long = "passphrase-file", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl Source {
    /// One that is chosen: asked for twice on a terminal.
    pub fn chosen(&self, hidden: Hidden) -> Result<Passphrase> {
        let Some(path) = &self.file else {
            let terminal = Terminal::open()?;
            let chosen = terminal.ask("new passphrase: ", hidden)?;
            let again = terminal.ask("the same again: ", hidden)?;
            return match chosen.bytes() == again.bytes() {
                true => Ok(chosen),
                false => {
                    Err(Failure::no("the two passphrases differ; give the command again").into())
                }
            };
        };
        of_file(path, hidden)
    }

    /// One that is known already. `whose` says what it belongs to.
    pub fn known(&self, whose: &str, hidden: Hidden) -> Result<Passphrase> {
        match &self.file {
            Some(path) => of_file(path, hidden),
            None => Terminal::open()?.ask(&format!("passphrase of {whose}: "), hidden),
        }
    }
}

fn of_file(path: &Path, _: Hidden) -> Result<Passphrase> {
    if path == Path::new("-") {
        return first_line(io::stdin(), "standard input");
    }
    let shown = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&shown, &error))?;
    first_line(file, &shown)
}

/// A line without its newline, or all if there is none. Nothing else is taken away: a carriage
/// return is part of it.
fn first_line(from: impl AsFd, shown: &str) -> Result<Passphrase> {
    // One byte more than may be, and all of it from the start: a vector that grows leaves copies.
    let mut line = Zeroizing::new(vec![0; MOST_BYTES + 1]);
    let mut filled = 0;
    let end = loop {
        let free = &mut line[filled..];
        match read(&from, &mut *free) {
            Ok(0) => break filled,
            Ok(count) => {
                let is_newline = |&byte: &u8| byte == b'\n';
                if let Some(at) = free[..count].iter().position(is_newline) {
                    break filled + at;
                }
                filled += count;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(unreadable(shown, &error.into()).into()),
        }
    };
    line.truncate(end);
    accepted(line, &format!("the first line of {shown}"))
}

fn unreadable(shown: &str, error: &io::Error) -> Failure {
    Failure::own(format!(
        "cannot read the passphrase from {shown}: {error} (name a file that you may read)"
    ))
}

/// Refuses what is empty or too long.
fn accepted(bytes: Zeroizing<Vec<u8>>, shown: &str) -> Result<Passphrase> {
    match bytes.len() {
        0 => Err(Failure::own(format!(
            "{shown} is empty, and an empty passphrase protects nothing (choose another)"
        ))
        .into()),
        1..=MOST_BYTES => Ok(Passphrase(bytes)),
        _ => Err(Failure::own(format!(
            "{shown} is longer than the {MOST_BYTES} bytes of the longest passphrase (choose \
             another)"
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// What comes out of a pipe into which this is written.
    fn read_from(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(bytes).expect("it has room for a page");
        drop(writer);
        first_line(reader, "a pipe")
            .map(|line| line.bytes().to_vec())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_line_is_taken_and_only_its_newline_left_out() {
        for (bytes, line) in [
            (&b"correct horse\n"[..], &b"correct horse"[..]),
            (b"correct horse", b"correct horse"),
            (b"correct horse\nbattery\n", b"correct horse"),
            (b"correct horse\r\n", b"correct horse\r"),
            (b" correct horse \t\n", b" correct horse \t"),
            (b"\xff\0\xfe\n", b"\xff\0\xfe"),
        ] {
            assert_eq!(read_from(bytes), Ok(line.to_vec()), "{bytes:?}");
        }
    }

    #[test]
    fn an_empty_line_is_no_passphrase() {
        for bytes in [&b""[..], b"\n", b"\nsecond\n"] {
            let why = read_from(bytes).expect_err("empty");
            assert!(why.starts_with("the first line of a pipe is empty"), "{why}");
        }
    }

    #[test]
    fn the_longest_passphrase_is_taken_and_no_longer_one() {
        let of = |bytes: usize| vec![b'x'; bytes];
        assert_eq!(read_from(&of(1024)), Ok(of(1024)));
        assert_eq!(read_from(&[of(1024), b"\n".to_vec()].concat()), Ok(of(1024)));
        for bytes in [1025, 1026, 4096] {
            let why = read_from(&of(bytes)).expect_err("too long");
            assert!(why.contains("longer than the 1024 bytes"), "{why}");
        }
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_one() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let pieces = std::thread::spawn(move || {
            for byte in b"correct horse\n" {
                writer.write_all(&[*byte]).expect("the reader waits");
                std::thread::yield_now();
            }
        });
        let line = first_line(reader, "a pipe").expect("a line");
        assert_eq!(line.bytes(), b"correct horse");
        pieces.join().expect("it ends");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = File::open("/").expect("there is a root");
        let why = first_line(folder, "/").map(drop).expect_err("a folder").to_string();
        assert!(why.contains("from /: ") && why.contains("name a file"), "{why}");
    }
}
