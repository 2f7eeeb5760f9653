//! What the agent's code takes from its `crate::arch`.

use crate::calls::this_agent;
use crate::scheduler;

/// Copies a page of simulated memory at `src` to `dst`.
///
/// # Safety
/// `dst` must be valid for `len` bytes.
pub unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    for at in (0..len).step_by(4096) {
        let mut page = [0; 4096];
        let from = (src.addr() + at) as u64;
        if scheduler::kernel().read_page(this_agent(), from, &mut page).is_err() {
            panic!("the agent has no page at {from:#x}");
        }
        // SAFETY: the caller vouches for `dst`; the page is a local.
        unsafe { dst.add(at).copy_from_nonoverlapping(page.as_ptr(), 4096.min(len - at)) };
    }
}
