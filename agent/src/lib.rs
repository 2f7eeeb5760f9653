//! The wire format between the keeper and its *agent*, the small process that shares a protected
//! program's address space and does there what only an insider may do (see `blob/main.rs`).
//!
//! The agent itself is not part of this library: the keeper's build script compiles `blob/main.rs`
//! into a freestanding image, which includes [`wire`] as a module, so that both sides read one
//! text.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod wire;

pub use wire::confinement;
pub use wire::{
    ADVICE, Action, BOOTSTRAP_BYTES, Bootstrap, DATA_OFFSET, Errno, GIVEN_DEVICE,
    GIVEN_PROGRAM_UFFD, HELD_PAGES, Header, Limits, MAGIC, MAILBOX_BYTES, OP_BYTES, OPS,
    OPS_OFFSET, Op, PAGE_BYTES, SLOTS, STAGING_PAGES, STAGINGS, StagingKind, VERSION,
    WAITS_ON_BELL, WAITS_ON_FUTEX, validate,
};
