//! What happens when: events in the order of time, which answer promises and make others known.

use std::collections::VecDeque;

use super::events::Events;
use super::promises::{Action, Node, Promises};
use super::when::When;
use crate::machine::cycle::Pipeline;
use crate::machine::memory::{AnyMemory, Completion, Memory, Refused, Request};
use crate::machine::{Access, Content, Cycle};

/// Which pipeline of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineId(u32);

/// Something read from or written to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// First byte.
    pub address: u64,
    /// How many bytes; at most what the memory takes at once.
    pub size_bytes: u32,
    /// Data or metadata.
    pub content: Content,
}

/// What a timeline did, for profiles of the simulator itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineStatistics {
    /// Events that had to wait for their cycle.
    pub events: u64,
    /// Requests that found memory's queues full at first.
    pub requests_refused_at_first: u64,
}

/// Memory, pipelines, and everything that waits for them.
pub struct Schedule {
    now: Cycle,
    memory: AnyMemory,
    /// What the controller adds to the answer of a read.
    controller_cycles: u64,
    pipelines: Vec<Pipeline>,
    promises: Promises,
    /// By cycle, then in the order in which the cycle became known.
    events: Events,
    /// Requests that found the queues full: reads, writes.
    refused: [VecDeque<(Node, Request)>; 2],
    /// Whether time stands still: see [`count`](Schedule::count).
    counts: bool,
    /// Kept when things are done, so that nothing is allocated.
    ready: Vec<Node>,
    answered: Vec<Completion>,
    statistics: TimelineStatistics,
}

const TOO_LARGE: &str =
    "request exceeds the memory's maximum; the configuration should have been rejected";

/// In an event: a token to be told, not a node.
const TOKEN: u64 = 1 << 63;

impl Schedule {
    /// Cycle 0, and nothing to be done.
    #[must_use]
    pub(super) fn new(memory: AnyMemory, controller_cycles: u64) -> Schedule {
        Schedule {
            now: 0,
            memory,
            controller_cycles,
            pipelines: Vec::new(),
            promises: Promises::new(),
            events: Events::new(),
            refused: [VecDeque::new(), VecDeque::new()],
            counts: false,
            ready: Vec::new(),
            answered: Vec::new(),
            statistics: TimelineStatistics::default(),
        }
    }

    /// The cycle up to which all events have happened. No event can be scheduled before it.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// The memory.
    #[must_use]
    pub fn memory(&self) -> &AnyMemory {
        &self.memory
    }

    /// What the memory's controller adds to the answer of a read.
    #[must_use]
    pub fn controller_cycles(&self) -> u64 {
        self.controller_cycles
    }

    /// What was done so far.
    #[must_use]
    pub fn statistics(&self) -> TimelineStatistics {
        self.statistics
    }

    /// Lets time stand still, or pass again. While it stands still, memory and pipelines are asked
    /// for nothing: whatever is asked of them is ready at once, and no promise is made. So a
    /// protocol that runs on this timeline only counts. Nothing may be under way.
    pub fn count(&mut self, counts: bool) {
        debug_assert!(self.events.is_empty());
        self.counts = counts;
    }

    /// Adds a pipeline.
    pub fn add_pipeline(&mut self, pipeline: Pipeline) -> PipelineId {
        self.pipelines.push(pipeline);
        PipelineId(self.pipelines.len() as u32 - 1)
    }

    /// A pipeline, for its statistics.
    #[must_use]
    pub fn pipeline(&self, id: PipelineId) -> &Pipeline {
        &self.pipelines[id.0 as usize]
    }

    /// When it is, if that is known by now. Of what was kept long ago only that it is past: 0.
    #[must_use]
    #[inline]
    pub fn cycle_of(&self, when: When) -> Option<Cycle> {
        self.promises.cycle_of(when)
    }

    /// The later of two moments.
    #[inline]
    pub fn join(&mut self, a: When, b: When) -> When {
        match (self.cycle_of(a), self.cycle_of(b)) {
            (Some(a), Some(b)) => When::at(a.max(b)),
            (Some(known), None) if known <= self.now => b,
            (None, Some(known)) if known <= self.now => a,
            _ if a == b => a,
            _ => self.begin(Action::Pass { after_cycles: 0 }, [a, b]),
        }
    }

