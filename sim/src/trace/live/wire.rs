//! What our QEMU plugin says (`plugin/casemate_trace.c`; SPEC.md, "The recorder's wire").

use std::io::{BufReader, Read};

use iced_x86::InstructionInfoFactory;

use super::Stream;
use super::code::{self, Flow};
use crate::trace::Source;
use crate::trace::error::TraceError;
use crate::trace::record::{
    Branch, Extent, Instruction, Kind, MAX_CHANGED, MAX_REFERENCES, Operation, Reference, Registers,
};

/// The version of the wire that the plugin must speak.
const VERSION: u64 = 2;
/// The most instructions that QEMU puts into a block.
const MAX_BLOCK_INSTRUCTIONS: u64 = 512;
/// The most threads at a time.
const MAX_THREADS: u64 = 1 << 16;

/// An instruction of a block that QEMU translated.
#[derive(Clone, Copy, Debug)]
struct Static {
    pc: u64,
    length_bytes: u8,
    flow: Flow,
    operation: Operation,
    registers: Registers,
}

/// A block that a thread executes, with the references that it has made so far.
#[derive(Debug, Default)]
struct Execution {
    /// The block's number; `None` before the thread's first.
    block: Option<usize>,
    /// The number of an instruction in the block, and a reference that it made.
    references: Vec<(u16, Reference)>,
    /// What the kernel changed after its last instruction.
    changed: Vec<Extent>,
}

/// A block that has been executed and is being handed on.
#[derive(Debug, Default)]
struct Done {
    execution: Execution,
    thread: u32,
    next_pc: Option<u64>,
    instruction: usize,
    reference: usize,
}

/// Instructions from the plugin's words.
pub struct Wire<R: Read> {
    words: Words<R>,
    blocks: Vec<Vec<Static>>,
    /// Where handlers of signals begin, in order.
    handlers: Vec<u64>,
    threads: Vec<Execution>,
    running: usize,
    done: Done,
    skip: u64,
    /// Instructions still to be left out: those of the first block that were not wanted.
    to_drop: u64,
    factory: InstructionInfoFactory,
    greeted: bool,
    ended: bool,
    complete: bool,
}

impl<R: Read> Wire<R> {
    /// Reads from `input`; the plugin was told to skip so many instructions.
    pub fn new(input: R, skip: u64) -> Self {
        Wire {
            words: Words { input: BufReader::with_capacity(1 << 18, input), ended: false },
            blocks: Vec::new(),
            handlers: Vec::new(),
            threads: Vec::new(),
            running: 0,
            done: Done::default(),
            skip,
            to_drop: 0,
            factory: InstructionInfoFactory::new(),
            greeted: false,
            ended: false,
            complete: false,
        }
    }

    /// Takes words until there is something to hand on, or the end.
    fn advance(&mut self) -> Result<(), TraceError> {
        while let Some(word) = self.words.next()? {
            let payload = word >> 16;
            match word & 3 {
                0 => self.access(word)?,
                1 => return self.executed(payload as usize),
                2 => {
                    if self.control((word >> 2 & 0x3fff) as u8, payload)? {
                        return Ok(());
                    }
                }
                _ => return Err(nonsense("a word of no kind")),
            }
        }
        self.ended = true;
        Ok(())
    }

    fn access(&mut self, word: u64) -> Result<(), TraceError> {
        // Addresses are 48 bits, sign-extended.
        let address = (word as i64 >> 16) as u64;
        let kind = if word >> 2 & 1 == 0 { Kind::Load } else { Kind::Store };
        let size_bytes = 1_u16 << (word >> 3 & 7);
        let value = if word >> 6 & 1 == 0 {
            None
        } else {
            Some(self.words.next()?.ok_or_else(|| nonsense("a value is missing"))?)
        };
        let reference = Reference { kind, size_bytes, address, value };
        if value.is_some_and(|value| !reference.admits(value)) {
            return Err(nonsense("a value is larger than its reference"));
        }
        let instruction = (word >> 7 & 0x1ff) as u16;
        let execution = self.threads.get_mut(self.running);
        let Some(execution) = execution.filter(|execution| execution.block.is_some()) else {
            // Recording began in the middle of this thread's block.
            return Ok(());
        };
        if execution.references.len() >= MAX_REFERENCES {
            return Err(nonsense("a block makes more references than any"));
        }
        execution.references.push((instruction, reference));
        Ok(())
    }

    /// The running thread begins a block, so its last one is done.
    fn executed(&mut self, number: usize) -> Result<(), TraceError> {
        let first = self.blocks.get(number).and_then(|block| block.first());
        let next_pc = first.ok_or_else(|| nonsense("a block that is not known"))?.pc;
        if self.threads.len() <= self.running {
            self.threads.resize_with(self.running + 1, Execution::default);
        }
        if !self.handlers.is_empty() && self.handlers.binary_search(&next_pc).is_ok() {
            // To deliver a signal the kernel writes a frame somewhere below the stack. (Or the
            // handler was called.)
            self.threads[self.running].changed = vec![Extent::EVERYTHING];
        }
        self.hand_on(self.running, Some(next_pc));
        self.threads[self.running].block = Some(number);
        Ok(())
    }

    fn hand_on(&mut self, thread: usize, next_pc: Option<u64>) {
        // The two lists of references take turns.
        self.done.execution.references.clear();
        self.done.execution.changed.clear();
        std::mem::swap(&mut self.done.execution, &mut self.threads[thread]);
        self.threads[thread].block = None;
        (self.done.thread, self.done.next_pc) = (thread as u32, next_pc);
        (self.done.instruction, self.done.reference) = (0, 0);
    }

