//! The same unit on bytes: asked what a unit in cycles was asked, it must touch the same blocks in
//! the same order, and read what was written last. Executed by tests only.

use std::collections::BTreeSet;

use casemate_core::UntrustedMemory;
use casemate_core::Violation;
use casemate_core::checks::AllChecks;
use casemate_schemes::unit::bytes::BytesUnit;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::{BlockAddress, ProtectionUnit, Scheme};

use super::config::{HeldIn, ProtectionConfig};
use super::protected::{Protected, ProtectionError, sized};
use super::record::{Asked, Event};
use crate::machine::numbers::NumberMap;

/// A unit on bytes beside one in cycles.
pub struct Twin(Box<dyn Follow>);

/// What twins of any size of line do.
trait Follow {
    fn compared(&self) -> u64;
    fn follow(&mut self, record: &[Event]) -> Result<(), Difference>;
}

/// A twin of one size of line.
struct InLines<const LINE: usize> {
    unit: ProtectionUnit<BytesUnit<Watched<LINE>, AllChecks, LINE>>,
    /// Which version of its contents each line of data has.
    versions: NumberMap<u64>,
    /// Frames that hold instructions.
    instructions: BTreeSet<u64>,
    writes: u64,
    /// Where the unit in cycles keeps MACs on chip, it touches their region less often.
    compares_macs: bool,
    compared: u64,
    touched: Vec<Event>,
}

/// Where the two differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// They touched something else.
    #[error(transparent)]
    Touched(Box<TouchedOtherwise>),
    /// The unit on bytes read other contents than were written.
    #[error("{0:?} does not hold what was written to it last")]
    Contents(BlockAddress),
    /// The unit on bytes found an attack, and there is none.
    #[error("asked {0:?}, the unit on bytes stopped: {1}")]
    Violation(Asked, Violation),
    /// A record of touched lines that does not begin with an access.
    #[error("lines were touched although no access was asked for")]
    NothingAsked,
}

/// The first access whose touched lines differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("asked {asked:?}, in access {number}: {cycles:?} in cycles, {bytes:?} on bytes")]
pub struct TouchedOtherwise {
    /// What both were asked.
    pub asked: Asked,
    /// Which of the accesses for it.
    pub number: usize,
    /// What was touched in cycles; `None` if nothing more was.
    pub cycles: Option<Event>,
    /// What was touched on bytes; `None` if nothing more was.
    pub bytes: Option<Event>,
}

/// Memory that writes down what is touched.
#[derive(Default)]
struct Watched<const LINE: usize> {
    memory: SparseMemory<[u8; LINE]>,
    touched: Vec<Event>,
}

impl<const LINE: usize> UntrustedMemory<Place, [u8; LINE]> for Watched<LINE> {
    fn read(&mut self, place: Place) -> [u8; LINE] {
        self.touched.push(Event::Fetched(place));
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, line: &[u8; LINE]) {
        self.touched.push(Event::Stored(place));
        self.memory.write(place, line);
    }

    fn write_part(&mut self, place: Place, at: usize, bytes: &[u8]) {
        self.touched.push(Event::Stored(place));
        self.memory.write_part(place, at, bytes);
    }
}

impl Twin {
    /// Beside a unit of this scheme and configuration.
    ///
    /// # Errors
    /// As [`Protected::new`].
    pub fn new(scheme: &Scheme, config: &ProtectionConfig) -> Result<Twin, ProtectionError> {
        config.validate()?;
        let scheme = &sized(scheme, config);
        Ok(Twin(match scheme.line_blocks {
            2 => Box::new(InLines::<128>::new(scheme, config)?),
            4 => Box::new(InLines::<256>::new(scheme, config)?),
            _ => Box::new(InLines::<64>::new(scheme, config)?),
        }))
    }

    /// Accesses that were compared so far.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.0.compared()
    }

    /// Does what a unit in cycles did: all that was [recorded](Protected::take_record) since the
    /// last time.
    ///
    /// # Errors
    /// Where they differ.
    pub fn follow(&mut self, record: &[Event]) -> Result<(), Difference> {
        self.0.follow(record)
    }
}

impl<const LINE: usize> Follow for InLines<LINE> {
    fn compared(&self) -> u64 {
        self.compared
    }

