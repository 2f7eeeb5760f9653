//! An instruction enters the window.

use super::l1::Found;
use super::store_queue::Held;
use super::window::{PENDING, Slot, Waiting};
use super::{Below, Core, Missed, Order, Purpose, Step};
use crate::machine::Cycle;
use crate::machine::backing::Backing;
use crate::machine::frames::OutOfFrames;
use crate::trace::{Branch, Instruction, Kind, Operation, Reference};

/// The progress of the next instruction to enter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Its record was looked at.
    pub(super) begun: bool,
    /// Instructions without a record that go before it and have not entered.
    unrecorded: u32,
    /// Lines of it that were fetched.
    lines: u8,
    pub(super) loads: usize,
    pub(super) stores: usize,
}

impl Core {
    /// Dispatches an instruction, and those before it that have no record. For a blocked
    /// instruction the caller calls again with the same one.
    #[inline(always)]
    pub(crate) fn step<B: Backing>(
        &mut self,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<Step, OutOfFrames> {
        if self.mispredicted.is_some() && !self.redirected() {
            return Ok(Step::Blocked);
        }
        let step = self.step_predicted(instruction, below)?;
        if instruction.branch != Branch::No
            && step == Step::Dispatched
            && !self.predicts(instruction)
        {
            self.mispredicted = Some(self.window.last_slot());
        }
        Ok(step)
    }

    /// Dispatches an instruction that no branch keeps from being fetched.
    #[inline(always)]
    fn step_predicted<B: Backing>(
        &mut self,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<Step, OutOfFrames> {
        if !self.progress.begun {
            if self.is_at_hand(instruction) {
                let registers = &instruction.registers;
                let plain = (registers.read, registers.written) == ([0; 6], [0; 4]);
                match instruction.references[..] {
                    [] if plain && instruction.operation == Operation::Simple => {
                        return Ok(self.step_plain());
                    }
                    [] => return self.step_at_hand(0, 0, instruction, below),
                    [Reference { kind: Kind::Load, .. }]
                        if plain && instruction.operation == Operation::Simple =>
                    {
                        return self.step_load(instruction, below);
                    }
                    [Reference { kind: Kind::Load, .. }] => {
                        return self.step_at_hand(1, 0, instruction, below);
                    }
                    [Reference { kind: Kind::Store, .. }] => {
                        return self.step_at_hand(0, 1, instruction, below);
                    }
                    _ => {}
                }
            }
            self.begin(instruction);
        }
        self.step_begun(instruction, below)
    }

    /// Counts a branch, which trains the predictor; whether it went as was predicted.
    pub(super) fn predicts(&mut self, instruction: &Instruction) -> bool {
        let taken = instruction.branch == Branch::Taken;
        let predicted = self.predictor.predicts(instruction.pc, taken);
        self.statistics.branches += 1;
        self.statistics.mispredicted_branches += u64::from(!predicted);
        predicted
    }

    /// Whether it is known when the branch was executed that was predicted wrongly. The right way
    /// is fetched so much later. Nothing has entered since, so its slot still says it, even if it
    /// has committed.
    #[cold]
    fn redirected(&mut self) -> bool {
        let executed = self.mispredicted.map_or(0, |slot| self.window.complete_of(slot));
        if executed == PENDING {
            return false;
        }
        self.mispredicted = None;
        let until = executed + self.misprediction_penalty_cycles;
        self.statistics.dispatch_held_up.misprediction_cycles += until.saturating_sub(self.clock);
        self.wait_until(until);
        true
    }

    /// Whether an instruction can enter without any preparation, as most can.
    #[inline(always)]
    fn is_at_hand(&self, instruction: &Instruction) -> bool {
        instruction.unrecorded_before == 0
            && self.order == Order::OutOfOrder
            && (instruction.pc == 0 || self.is_fetched(instruction))
    }

    /// Whether all of it is in the line that was fetched last.
    #[inline(always)]
    pub(super) fn is_fetched(&self, instruction: &Instruction) -> bool {
        let offset = instruction.pc.wrapping_sub(self.fetched_line);
        let length = u64::from(instruction.length_bytes.max(1));
        offset < self.l1i.block_bytes && offset + length <= self.l1i.block_bytes
    }

    #[inline(always)]
    fn step_plain(&mut self) -> Step {
        if !self.has_window_slot() {
            return Step::Blocked;
        }
        let at = self.enter();
        self.window.push(Slot { complete: at + 1, loads: 0, stores: 0 });
        self.statistics.instructions += 1;
        Step::Dispatched
    }

    /// Dispatches a load without registers, which is fast if it hits.
    #[inline]
    fn step_load<B: Backing>(
        &mut self,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<Step, OutOfFrames> {
        let (line, last) = self.lines(&instruction.references[0]);
        if line != last {
            return self.step_at_hand(1, 0, instruction, below);
        }
        if !self.has_window_slot() || !self.has_load_slots(1) {
            return Ok(Step::Blocked);
        }
        self.statistics.instructions += 1;
        self.statistics.loads += 1;
        self.loads += 1;
        let entered = self.enter();
        let begins = self.ports.take(entered, 1);
        let delay_cycles = self.dtlb.delay_cycles(line) + self.l1d.latency_cycles;
        let found = self.l1d.read(line);
        let mut complete = PENDING;
        if let Found::From(cycle) = found {
            complete = cycle.max(begins + delay_cycles);
        } else {
            self.pc = instruction.pc;
            let slot = self.window.next_slot();
            let mut waiting =
                Waiting { start: begins, at: begins + delay_cycles, delay_cycles, ..Waiting::NONE };
            if !self.takes_from_store(found, &instruction.references[0], slot, &mut waiting) {
                self.load_late(found, line, slot, &mut waiting, delay_cycles, below)?;
            }
            if waiting.unknown_operands + waiting.unknown_lines == 0 {
                complete = waiting.start + delay_cycles;
            } else {
                *self.window.waiting_mut(slot) = waiting;
            }
        }
        self.window.push(Slot { complete, loads: 1, stores: 0 });
        Ok(Step::Dispatched)
    }

    /// Dispatches an instruction that needs no preparation, with at most one reference.
    #[inline(never)]
    fn step_at_hand<B: Backing>(
        &mut self,
        loads: usize,
        stores: usize,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<Step, OutOfFrames> {
        (self.progress.loads, self.progress.stores) = (loads, stores);
        if !self.has_room() {
            return Ok(Step::Blocked);
        }
        self.statistics.instructions += 1;
        self.statistics.loads += loads as u64;
        self.statistics.stores += stores as u64;
        self.dispatch(instruction, below)?;
        Ok(Step::Dispatched)
    }

    #[inline(never)]
    fn step_begun<B: Backing>(
        &mut self,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<Step, OutOfFrames> {
        while self.progress.unrecorded > 0 {
            if !self.has_window_slot() {
                return Ok(Step::Blocked);
            }
            let at = self.enter();
            self.window.push(Slot { complete: at + 1, loads: 0, stores: 0 });
            self.progress.unrecorded -= 1;
        }
        if instruction.pc != 0 && !self.fetch(instruction, below)?
            || self.order != Order::OutOfOrder && !self.in_order_can_begin(instruction)
            || !self.has_room()
        {
            return Ok(Step::Blocked);
        }
        self.dispatch(instruction, below)?;
        self.progress.begun = false;
        Ok(Step::Dispatched)
    }

    #[inline]
    fn begin(&mut self, instruction: &Instruction) {
        let references = &instruction.references;
        let loads = references.iter().filter(|reference| reference.kind == Kind::Load).count();
        let stores = references.len() - loads;
        self.statistics.loads += loads as u64;
        self.statistics.stores += stores as u64;
        self.statistics.instructions += instruction.instructions();
        self.progress.begun = true;
        self.progress.unrecorded = instruction.unrecorded_before;
        self.progress.lines = 0;
        // An instruction with more references than the queues hold takes all entries.
        self.progress.loads = loads.min(self.load_queue_entries);
        self.progress.stores = stores.min(self.store_queue_entries);
    }

    /// Takes one of the cycle's dispatch slots; returns the cycle.
    #[inline(always)]
    fn enter(&mut self) -> Cycle {
        if self.entered_in_clock == self.issue_width {
            self.clock += 1;
            self.entered_in_clock = 0;
        }
        self.entered_in_clock += 1;
        self.clock
    }

    /// Fetches the lines that an instruction is in; `false` while one is on its way.
    #[inline]
    fn fetch<B: Backing>(
        &mut self,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<bool, OutOfFrames> {
        let in_line = !(self.l1i.block_bytes - 1);
        let first = instruction.pc & in_line;
        let further = u64::from(instruction.length_bytes.max(1)) - 1;
        let last = instruction.pc.saturating_add(further) & in_line;
        if last == self.fetched_line && (first == last || self.progress.lines > 0) {
            return Ok(self.fetched());
        }
        if self.progress.lines == 0 {
            self.progress.lines = 1;
            self.fetch_line(first, below)?;
        }
        if !self.fetched() {
            return Ok(false);
        }
        if last != self.fetched_line {
            self.fetch_line(last, below)?;
        }
        Ok(self.fetched())
    }

    fn fetch_line<B: Backing>(
        &mut self,
        line: u64,
        below: &mut Below<'_, B>,
    ) -> Result<(), OutOfFrames> {
        if line == self.fetched_line {
            return Ok(());
        }
        self.fetched_line = line;
        let page_known = self.clock + self.itlb.delay_cycles(line);
        self.statistics.dispatch_held_up.fetch_cycles += page_known - self.clock;
        self.wait_until(page_known);
        match self.l1i.read(line) {
            Found::From(cycle) => self.wait_until(cycle),
            Found::OnItsWay(_) => {}
            Found::Nothing => {
                let frame_address = below.translate(line, Purpose::Fetch)?;
                let missed = Missed { purpose: Purpose::Fetch, pc: line, line, frame_address };
                let flight = self.flights.start(missed);
                let (place, _, _) = self.l1i.take_place(line, false, flight);
                self.flights.get_mut(flight).cache_line = place;
                self.ask(flight, self.clock + self.l1i.latency_cycles, below);
                self.fetching = Some(None);
            }
        }
        Ok(())
    }

    /// Whether the fetched line has arrived.
    #[inline]
    fn fetched(&mut self) -> bool {
        match self.fetching {
            None => true,
            Some(None) => false,
            Some(Some(came)) => {
                self.fetching = None;
                self.statistics.dispatch_held_up.fetch_cycles += came.saturating_sub(self.clock);
                self.wait_until(came);
                true
            }
        }
    }

    /// In-order cores: whether an instruction can begin, now or from a known cycle on.
    fn in_order_can_begin(&mut self, instruction: &Instruction) -> bool {
        let mut until = self.clock;
        if let Some(load) = self.awaited {
            match self.window.complete_of(load) {
                PENDING => return false,
                complete => until = until.max(complete),
            }
            self.awaited = None;
        }
        for register in instruction.registers.read.into_iter().filter(|&register| register != 0) {
            match self.registers.read(register) {
                Ok(ready) => until = until.max(ready),
                Err(_) => return false,
            }
        }
        self.statistics.dispatch_held_up.operand_cycles += until - self.clock;
        self.wait_until(until);
        true
    }

    /// Whether the window has room, now or from a known cycle on.
    #[inline(always)]
    fn has_window_slot(&mut self) -> bool {
        if self.window.is_full() {
            let Some(left) = self.commit_oldest() else { return false };
            if left > self.clock {
                self.statistics.dispatch_held_up.window_cycles += left - self.clock;
                self.wait_until(left);
            }
        }
        true
    }

    /// Whether the load queue has room for so many, now or from a known cycle on.
    #[inline(always)]
    fn has_load_slots(&mut self, loads: usize) -> bool {
        while self.loads + loads > self.load_queue_entries {
            let Some(left) = self.commit_oldest() else { return false };
            if left > self.clock {
                self.statistics.dispatch_held_up.load_queue_cycles += left - self.clock;
                self.wait_until(left);
            }
        }
        true
    }

    /// Whether window and queues have room.
    #[inline]
    fn has_room(&mut self) -> bool {
        if !self.has_window_slot() {
            return false;
        }
        if !self.has_load_slots(self.progress.loads) {
            return false;
        }
        while !self.stores.has_room(self.progress.stores) {
            match self.stores.leave() {
                Ok(left) => {
                    let late = left.saturating_sub(self.clock);
                    self.statistics.dispatch_held_up.store_queue_cycles += late;
                    self.wait_until(left);
                }
                Err(Held::LineUnknown) => return false,
                Err(Held::NotCommitted) => {
                    if self.commit_oldest().is_none() {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Commits the oldest instruction; returns when. `None` if that is not known yet.
    #[inline(always)]
    pub(super) fn commit_oldest(&mut self) -> Option<Cycle> {
        let Slot { complete, loads, stores } = *self.window.front();
        if complete == PENDING {
            return None;
        }
        if complete > self.commit_clock {
            self.commit_clock = complete;
            self.left_in_clock = 0;
        } else if self.left_in_clock == self.commit_width {
            self.commit_clock += 1;
            self.left_in_clock = 0;
        }
        self.left_in_clock += 1;
        if loads | stores != 0 {
            self.loads -= usize::from(loads);
            self.stores.commit(stores, complete, self.commit_clock);
        }
        self.window.pop();
        Some(self.commit_clock)
    }

    /// Puts an instruction that was fetched into the window, which has room.
    #[inline]
    fn dispatch<B: Backing>(
        &mut self,
        instruction: &Instruction,
        below: &mut Below<'_, B>,
    ) -> Result<(), OutOfFrames> {
        let entered = self.enter();
        let slot = self.window.next_slot();
        let operation = instruction.operation;
        let mut waiting = Waiting { start: entered, operation, ..Waiting::NONE };
        let registers = &instruction.registers;
        if registers.read != [0; 6] {
            self.find_operands(registers.read, slot, &mut waiting);
        }
        if !instruction.references.is_empty() {
            if waiting.unknown_operands == 0 {
                let references = self.progress.loads + self.progress.stores;
                waiting.start = self.ports.take(waiting.start, references);
            }
            self.refer(instruction, slot, &mut waiting, below)?;
        }
        let mut complete = PENDING;
        if waiting.unknown_operands == 0 {
            if instruction.references.is_empty() {
                complete = self.units.execute(operation, waiting.start);
            } else {
                waiting.at = waiting.at.max(waiting.start + waiting.delay_cycles);
                if waiting.unknown_lines == 0 {
                    complete = self.units.execute_loaded(operation, waiting.at);
                }
            }
        }
        if registers.written != [0; 4] {
            self.registers.write(registers.written, slot, complete);
        }
        if complete == PENDING {
            waiting.written = registers.written;
            *self.window.waiting_mut(slot) = waiting;
            if self.order == Order::InOrderBlocking {
                self.awaited = Some(slot);
            }
        }
        let (loads, stores) = (self.progress.loads as u16, self.progress.stores as u16);
        self.loads += self.progress.loads;
        self.window.push(Slot { complete, loads, stores });
        Ok(())
    }

    fn find_operands(&mut self, registers: [u8; 6], slot: u32, waiting: &mut Waiting) {
        for register in registers.into_iter().filter(|&register| register != 0) {
            match self.registers.read(register) {
                Ok(ready) => waiting.start = waiting.start.max(ready),
                Err(writer) => {
                    waiting.unknown_operands += 1;
                    let dependents = &mut self.window.waiting_mut(writer).dependents;
                    self.lists.push(dependents, [slot, 0, 0]);
                }
            }
        }
    }
}