    /// Takes a control word; `true` at the end.
    fn control(&mut self, what: u8, payload: u64) -> Result<bool, TraceError> {
        match what {
            0 if payload == VERSION => self.greeted = true,
            0 => return Err(nonsense("another version of the wire")),
            1 => self.define(payload)?,
            2 if payload < MAX_THREADS => self.running = payload as usize,
            3 => {
                (self.ended, self.complete) = (true, true);
                return Ok(true);
            }
            4 => self.to_drop = self.skip.saturating_sub(payload),
            5 => self.changed(payload)?,
            6 => {
                // Addresses are 48 bits, sign-extended.
                let handler = ((payload << 16) as i64 >> 16) as u64;
                if let Err(place) = self.handlers.binary_search(&handler) {
                    self.handlers.insert(place, handler);
                }
            }
            _ => return Err(nonsense("a control word that is not known")),
        }
        Ok(false)
    }

    /// The kernel changed memory for the running thread.
    fn changed(&mut self, count: u64) -> Result<(), TraceError> {
        let count = usize::try_from(count).ok().filter(|count| *count <= MAX_CHANGED);
        let count = count.ok_or_else(|| nonsense("more changes than a system call makes"))?;
        let mut extents = Vec::with_capacity(count);
        for _ in 0..count {
            let mut next = || self.words.next()?.ok_or_else(|| nonsense("a change is cut off"));
            extents.push(Extent { address: next()?, size_bytes: next()? });
        }
        // Otherwise recording began in the middle of this thread's block.
        if let Some(execution) = self.threads.get_mut(self.running).filter(|e| e.block.is_some()) {
            execution.changed.append(&mut extents);
            if execution.changed.len() > MAX_CHANGED {
                execution.changed = vec![Extent::EVERYTHING];
            }
        }
        Ok(())
    }

    fn define(&mut self, number: u64) -> Result<(), TraceError> {
        let mut next = || self.words.next()?.ok_or_else(|| nonsense("a definition is cut off"));
        let count = next()?;
        if number != self.blocks.len() as u64 || count == 0 || count > MAX_BLOCK_INSTRUCTIONS {
            return Err(nonsense("a definition out of order or size"));
        }
        let mut block = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (pc, length) = (next()?, next()?);
            let mut code = [0; 16];
            code[..8].copy_from_slice(&next()?.to_le_bytes());
            code[8..].copy_from_slice(&next()?.to_le_bytes());
            let length_bytes = u8::try_from(length).ok().filter(|length| *length <= 15);
            let length_bytes = length_bytes.ok_or_else(|| nonsense("an instruction's length"))?;
            let code = &code[..usize::from(length_bytes)];
            let code::Description { flow, operation, registers } =
                code::describe(code, &mut self.factory);
            block.push(Static { pc, length_bytes, flow, operation, registers });
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Hands on the next instruction of the block that is done; `false` if there is none.
    fn next_done(&mut self, into: &mut Instruction) -> bool {
        let done = &mut self.done;
        let block = done.execution.block.and_then(|number| self.blocks.get(number));
        let Some((block, code)) = block.and_then(|b| Some((b, *b.get(done.instruction)?))) else {
            return false;
        };
        into.pc = code.pc;
        into.length_bytes = code.length_bytes;
        into.thread = done.thread;
        into.unrecorded_before = 0;
        into.operation = code.operation;
        into.registers = code.registers;
        into.arrival_cycle = None;
        let end = code.pc.wrapping_add(u64::from(code.length_bytes));
        let next = block.get(done.instruction + 1).map(|next| next.pc).or(done.next_pc);
        into.branch = match code.flow {
            Flow::Next => Branch::No,
            Flow::Conditional if next.is_none_or(|next| next == end) => Branch::NotTaken,
            Flow::Conditional | Flow::Elsewhere => Branch::Taken,
        };
        into.references.clear();
        into.changed.clear();
        // In order: a block's instructions are executed one after the other.
        while let Some((number, reference)) = done.execution.references.get(done.reference)
            && usize::from(*number) <= done.instruction
        {
            into.references.push(*reference);
            done.reference += 1;
        }
        done.instruction += 1;
        if done.instruction == block.len() {
            into.changed.append(&mut done.execution.changed);
        }
        true
    }
}

impl<R: Read> Source for Wire<R> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        loop {
            while self.next_done(into) {
                if self.to_drop == 0 {
                    return Ok(true);
                }
                self.to_drop -= 1;
            }
            if !self.ended {
                match self.advance() {
                    // What is said in several words breaks off where the program is killed.
                    Err(_) if self.words.ended => self.ended = true,
                    other => other?,
                }
                continue;
            }
            // The last block of each thread is followed by none.
            let Some(thread) = self.threads.iter().position(|thread| thread.block.is_some()) else {
                return Ok(false);
            };
            self.hand_on(thread, None);
        }
    }
}

impl<R: Read> Stream for Wire<R> {
    fn is_complete(&self) -> bool {
        self.greeted && self.complete
    }
}

fn nonsense(what: &str) -> TraceError {
    TraceError::Recorder(format!(
        "the plugin said something that has no meaning: {what}; this is a defect of Casemate"
    ))
}

/// Words of 64 bits.
struct Words<R: Read> {
    input: BufReader<R>,
    ended: bool,
}

impl<R: Read> Words<R> {
    /// The next one; `None` at the end. A last word that is cut off is the end too: its writer was
    /// killed.
    #[inline]
    fn next(&mut self) -> Result<Option<u64>, TraceError> {
        let mut word = [0; 8];
        match self.input.read_exact(&mut word) {
            Ok(()) => Ok(Some(u64::from_le_bytes(word))),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                self.ended = true;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