    fn follow(&mut self, record: &[Event]) -> Result<(), Difference> {
        let mut rest = record;
        while let Some((first, after)) = rest.split_first() {
            let Event::Asked(asked) = *first else { return Err(Difference::NothingAsked) };
            let is_asked = |event: &Event| matches!(event, Event::Asked(_));
            let end = after.iter().position(is_asked).unwrap_or(after.len());
            self.ask(asked)?;
            self.compare(asked, &after[..end])?;
            rest = &after[end..];
        }
        Ok(())
    }
}

impl<const LINE: usize> InLines<LINE> {
    fn new(scheme: &Scheme, config: &ProtectionConfig) -> Result<Self, ProtectionError> {
        let (memory, size) = (Watched::default(), Protected::unit_size(config));
        let mut unit = scheme.in_lines::<_, AllChecks, LINE>(memory, size, &[0x2a; 32])?;
        unit.port_mut().memory_mut().touched.clear();
        Ok(InLines {
            unit,
            versions: NumberMap::default(),
            instructions: BTreeSet::new(),
            writes: 0,
            compares_macs: config.macs.held_in == HeldIn::Nowhere,
            compared: 0,
            touched: Vec::new(),
        })
    }

    fn ask(&mut self, asked: Asked) -> Result<(), Difference> {
        let failed = |violation| Difference::Violation(asked, violation);
        match asked {
            Asked::Read(at) => {
                let block = self.unit.read(at).map_err(failed)?;
                if !self.instructions.contains(&at.page.frame) && block != self.contents(at) {
                    return Err(Difference::Contents(at));
                }
                Ok(())
            }
            Asked::WriteBack(at) => {
                self.writes += 1;
                self.versions.insert(at.physical(), self.writes);
                let block = self.contents(at);
                self.unit.write(at, &block).map_err(failed)
            }
            Asked::DropClean(at) => {
                let block = self.contents(at);
                self.unit.drop_clean(at, &block).map_err(failed)
            }
            Asked::Allocate(page) => {
                self.instructions.remove(&page.frame);
                for at in page.blocks() {
                    self.versions.remove(&at.physical());
                }
                self.unit.first_touch(page, &version(0)).map_err(failed)
            }
            Asked::AllocateInstructions(page) => {
                // Their plaintext is what the pads make of these contents.
                self.instructions.insert(page.frame);
                self.unit.first_touch_of_instructions(page, &version(0)).map_err(failed)
            }
            Asked::AllocatePlaintext(page) => {
                self.instructions.remove(&page.frame);
                for at in page.blocks() {
                    self.versions.remove(&at.physical());
                }
                self.unit.first_touch_of_plaintext(page, &version(0)).map_err(failed)
            }
            Asked::AllocateEnds => {
                self.unit.first_touch_ends();
                Ok(())
            }
            Asked::Switch(process) => self.unit.context_switch(process).map_err(failed),
            Asked::Evict(place) => self.unit.evict_metadata(place).map_err(failed),
            Asked::Check => self.unit.check().map_err(failed),
        }
    }

    fn contents(&self, at: BlockAddress) -> [u8; LINE] {
        version(self.versions.get(&at.physical()).copied().unwrap_or(0))
    }

    fn compare(&mut self, asked: Asked, cycles: &[Event]) -> Result<(), Difference> {
        self.touched.clear();
        self.touched.append(&mut self.unit.port_mut().memory_mut().touched);
        let compares_macs = self.compares_macs;
        let counts = move |event: &&Event| match event {
            Event::Fetched(place) | Event::Stored(place) => {
                compares_macs || place.region != Region::Macs
            }
            Event::Asked(_) => true,
        };
        let (mut bytes, mut cycles) =
            (self.touched.iter().filter(counts), cycles.iter().filter(counts));
        for number in 0.. {
            let (cycles, bytes) = (cycles.next().copied(), bytes.next().copied());
            if cycles != bytes {
                let otherwise = TouchedOtherwise { asked, number, cycles, bytes };
                return Err(Difference::Touched(Box::new(otherwise)));
            }
            if cycles.is_none() {
                break;
            }
            self.compared += 1;
        }
        Ok(())
    }
}

/// Contents that no other version has, and never zeros: some trees keep those without fetching
/// them.
fn version<const LINE: usize>(number: u64) -> [u8; LINE] {
    let mut line = [0x77; LINE];
    line[..8].copy_from_slice(&number.to_le_bytes());
    line
}