    /// So many cycles later.
    #[inline]
    pub fn after(&mut self, when: When, after_cycles: u64) -> When {
        if self.counts {
            return when;
        }
        match self.cycle_of(when) {
            Some(cycle) => When::at(cycle + after_cycles),
            None if after_cycles == 0 => when,
            None => self.begin(Action::Pass { after_cycles }, [when, When::PAST]),
        }
    }

    /// Gives a pipeline operations, one after another, once their input is there. It serves the
    /// input that is ready first. When the last result is there; without operations, when the input
    /// is.
    pub fn operate(&mut self, id: PipelineId, input: When, operations: u64) -> When {
        if operations == 0 {
            return input;
        }
        if self.counts {
            return When::PAST;
        }
        let known = self.cycle_of(input);
        let pipeline = &mut self.pipelines[id.0 as usize];
        match known {
            Some(cycle) if cycle <= self.now => When::at(pipeline.start_many(self.now, operations)),
            // One without a limit to its throughput delays nothing else, so it can be booked for
            // the future.
            Some(cycle) if pipeline.interval_cycles() == 0 => {
                When::at(pipeline.start_many(cycle, operations))
            }
            _ => self.begin(Action::Operate { pipeline: id.0, operations }, [input, When::PAST]),
        }
    }

    /// Reads from memory as soon as the address is known. When the last byte has arrived.
    ///
    /// # Panics
    /// The access is larger than [`AnyMemory::most_request_bytes`], as for [`write`](Self::write).
    pub fn read(&mut self, from: When, access: MemoryAccess) -> When {
        self.ask(from, access, Access::Read)
    }

    /// Writes to memory once the data is there. When the last byte was sent.
    pub fn write(&mut self, from: When, access: MemoryAccess) -> When {
        self.ask(from, access, Access::Write)
    }

    fn ask(&mut self, from: When, what: MemoryAccess, access: Access) -> When {
        if self.counts {
            return When::PAST;
        }
        let MemoryAccess { address, size_bytes, content } = what;
        let request = Request { id: 0, address, size_bytes, access, content };
        if let (AnyMemory::Flat(memory), Some(cycle)) =
            (&mut self.memory, self.promises.cycle_of(from))
            && cycle <= self.now
        {
            let at = memory.book(self.now, &request).expect(TOO_LARGE);
            return When::at(at + self.controller_cycles_of(access));
        }
        self.begin(Action::Ask(request), [from, When::PAST])
    }

    /// What an answer takes from the memory's pins to who asked. A write is done when it was sent.
    #[inline]
    fn controller_cycles_of(&self, access: Access) -> u64 {
        match access {
            Access::Read => self.controller_cycles,
            Access::Write => 0,
        }
    }

    /// A promise that is kept from outside, by [`keep`](Self::keep).
    pub fn promise(&mut self) -> When {
        let (when, _) = self.promises.make(Action::Outside, [When::PAST; 2]);
        when
    }

    /// Keeps a promise of [`promise`](Self::promise): it is when another moment is. Once is enough.
    pub fn keep(&mut self, promise: When, when: When) {
        if let Some(node) = self.promises.depend(promise, when) {
            self.ready.push(node);
            self.settle();
        }
    }

    /// Has a token come out of [`advance`](Self::advance) at that moment. It must be below 2^63.
    pub fn tell(&mut self, when: When, token: u64) {
        debug_assert!(token < TOKEN && !self.counts);
        match self.cycle_of(when) {
            Some(cycle) => self.enter(cycle, TOKEN | token),
            None => _ = self.begin(Action::Tell { token }, [when, When::PAST]),
        }
    }

    /// The cycle of the next event, if anything is left to happen.
    #[must_use]
    pub fn next_event(&self) -> Option<Cycle> {
        let event = self.events.next();
        let answer = self.memory.next_event();
        let next = match (event, answer) {
            (Some(event), Some(answer)) => event.min(answer),
            (either, other) => either.or(other)?,
        };
        Some(next.max(self.now))
    }

