//! The trace, thread by thread: thread *t* runs on core *t* modulo the number of cores.
//!
//! A trace is one stream. For each core some of it is read ahead; when a core's share is full, reading waits
//! for it, and cores without instructions idle.

use std::collections::VecDeque;

use crate::trace::{Instruction, Source, TraceError};

/// What has been read and has not entered.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    queues: Vec<VecDeque<Instruction>>,
    spare: Vec<Instruction>,
    look_ahead: usize,
    /// What was read last and belongs into a full queue, or is no core's.
    held: Option<Instruction>,
    has_ended: bool,
    /// With one core: the next instruction, straight from the trace, and whether there is one.
    record: Instruction,
    has_record: bool,
}

impl Feed {
    pub(super) fn new(cores: usize, look_ahead: usize) -> Feed {
        Feed {
            queues: vec![VecDeque::new(); cores],
            spare: Vec::new(),
            look_ahead,
            held: None,
            has_ended: false,
            record: Instruction::default(),
            has_record: false,
        }
    }

    /// With one core: reads the next instruction, unless the last one has not entered. `false` at the end.
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
        std::mem::replace(&mut self.record, self.spare.pop().unwrap_or_default())
    }

    /// The next instruction of a core, if it has been read.
    #[inline]
    pub(super) fn front(&self, core: usize) -> Option<&Instruction> {
        self.queues[core].front()
    }

    /// It has entered.
    pub(super) fn pop(&mut self, core: usize) {
        self.spare.extend(self.queues[core].pop_front());
    }

    /// Reads until some core's queue is full, the next is a request, or the trace has ended.
    pub(super) fn read<S: Source + ?Sized>(&mut self, source: &mut S) -> Result<(), TraceError> {
        loop {
            if self.held.is_none() {
                if self.has_ended {
                    return Ok(());
                }
                let mut next = self.spare.pop().unwrap_or_default();
                if source.next(&mut next)? {
                    self.held = Some(next);
                } else {
                    self.has_ended = true;
                    return Ok(());
                }
            }
            let Some(next) = self.held.take_if(|next| next.arrival_cycle.is_none()) else {
                return Ok(());
            };
            let core = next.thread as usize % self.queues.len();
            if self.queues[core].len() >= self.look_ahead {
                self.held = Some(next);
                return Ok(());
            }
            self.queues[core].push_back(next);
        }
    }

    /// The request that is next in the trace, if it is one and everything before it has entered.
    pub(super) fn take_request(&mut self) -> Option<Instruction> {
        if self.queues.iter().any(|queue| !queue.is_empty()) {
            return None;
        }
        self.held.take_if(|next| next.arrival_cycle.is_some())
    }

    /// Gives a record back to be used again.
    pub(super) fn recycle(&mut self, instruction: Instruction) {
        self.spare.push(instruction);
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.has_ended && self.held.is_none() && self.queues.iter().all(VecDeque::is_empty)
    }
}
