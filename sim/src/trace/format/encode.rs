//! Instructions to columns.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::columns::{Column, Columns};
use super::predictor::Predictor;
use super::template::Template;
use super::varint::fold;
use crate::trace::error::TraceError;
use crate::trace::record::{Extent, Instruction, MAX_CHANGED, MAX_REFERENCES};

/// What the control column says after a number of instructions that came as expected.
pub mod control {
    /// A template that occurs for the first time; it is the next one in the column of templates.
    pub const NEW_SHAPE: u64 = 0;
    /// Another thread, whose number follows; no instruction.
    pub const THREAD: u64 = 1;
    /// The template of number n is n + this.
    pub const KNOWN_SHAPE: u64 = 2;
}

/// The columns of a block, instruction by instruction.
#[derive(Debug, Default)]
pub struct Encoder {
    columns: Columns,
    predictor: Predictor,
    /// The newest template of each key, a hash of what tells most templates apart.
    by_key: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    /// For each template the one before it of the same key.
    older: Vec<Option<u32>>,
    /// Instructions that came as expected since the last entry of the control column.
    run: u64,
}

impl Encoder {
    /// Adds an instruction.
    ///
    /// # Errors
    /// It has too many references, or a value that its size cannot hold.
    pub fn push(&mut self, instruction: &Instruction) -> Result<(), TraceError> {
        check(instruction)?;
        if instruction.thread != self.predictor.thread() {
            self.control(control::THREAD);
            self.columns.put(Column::Control, instruction.thread.into());
            self.predictor.switch_to(instruction.thread);
        }
        let expected = self.predictor.expected();
        let number = match expected {
            Some(number) if self.fits(number, instruction) => {
                self.run += 1;
                number
            }
            _ => self.unexpected(instruction),
        };
        self.put_what_changes(number, instruction);
        Ok(())
    }

    #[inline]
    fn fits(&self, number: u32, instruction: &Instruction) -> bool {
        self.predictor.template(number).is_some_and(|template| template.fits(instruction))
    }

    fn control(&mut self, what: u64) {
        self.columns.put(Column::Control, self.run);
        self.columns.put(Column::Control, what);
        self.run = 0;
    }

    /// Names the template of an instruction that was not expected; describes it if it is new.
    fn unexpected(&mut self, instruction: &Instruction) -> u32 {
        let key = key(instruction);
        let mut candidate = self.by_key.get(&key).copied();
        while let Some(number) = candidate {
            if self.fits(number, instruction) {
                self.control(control::KNOWN_SHAPE + u64::from(number));
                return number;
            }
            candidate = self.older[number as usize];
        }
        self.control(control::NEW_SHAPE);
        let template = Template::of(instruction);
        template.put(&mut self.columns, self.predictor.expected_pc());
        let number = self.predictor.admit(template);
        self.older.push(self.by_key.insert(key, number));
        number
    }

    /// Addresses, values and the cycle.
    fn put_what_changes(&mut self, number: u32, instruction: &Instruction) {
        if let Some(cycle) = instruction.arrival_cycle {
            let last = self.predictor.arrived(cycle);
            self.columns.put(Column::Cycles, fold(cycle.wrapping_sub(last)));
        }
        let known = self.predictor.came(number);
        let history = known.map_or(&mut [][..], |known| &mut known.history);
        for (reference, past) in instruction.references.iter().zip(history) {
            let difference = reference.address.wrapping_sub(past.expected());
            self.columns.put(Column::Addresses, fold(difference));
            past.went_to(reference.address);
            if let Some(value) = reference.value {
                self.columns.put(Column::Values, value ^ past.remember(value));
            }
        }
        if let Some(last) = instruction.references.last() {
            self.predictor.went_to(last.address);
        }
        if !instruction.changed.is_empty() {
            self.put_changed(&instruction.changed);
        }
    }

    /// Rare: a few for a system call.
    #[cold]
    fn put_changed(&mut self, changed: &[Extent]) {
        self.columns.put(Column::Addresses, changed.len() as u64);
        for extent in changed {
            let last = self.predictor.changed(extent.address);
            self.columns.put(Column::Addresses, fold(extent.address.wrapping_sub(last)));
            self.columns.put(Column::Addresses, extent.size_bytes);
        }
    }

    /// Bytes so far, before compression.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.columns.len_bytes()
    }

    /// The block's bytes; a new block begins.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        if self.run > 0 {
            self.columns.put(Column::Control, self.run);
            self.run = 0;
        }
        self.predictor.clear();
        self.by_key.clear();
        self.older.clear();
        self.columns.take()
    }
}

fn check(instruction: &Instruction) -> Result<(), TraceError> {
    if instruction.references.len() > MAX_REFERENCES {
        return Err(TraceError::Unwritable("it has more than 4096 references"));
    }
    if instruction.changed.len() > MAX_CHANGED {
        return Err(TraceError::Unwritable("it has more than 2048 changed extents"));
    }
    let fits = |r: &crate::trace::Reference| r.value.is_none_or(|value| r.admits(value));
    if !instruction.references.iter().all(fits) {
        return Err(TraceError::Unwritable(
            "a value is larger than its reference, or than 8 bytes",
        ));
    }
    Ok(())
}

/// Tells apart what one address does not: text traces know no addresses of instructions.
fn key(instruction: &Instruction) -> u64 {
    let pc = instruction.pc.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    pc ^ u64::from(instruction.unrecorded_before).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

/// Keys are mixed already. A program that chooses addresses that collide slows down only its own
/// trace.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
