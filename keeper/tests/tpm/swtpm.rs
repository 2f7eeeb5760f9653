//! A simulated TPM, `swtpm`, behind a bus that the tests can listen to and disturb.
//!
//! The bus also does what the kernel's resource manager does in part: several connections take
//! turns, a command and its response each.

use parking_lot::Mutex;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = "/usr/bin/swtpm";

/// How a TPM starts.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Startup(CLEAR): a TPM Reset, or a TPM Restart if the state was saved.
    Clear,
    /// Startup(STATE): a TPM Resume.
    State,
}

/// A simulated TPM.
pub struct Swtpm {
    folder: PathBuf,
    program: Option<Child>,
    bus: Arc<Bus>,
}

/// Between the TPM and who uses it.
#[derive(Default)]
struct Bus {
    tpm: Mutex<Option<UnixStream>>,
    /// All commands and responses.
    seen: Mutex<Vec<u8>>,
    /// Responses until one of them is changed, and which of its bits.
    flip: Mutex<Option<(usize, usize)>>,
}

impl Swtpm {
    /// Started for the first time; none if the program is not installed, which is said then.
    pub fn new(test: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !Path::new(PROGRAM).exists() {
            // `cargo xtask test` has installed it, or could have.
            assert!(std::env::var_os("CASEMATE_INSTALLED").is_none(), "{PROGRAM} is not here");
            skip(test, "swtpm is not installed (cargo xtask test installs as root)");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A socket's path is short.
        let name = format!("casemate-tpm-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("state")).expect("a folder for the TPM's state");
        let mut tpm = Self { folder, program: None, bus: Arc::default() };
        tpm.start(Start::Clear);
        let listener = UnixListener::bind(tpm.path()).expect("a socket");
        let bus = Arc::clone(&tpm.bus);
        thread::spawn(move || {
            for user in listener.incoming().flatten() {
                let bus = Arc::clone(&bus);
                thread::spawn(move || bus.serve(user));
            }
        });
        Some(tpm)
    }

    /// Where it is reached.
    pub fn path(&self) -> PathBuf {
        self.folder.join("bus")
    }

    /// Its power is gone.
    pub fn stop(&mut self) {
        *self.bus.tpm.lock() = None;
        if let Some(mut program) = self.program.take() {
            program.kill().expect("it runs");
            program.wait().expect("it is a child");
        }
    }

    /// Its power is back.
    pub fn start(&mut self, start: Start) {
        let socket = self.folder.join("tpm");
        let _ = fs::remove_file(&socket);
        let start = match start {
            Start::Clear => "not-need-init,startup-clear",
            Start::State => "not-need-init,startup-state",
        };
        let program = Command::new(PROGRAM)
            .args(["socket", "--tpm2", "--terminate", "--flags", start])
            .arg("--tpmstate")
            .arg(format!("dir={}", self.folder.join("state").display()))
            .arg("--server")
            .arg(format!("type=unixio,path={}", socket.display()))
            // It says when a connection ends, in the midst of what the tests print.
            .stderr(Stdio::null())
            .spawn();
        self.program = Some(program.expect("swtpm starts"));
        let deadline = Instant::now() + Duration::from_secs(60);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "swtpm: {error}"),
            }
            thread::sleep(Duration::from_millis(10));
        };
        *self.bus.tpm.lock() = Some(stream);
    }

    /// The system tells it to save its state, as before a suspension: Shutdown(STATE).
    pub fn save_state(&self) {
        let response = self.bus.exchange(&[0x80, 1, 0, 0, 0, 12, 0, 0, 1, 0x45, 0, 1]);
        assert_eq!(response.expect("an answer")[6..], [0; 4]);
    }

    /// How many objects and sessions it holds: GetCapability(HANDLES).
    pub fn held(&self) -> usize {
        // Transient objects, loaded sessions, saved sessions.
        [0x80_u8, 0x02, 0x03].into_iter().map(|kind| self.handles(kind).len()).sum()
    }

    /// Flushes what a disturbed command has left.
    pub fn forget_all(&self) {
        for kind in [0x80, 0x02] {
            for handle in self.handles(kind) {
                let header = [0x80, 1, 0, 0, 0, 14, 0, 0, 1, 0x65];
                // It can have gone meanwhile.
                let _ = self.bus.exchange(&[header.as_slice(), &handle].concat());
            }
        }
    }

    fn handles(&self, kind: u8) -> Vec<[u8; 4]> {
        let header = [0x80, 1, 0, 0, 0, 22, 0, 0, 1, 0x7a];
        let asked = [0, 0, 0, 1, kind, 0, 0, 0, 0, 0, 0, 100];
        let response = self.bus.exchange(&[&header[..], &asked].concat()).expect("an answer");
        let handles = response.get(19..).expect("a list");
        handles.chunks(4).map(|handle| handle.try_into().expect("four bytes")).collect()
    }

    /// What was on the bus.
    pub fn seen(&self) -> Vec<u8> {
        self.bus.seen.lock().clone()
    }

    /// Changes a bit of a response that will come after so many others.
    pub fn flip(&self, after: usize, bit: usize) {
        *self.bus.flip.lock() = Some((after, bit));
    }

    /// Changes nothing more: whether it had been changed.
    pub fn let_be(&self) -> bool {
        self.bus.flip.lock().take().is_none()
    }
}

impl Drop for Swtpm {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Bus {
    fn serve(&self, mut user: UnixStream) {
        while let Ok(command) = message(&mut user) {
            // A TPM without power says nothing, and the user sees the connection end.
            let Ok(response) = self.exchange(&command) else { break };
            let response = self.disturbed(response);
            if user.write_all(&response).is_err() {
                break;
            }
        }
    }

    fn exchange(&self, command: &[u8]) -> io::Result<Vec<u8>> {
        let mut tpm = self.tpm.lock();
        let tpm = tpm.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        tpm.write_all(command)?;
        let response = message(tpm)?;
        let mut seen = self.seen.lock();
        seen.extend_from_slice(command);
        seen.extend_from_slice(&response);
        Ok(response)
    }

    fn disturbed(&self, mut response: Vec<u8>) -> Vec<u8> {
        let mut flip = self.flip.lock();
        match flip.as_mut() {
            Some((0, bit)) => {
                // Not the size: a longer response would be waited for until the time limit.
                let other: Vec<usize> = (0..2).chain(6..response.len()).collect();
                response[other[*bit / 8 % other.len()]] ^= 1 << (*bit % 8);
                *flip = None;
            }
            Some((after, _)) => *after -= 1,
            None => {}
        }
        response
    }
}

/// Says why a test did nothing, past libtest's capture: it is seen although the test passes.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {test}: {why}");
}

/// A whole command or response.
fn message(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 10];
    from.read_exact(&mut message)?;
    let size = u32::from_be_bytes([message[2], message[3], message[4], message[5]]);
    message.resize(size as usize, 0);
    from.read_exact(&mut message[10..])?;
    Ok(message)
}
