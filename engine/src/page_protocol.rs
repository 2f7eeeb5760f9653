//! A page in and a page out: the whole protocol, over any pair of ports.
//!
//! The keeper spells the same steps out itself, since it holds the directory's lock only for the
//! directory's step.

use crate::directory_shape::DirectoryPort;
use crate::gpc::GlobalPageCounter;
use crate::page_directory::{Directory, SpaceId};
use crate::page_record::{PageRecord, Place};
use crate::port::PagePort;
use crate::violation::Violation;

/// Brings a page into the Clear. `None`: the page was never put out, so it is zero.
///
/// `cipher_at` finds the ciphertext; its place is known only when the record is verified.
pub fn page_in<'a, P: DirectoryPort, Q: PagePort<Moment = P::Moment>>(
    directory: &mut Directory<P>,
    pages: &mut Q,
    space: SpaceId,
    vpn: u64,
    cipher_at: impl FnOnce(Place) -> &'a Q::CipherPage,
    plain: &mut Q::PlainPage,
) -> Result<Option<Q::Moment>, Violation>
where
    Q::CipherPage: 'a,
{
    let Some(record) = directory.lookup(space, vpn)? else { return Ok(None) };
    let known = directory.completed();
    pages.open_page(&record, known, cipher_at(record.place), plain).map(Some)
}

/// Puts a page out of the Clear: a fresh LPID, the ciphertext, the new record.
#[allow(clippy::too_many_arguments)]
pub fn page_out<P: DirectoryPort, Q: PagePort<Moment = P::Moment>>(
    directory: &mut Directory<P>,
    pages: &mut Q,
    gpc: &GlobalPageCounter,
    space: SpaceId,
    vpn: u64,
    plain: &Q::PlainPage,
    place: Place,
    cipher: &mut Q::CipherPage,
) -> Result<Option<PageRecord>, Violation> {
    let lpid = gpc.next()?;
    let now = directory.port_mut().now();
    let (tag, _) = pages.seal_page(lpid, plain, now, cipher);
    directory.replace(space, vpn, Some(PageRecord { lpid, tag, place }))
}
