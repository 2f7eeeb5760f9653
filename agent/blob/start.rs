//! The agent's setup: leaves the program's descriptors, receives the keeper's, makes the
//! userfaultfds, gives up all rights that the loop does not need.
use crate::wire::{
    Bootstrap, Errno, GIVEN_DEVICE, GIVEN_PROGRAM_UFFD, Header, MAGIC, MAILBOX_BYTES, VERSION,
};
use crate::{calls, confine};
use core::sync::atomic::Ordering::{Acquire, Release};

/// Distance between the agent's mappings; none is larger. They are together, away from the
/// program's mappings, between which a gap is for the program to use.
pub const NEIGHBOUR_BYTES: usize = 1 << 20;

/// The agent's descriptors and its mailbox.
pub struct Post {
    /// The mailbox's address.
    pub mailbox: usize,
    /// The userfaultfd that the program's memory is registered with.
    pub program_uffd: i32,
    /// The userfaultfd that the second halves of stagings are registered with.
    pub staging_uffd: i32,
    /// The keeper's pidfd.
    pub keeper: i32,
    /// An eventfd that the keeper polls while it waits for a reply.
    pub bell: i32,
    /// A pipe's end for writing, by which pages are held.
    pub pipe: i32,
    /// The program's pidfd. Opened at the start: when it is needed the process number may mean
    /// another process, and the agent may not open descriptors any more.
    pub program: i32,
}

impl Post {
    pub fn header(&self) -> &Header {
        // SAFETY: the mailbox is mapped for good and begins with a header, all of whose fields are
        // atomics, valid whatever their bits.
        unsafe { &*(self.mailbox as *const Header) }
    }
}

pub fn start(bootstrap: &Bootstrap) -> Result<Post, Errno> {
    calls::leave_the_program()?;
    calls::socket_pair()?;
    bootstrap.status.store(1, Release);
    let [memory, keeper, bell, fourth, fifth] = calls::receive_descriptors(0)?;
    let wish = (bootstrap as *const Bootstrap).addr() + NEIGHBOUR_BYTES;
    let mailbox = calls::map(wish, MAILBOX_BYTES, false, memory)?;
    let mut post =
        Post { mailbox, program_uffd: -1, staging_uffd: -1, keeper, bell, pipe: -1, program: -1 };
    if post.header().magic.load(Acquire) != MAGIC || post.header().version.load(Acquire) != VERSION {
        return Err(Errno::EINVAL);
    }
    let given = post.header().given.load(Acquire);
    let (device, inherited) = match (given & GIVEN_DEVICE != 0, given & GIVEN_PROGRAM_UFFD != 0) {
        (true, true) => (fourth, fifth),
        (true, false) => (fourth, -1),
        (false, true) => (-1, fourth),
        (false, false) => (-1, -1),
    };
    let program_uffd = if inherited >= 0 { inherited } else { calls::new_userfaultfd(device)? };
    let staging_uffd = calls::new_userfaultfd(device)?;
    for fd in [0, 1, memory, device] {
        calls::close(fd);
    }
    let [reader, writer] = calls::pipe()?;
    post.pipe = writer;
    post.program_uffd = program_uffd;
    post.staging_uffd = staging_uffd;
    let header = post.header();
    let program = header.program.load(Acquire);
    header.program_uffd.store(program_uffd, Release);
    header.staging_uffd.store(staging_uffd, Release);
    header.pipe.store(reader, Release);
    header.address.store(mailbox as u64, Release);
    let pidfd = calls::pidfd_open(program)?;
    confine::confine(pidfd)?;
    header.ready.store(1, Release);
    post.program = pidfd;
    Ok(post)
}
