//! The entry for `casemate attack`: hands the untrusted stores to another process of the same user.
//! Runs only with `--attackable`; without it the stores are private memory of the keeper, which the
//! user's other processes cannot read (`PR_SET_DUMPABLE`).

use crate::metadata::MetadataView;
use crate::pager::Pager;
use crate::sys::{process, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Listens on the abstract socket `casemate-attack-PID` and serves each caller once.
pub(crate) fn serve(pager: &Arc<Pager>, metadata: MetadataView) -> io::Result<()> {
    let listener = socket::listen(&format!("casemate-attack-{}", std::process::id()))?;
    let pager = Arc::clone(pager);
    std::thread::Builder::new().name("attackable".to_owned()).spawn(move || {
        loop {
            let Ok(caller) = socket::accept(&listener) else { continue };
            if same_user(&caller) {
                // An error means that the caller has gone; the run does not depend on it.
                let _ = hand_over(&pager, &metadata, &caller);
            }
        }
    })?;
    Ok(())
}

fn hand_over(pager: &Pager, metadata: &MetadataView, caller: &OwnedFd) -> io::Result<()> {
    let Some(stores) = pager.store.adversary_fds() else { return Ok(()) };
    let header = serde_json::json!({
        "page_bytes": crate::config::PAGE_BYTES,
        "crypt_bytes": stores.crypt_bytes,
        "metadata_bytes": metadata.bytes(),
        "swap_bytes": stores.swap_bytes,
    });
    let mut fds = vec![stores.crypt.as_raw_fd(), metadata.file.as_raw_fd()];
    fds.extend(stores.swap.map(|fd| fd.as_raw_fd()));
    send(caller, header.to_string().as_bytes(), &fds)
}

/// Whether a caller is of our user, or root.
fn same_user(caller: &OwnedFd) -> bool {
    socket::caller(caller).is_ok_and(|(_, uid)| process::is_ours(uid))
}

fn send(socket: &OwnedFd, text: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let bytes = size_of_val(fds);
    // u64 words give the control buffer the alignment of a cmsghdr; eight hold header and fds.
    let mut control = [0u64; 8];
    // SAFETY: `control` has room for CMSG_SPACE of at most three descriptors (16 + 16 bytes), all
    // pointers are to live memory of the lengths given.
    unsafe {
        let mut part =
            libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(bytes as u32) as usize;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(bytes as u32) as usize;
        std::ptr::copy_nonoverlapping(fds.as_ptr().cast(), libc::CMSG_DATA(header), bytes);
        if libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
