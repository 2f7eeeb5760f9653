//! The handshake between keeper and agent: descriptors are exchanged, the mailbox is mapped.
use super::image::Region;
use super::injection::Progress;
use super::mailbox::Mailbox;
use super::supervisor::Supervisor;
use super::{Hand, InjectError, sys};
use casemate_agent::{GIVEN_DEVICE, GIVEN_PROGRAM_UFFD};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// An agent that is not ready within this time counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// An agent that has been cloned but is not ready yet. Dropped, it is killed.
pub(super) struct Meeting {
    parts: Option<Parts>,
    program: i32,
    device: Option<OwnedFd>,
    inherited: Option<OwnedFd>,
    greeted: bool,
    since: Instant,
}

/// The parts of a [`Hand`](super::Hand).
pub(super) struct Parts {
    pub(super) agent: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) mailbox: Mailbox,
    /// An eventfd that the agent rings when a reply is awaited beside other descriptors.
    pub(super) bell: OwnedFd,
    pub(super) region: Region,
    pub(super) magic: u64,
    /// Checks the agent's calls while its seccomp filters are suspended.
    pub(super) supervisor: Option<Supervisor>,
}

impl Parts {
    /// The agent's status, read through a process that shares its memory.
    fn status(&self, pid: i32) -> Option<i32> {
        let mut block = [0; 16];
        sys::read_memory(pid, self.region.bootstrap(), &mut block).ok()?;
        let (magic, rest) = block.split_first_chunk()?;
        let status = rest.first_chunk()?;
        (u64::from_le_bytes(*magic) == self.magic).then(|| i32::from_le_bytes(*status))
    }
}

impl Meeting {
    /// A `supervised` agent waits for its supervisor before it makes any call.
    #[expect(clippy::too_many_arguments, reason = "each is one part of the agent to be met")]
    pub(super) fn new(
        program: i32,
        agent: i32,
        pidfd: OwnedFd,
        region: Region,
        magic: u64,
        supervised: bool,
        device: Option<OwnedFd>,
        inherited: Option<OwnedFd>,
    ) -> io::Result<Meeting> {
        let supervisor = supervised.then(|| Supervisor::begin(program, agent, region)).transpose();
        let made = supervisor
            .and_then(|supervisor| Ok((supervisor, Mailbox::new(program)?, sys::eventfd()?)));
        let (supervisor, mailbox, bell) = match made {
            Ok(made) => made,
            Err(error) => {
                let _ = sys::pidfd_kill(pidfd.as_fd());
                return Err(error);
            }
        };
        let parts = Some(Parts { agent, pidfd, mailbox, bell, region, magic, supervisor });
        Ok(Meeting { parts, program, device, inherited, greeted: false, since: Instant::now() })
    }

    pub(super) fn agent(&self) -> Option<i32> {
        self.parts.as_ref().map(|parts| parts.agent)
    }

    pub(super) fn agent_pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.parts.as_ref().map(|parts| parts.pidfd.as_fd())
    }

    pub(super) fn poll(&mut self) -> Progress {
        match self.step() {
            Ok(true) => match self.parts.take().map(Hand::new) {
                Some(Ok(hand)) => Progress::Done(hand),
                Some(Err(error)) => Progress::Failed(error),
                None => Progress::Failed(InjectError::Gone),
            },
            Ok(false) => Progress::Pending,
            Err(error) => Progress::Failed(error),
        }
    }

    fn step(&mut self) -> Result<bool, InjectError> {
        let Some(parts) = &self.parts else { return Err(InjectError::Gone) };
        if parts.mailbox.header().ready.load(SeqCst) == 1 {
            return Ok(true);
        }
        let ended = sys::pidfd_ended(parts.pidfd.as_fd(), Duration::ZERO);
        // The status of an agent that has ended stays in the program's memory, if that still
        // exists.
        let speaker = if ended { self.program } else { parts.agent };
        let status = parts.status(speaker).unwrap_or(0);
        if ended || status < 0 {
            return Err(InjectError::AgentDied { error: -status.min(0) });
        }
        if status == 1 && !self.greeted {
            let socket = sys::pidfd_getfd(parts.pidfd.as_fd(), 1)?;
            let keeper = sys::pidfd_open(std::process::id() as i32)?;
            let mut fds = vec![
                parts.mailbox.memory().as_raw_fd(),
                keeper.as_raw_fd(),
                parts.bell.as_raw_fd(),
            ];
            fds.extend(self.device.as_ref().map(AsRawFd::as_raw_fd));
            fds.extend(self.inherited.as_ref().map(AsRawFd::as_raw_fd));
            let device = self.device.as_ref().map_or(0, |_| GIVEN_DEVICE);
            let inherited = self.inherited.as_ref().map_or(0, |_| GIVEN_PROGRAM_UFFD);
            parts.mailbox.header().given.store(device | inherited, SeqCst);
            sys::send_descriptors(socket.as_fd(), &fds)?;
            self.greeted = true;
        }
        if self.since.elapsed() > PATIENCE {
            return Err(InjectError::AgentSilent);
        }
        Ok(false)
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        if let Some(parts) = &self.parts {
            end_agent(parts);
        }
    }
}

/// How long a killed agent may wait for a processor: it would not be reaped later.
const BURIAL_PATIENCE: Duration = Duration::from_secs(1);

/// Kills an agent and, if it is a child of the keeper, reaps it.
pub(super) fn end_agent(parts: &Parts) {
    end(parts.pidfd.as_fd());
}

/// The same by its pidfd.
pub(super) fn end(pidfd: BorrowedFd<'_>) {
    if sys::pidfd_kill(pidfd).is_ok() {
        sys::pidfd_ended(pidfd, BURIAL_PATIENCE);
    }
    sys::pidfd_reap(pidfd);
}
