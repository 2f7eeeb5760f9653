//! The tree's dataflow, with moments: what does not depend on each other overlaps, what does waits.
//!
//! A port with fixed latencies, one bus and one MAC unit. Units are occupied in the order in which
//! the tree asks for them.

use std::collections::{HashMap, HashSet};

use casemate_core::checks::AllChecks;
use casemate_core::geometry::Geometry;
use casemate_core::hash_tree::HashTree;
use casemate_core::port::{Carry, LinePlace, Port, Shape};
use casemate_core::random::Random;
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

const MEMORY: u64 = 200;
const MAC: u64 = 80;
const SHAPE: Shape = Shape { arity: 8, mac_bytes: 16, levels: 12, roots: 1 };
/// Any line's MAC, unless the line is zero: every comparison succeeds in its time.
const STAND_IN: [u8; 16] = [1; 16];

type Cycle = u64;
type Line = [u8; 128];

/// A value and the cycle at which it is ready.
struct Timed<T> {
    value: T,
    ready: Cycle,
}

/// Something that can start one operation every `interval` cycles.
struct Unit {
    interval: Cycle,
    latency: Cycle,
    free_at: Cycle,
    operations: u64,
}

impl Unit {
    fn new(interval: Cycle, latency: Cycle) -> Self {
        Self { interval, latency, free_at: 0, operations: 0 }
    }

    /// Starts an operation on inputs that are ready at `inputs`, as soon as the unit is free.
    /// Returns when the result is ready.
    fn start(&mut self, inputs: Cycle) -> Cycle {
        let start = inputs.max(self.free_at);
        self.free_at = start + self.interval;
        self.operations += 1;
        start + self.latency
    }
}

/// One access to memory.
#[derive(Clone, Copy)]
enum Access {
    Fetch,
    Store(LinePlace),
}

struct TimedPort {
    lines: HashMap<LinePlace, Line>,
    accesses: Vec<Access>,
    /// The cycle at which the current request enters.
    clock: Cycle,
    bus: Unit,
    mac: Unit,
}

fn timed_port(bus_interval: Cycle, mac_interval: Cycle) -> TimedPort {
    let (bus, mac) = (Unit::new(bus_interval, MEMORY), Unit::new(mac_interval, MAC));
    TimedPort { lines: HashMap::new(), accesses: Vec::new(), clock: 0, bus, mac }
}

impl Carry for TimedPort {
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

impl Port for TimedPort {
    type Line = Line;
    type Mac = [u8; 16];
    type Checks = AllChecks;

    fn shape(&self) -> Shape {
        SHAPE
    }

    fn fetch_line(&mut self, place: LinePlace, from: Cycle) -> Timed<Unverified<Line>> {
        self.accesses.push(Access::Fetch);
        let line = self.lines.get(&place).copied().unwrap_or([0; 128]);
        Timed { value: Unverified::from_untrusted(line), ready: self.bus.start(from) }
    }

    fn store_line(&mut self, place: LinePlace, line: &Timed<Line>) {
        self.accesses.push(Access::Store(place));
        self.lines.insert(place, line.value);
        self.bus.start(line.ready.max(self.clock));
    }

    fn line_mac(&mut self, _: LinePlace, line: &Timed<Line>) -> Timed<[u8; 16]> {
        Timed { value: STAND_IN, ready: self.mac.start(line.ready.max(self.clock)) }
    }

    fn release_line(
        &mut self,
        _: LinePlace,
        line: Timed<Unverified<Line>>,
        expected: &Timed<[u8; 16]>,
    ) -> Result<Timed<Line>, Violation> {
        let computed = self.mac.start(line.ready);
        Ok(Timed { value: line.value.open(), ready: computed.max(expected.ready) })
    }
}

#[test]
fn a_unit_is_not_ready_a_cycle_early() {
    let mut unit = Unit::new(10, 80);
    assert_eq!(unit.start(0), 80);
    assert_eq!(unit.start(9), 90, "busy until cycle 10");
    let mut unit = Unit::new(10, 80);
    unit.start(0);
    assert_eq!(unit.start(10), 90, "free at cycle 10");
    let mut unit = Unit::new(10, 80);
    unit.start(0);
    assert_eq!(unit.start(11), 91, "and waits for its input");
}

/// A tree whose line 0 and, far away, line 2^30 were written and are only in memory.
fn stored_tree(bus_interval: u64, mac_interval: u64) -> HashTree<TimedPort> {
    let port = timed_port(bus_interval, mac_interval);
    let mut tree = HashTree::new(port, 64 << 10);
    for index in [0, 1 << 30] {
        tree.amend(index, 0, |line| line[0] = 1).expect("memory is intact");
    }
    tree.flush_and_forget().expect("memory is intact");
    let port = tree.port_mut();
    port.clock = 1_000_000;
    port.accesses.clear();
    (port.bus.operations, port.mac.operations) = (0, 0);
    tree
}

#[test]
fn fetches_and_macs_of_a_walk_overlap() {
    // Twelve lines from root to leaf, all addresses known at once, units that are never busy: the
    // walk costs one memory latency and one MAC, not twelve.
    let mut tree = stored_tree(0, 0);
    let (_, ready) = tree.read(0, 1_000_000).expect("memory is intact");
    assert_eq!(ready, 1_000_000 + MEMORY + MAC);
    assert_eq!(tree.port_mut().bus.operations, 12);
    assert_eq!(tree.port_mut().mac.operations, 12);
}

#[test]
fn an_occupied_mac_unit_serialises_the_walk() {
    let mut tree = stored_tree(0, 20);
    let (_, ready) = tree.read(0, 1_000_000).expect("memory is intact");
    assert_eq!(ready, 1_000_000 + MEMORY + 11 * 20 + MAC);
}

#[test]
fn an_occupied_bus_serialises_the_walk() {
    let mut tree = stored_tree(8, 0);
    let (_, ready) = tree.read(0, 1_000_000).expect("memory is intact");
    assert_eq!(ready, 1_000_000 + 11 * 8 + MEMORY + MAC);
}

#[test]
fn a_hit_waits_for_the_line_that_is_still_being_verified() {
    let mut tree = stored_tree(0, 0);
    let (_, first) = tree.read(0, 1_000_000).expect("memory is intact");
    let (_, at_once) = tree.read(0, 1_000_001).expect("memory is intact");
    assert_eq!(at_once, first);
    let (_, later) = tree.read(0, first + 5).expect("memory is intact");
    assert_eq!(later, first + 5);
}

#[test]
fn an_evicted_line_dirties_its_parent_which_is_evicted_in_turn() {
    let mut tree = HashTree::new(timed_port(4, 20), 0);
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        tree.amend(random.below(1 << 30), 0, |line| line[0] = 1).expect("memory is intact");
    }
    let port = tree.port_mut();
    let stored: HashSet<LinePlace> = port
        .accesses
        .iter()
        .filter_map(|access| match access {
            Access::Store(place) => Some(*place),
            Access::Fetch => None,
        })
        .collect();
    // Chains reached far up, and a stored line's children were stored before.
    assert!(stored.iter().any(|place| place.level >= 6));
    for place in stored.iter().filter(|place| place.level > 0) {
        let child = |line: &LinePlace| SHAPE.parent(*line) == *place;
        assert!(stored.iter().any(child), "{place:?} became dirty by a child's eviction");
    }
    let accesses = port.accesses.len() as u64;
    assert_eq!(port.bus.operations, accesses);
    assert_eq!(port.mac.operations, accesses, "one MAC for each line in or out");
}
