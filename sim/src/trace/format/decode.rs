//! Columns to instructions. For all bytes, decoding ends, with instructions or with
//! `None`.

use super::columns::{Column, Cursors};
use super::encode::control;
use super::predictor::Predictor;
use super::template::Template;
use super::varint::unfold;
use crate::trace::record::{Extent, Instruction, MAX_CHANGED};

/// Gives the instructions of one block back.
#[derive(Debug, Default)]
pub struct Decoder {
    columns: Cursors,
    predictor: Predictor,
    /// Records that are still to come.
    left: u64,
    /// Of these, how many come as expected before the next entry of the control column.
    run: u64,
}

impl Decoder {
    /// Begins a block of so many records; `None` if the bytes are no columns.
    pub fn begin(&mut self, bytes: Vec<u8>, records: u64) -> Option<()> {
        self.predictor.clear();
        self.columns = Cursors::new(bytes)?;
        self.left = records;
        self.run = if records == 0 { 0 } else { self.columns.take(Column::Control)? };
        Some(())
    }

    /// Records that are still to come.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Fills `into` with the next instruction; `None` if the bytes are not a block's. To be called
    /// only while [`left`](Self::left) is not 0.
    pub fn next(&mut self, into: &mut Instruction) -> Option<()> {
        let number = match self.run.checked_sub(1) {
            Some(run) => {
                self.run = run;
                self.predictor.expected()?
            }
            None => self.unexpected()?,
        };
        into.thread = self.predictor.thread();
        let (has_cycle, has_changed) = {
            let template = self.predictor.template(number)?;
            template.fill(into);
            (template.has_cycle, template.has_changed)
        };
        if has_cycle {
            let difference = unfold(self.columns.take(Column::Cycles)?);
            let cycle = self.predictor.last_cycle().wrapping_add(difference);
            self.predictor.arrived(cycle);
            into.arrival_cycle = Some(cycle);
        }
        self.take_references(number, into)?;
        if has_changed {
            self.take_changed(into)?;
        }
        self.left -= 1;
        // At the end all of the bytes must have meant something.
        (self.left > 0 || (self.run == 0 && self.columns.is_spent())).then_some(())
    }

    fn take_references(&mut self, number: u32, into: &mut Instruction) -> Option<()> {
        let known = self.predictor.came(number)?;
        for (slot, past) in known.template.slots.iter().zip(&mut known.history) {
            let difference = unfold(self.columns.take(Column::Addresses)?);
            let address = past.expected().wrapping_add(difference);
            past.went_to(address);
            let mut reference = slot.at(address);
            if slot.has_value {
                let value = self.columns.take(Column::Values)? ^ past.value();
                if !reference.admits(value) {
                    return None;
                }
                past.remember(value);
                reference.value = Some(value);
            }
            into.references.push(reference);
        }
        if let Some(last) = into.references.last() {
            self.predictor.went_to(last.address);
        }
        Some(())
    }

    fn take_changed(&mut self, into: &mut Instruction) -> Option<()> {
        let count = usize::try_from(self.columns.take(Column::Addresses)?).ok()?;
        if !(1..=MAX_CHANGED).contains(&count) {
            return None;
        }
        for _ in 0..count {
            let difference = unfold(self.columns.take(Column::Addresses)?);
            let address = self.predictor.last_changed().wrapping_add(difference);
            self.predictor.changed(address);
            let size_bytes = self.columns.take(Column::Addresses)?;
            into.changed.push(Extent { address, size_bytes });
        }
        Some(())
    }

    /// Reads entries of the control column up to an instruction, and how many come as expected
    /// after it.
    fn unexpected(&mut self) -> Option<u32> {
        loop {
            let number = match self.columns.take(Column::Control)? {
                control::NEW_SHAPE => {
                    let expected_pc = self.predictor.expected_pc();
                    Some(self.predictor.admit(Template::take(&mut self.columns, expected_pc)?))
                }
                control::THREAD => {
                    let thread = u32::try_from(self.columns.take(Column::Control)?).ok()?;
                    self.predictor.switch_to(thread);
                    None
                }
                known => Some(u32::try_from(known - control::KNOWN_SHAPE).ok()?),
            };
            match number {
                // The last run is left out when it is of nothing.
                Some(number) => {
                    let more = self.left > 1;
                    self.run = if more { self.columns.take(Column::Control)? } else { 0 };
                    return Some(number);
                }
                None => {
                    self.run = self.columns.take(Column::Control)?;
                    if let Some(run) = self.run.checked_sub(1) {
                        self.run = run;
                        return self.predictor.expected();
                    }
                }
            }
        }
    }
}
