//! The cycles interpretation: the same protocol, with ready times and occupied units.
//!
//! A carried value is the value and the cycle at which it is ready. Overlap needs no code: what
//! does not depend on each other starts from the same moment, and a join takes the later one.
//! Units are occupied in the order in which the protocol asks for them.
//!
//! This is a spike: fixed latencies, one bus, one MAC unit.

use crate::directory_shape::{Line, MAC_BYTES, Mac, SHAPE};
use crate::page_protocol::PagePort;
use crate::page_record::{PageRecord, Tag};
use crate::untrusted_memory::UntrustedMemory;
use casemate_core::checks::AllChecks;
use casemate_core::gpc::Lpid;
use casemate_core::port::{Carry, LinePlace, Port, Shape};
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

/// A cycle number.
pub type Cycle = u64;

/// A value and the cycle at which it is ready.
#[derive(Debug, Clone, Copy)]
pub struct Timed<T> {
    value: T,
    ready: Cycle,
}

/// Something that can start one operation every `interval` cycles.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    interval: Cycle,
    latency: Cycle,
    free_at: Cycle,
    /// Operations started so far.
    pub operations: u64,
}

impl Unit {
    /// A unit that is free from the beginning.
    pub const fn new(interval: Cycle, latency: Cycle) -> Self {
        Self { interval, latency, free_at: 0, operations: 0 }
    }

    /// Starts an operation on inputs that are ready at `inputs`, as soon as the unit is free.
    /// Returns when the result is ready.
    pub fn start(&mut self, inputs: Cycle) -> Cycle {
        self.start_many(inputs, 1)
    }

    /// Starts `count` operations in a row; returns when the last result is ready.
    pub fn start_many(&mut self, inputs: Cycle, count: u64) -> Cycle {
        let start = inputs.max(self.free_at);
        self.free_at = start + count * self.interval;
        self.operations += count;
        self.free_at - self.interval + self.latency
    }
}

/// The port on cycles. Metadata keeps its values (they decide what is touched next); MACs do not:
/// any line's is the same nonzero stand-in, and every comparison succeeds in its time.
pub struct CyclePort<M> {
    /// Where the lines lie.
    pub memory: M,
    /// The cycle at which the current request enters.
    pub clock: Cycle,
    /// The bus, with the memory's latency behind it.
    pub bus: Unit,
    /// The MAC unit.
    pub mac: Unit,
}

const STAND_IN: Mac = [1; MAC_BYTES];

impl<M> Carry for CyclePort<M> {
    type V<T> = Timed<T>;
    type Moment = Cycle;

    fn now(&self) -> Cycle {
        self.clock
    }

    fn join(&mut self, a: Cycle, b: Cycle) -> Cycle {
        a.max(b)
    }

    fn carry<T>(value: T, at: Cycle) -> Timed<T> {
        Timed { value, ready: at }
    }

    fn peek<T>(carried: &Timed<T>) -> &T {
        &carried.value
    }

    fn moment<T>(carried: &Timed<T>) -> Cycle {
        carried.ready
    }

    fn amend<T>(&mut self, carried: &mut Timed<T>, at: Cycle, change: impl FnOnce(&mut T)) {
        change(&mut carried.value);
        carried.ready = carried.ready.max(at);
    }
}

impl<M: UntrustedMemory> Port for CyclePort<M> {
    type Line = Line;
    type Mac = Mac;
    type Checks = AllChecks;

    #[inline]
    fn shape(&self) -> Shape {
        SHAPE
    }

    fn fetch_line(&mut self, place: LinePlace, from: Cycle) -> Timed<Unverified<Line>> {
        let line = self.memory.read_line(place.level, place.index);
        Timed { value: Unverified::from_untrusted(line), ready: self.bus.start(from) }
    }

    fn store_line(&mut self, place: LinePlace, line: &Timed<Line>) {
        self.memory.write_line(place.level, place.index, &line.value);
        self.bus.start(line.ready.max(self.clock));
    }

    fn line_mac(&mut self, _: LinePlace, line: &Timed<Line>) -> Timed<Mac> {
        Timed { value: STAND_IN, ready: self.mac.start(line.ready.max(self.clock)) }
    }

    fn release_line(
        &mut self,
        _: LinePlace,
        line: Timed<Unverified<Line>>,
        expected: &Timed<Mac>,
    ) -> Result<Timed<Line>, Violation> {
        let computed = self.mac.start(line.ready);
        // Attacks are not modelled under cycles: what one does is shown under bytes.
        Ok(Timed { value: line.value.open(), ready: computed.max(expected.ready) })
    }
}

/// Pages on cycles: 64 lines over a bus, one pad per 16 bytes, one tag.
pub struct CyclePages {
    /// The bus, with the memory's latency behind it.
    pub bus: Unit,
    /// The AES unit.
    pub aes: Unit,
    /// The tag unit, per line.
    pub tag: Unit,
}

const PAGE_LINES: u64 = 64;
const PAGE_PADS: u64 = 256;

impl PagePort for CyclePages {
    type Moment = Cycle;
    type CipherPage = ();
    type PlainPage = ();

    fn seal_page(&mut self, _: Lpid, (): &(), from: Cycle, (): &mut ()) -> (Tag, Cycle) {
        let cipher = self.aes.start_many(from, PAGE_PADS);
        let tag = self.tag.start_many(cipher, PAGE_LINES);
        self.bus.start_many(cipher, PAGE_LINES);
        (Tag(STAND_IN), tag)
    }

    fn open_page(
        &mut self,
        _: &PageRecord,
        from: Cycle,
        (): &(),
        (): &mut (),
    ) -> Result<Cycle, Violation> {
        let pads = self.aes.start_many(from, PAGE_PADS);
        let fetched = self.bus.start_many(from, PAGE_LINES);
        let tag = self.tag.start_many(fetched, PAGE_LINES);
        Ok(pads.max(fetched).max(tag))
    }
}
