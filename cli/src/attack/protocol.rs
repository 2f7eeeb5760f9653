//! The door that an attackable run opens: an abstract unix socket that hands its stores out.
//!
//! The keeper sends one message, a JSON [`Header`], with the descriptors of the Crypt, the
//! metadata and, if there is one, the swap file.

use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, recvmsg, socket_with,
};
use serde::Deserialize;

use super::deeds::Store;
use crate::failure::Failure;

/// The longest header.
const HEADER_BYTES: usize = 64 * 1024;

/// What the keeper says about the descriptors. Fields that are not known are for others.
#[derive(Debug, Deserialize)]
struct Header {
    page_bytes: u64,
    crypt_bytes: u64,
    metadata_bytes: u64,
    #[serde(default)]
    swap_bytes: u64,
}

/// A run's untrusted stores.
pub struct Target {
    /// Ciphertext in memory.
    pub crypt: Store,
    /// Records and tree nodes.
    pub metadata: Store,
    /// Ciphertext on disk.
    pub swap: Option<Store>,
    socket: OwnedFd,
}

impl Target {
    /// Waits a millisecond, or until the run ends; says whether it has ended.
    pub fn ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let pause = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        matches!(poll(&mut fds, Some(&pause)), Ok(n) if n > 0)
    }
}

/// Asks the keeper for its stores.
pub fn connect(keeper: u32) -> Result<Target> {
    let refused = || {
        Failure::no("no attackable run with that pid: start it with `casemate run --attackable`")
    };
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .context("cannot create a socket")?;
    let address = SocketAddrUnix::new_abstract_name(format!("casemate-attack-{keeper}").as_bytes())
        .context("cannot name the socket of the run")?;
    connect_to(&socket, &address).map_err(|_| refused())?;
    let (header, files) = receive(&socket)?;
    let header: Header = serde_json::from_slice(&header)
        .context("cannot understand the keeper's answer (are both the same casemate?)")?;
    if header.page_bytes != casemate_keeper::PAGE_BYTES as u64 {
        return Err(Failure::no(format!(
            "the keeper's pages have {} bytes; this casemate knows 4096 (use the same version)",
            header.page_bytes
        ))
        .into());
    }
    let mut files = files.into_iter().map(File::from);
    let (Some(crypt), Some(metadata)) = (files.next(), files.next()) else {
        return Err(refused().into());
    };
    Ok(Target {
        crypt: Store::new("crypt", crypt, header.crypt_bytes)?,
        metadata: Store::new("metadata", metadata, header.metadata_bytes)?,
        swap: files.next().map(|file| Store::new("swap", file, header.swap_bytes)).transpose()?,
        socket,
    })
}

/// One message with its descriptors.
fn receive(socket: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .context("cannot receive the stores from the keeper")?;
    if message.bytes == 0 || message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(Failure::no("the keeper did not hand its stores out: it is ending").into());
    }
    bytes.truncate(message.bytes);
    let mut files = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            files.extend(descriptors);
        }
    }
    Ok((bytes, files))
}
