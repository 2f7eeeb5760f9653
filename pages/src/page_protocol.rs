//! A page in and a page out, step by step, over any pair of ports.
//!
//! | a page comes in | a page goes out |
//! |---|---|
//! | [`Directory::lookup`]: its record, verified | [`seal`]: encrypted in place, a fresh LPID |
//! | [`fetch`]: its ciphertext, made private | [`Sealed::store`]: its ciphertext, to the store |
//! | [`Fetched::open`]: tag compared, decrypted | [`record`]: its record, into the directory |
//! | [`Fetched::heal`], if it does not open and the run heals; then opened again | |
//! | [`forget`]: its record goes, if it is to be written | |
//!
//! The keeper takes the steps one by one: it holds the directory's lock only for the steps that
//! name the directory, and takes several pages through one step before the next. [`page_in`] and
//! [`page_out`] take one page through all of them.

use crate::directory_shape::DirectoryPort;
use crate::flipped_bits::{FlipFinder, Flips};
use crate::line_array::LineArray;
use crate::page_directory::{Directory, SpaceId};
use crate::page_record::{PageRecord, StorePlace, Tag};
use casemate_core::gpc::GlobalPageCounter;
use casemate_core::violation::Violation;
use casemate_core::{Lpid, PAGE_BYTES};

/// What the protocol asks of the world to move, seal and open pages.
///
/// Apart from [`Port`](casemate_core::port::Port), because the keeper's threads share it, and hold
/// no lock while they use it.
pub trait PagePort {
    /// A page: ciphertext in untrusted memory, or either in private memory.
    type Page;

    /// Copies a page between untrusted and private memory. Each byte is read once.
    fn copy(&self, from: &Self::Page, to: &mut Self::Page);

    /// Encrypts a page in private memory, where it is, under a fresh LPID.
    ///
    /// # Errors
    /// [`Violation::NoKey`]; the page is as it was.
    fn seal_in_place(&self, lpid: Lpid, page: &mut Self::Page) -> Result<Tag, Violation>;

    /// Decrypts a page in private memory, where it is.
    ///
    /// # Errors
    /// [`Violation::PageTag`] if ciphertext, LPID and tag do not belong together; the page is
    /// wiped. [`Violation::NoKey`]; the page is as it was.
    fn open_in_place(&self, lpid: Lpid, tag: &Tag, page: &mut Self::Page) -> Result<(), Violation>;
}

/// A page whose ciphertext was copied to private memory, and is opened there.
#[must_use = "a fetched page is ciphertext until it is opened"]
pub struct Fetched<'a, Q: PagePort> {
    record: &'a PageRecord,
    page: &'a mut Q::Page,
}

/// Copies the ciphertext of a page to private memory: what is verified there is what is decrypted.
/// `record` comes from the directory, which verified it.
#[inline]
pub fn fetch<'a, Q: PagePort>(
    pages: &Q,
    record: &'a PageRecord,
    cipher: &Q::Page,
    page: &'a mut Q::Page,
) -> Fetched<'a, Q> {
    pages.copy(cipher, page);
    Fetched { record, page }
}

impl<Q: PagePort<Page = [u8; PAGE_BYTES]>> Fetched<'_, Q> {
    /// Flips the one or two bits back by which the ciphertext differs from what was sealed. None if
    /// it differs by none, or by more: then it is as it was.
    #[inline]
    pub fn heal(&mut self, finder: &FlipFinder) -> Option<Flips> {
        let flips = finder.find(self.record, self.page)?;
        flips.apply(self.page);
        Some(flips)
    }

    /// The ciphertext.
    #[inline]
    pub fn cipher(&self) -> &[u8; PAGE_BYTES] {
        self.page
    }
}

impl<Q: PagePort> Fetched<'_, Q> {
    /// Decrypts the page where it is.
    ///
    /// # Errors
    /// [`Violation::PageTag`] if it does not belong to its record; then it is wiped.
    #[inline]
    pub fn open(self, pages: &Q) -> Result<(), Violation> {
        pages.open_in_place(self.record.lpid, &self.record.tag, self.page)
    }
}

