//! The unit itself: an encryption and an integrity scheme at work on one memory.

use super::anatomy::Anatomy;
use super::encryption::{
    CounterMode, Direct, Encryption, NoEncryption, OneTimePad, PageUse, SequenceNumberCache, data,
};
use super::integrity::{AnyIntegrity, Integrity, with_integrity};
use super::page_table::PageTable;
use super::place::{BlockAddress, PageAddress, Place};
use super::port::UnitPort;
use casemate_core::port::{FixedBytes, Port};
use casemate_core::violation::{Refusal, Violation};

/// The encryption of a unit.
pub enum AnyEncryption {
    /// None.
    None(NoEncryption),
    /// Direct.
    Direct(Direct),
    /// Counter mode.
    CounterMode(CounterMode),
    /// One-time pad with a Sequence Number Cache.
    OneTimePad(OneTimePad),
}

impl AnyEncryption {
    /// Lines of counters that it needs for so many lines.
    pub(super) fn counter_lines(&self, data_lines: u64) -> u64 {
        match self {
            AnyEncryption::CounterMode(mode) => data_lines.div_ceil(mode.slots()),
            AnyEncryption::None(_) | AnyEncryption::Direct(_) | AnyEncryption::OneTimePad(_) => 0,
        }
    }
}

/// A protection unit: blocks in and out of untrusted memory.
///
/// It is asked by one cache: a read of a block that the cache holds returns what memory has, which
/// may be older.
pub struct ProtectionUnit<P: Port> {
    pub(super) encryption: AnyEncryption,
    pub(super) integrity: AnyIntegrity<P>,
}

