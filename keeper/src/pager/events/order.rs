//! The order of events: whether those that were read together can be taken as they were read.

use super::Events;
use crate::pager::Stop;
use crate::pager::agent::agent_is_gone;
use crate::pager::space::{Space, SpaceState, Vpn, in_pages};
use crate::sys::procfs;
use crate::sys::uffd::Message;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

impl Events<'_> {
    /// Whether events that were read together can be taken in the order in which they were read:
    /// they are of one call, or of one thread, or of different pages.
    pub(super) fn are_in_order(
        &self,
        space: &Space,
        state: &SpaceState,
        events: &[Message],
    ) -> Result<(), Stop> {
        let calls = calls_of(events);
        if calls.len() < 2 || is_single_threaded(state) {
            return Ok(());
        }
        let disorder = calls.iter().enumerate().any(|(i, call)| {
            calls[..i].iter().any(|before| {
                let matters = call.moves || before.moves;
                let overlap = call.ranges.iter().any(|range| {
                    before
                        .ranges
                        .iter()
                        .any(|other| range.start < other.end && other.start < range.end)
                });
                matters && overlap
            })
        });
        if !disorder {
            return Ok(());
        }
        // One that was killed in the midst of a call leaves its events behind.
        let agent = space.agent.load(Relaxed);
        if agent != 0 && procfs::has_ended(agent) {
            return Err(agent_is_gone(state));
        }
        Err(Stop::Internal(format!(
            "several threads of a process whose calls are not announced moved, unmapped or forked \
             the same memory at the same time, and the order of {} calls cannot be told",
            calls.len()
        )))
    }
}

/// The events of one call.
#[derive(Default)]
struct Call {
    ranges: Vec<Range<Vpn>>,
    /// It is a mremap or a fork, not one that only drops contents.
    moves: bool,
}

/// A mremap raises an event for what it unmaps at its target, one for the move, and one for its
/// source.
fn calls_of(events: &[Message]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for event in events {
        let mut ranges = Vec::new();
        let moves = match event {
            Message::Fork(_) => {
                ranges.push(0..Vpn::MAX);
                true
            }
            Message::Remap { from, to, len } => {
                ranges.extend([in_pages(*from, from + len), in_pages(*to, to + len)]);
                true
            }
            Message::Remove { start, end } | Message::Unmap { start, end } => {
                ranges.push(in_pages(*start, *end));
                false
            }
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => continue,
        };
        let is_part = calls.last().is_some_and(|last| match event {
            Message::Unmap { .. } => last.moves && last.ranges.contains(&ranges[0]),
            Message::Remap { .. } => {
                !last.moves && last.ranges.iter().all(|r| within(r, &ranges[1]))
            }
            _ => false,
        });
        match calls.last_mut().filter(|_| is_part) {
            Some(last) => {
                last.moves = true;
                last.ranges.extend(ranges);
            }
            None => calls.push(Call { ranges, moves }),
        }
    }
    calls
}

fn within(range: &Range<Vpn>, outer: &Range<Vpn>) -> bool {
    outer.start <= range.start && range.end <= outer.end
}

fn is_single_threaded(state: &SpaceState) -> bool {
    matches!(state.processes.pids[..], [pid] if procfs::threads(pid).len() <= 1)
}

/// Whether any of these events changes a page.
pub(in crate::pager::events) fn touches_page(events: &[Message], vpn: Vpn) -> bool {
    calls_of(events).iter().any(|call| call.ranges.iter().any(|range| range.contains(&vpn)))
}
