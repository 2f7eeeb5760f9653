//! The door of a run, and what one may say there.

use super::run::Running;
use super::{Json, casemate};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Output};

/// What `casemate set` came to.
pub struct Set {
    /// Its exit code.
    pub code: i32,
    /// Standard error.
    pub stderr: String,
    /// The report of what was done; none if it failed.
    pub json: Option<Json>,
}

impl From<Output> for Set {
    fn from(done: Output) -> Self {
        Set {
            code: done.status.code().expect("it is not killed"),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
            json: match done.status.success() {
                true => serde_json::from_slice(&done.stdout).ok().map(Json),
                false => None,
            },
        }
    }
}

/// Sets the Clear of the run of this process.
pub fn set(pid: i32, clear: &str) -> Set {
    let words = ["set", &pid.to_string(), "--clear", clear, "--json"];
    Command::new(casemate()).args(words).output().expect("casemate starts").into()
}

/// Gives all pages of the run of this process new keys.
pub fn set_keys(pid: i32) -> Set {
    let words = ["set", &pid.to_string(), "--rotate", "--json"];
    Command::new(casemate()).args(words).output().expect("casemate starts").into()
}

/// A caller at the door of a run.
pub struct Caller(OwnedFd);

impl Caller {
    /// Calls; none if there is no door.
    pub fn at(run: &Running) -> Option<Self> {
        let name = format!("casemate-control-{}", run.pid);
        // SAFETY: the descriptor is new; the address is built in full, and its length says so.
        unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "a socket");
            let socket = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_un = std::mem::zeroed();
            address.sun_family = libc::AF_UNIX as libc::sa_family_t;
            for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
                *to = from as libc::c_char;
            }
            let length = size_of::<libc::sa_family_t>() + 1 + name.len();
            let r = libc::connect(fd, std::ptr::from_ref(&address).cast(), length as u32);
            (r == 0).then_some(Caller(socket))
        }
    }

    /// Says something, which may fail.
    pub fn say(&self, bytes: &[u8]) {
        // SAFETY: the bytes are live and their length is passed.
        unsafe {
            let (start, length) = (bytes.as_ptr().cast(), bytes.len());
            libc::send(self.0.as_raw_fd(), start, length, libc::MSG_NOSIGNAL);
        }
    }

    /// What is answered; empty if nothing is.
    pub fn hear(&self) -> String {
        let mut bytes = [0_u8; 4096];
        // SAFETY: the buffer is live and its length is passed.
        let n =
            unsafe { libc::recv(self.0.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        String::from_utf8_lossy(&bytes[..usize::try_from(n).unwrap_or(0)]).into_owned()
    }
}