impl<P: UnitPort> ProtectionUnit<P> {
    /// A block's plaintext: what was last written there.
    ///
    /// # Errors
    /// [`Violation`] if the integrity scheme finds that untrusted memory was changed.
    pub fn read(&mut self, at: BlockAddress) -> Result<P::V<P::Line>, Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => {
            let from = integrity.port().now();
            match encryption {
                AnyEncryption::None(scheme) => scheme.read(integrity, at, from),
                AnyEncryption::Direct(scheme) => scheme.read(integrity, at, from),
                AnyEncryption::CounterMode(scheme) => scheme.read(integrity, at, from),
                AnyEncryption::OneTimePad(scheme) => scheme.read(integrity, at, from),
            }
        })
    }

    /// Puts a block's plaintext into untrusted memory, encrypted.
    ///
    /// # Errors
    /// As [`read`](Self::read): to write a block, counters and nodes are read.
    pub fn write(&mut self, at: BlockAddress, plain: &P::V<P::Line>) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => match encryption {
            AnyEncryption::None(scheme) => scheme.write(integrity, at, plain),
            AnyEncryption::Direct(scheme) => scheme.write(integrity, at, plain),
            AnyEncryption::CounterMode(scheme) => scheme.write(integrity, at, plain),
            AnyEncryption::OneTimePad(scheme) => scheme.write(integrity, at, plain),
        })
    }

    /// Tells that the cache drops a block which it read and did not change. A scheme that logs what
    /// is where must know; to others it says nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn drop_clean(&mut self, at: BlockAddress, plain: &P::V<P::Line>) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => {
            if !integrity.is_told_of_drops(data::<P>(at)) {
                return Ok(());
            }
            match encryption {
                AnyEncryption::None(scheme) => scheme.drop_clean(integrity, at, plain),
                AnyEncryption::Direct(scheme) => scheme.drop_clean(integrity, at, plain),
                AnyEncryption::CounterMode(scheme) => scheme.drop_clean(integrity, at, plain),
                AnyEncryption::OneTimePad(scheme) => scheme.drop_clean(integrity, at, plain),
            }
        })
    }

    /// Whether what is read may be wrong until the next [`check`](Self::check).
    pub fn checks_at_intervals(&self) -> bool {
        with_integrity!(&self.integrity, integrity => integrity.checks_at_intervals())
    }

    /// Verifies all that was read since the last check. Schemes that verify every access have
    /// nothing to do.
    ///
    /// # Errors
    /// [`Violation`] if memory was changed. Nothing is answered after that.
    pub fn check(&mut self) -> Result<(), Violation> {
        with_integrity!(&mut self.integrity, integrity => integrity.check())
    }

    /// The pages that a log covers. A wrong change of the table is found by the next check.
    /// Executed by tests only.
    pub fn page_table_mut(&mut self) -> Option<&mut PageTable> {
        match &mut self.integrity {
            AnyIntegrity::LogHash(logged) => Some(logged.page_table_mut()),
            AnyIntegrity::HierarchicalLogHash(logged) => Some(logged.page_table_mut()),
            _ => None,
        }
    }

    /// A page of zeros for a new owner.
    pub fn allocate(&mut self, page: PageAddress) -> Result<(), Violation> {
        let now = self.port_mut().now();
        self.allocate_with(page, &P::carry(P::Line::ZERO, now))
    }

    /// A page's first touch, as SPEC.md has it ("First touch"): each of its blocks is written once
    /// with these contents. Until [`first_touch_ends`](Self::first_touch_ends), sequence numbers
    /// and time stamps on chip stay those that were there; the governor of counters and nodes
    /// [throws out](Self::evict_metadata) meanwhile what it did not have before.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn first_touch(
        &mut self,
        page: PageAddress,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.freeze(true);
        self.allocate_with(page, contents)
    }

    /// The same of a page of instructions, which lie in memory as their vendor encrypted them: each
    /// of its lines is loaded with these contents.
    ///
    /// # Errors
    /// As [`allocate_as`](Self::allocate_as) and [`load_instructions`](Self::load_instructions).
    pub fn first_touch_of_instructions(
        &mut self,
        page: PageAddress,
        cipher: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.freeze(true);
        self.allocate_as(page, PageUse::Instructions)?;
        page.lines::<P::Line>().try_for_each(|at| self.load_instructions(at, cipher))
    }

    /// The same of a page that is not encrypted (OTP/SNC, section 4.3).
    ///
    /// # Errors
    /// As [`allocate_as`](Self::allocate_as).
    pub fn first_touch_of_plaintext(
        &mut self,
        page: PageAddress,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.freeze(true);
        self.assign(page, PageUse::Plaintext)?;
        page.lines::<P::Line>().try_for_each(|at| self.write(at, contents))
    }

    /// Whether the encryption knows pages of instructions, and of plaintext.
    pub fn has_instruction_pages(&self) -> bool {
        matches!(self.encryption, AnyEncryption::OneTimePad(_))
    }

    /// What is on chip counts as used again.
    pub fn first_touch_ends(&mut self) {
        self.freeze(false);
    }

    fn freeze(&mut self, frozen: bool) {
        if let AnyEncryption::OneTimePad(scheme) = &mut self.encryption {
            scheme.freeze(frozen);
        }
        match &mut self.integrity {
            AnyIntegrity::LogHash(logged) => logged.freeze(frozen),
            AnyIntegrity::HierarchicalLogHash(logged) => logged.freeze(frozen),
            _ => {}
        }
    }

    fn allocate_with(
        &mut self,
        page: PageAddress,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => {
            integrity.add_page(page.frame)?;
            match encryption {
                AnyEncryption::None(scheme) => fill(scheme, integrity, page, contents),
                AnyEncryption::Direct(scheme) => fill(scheme, integrity, page, contents),
                AnyEncryption::CounterMode(scheme) => fill(scheme, integrity, page, contents),
                AnyEncryption::OneTimePad(scheme) => fill(scheme, integrity, page, contents),
            }
        })
    }

    fn write_zeros(&mut self, page: PageAddress, now: P::Moment) -> Result<(), Violation> {
        let zeros = P::carry(P::Line::ZERO, now);
        page.lines::<P::Line>().try_for_each(|at| self.write(at, &zeros))
    }

    /// A page of zeros that holds something else than a compartment's own data; a page of
    /// instructions is not written, but [loaded](Self::load_instructions).
    ///
    /// # Errors
    /// A refusal if the encryption knows no such pages; else as [`read`](Self::read).
    pub fn allocate_as(&mut self, page: PageAddress, page_use: PageUse) -> Result<(), Violation> {
        if page_use == PageUse::Private {
            return self.allocate(page);
        }
        self.assign(page, page_use)?;
        if page_use == PageUse::Instructions {
            return Ok(());
        }
        let now = self.port_mut().now();
        self.write_zeros(page, now)
    }

    fn assign(&mut self, page: PageAddress, page_use: PageUse) -> Result<(), Violation> {
        let AnyEncryption::OneTimePad(scheme) = &mut self.encryption else {
            return Err(Refusal::OnlyPrivatePages.into());
        };
        with_integrity!(&mut self.integrity, integrity => {
            integrity.add_page(page.frame)?;
            scheme.assign(integrity, page, page_use)
        })
    }

    /// What a page holds.
    pub fn page_use(&self, page: PageAddress) -> PageUse {
        match &self.encryption {
            AnyEncryption::OneTimePad(scheme) => scheme.page_use(page),
            _ => PageUse::Private,
        }
    }

    /// Puts a block of instructions into memory as its vendor encrypted it (OTP/SNC, section
    /// 3.4.1).
    ///
    /// # Errors
    /// A refusal if the page is not one of instructions; else as [`write`](Self::write).
    pub fn load_instructions(
        &mut self,
        at: BlockAddress,
        cipher: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let AnyEncryption::OneTimePad(scheme) = &self.encryption else {
            return Err(Refusal::OnlyPrivatePages.into());
        };
        with_integrity!(&mut self.integrity, integrity => {
            scheme.load_instructions(integrity, at, cipher)
        })
    }

    /// Another compartment runs from now on (OTP/SNC, section 4.3). Only a Sequence Number Cache
    /// has to know.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn context_switch(&mut self, compartment: u32) -> Result<(), Violation> {
        let AnyEncryption::OneTimePad(scheme) = &mut self.encryption else { return Ok(()) };
        with_integrity!(&mut self.integrity, integrity => {
            scheme.context_switch(integrity, compartment)
        })
    }

    /// Throws one line of metadata out of the chip, as the governor of what stays there
    /// ([`Capacity::Governed`](casemate_core::hash_tree::Capacity)) decides: a clean one is
    /// forgotten, a dirty one written back, and its MAC, or its counter, goes into its parent,
    /// which is brought in for that. Nothing happens if the line is not there.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        with_integrity!(&mut self.integrity, integrity => integrity.evict_metadata(place))
    }

    /// Puts all that is on chip into memory and forgets it.
    pub fn flush(&mut self) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => {
            if let AnyEncryption::OneTimePad(scheme) = encryption {
                scheme.flush(integrity)?;
            }
            integrity.flush()
        })
    }

    /// The Sequence Number Cache, if there is one.
    pub fn sequence_number_cache(&self) -> Option<&SequenceNumberCache> {
        match &self.encryption {
            AnyEncryption::OneTimePad(scheme) => Some(scheme.snc()),
            _ => None,
        }
    }

    /// Time stamps that were found in the time-stamp cache so far, and that were not; none without
    /// a log.
    pub fn time_stamp_hits_and_misses(&mut self) -> (u64, u64) {
        match &mut self.integrity {
            AnyIntegrity::LogHash(logged) => logged.time_stamp_hits_and_misses(),
            AnyIntegrity::HierarchicalLogHash(logged) => logged.time_stamp_hits_and_misses(),
            _ => (0, 0),
        }
    }

    /// The world that the unit asks.
    pub fn port_mut(&mut self) -> &mut P {
        with_integrity!(&mut self.integrity, integrity => integrity.port())
    }

    /// Where all that belongs to a block lies in untrusted memory.
    pub fn anatomy(&mut self, at: BlockAddress) -> Anatomy {
        let data = data::<P>(at);
        let counter = match &self.encryption {
            AnyEncryption::CounterMode(mode) => Some(mode.counter_at(at).place),
            AnyEncryption::OneTimePad(scheme) => scheme.number_place(at),
            _ => None,
        };
        with_integrity!(&mut self.integrity, integrity => integrity.anatomy(data, counter))
    }

    /// Blocks encrypted anew so far because a counter overflowed.
    pub fn reencrypted_blocks(&self) -> u64 {
        match &self.encryption {
            AnyEncryption::CounterMode(mode) => mode.reencrypted_blocks,
            _ => 0,
        }
    }

    /// How often a counter overflowed, so that blocks were encrypted anew.
    pub fn overflows(&self) -> u64 {
        match &self.encryption {
            AnyEncryption::CounterMode(mode) => mode.overflows,
            _ => 0,
        }
    }

    /// Lines of counters stored again because a counter beside theirs in a tree overflowed.
    pub fn resealed_lines(&self) -> u64 {
        match &self.integrity {
            AnyIntegrity::CounterTree(scheme) => scheme.tree().link().resealed_lines(),
            _ => 0,
        }
    }

    /// Blocks that can be encrypted before one counter for all is used up, and all of memory with
    /// it.
    pub fn encryptions_left(&self) -> Option<u64> {
        match &self.encryption {
            AnyEncryption::CounterMode(mode) => mode.encryptions_left(),
            _ => None,
        }
    }

    /// Encrypts all of memory under a new key, before one counter for all is used up. Other
    /// encryptions have no use for that, and refuse.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn renew_key(&mut self) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => match encryption {
            AnyEncryption::CounterMode(mode) => {
                let now = integrity.port().now();
                mode.renew_key(integrity, now)
            }
            _ => Err(Violation::SeedsExhausted),
        })
    }

    /// Prepares metadata, before anything else is done.
    pub(super) fn initialise(&mut self, counter_lines: u64) -> Result<(), Violation> {
        with_integrity!(&mut self.integrity, integrity => integrity.initialise(counter_lines))
    }

    /// Brings the first so many frames under protection, as a machine does with all of memory when
    /// it is switched on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn boot(&mut self, frames: u64) -> Result<(), Violation> {
        (0..frames).try_for_each(|frame| self.allocate(PageAddress::identical(frame)))
    }
}

/// A page for a new owner, written with these contents.
fn fill<P: UnitPort, I: Integrity<P>>(
    scheme: &mut impl Encryption<P, I>,
    integrity: &mut I,
    page: PageAddress,
    contents: &P::V<P::Line>,
) -> Result<(), Violation> {
    scheme.allocate(integrity, page)?;
    scheme.write_page(integrity, page, contents)
}
