//! What the tests of the hand are made of: programs under test, and agents in them.
use casemate_keeper::hand::{Announcements, Hand, InjectError, Injection, Injector, Progress};
use casemate_keeper::sys::poll;
use casemate_keeper::sys::seccomp::Listener;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What a busy machine may need for what takes a moment.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for the end of an injection. Calls that the program announces from then on are let
/// through.
pub fn ended(injection: &mut Injection) -> Progress {
    let progress = injection.wait(PATIENCE);
    if let Announcements::Listener(listener) = injection.take_announcements() {
        let listener = Listener::new(listener);
        std::thread::spawn(move || {
            // Until no process is left that could make any.
            while let (true, _) = poll::readable(&listener, None) {
                match listener.receive() {
                    Ok(Some(call)) => listener.go_on(&call),
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
        });
    }
    progress
}

pub fn try_inject(pid: i32) -> Result<Hand, InjectError> {
    match ended(&mut Injector::new().unwrap().begin(pid, None)?) {
        Progress::Done(hand) => Ok(hand),
        Progress::Failed(error) => Err(error),
        Progress::Pending => panic!("process {pid} does not stop"),
    }
}

pub fn inject(pid: i32) -> Hand {
    try_inject(pid).unwrap_or_else(|error| panic!("no agent in {pid}: {error}"))
}

/// A program under test, killed if the test fails.
pub struct Program {
    pub child: Child,
    pub out: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(path: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Program {
        let mut command = Command::new(path);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Program { child, out }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    pub fn tell(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Everything it still prints until the end, and of its input; it must end well.
    pub fn finish(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest.trim().to_owned()
    }

    pub fn state(&self) -> char {
        state_of(self.pid()).unwrap()
    }

    /// Waits for its first thread to be in this state.
    pub fn becomes(&self, state: char) {
        let end = Instant::now() + PATIENCE;
        while self.state() != state {
            assert!(Instant::now() < end, "{} is {}, not {state}", self.pid(), self.state());
            pause_ms(1);
        }
    }
}

pub fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles one of the programs beside this file; nothing if the machine has no libc for that.
pub fn compiled(name: &str, how: &[&str]) -> Option<PathBuf> {
    let source = format!("{}/tests/hand/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let unique = format!("{name}{}-{:?}", how.concat(), std::thread::current().id());
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(unique.replace(['(', ')'], ""));
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&out)
        .arg(source)
        .args(how)
        .stderr(Stdio::null())
        .status();
    if status.is_ok_and(|s| s.success()) {
        return Some(out);
    }
    eprintln!("skipped: cc {how:?} does not work here");
    None
}

pub fn pause_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
