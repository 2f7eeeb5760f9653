//! What the agent's code takes from its `crate::start`: its post, and here the mailbox as well.

use casemate_agent::{DATA_OFFSET, Header, MAILBOX_BYTES, OPS, OPS_OFFSET, Op, SLOTS};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

pub const NEIGHBOUR_BYTES: usize = 1 << 20;

/// See `agent/blob/start.rs`.
#[allow(dead_code)]
pub struct Post {
    pub mailbox: usize,
    pub program_uffd: i32,
    pub staging_uffd: i32,
    pub keeper: i32,
    pub bell: i32,
    pub pipe: i32,
    pub program: i32,
}

impl Post {
    pub fn header(&self) -> &Header {
        // SAFETY: `Hand::new` keeps the mailbox alive as long as the thread that has this post; it
        // begins with a header, all of whose fields are atomics.
        unsafe { &*(self.mailbox as *const Header) }
    }
}

/// Memory that a hand and its agent share.
#[derive(Debug)]
pub struct Mailbox(NonNull<u8>);

// SAFETY: reached by atomics, and by copies of which only the thread that has the turn makes one.
unsafe impl Send for Mailbox {}
// SAFETY: as above.
unsafe impl Sync for Mailbox {}

const LAYOUT: Layout = match Layout::from_size_align(MAILBOX_BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a mailbox has a layout"),
};

impl Mailbox {
    pub fn new() -> Mailbox {
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(LAYOUT) };
        Mailbox(NonNull::new(start).unwrap_or_else(|| handle_alloc_error(LAYOUT)))
    }

    pub fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    pub fn header(&self) -> &Header {
        // SAFETY: aligned to a page, longer than a header, alive as long as self; the fields are
        // atomics.
        unsafe { self.0.cast::<Header>().as_ref() }
    }

    fn place(&self, i: usize) -> *mut Op {
        assert!(i < OPS);
        // SAFETY: i < OPS, so the op lies in the mailbox.
        unsafe { self.0.add(OPS_OFFSET).cast::<Op>().add(i).as_ptr() }
    }

    pub fn put_op(&self, i: usize, op: Op) {
        // SAFETY: `place` lies in the mailbox; the agent does not have the turn.
        unsafe { self.place(i).write_volatile(op) };
    }

    pub fn op(&self, i: usize) -> Op {
        // SAFETY: as above.
        unsafe { self.place(i).read_volatile() }
    }

    /// Takes the contents of a data slot and leaves zeros.
    pub fn take_slot(&self, slot: usize) -> [u8; 4096] {
        assert!((slot as u64) < SLOTS);
        // SAFETY: the slot lies in the mailbox; the agent does not have the turn.
        unsafe { self.0.add(DATA_OFFSET + slot * 4096).cast::<[u8; 4096]>().replace([0; 4096]) }
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. The hand and the agent's thread each hold an `Arc` of
        // it, so with the last one gone neither uses it any more.
        unsafe { dealloc(self.0.as_ptr(), LAYOUT) };
    }
}