/// A page that was encrypted where it is, and has no place in the store yet.
#[must_use = "a sealed page is lost unless it is stored and recorded"]
pub struct Sealed<'a, Q: PagePort> {
    lpid: Lpid,
    tag: Tag,
    page: &'a Q::Page,
}

/// Encrypts a page where it is, under a fresh LPID: no seed is used twice (AISE, section 4.3).
///
/// # Errors
/// [`Violation::SeedsExhausted`], [`Violation::NoKey`]; the page is as it was.
#[inline]
pub fn seal<'a, Q: PagePort>(
    pages: &Q,
    gpc: &GlobalPageCounter,
    page: &'a mut Q::Page,
) -> Result<Sealed<'a, Q>, Violation> {
    let lpid = gpc.next()?;
    let tag = pages.seal_in_place(lpid, page)?;
    Ok(Sealed { lpid, tag, page })
}

impl<Q: PagePort> Sealed<'_, Q> {
    /// Copies the ciphertext to its place.
    #[inline]
    pub fn store(&self, pages: &Q, cipher: &mut Q::Page) {
        pages.copy(self.page, cipher);
    }

    /// The record of the page, whose ciphertext lies at `place`.
    #[inline]
    pub fn at(self, place: StorePlace) -> PageRecord {
        PageRecord { lpid: self.lpid, tag: self.tag, place }
    }
}

/// Puts a page's record into the directory. Returns the place of an older ciphertext, which is not
/// needed any more.
///
/// # Errors
/// Those of [`Directory::replace`].
#[inline]
pub fn record<P: DirectoryPort, A: LineArray<P>>(
    directory: &mut Directory<P, A>,
    space: SpaceId,
    vpn: u64,
    record: PageRecord,
) -> Result<Option<StorePlace>, Violation> {
    Ok(directory.replace(space, vpn, Some(record))?.map(|old| old.place))
}

/// Removes a page's record. Returns the place of its ciphertext, which is not needed any more.
///
/// # Errors
/// Those of [`Directory::replace`].
#[inline]
pub fn forget<P: DirectoryPort, A: LineArray<P>>(
    directory: &mut Directory<P, A>,
    space: SpaceId,
    vpn: u64,
) -> Result<Option<StorePlace>, Violation> {
    Ok(directory.replace(space, vpn, None)?.map(|old| old.place))
}

/// Brings a page to private memory; its record stays. `None`: it has no record, so it is zero, and
/// `page` is as it was. `cipher_at` finds the ciphertext.
///
/// # Errors
/// What does not verify. No plaintext is released then.
pub fn page_in<'a, P: DirectoryPort, A: LineArray<P>, Q: PagePort<Page: 'a>>(
    directory: &mut Directory<P, A>,
    pages: &Q,
    (space, vpn): (SpaceId, u64),
    cipher_at: impl FnOnce(StorePlace) -> &'a Q::Page,
    page: &mut Q::Page,
) -> Result<Option<PageRecord>, Violation> {
    let Some(record) = directory.lookup(space, vpn)? else { return Ok(None) };
    fetch(pages, &record, cipher_at(record.place), page).open(pages)?;
    Ok(Some(record))
}

/// Puts a page out of private memory, to `cipher`, which lies at `place`. Returns its record.
///
/// # Errors
/// [`Violation::SeedsExhausted`], [`Violation::NoKey`], and those of [`Directory::replace`].
pub fn page_out<P: DirectoryPort, A: LineArray<P>, Q: PagePort>(
    directory: &mut Directory<P, A>,
    pages: &Q,
    gpc: &GlobalPageCounter,
    (space, vpn): (SpaceId, u64),
    page: &mut Q::Page,
    (place, cipher): (StorePlace, &mut Q::Page),
) -> Result<PageRecord, Violation> {
    let sealed = seal(pages, gpc, page)?;
    sealed.store(pages, cipher);
    let new = sealed.at(place);
    record(directory, space, vpn, new)?;
    Ok(new)
}
