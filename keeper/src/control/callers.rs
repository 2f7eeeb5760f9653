//! Callers that have said nothing yet. The first one that speaks is heard, so that no other
//! one waits for those that are silent.

use crate::sys::socket;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// So many may be silent at a time; others wait at the door.
const MOST: usize = 16;

/// Those that were admitted and have said nothing.
pub(super) struct Callers {
    /// The longest time that one may be silent.
    patience: Duration,
    silent: Vec<Silent>,
}

struct Silent {
    caller: OwnedFd,
    until: Instant,
}

impl Callers {
    /// None yet.
    pub fn new(patience: Duration) -> Self {
        Callers { patience, silent: Vec::new() }
    }

    /// Waits for the next caller that has said something, or has hung up. Of those that call
    /// meanwhile, `admit` says who may speak.
    pub fn next(
        &mut self,
        listener: &OwnedFd,
        admit: impl Fn(&OwnedFd) -> bool,
    ) -> io::Result<OwnedFd> {
        loop {
            let (calls, spoken) = self.wait(listener)?;
            if let Some(at) = spoken {
                return Ok(self.silent.remove(at).caller);
            }
            if calls {
                let caller = socket::accept(listener)?;
                if admit(&caller) {
                    self.silent.push(Silent { caller, until: Instant::now() + self.patience });
                }
            }
            let now = Instant::now();
            self.silent.retain(|one| one.until > now);
        }
    }

    /// Waits until a caller comes or speaks, or the patience with one is at its end. Whether
    /// one came, and who has spoken.
    fn wait(&self, listener: &OwnedFd) -> io::Result<(bool, Option<usize>)> {
        let door = if self.silent.len() < MOST { listener.as_raw_fd() } else { -1 };
        let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = vec![watched(door)];
        fds.extend(self.silent.iter().map(|one| watched(one.caller.as_raw_fd())));
        let left = |one: &Silent| one.until.saturating_duration_since(Instant::now());
        let timeout = self.silent.iter().map(left).min();
        // Rounded up: else the last millisecond would be spent on looks.
        let timeout_ms = timeout.map_or(-1, |left| left.as_millis() as i32 + 1);
        // SAFETY: the list is live for the call and its length is passed.
        if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, timeout_ms) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let spoken = fds[1..].iter().position(|one| one.revents != 0);
        Ok((fds[0].revents != 0, spoken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    /// A caller at the door of this name.
    fn call(name: &str) -> OwnedFd {
        // SAFETY: the address is built in full: family, a zero byte, the name; the descriptor is
        // new.
        unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            let mut address: libc::sockaddr_un = std::mem::zeroed();
            address.sun_family = libc::AF_UNIX as libc::sa_family_t;
            for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
                *to = from as libc::c_char;
            }
            let length = size_of::<libc::sa_family_t>() + 1 + name.len();
            let r = libc::connect(fd, std::ptr::from_ref(&address).cast(), length as u32);
            assert_eq!(r, 0, "{}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        }
    }

    fn door(test: &str) -> (String, OwnedFd) {
        let name = format!("casemate-test-callers-{test}-{}", std::process::id());
        let listener = socket::listen(&name).expect("the name is free");
        (name, listener)
    }

    fn said(caller: &OwnedFd) -> Vec<u8> {
        let mut buffer = [0; 64];
        socket::receive(caller, &mut buffer).expect("it has").expect("it fits").to_vec()
    }

    /// With an hour's patience: if one waited for a silent one, this would not end.
    #[test]
    fn who_speaks_is_heard_before_those_that_are_silent() {
        let (name, listener) = door("order");
        let mut callers = Callers::new(Duration::from_secs(3600));
        let silent: Vec<OwnedFd> = (0..3).map(|_| call(&name)).collect();
        let speaks = call(&name);
        socket::send(&speaks, b"first").expect("it is sent");
        let heard = callers.next(&listener, |_| true).expect("a caller");
        assert_eq!(said(&heard), b"first");
        socket::send(&silent[1], b"second").expect("it is sent");
        let heard = callers.next(&listener, |_| true).expect("a caller");
        assert_eq!(said(&heard), b"second");
        assert_eq!(callers.silent.len(), 2);
    }

    #[test]
    fn who_is_silent_too_long_is_given_up_and_who_is_not_admitted_is_not_kept() {
        let (name, listener) = door("patience");
        let mut callers = Callers::new(Duration::from_secs(3600));
        let silent = call(&name);
        let caller = socket::accept(&listener).expect("it has called");
        callers.silent.push(Silent { caller, until: Instant::now() });
        let (refused, speaks) = (call(&name), call(&name));
        socket::send(&refused, b"never heard").expect("it is sent");
        socket::send(&speaks, b"heard").expect("it is sent");
        let calls = std::cell::Cell::new(0);
        let admit = |_: &OwnedFd| calls.replace(calls.get() + 1) > 0;
        let heard = callers.next(&listener, admit).expect("a caller");
        assert_eq!((said(&heard), calls.get()), (b"heard".to_vec(), 2));
        assert!(callers.silent.is_empty());
        // Its other end is closed.
        assert_eq!(said(&silent), b"");
    }

    #[test]
    fn a_door_that_is_shut_is_an_error() {
        let (name, listener) = door("shut");
        let mut callers = Callers::new(Duration::from_secs(3600));
        let silent = call(&name);
        socket::send(&silent, b"x").expect("it is sent");
        drop(callers.next(&listener, |_| true).expect("a caller"));
        socket::shut(&listener);
        let error = callers.next(&listener, |_| true).expect_err("no caller can come");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
