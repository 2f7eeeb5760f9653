//! A passphrase that is typed: on a pseudo-terminal, which belongs to `casemate` alone.

mod common;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::Folder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

const PATIENCE: Duration = Duration::from_secs(30);

/// `casemate` with a terminal of its own.
struct Session {
    child: Child,
    /// The other end of the terminal: what is typed, and what is shown.
    ours: OwnedFd,
    /// The terminal itself, open so that its modes can be looked at.
    terminal: File,
    shown: String,
}

impl Session {
    fn begin(words: &[&str]) -> Self {
        Self::begin_after("", words)
    }

    /// `casemate` starts when the terminal has these keys: what is written to our end arrives there
    /// only when a thread of the kernel's has had a processor.
    fn begin_after(keys: &str, words: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it is ours");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("a path").to_owned();
        let mut open = OpenOptions::new();
        open.read(true).write(true);
        open.custom_flags(OpenptFlags::NOCTTY.bits() as i32);
        let terminal = open.open(name).expect("the terminal");
        let written = rustix::io::write(&ours, keys.as_bytes()).expect("the terminal");
        assert_eq!(written, keys.len());
        let deadline = Instant::now() + PATIENCE;
        while rustix::io::ioctl_fionread(&terminal).expect("a terminal") < keys.len() as u64 {
            assert!(Instant::now() < deadline, "the keys do not arrive");
            std::thread::yield_now();
        }
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_casemate")])
            .args(words)
            .stdin(terminal.try_clone().expect("a descriptor"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("setsid starts");
        Session { child, ours, terminal, shown: String::new() }
    }

    /// Waits until this is shown, and nothing after it.
    fn await_prompt(&mut self, prompt: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.shown.ends_with(prompt) {
            assert!(Instant::now() < deadline, "not shown: {prompt:?}; but {:?}", self.shown);
            self.hear(Duration::from_millis(200));
        }
    }

    fn hear(&mut self, patience: Duration) {
        let patience = Timespec::try_from(patience).expect("it is short");
        let mut ready = [PollFd::new(&self.ours, PollFlags::IN)];
        if poll(&mut ready, Some(&patience)).is_ok_and(|count| count == 1) {
            let mut buffer = [0; 512];
            let count = rustix::io::read(&self.ours, &mut buffer).unwrap_or(0);
            self.shown += &String::from_utf8_lossy(&buffer[..count]);
        }
    }

    fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.terminal).expect("a terminal").local_modes;
        let all = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        assert!(modes.contains(all) || !modes.intersects(all), "{modes:?}");
        modes.contains(all)
    }

    fn type_keys(&self, keys: &str) {
        assert!(!self.echoes(), "what is typed would be shown");
        let written = rustix::io::write(&self.ours, keys.as_bytes()).expect("the terminal");
        assert_eq!(written, keys.len());
    }

    /// How it ended, what it wrote to standard error, and all that the terminal showed.
    fn end(mut self) -> (ExitStatus, String, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            self.hear(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end; shown: {:?}", self.shown);
        };
        self.hear(Duration::from_millis(20));
        assert!(self.echoes(), "the terminal is not as before");
        let mut sentence = String::new();
        let pipe = self.child.stderr.as_mut().expect("a pipe");
        pipe.read_to_string(&mut sentence).expect("text");
        (status, sentence, std::mem::take(&mut self.shown))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_key(folder: &Folder) -> Session {
    Session::begin(&["lock", "--make-key", &folder.arg("key")])
}

#[test]
fn a_passphrase_is_typed_twice_and_not_shown() {
    let folder = Folder::new("typed");
    let mut session = make_key(&folder);
    session.await_prompt("new passphrase: ");
    session.type_keys("correct horse\n");
    session.await_prompt("the same again: ");
    session.type_keys("correct horsf\n");
    let (status, sentence, shown) = session.end();
    assert_eq!(status.code(), Some(1), "{sentence}");
    assert!(sentence.contains("the two passphrases differ"), "{sentence}");
    assert_eq!(shown, "new passphrase: \r\nthe same again: \r\n");
    assert!(!folder.path("key").exists());

    let mut session = make_key(&folder);
    session.await_prompt("new passphrase: ");
    session.type_keys("correct horsf\x7fe\n");
    session.await_prompt("the same again: ");
    session.type_keys("correct horse\n");
    let (status, sentence, shown) = session.end();
    assert!(status.success(), "{sentence}");
    assert_eq!(shown, "new passphrase: \r\nthe same again: \r\n");
    assert!(folder.path("key").exists());
}

#[test]
fn an_empty_passphrase_is_refused_at_once() {
    let folder = Folder::new("typed-empty");
    let mut session = make_key(&folder);
    session.await_prompt("new passphrase: ");
    session.type_keys("\n");
    let (status, sentence, _) = session.end();
    assert_eq!(status.code(), Some(125), "{sentence}");
    assert!(sentence.contains("the passphrase is empty"), "{sentence}");
}

#[test]
fn who_interrupts_ends_it_and_has_the_terminal_back() {
    let folder = Folder::new("interrupted");
    let mut session = make_key(&folder);
    session.await_prompt("new passphrase: ");
    session.type_keys("correct\x03");
    let (status, _, shown) = session.end();
    // `setsid` ends as what it waited for did, or with 1 if that was killed.
    assert!(status.signal() == Some(2) || status.code() == Some(1), "{status:?}");
    assert_eq!(shown, "new passphrase: \r\n");
    assert!(!folder.path("key").exists());
}

/// What was typed before the question is no answer to it.
#[test]
fn keys_from_before_the_question_do_not_count() {
    let folder = Folder::new("typed-before");
    let words = ["lock", "--make-key", &folder.arg("key")];
    let mut session = Session::begin_after("typed before\n", &words);
    session.await_prompt("new passphrase: ");
    session.type_keys("horse\n");
    session.await_prompt("the same again: ");
    session.type_keys("horse\n");
    let (status, sentence, _) = session.end();
    assert!(status.success(), "{sentence}");
}