    /// Moves on to the next event and lets everything happen that happens in its cycle. Appends the
    /// tokens that are due, with the cycle, in their order. `false` if nothing is left to happen.
    pub fn advance(&mut self, told: &mut Vec<(Cycle, u64)>) -> bool {
        let Some(next) = self.next_event() else { return false };
        self.now = next;
        self.events.advance(next);
        self.hear_memory();
        while let Some(what) = self.events.take() {
            self.statistics.events += 1;
            if what & TOKEN != 0 {
                told.push((self.now, what & !TOKEN));
                continue;
            }
            self.perform(what as Node);
            self.settle();
        }
        true
    }

    /// Takes memory's answers, and offers it again what it refused.
    fn hear_memory(&mut self) {
        let AnyMemory::Ddr(_) = self.memory else { return };
        let mut answered = std::mem::take(&mut self.answered);
        self.memory.advance(self.now, &mut answered);
        for Completion { id, at } in answered.drain(..) {
            let node = id as Node;
            let after_cycles = match self.promises.action(node) {
                Action::Ask(Request { access, .. }) => self.controller_cycles_of(access),
                _ => 0,
            };
            self.promises.keep(node, at + after_cycles, &mut self.ready);
            self.settle();
        }
        self.answered = answered;
        for queue in 0..self.refused.len() {
            while let Some((_, request)) = self.refused[queue].front()
                && self.memory.send(self.now, *request).is_ok()
            {
                self.refused[queue].pop_front();
            }
        }
    }

    /// Makes a promise and does what can be done for it now.
    fn begin(&mut self, action: Action, inputs: [When; 2]) -> When {
        let (when, ready) = self.promises.make(action, inputs);
        if let Some(node) = ready {
            self.ready.push(node);
            self.settle();
        }
        when
    }

    /// Goes on with everything whose inputs have become known.
    fn settle(&mut self) {
        while let Some(node) = self.ready.pop() {
            let floor = self.promises.floor(node);
            match self.promises.action(node) {
                Action::Pass { after_cycles } => {
                    self.promises.keep(node, floor + after_cycles, &mut self.ready);
                }
                Action::Tell { token } => {
                    self.promises.keep(node, floor, &mut self.ready);
                    self.enter(floor, TOKEN | token);
                }
                Action::Outside => {}
                Action::Operate { .. } | Action::Ask(_) if floor <= self.now => self.perform(node),
                Action::Operate { .. } | Action::Ask(_) => self.enter(floor, u64::from(node)),
            }
        }
    }

    /// Starts an operation or sends a request, now.
    fn perform(&mut self, node: Node) {
        match self.promises.action(node) {
            Action::Operate { pipeline, operations } => {
                let at = self.pipelines[pipeline as usize].start_many(self.now, operations);
                self.promises.keep(node, at, &mut self.ready);
            }
            Action::Ask(request) => self.send(node, request),
            Action::Pass { .. } | Action::Tell { .. } | Action::Outside => {}
        }
    }

    fn send(&mut self, node: Node, request: Request) {
        let request = Request { id: u64::from(node), ..request };
        match &mut self.memory {
            AnyMemory::Flat(memory) => {
                let at = memory.book(self.now, &request).expect(TOO_LARGE);
                let at = at + self.controller_cycles_of(request.access);
                self.promises.keep(node, at, &mut self.ready);
            }
            AnyMemory::Ddr(memory) => {
                let queue = &mut self.refused[usize::from(request.access == Access::Write)];
                // First come, first served, also among those that wait for the queue.
                let sent = if queue.is_empty() {
                    memory.send(self.now, request)
                } else {
                    Err(Refused::Full)
                };
                match sent {
                    Ok(()) => {}
                    Err(Refused::Full) => {
                        queue.push_back((node, request));
                        self.statistics.requests_refused_at_first += 1;
                    }
                    Err(Refused::TooLarge { .. }) => panic!("{TOO_LARGE}"),
                }
            }
        }
    }

    fn enter(&mut self, at: Cycle, what: u64) {
        self.events.enter(at, what);
    }
}
