//! What both sides expect: the writer writes down only where the program did otherwise.
//!
//! Expected is that after a template comes the template that came after it the last time in the
//! same thread, and that an address is as far from the last one of the same place of the same
//! template as that was from the one before. All of it is forgotten at the end of a block.

use std::collections::HashMap;

use super::template::Template;

/// No template.
const NONE: u32 = u32::MAX;

/// The templates of a block and what came after each.
#[derive(Debug)]
pub struct Predictor {
    templates: Vec<Known>,
    /// The last template of each thread that is not the running one.
    parked: HashMap<u32, u32>,
    thread: u32,
    /// The last template of the running thread, or [`NONE`].
    last: u32,
    last_address: u64,
    last_cycle: u64,
    last_changed: u64,
}

/// A template that has occurred, and what is known of it.
#[derive(Debug)]
pub struct Known {
    /// The template.
    pub template: Template,
    /// For each of its references.
    pub history: Box<[History]>,
    successor: u32,
}

/// The past of one reference of one template.
#[derive(Clone, Copy, Debug)]
pub struct History {
    address: u64,
    stride: u64,
    value: u64,
}

impl History {
    /// The address to expect.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.address.wrapping_add(self.stride)
    }

    /// Remembers an address.
    pub fn went_to(&mut self, address: u64) {
        self.stride = address.wrapping_sub(self.address);
        self.address = address;
    }

    /// Exchanges a value, or the XOR with the last one, for the other.
    pub fn remember(&mut self, value: u64) -> u64 {
        std::mem::replace(&mut self.value, value)
    }

    /// The last value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value
    }
}

impl Default for Predictor {
    fn default() -> Self {
        Predictor {
            templates: Vec::new(),
            parked: HashMap::new(),
            thread: 0,
            last: NONE,
            last_address: 0,
            last_cycle: 0,
            last_changed: 0,
        }
    }
}

impl Predictor {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.templates.clear();
        self.parked.clear();
        (self.thread, self.last, self.last_address, self.last_cycle) = (0, NONE, 0, 0);
        self.last_changed = 0;
    }

    /// The running thread.
    #[must_use]
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Another thread runs.
    pub fn switch_to(&mut self, thread: u32) {
        self.parked.insert(self.thread, self.last);
        self.thread = thread;
        self.last = self.parked.remove(&thread).unwrap_or(NONE);
    }

    /// The number of the template that should come next.
    #[inline]
    #[must_use]
    pub fn expected(&self) -> Option<u32> {
        let next = self.templates.get(self.last as usize)?.successor;
        (next != NONE).then_some(next)
    }

    /// Where an instruction of unknown template should be.
    #[must_use]
    pub fn expected_pc(&self) -> u64 {
        self.templates.get(self.last as usize).map_or(0, |known| known.template.end())
    }

    /// The template of that number.
    #[inline]
    #[must_use]
    pub fn template(&self, number: u32) -> Option<&Template> {
        self.templates.get(number as usize).map(|known| &known.template)
    }

    /// Admits a new template and gives its number.
    pub fn admit(&mut self, template: Template) -> u32 {
        let start = History { address: self.last_address, stride: 0, value: 0 };
        let history = vec![start; template.slots.len()].into_boxed_slice();
        self.templates.push(Known { template, history, successor: NONE });
        // Fewer than the records of a block.
        (self.templates.len() - 1) as u32
    }

    /// The template of that number came next. Gives it with its history; `None` if there is no such
    /// template.
    #[inline]
    pub fn came(&mut self, number: u32) -> Option<&mut Known> {
        if let Some(last) = self.templates.get_mut(self.last as usize) {
            last.successor = number;
        }
        self.last = number;
        self.templates.get_mut(number as usize)
    }

    /// Remembers where the last reference went, for templates that have no history.
    #[inline]
    pub fn went_to(&mut self, address: u64) {
        self.last_address = address;
    }

    /// Exchanges the last arrival cycle for this one.
    pub fn arrived(&mut self, cycle: u64) -> u64 {
        std::mem::replace(&mut self.last_cycle, cycle)
    }

    /// Exchanges the address of the last changed extent for this one.
    pub fn changed(&mut self, address: u64) -> u64 {
        std::mem::replace(&mut self.last_changed, address)
    }

    /// The address of the last changed extent.
    #[must_use]
    pub fn last_changed(&self) -> u64 {
        self.last_changed
    }

    /// The last arrival cycle.
    #[must_use]
    pub fn last_cycle(&self) -> u64 {
        self.last_cycle
    }
}
