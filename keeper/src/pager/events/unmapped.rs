//! What an event says is unmapped: the kernel is asked whether it is.

use super::Events;
use super::survey::CERTAINTY_ROUNDS;
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Vpn, in_pages, keys_in};
use crate::sys::uffd::{Message, Refusal};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

impl Events<'_> {
    /// Whether what the first of `events` says was unmapped is there still: the kernel raises it
    /// for what `mmap` or `munmap` were to take away, also if they failed.
    pub(super) fn has_stayed(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
        is_awaited: bool,
        events: &mut VecDeque<Message>,
    ) -> Result<bool, Stop> {
        for _ in 0..CERTAINTY_ROUNDS {
            if events.iter().skip(1).any(|event| moves_to(event, range)) {
                return Ok(false);
            }
            let ask = |part: &Range<Vpn>| {
                let (start, len) = (part.start, part.end - part.start);
                space.uffd.protect(start * PAGE_BYTES as u64, len * PAGE_BYTES as u64, false)
            };
            let asked = state.mapped.registered.common_with(range);
            let (answered, unanswered): (Vec<_>, Vec<_>) = asked
                .iter()
                .map(ask)
                .partition(|answer| matches!(answer, Ok(()) | Err(Refusal::NoMapping)));
            if unanswered.is_empty() {
                let is_there = answered.iter().any(Result::is_ok)
                    && (is_awaited || self.has_kept_a_page(state, range)?);
                if is_there {
                    self.look_again(space, state, range)?;
                }
                return Ok(is_there);
            }
            let mut more = Vec::new();
            self.gather(space, state, &mut more)?;
            if space.is_gone() {
                return Ok(false);
            }
            events.extend(more);
            self.are_in_order(space, state, events.make_contiguous())?;
        }
        Err(in_doubt(range))
    }

    /// Whether a range that was to be unmapped, and is mapped, has kept its pages. What has grown
    /// there since has none: they come from us. (Where calls are announced nothing grows unheard.)
    fn has_kept_a_page(&self, state: &mut SpaceState, range: &Range<Vpn>) -> Result<bool, Stop> {
        for vpn in keys_in(&state.clear.pages, range) {
            if let Some(is_there) = state.processes.holds_page(vpn * PAGE_BYTES as u64)? {
                return Ok(is_there);
            }
        }
        // Such a call went on while the space came into being: it can hardly have failed, and what
        // is there was mapped since, announced.
        if state.calls.is_announced {
            return Ok(false);
        }
        Err(in_doubt(range))
    }
}

fn in_doubt(range: &Range<Vpn>) -> Stop {
    Stop::Internal(format!(
        "memory at {:#x} that a call was to unmap is there: the call failed, or a mapping has \
         grown there since, and which of both cannot be told",
        range.start * PAGE_BYTES as u64
    ))
}

/// Whether an event moves memory to a range.
fn moves_to(event: &Message, range: &Range<Vpn>) -> bool {
    match event {
        Message::Remap { to, len, .. } => {
            let target = in_pages(*to, to + len);
            target.start < range.end && range.start < target.end
        }
        _ => false,
    }
}
