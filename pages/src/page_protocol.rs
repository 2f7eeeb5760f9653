//! A page in and a page out: the whole protocol, over any pair of ports.
//!
//! The keeper spells the same steps out itself, since it holds the directory's lock only for the
//! directory's step.

use crate::directory_shape::DirectoryPort;
use crate::page_directory::{Directory, SpaceId};
use crate::page_record::{PageRecord, Place, Tag};
use casemate_core::Lpid;
use casemate_core::gpc::GlobalPageCounter;
use casemate_core::violation::Violation;

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

/// What a protocol asks of the world to seal and open pages.
///
/// Apart from [`Port`](casemate_core::port::Port), because it has units of its own and the keeper holds the directory's lock
/// for the one and not for the other.
pub trait PagePort {
    /// When something is ready, as in the [`Port`](casemate_core::port::Port) beside it.
    type Moment: Copy;
    /// A page's ciphertext in untrusted memory.
    type CipherPage;
    /// A page in the Clear.
    type PlainPage;

    /// Encrypts a page that is ready at `from` under a fresh LPID; returns tag and completion.
    fn seal_page(
        &mut self,
        lpid: Lpid,
        plain: &Self::PlainPage,
        from: Self::Moment,
        cipher: &mut Self::CipherPage,
    ) -> (Tag, Self::Moment);

    /// Fetches a page's ciphertext, whose address is known at `from`, decrypts it under its
    /// verified record (also known at `from`), checks its tag, and releases it.
    fn open_page(
        &mut self,
        record: &PageRecord,
        from: Self::Moment,
        cipher: &Self::CipherPage,
        plain: &mut Self::PlainPage,
    ) -> Result<Self::Moment, Violation>;
}
