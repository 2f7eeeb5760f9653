//! The trace, thread by thread: thread *t* runs on core *t* modulo the number of cores.
//!
//! A trace is one stream. For each core some of it is read ahead; when a core's share is full,
//! reading waits for it, and cores without instructions idle.

use std::collections::VecDeque;

use super::RunError;
use crate::trace::packed::{PackedInstruction, PackedReference};
use crate::trace::{Instruction, Source, TraceError};

/// What has been read and has not entered.
#[derive(Clone, Debug)]
pub(super) struct InstructionQueues {
    queues: Vec<Queue>,
    look_ahead: usize,
    /// What was read last: of several cores, what belongs into a full queue, or is no core's.
    record: Instruction,
    /// Whether there is such a one.
    has_record: bool,
    has_ended: bool,
    /// A request that was answered, to be used again.
    spare: Option<Instruction>,
}

/// Instructions of a core. The first lies ready if there is any.
#[derive(Clone, Debug, Default)]
struct Queue {
    first: Instruction,
    has_first: bool,
    others: VecDeque<PackedInstruction>,
    references: VecDeque<PackedReference>,
}

impl Queue {
    fn len(&self) -> usize {
        self.others.len() + usize::from(self.has_first)
    }

    fn push(&mut self, instruction: &Instruction) {
        self.others.push_back(PackedInstruction::of(instruction));
        self.references.extend(instruction.references.iter().map(PackedReference::of));
        if !self.has_first {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let next = self.others.pop_front();
        self.has_first = next.is_some();
        if let Some(next) = next {
            next.unpack(self.references.drain(..next.references()), &mut self.first);
        }
    }
}

impl InstructionQueues {
    pub(super) fn new(cores: usize, look_ahead: usize) -> InstructionQueues {
        InstructionQueues {
            queues: vec![Queue::default(); cores],
            look_ahead,
            record: Instruction::default(),
            has_record: false,
            has_ended: false,
            spare: None,
        }
    }

    /// Reads the next instruction, unless the last one is still there. `false` at the end.
    #[inline]
    pub(super) fn next<S: Source + ?Sized>(&mut self, source: &mut S) -> Result<bool, TraceError> {
        if !self.has_record && !self.has_ended {
            self.has_record = source.next(&mut self.record)?;
            self.has_ended = !self.has_record;
        }
        Ok(self.has_record)
    }

    /// What [`next`](Self::next) read.
    #[inline]
    pub(super) fn record(&self) -> &Instruction {
        &self.record
    }

    /// It has entered.
    #[inline]
    pub(super) fn record_entered(&mut self) {
        self.has_record = false;
    }

    /// Takes it: it is a request.
    pub(super) fn take_record(&mut self) -> Instruction {
        self.has_record = false;
        std::mem::replace(&mut self.record, self.spare.take().unwrap_or_default())
    }

    /// The next instruction of a core, if it has been read.
    #[inline]
    pub(super) fn front(&self, core: usize) -> Option<&Instruction> {
        let queue = &self.queues[core];
        queue.has_first.then_some(&queue.first)
    }

    /// It has entered.
    #[inline]
    pub(super) fn pop(&mut self, core: usize) {
        self.queues[core].pop();
    }

    /// Reads until some core's queue is full, the next is a request, or the trace has ended.
    ///
    /// # Errors
    /// The trace cannot be read, or has several processes.
    pub(super) fn read<S: Source + ?Sized>(&mut self, source: &mut S) -> Result<(), RunError> {
        while self.next(source)? && self.record.arrival_cycle.is_none() {
            if self.record.process().is_some_and(|process| process != 0) {
                return Err(RunError::ProcessesOnCores { cores: self.queues.len() });
            }
            let core = self.record.thread as usize % self.queues.len();
            if self.queues[core].len() >= self.look_ahead {
                break;
            }
            self.queues[core].push(&self.record);
            self.has_record = false;
        }
        Ok(())
    }

    /// Reads ahead for a core from a source of its own, if nothing is left for it.
    pub(super) fn fill<S: Source + ?Sized>(
        &mut self,
        core: usize,
        source: &mut S,
    ) -> Result<(), RunError> {
        if self.queues[core].has_first {
            return Ok(());
        }
        while self.queues[core].len() < self.look_ahead && source.next(&mut self.record)? {
            if self.record.arrival_cycle.is_some() {
                return Err(RunError::RequestInMix);
            }
            self.queues[core].push(&self.record);
        }
        Ok(())
    }

    /// Whether no core has anything left.
    pub(super) fn are_empty(&self) -> bool {
        self.queues.iter().all(|queue| !queue.has_first)
    }

    /// The request that is next in the trace, if it is one and everything before it has entered.
    pub(super) fn take_request(&mut self) -> Option<Instruction> {
        let is_next = self.has_record
            && self.record.arrival_cycle.is_some()
            && self.queues.iter().all(|queue| !queue.has_first);
        is_next.then(|| self.take_record())
    }

    /// Gives a request back to be used again.
    pub(super) fn recycle(&mut self, request: Instruction) {
        self.spare = Some(request);
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.has_ended && !self.has_record && self.queues.iter().all(|queue| !queue.has_first)
    }
}
