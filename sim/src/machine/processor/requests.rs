//! Traces of requests to memory (DRAMsim3's, or ours of last-level misses): each goes to the
//! backing at its cycle, past cores and caches.
//!
//! Addresses are physical. A block that was read is dropped when it has come: no cache keeps it.

use super::statistics::RequestStatistics;
use super::{Processor, RunError};
use crate::machine::Cycle;
use crate::machine::backing::{Backing, BlockAddresses, PAGE_BYTES, PageAddresses};
use crate::machine::hierarchy::{Observer, token};
use crate::machine::numbers::NumberMap;
use crate::machine::timeline::When;
use crate::trace::{Instruction, Kind, Reference};

/// Requests under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    /// The next one, whose cycle has not come.
    next: Option<Instruction>,
    /// Blocks that are being read, and when they were asked for.
    under_way: Vec<(u64, Cycle)>,
    spare: Vec<u32>,
    touched: NumberMap<()>,
    statistics: RequestStatistics,
}

impl Requests {
    pub(super) fn statistics(&self) -> &RequestStatistics {
        &self.statistics
    }

    /// Whether one waits for its cycle.
    pub(super) fn has_next(&self) -> bool {
        self.next.is_some()
    }
}

fn block_at(address: u64) -> BlockAddresses {
    BlockAddresses { frame_address: address, virtual_address: address }
}

impl<B: Backing, O: Observer> Processor<B, O> {
    /// A request is next in the trace: it waits for its cycle. One that comes late in the trace
    /// goes now.
    pub(super) fn expect_request(&mut self, request: Instruction) {
        let at = request.arrival_cycle.unwrap_or(0).max(self.timeline.now());
        self.timeline.tell(When::at(at), token::request());
        self.requests.next = Some(request);
    }

    /// Its cycle has come.
    pub(super) fn request(&mut self) -> Result<(), RunError> {
        let Some(request) = self.requests.next.take() else { return Ok(()) };
        self.instructions += request.instructions();
        for reference in &request.references {
            self.request_reference(reference)?;
        }
        self.queues.recycle(request);
        Ok(())
    }

    fn request_reference(&mut self, reference: &Reference) -> Result<(), RunError> {
        let line_bytes = self.hierarchy.backing.line_bytes();
        let further = u64::from(reference.size_bytes.max(1)) - 1;
        let last = reference.address.saturating_add(further);
        let memory_bytes = self.hierarchy.frames.memory_bytes();
        if last >= memory_bytes {
            return Err(RunError::BeyondMemory { address: last, memory_bytes });
        }
        for address in ((reference.address & !(line_bytes - 1))..=last).step_by(line_bytes as usize)
        {
            self.touch(address & !(PAGE_BYTES - 1));
            match reference.kind {
                Kind::Load => self.request_read(address),
                Kind::Store => {
                    self.requests.statistics.writes += 1;
                    self.hierarchy.write_request(block_at(address), &mut self.timeline);
                }
            }
        }
        Ok(())
    }

    fn touch(&mut self, page: u64) {
        if self.requests.touched.insert(page, ()).is_none() {
            let page = PageAddresses { frame_address: page, virtual_address: page };
            self.hierarchy.backing.touch_page(page, &mut self.timeline);
        }
    }

    fn request_read(&mut self, address: u64) {
        self.requests.statistics.reads += 1;
        let usable = self.hierarchy.read_request(block_at(address), &mut self.timeline);
        let under_way = (address, self.timeline.now());
        let slot = match self.requests.spare.pop() {
            Some(slot) => {
                self.requests.under_way[slot as usize] = under_way;
                slot
            }
            None => {
                self.requests.under_way.push(under_way);
                self.requests.under_way.len() as u32 - 1
            }
        };
        self.timeline.tell(usable, token::request_answered(slot));
    }

    /// A block can be used that was read.
    pub(super) fn request_answered(&mut self, slot: u32) {
        let (address, asked) = self.requests.under_way[slot as usize];
        self.requests.spare.push(slot);
        self.requests.statistics.read_latency.count(self.timeline.now() - asked);
        self.hierarchy.drop_request(block_at(address), &mut self.timeline);
    }
}
