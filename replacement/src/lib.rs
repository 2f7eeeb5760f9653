//! Page replacement: which page leaves when room is needed. One file a policy.
//!
//! A policy knows pages by number and sees what its user can show it: faults, the accessed bits of
//! the page table, or every reference. It never touches memory, keys or contents; a wrong answer
//! costs time and nothing else.
//!
//! In reading order:
//!
//! - [`Policy`] and [`Pages`]: what a policy is told and asked, and what it may do;
//! - [`lists`]: the pages of a policy in a few lists;
//! - policies that see faults only: [`fifo`], [`grace`], [`s3_grace`];
//! - policies that see accessed bits: [`clock`], [`sieve`], [`s3_fifo`], [`clock_pro`], [`ageing`];
//! - policies that see every reference, as yardsticks: [`lru`], [`two_q`], [`arc`];
//! - [`catalogue`]: all of them by name.

pub mod ageing;
pub mod arc;
pub mod catalogue;
pub mod clock;
pub mod clock_pro;
pub mod fifo;
pub mod grace;
pub mod lists;
pub mod lru;
pub mod s3_fifo;
pub mod s3_grace;
pub mod sieve;
pub mod two_q;

/// The number of a page. Numbers should be dense from 0: policies keep tables that are as long as
/// the largest one.
pub type Page = u32;

/// The pages that a policy decides about, as its user has them.
pub trait Pages {
    /// Whether a page was accessed since this was last asked of it (or since it came in), and
    /// clears that: the accessed bit of the page table.
    fn accessed(&mut self, page: Page) -> bool;

    /// Takes a page out of the page table but keeps its contents at hand, so that its next access
    /// is a soft fault ([`Policy::used_again`]).
    fn unmap(&mut self, page: Page);
}

/// What decides which page leaves.
pub trait Policy {
    /// A page came in by a hard fault. Before that, [`Policy::victim`] was asked if there was no
    /// room.
    fn entered(&mut self, page: Page);

    /// A page that is in was referred to. Called only for policies that see references.
    fn referred(&mut self, _page: Page) {}

    /// A page that was unmapped with [`Pages::unmap`] was accessed, and is mapped again.
    fn used_again(&mut self, _page: Page) {}

    /// The page that leaves, for `incoming` if that is known. `None` only if no page is in.
    fn victim(&mut self, incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page>;

    /// A page is gone without having been a victim: unmapped by the program. What is remembered of
    /// it is forgotten.
    fn removed(&mut self, page: Page);
}
