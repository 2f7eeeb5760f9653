//! A core: instructions enter a window in program order, begin when their operands are available,
//! and leave in order.
//!
//! In reading order:
//!
//! - [`config`]: widths and sizes;
//! - `window`: instructions between dispatch and commit; `store_queue`: stores until they are done;
//! - `registers`: which instruction writes what others read;
//! - [`branch`]: which way branches are expected to go;
//! - `l1`: the first-level caches; `flights`: lines on their way into them;
//! - `units`: what executes operations; `ports`: where loads and stores begin; `calendar`: what of
//!   both is taken when;
//! - `dispatch`: an instruction enters; `memory`: its loads and stores;
//! - `arrive`: a line comes, and everything goes on that waited for it;
//! - `warm`: instructions go by without a window and without time;
//! - [`statistics`].
//!
//! A core runs ahead of the timeline: it computes later cycles as long as everything that they
//! depend on is known. It stops where it needs a cycle that is not known yet, and continues when a
//! line arrives.

mod arrive;
pub mod branch;
mod calendar;
pub mod config;
mod dispatch;
mod flights;
mod l1;
mod lists;
mod memory;
mod ports;
mod registers;
pub mod statistics;
mod store_queue;
mod units;
mod warm;
mod window;

pub use branch::PredictorName;
pub use config::{CoreConfig, Order};
pub(crate) use flights::{Flight, Purpose};
pub use statistics::CoreStatistics;
pub use units::UnitsName;
pub(crate) use warm::Missed;

use super::Cycle;
use super::backing::{Backing, PageAddresses};
use super::error::ConfigError;
use super::frames::{Frames, OutOfFrames};
use super::hierarchy::HierarchyConfig;
use super::timeline::{Timeline, When};
use super::tlb::Tlb;
use branch::Predictor;
use flights::Flights;
use l1::L1;
use lists::Lists;
use ports::Ports;
use registers::Registers;
use store_queue::StoreQueue;
use units::Units;
use window::Window;

/// What a core reaches below its first-level caches while it runs ahead.
pub(crate) struct Below<'a, B> {
    pub(crate) timeline: &'a mut Timeline,
    pub(crate) backing: &'a mut B,
    pub(crate) frames: &'a mut Frames,
    /// From a miss of the first level to the end of the look-up in the second.
    pub(crate) look_up_cycles: u64,
}

impl<B: Backing> Below<'_, B> {
    /// The physical address of a virtual one. A new page is announced to the backing.
    #[inline]
    pub(crate) fn translate(
        &mut self,
        virtual_address: u64,
        purpose: Purpose,
    ) -> Result<u64, OutOfFrames> {
        let translation = self.frames.translate(virtual_address)?;
        if translation.first_touch {
            let in_page = super::backing::PAGE_BYTES - 1;
            let page = PageAddresses {
                frame_address: translation.frame_address & !in_page,
                virtual_address: virtual_address & !in_page,
            };
            match purpose {
                Purpose::Fetch => self.backing.touch_instruction_page(page, self.timeline),
                _ => self.backing.touch_page(page, self.timeline),
            }
        }
        Ok(translation.frame_address)
    }

    fn look_up(&mut self, core: u32, flight: u32, missed_at: Cycle) {
        let token = super::hierarchy::token::look_up_l2(core, flight);
        self.timeline.tell(When::at(missed_at + self.look_up_cycles), token);
    }
}

/// The result of trying to dispatch an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is in the window.
    Dispatched,
    /// It depends on a cycle that is not known yet: try again when a line has arrived.
    Blocked,
}

/// One core at work.
pub(crate) struct Core {
    id: u32,
    order: Order,
    /// Whether there are others, so that a store may have to ask.
    has_others: bool,
    issue_width: u32,
    commit_width: u32,
    /// The cycle in which the next instruction enters, if nothing holds it up.
    clock: Cycle,
    entered_in_clock: u32,
    commit_clock: Cycle,
    left_in_clock: u32,
    window: Window,
    loads: usize,
    load_queue_entries: usize,
    stores: StoreQueue,
    store_queue_entries: usize,
    store_forwarding: bool,
    registers: Registers,
    ports: Ports,
    units: Units,
    l1i: L1,
    l1d: L1,
    itlb: Tlb,
    dtlb: Tlb,
    flights: Flights,
    lists: Lists,
    /// How far the instruction that is next to enter has come.
    progress: dispatch::Progress,
    /// The address of the instruction whose references are made.
    pc: u64,
    /// The line that was fetched last.
    fetched_line: u64,
    /// The flight of the line that is being fetched, and when it came.
    fetching: Option<Option<Cycle>>,
    /// In-order cores: the load that all later instructions wait for.
    awaited: Option<u32>,
    predictor: Predictor,
    misprediction_penalty_cycles: u64,
    /// The branch, by its slot, that went another way than was predicted: nothing enters before it
    /// was executed.
    mispredicted: Option<u32>,
    /// Slots that completed and whose dependents have not been told.
    completed: Vec<(u32, Cycle)>,
    statistics: CoreStatistics,
}

impl Core {
    /// An idle core.
    ///
    /// # Errors
    /// Its caches or TLBs are impossible.
    pub(crate) fn new(
        id: u32,
        config: &CoreConfig,
        hierarchy: &HierarchyConfig,
    ) -> Result<Core, ConfigError> {
        Ok(Core {
            id,
            order: config.order,
            has_others: config.cores > 1,
            issue_width: config.issue_width as u32,
            commit_width: config.commit_width as u32,
            clock: 0,
            entered_in_clock: 0,
            commit_clock: 0,
            left_in_clock: 0,
            window: Window::new(config.window_entries),
            loads: 0,
            load_queue_entries: config.load_queue_entries as usize,
            stores: StoreQueue::new(config.store_queue_entries),
            store_queue_entries: config.store_queue_entries as usize,
            store_forwarding: config.store_forwarding,
            registers: Registers::new(),
            ports: Ports::new(config.memory_ports),
            units: Units::new(config.units),
            l1i: L1::new(&hierarchy.l1i)?,
            l1d: L1::new(&hierarchy.l1d)?,
            itlb: Tlb::new(&hierarchy.itlb)?,
            dtlb: Tlb::new(&hierarchy.dtlb)?,
            flights: Flights::new(hierarchy.l1d.mshr_registers),
            lists: Lists::new(),
            progress: dispatch::Progress::default(),
            pc: 0,
            fetched_line: u64::MAX,
            fetching: None,
            awaited: None,
            predictor: Predictor::new(config.branch_predictor, config.branch_predictor_entries),
            misprediction_penalty_cycles: config.misprediction_penalty_cycles,
            mispredicted: None,
            completed: Vec::new(),
            statistics: CoreStatistics::default(),
        })
    }

    /// The cycle in which the next instruction enters at the earliest.
    #[inline]
    pub(crate) fn clock(&self) -> Cycle {
        self.clock
    }

    /// Notes that the core was idle until this cycle.
    pub(crate) fn idle_until(&mut self, cycle: Cycle) {
        self.wait_until(cycle);
    }

    /// The latest cycle of which it knows what happened in it.
    pub(crate) fn cycles(&self) -> Cycle {
        self.clock.max(self.commit_clock)
    }

    /// Whether every instruction has left and every line has come.
    pub(crate) fn is_drained(&self) -> bool {
        self.window.is_empty() && self.stores.is_empty() && self.flights.under_way() == 0
    }

    /// Commits what can commit after the last instruction.
    pub(crate) fn drain(&mut self) {
        while !self.window.is_empty() && self.commit_oldest().is_some() {}
        while !self.stores.is_empty() {
            match self.stores.leave() {
                Ok(left) => self.commit_clock = self.commit_clock.max(left),
                Err(_) => break,
            }
        }
    }

    /// What its caches and TLBs hold. Executed by tests only.
    pub(crate) fn held(&self) -> [Vec<super::cache::Evicted>; 4] {
        let (l1i, l1d) = (self.l1i.cache().held(), self.l1d.cache().held());
        [l1i, l1d, self.itlb.held(), self.dtlb.held()]
    }

    /// Look-ups in the first level that did not find their line.
    pub(crate) fn first_level_misses(&self) -> u64 {
        let misses = |l1: &L1| {
            let counts = l1.cache().statistics().of(super::Content::Data);
            counts.read_misses + counts.write_misses
        };
        misses(&self.l1i) + misses(&self.l1d)
    }

    /// Branches that went another way than was predicted.
    pub(crate) fn mispredictions(&self) -> u64 {
        self.statistics.mispredicted_branches
    }

    /// What it counted.
    pub(crate) fn statistics(&self) -> CoreStatistics {
        let mut statistics = self.statistics.clone();
        statistics.cycles = self.cycles();
        statistics.port_wait_cycles = self.ports.wait_cycles();
        statistics.unit_wait_cycles = self.units.wait_cycles();
        statistics.l1i = *self.l1i.cache().statistics().of(super::Content::Data);
        statistics.l1d = *self.l1d.cache().statistics().of(super::Content::Data);
        statistics.itlb = self.itlb.statistics();
        statistics.dtlb = self.dtlb.statistics();
        statistics
    }

    /// The dispatch of the next instruction is held up until a cycle.
    #[inline(always)]
    fn wait_until(&mut self, cycle: Cycle) {
        if cycle > self.clock {
            self.clock = cycle;
            self.entered_in_clock = 0;
        }
    }
}
