//! What the machine asks of the unit, and what the engine's unit is asked for that.

use casemate_schemes::unit::PageAddress;
use casemate_schemes::unit::encryption::PageUse;

use super::unit::{Rewritten, Unit};
use super::{InLines, Protected, in_lines};
use crate::machine::backing::{Backing, BlockAddresses, Fill, MetadataUse, PageAddresses};
use crate::machine::timeline::{Timeline, When};
use crate::protection::config::{InstructionPages, Verification};
use crate::protection::moment::{Moment, Timed};
use crate::protection::record::Asked;
use crate::protection::store::ciphertext;

impl<const LINE: usize> Unit<LINE> {
    /// Reads a block; when it can be worked with, and when it is verified.
    fn bring_in(&mut self, block: BlockAddresses) -> Moment {
        self.counts.reads += 1;
        let at = self.address_of(block);
        self.ask(Asked::Read(at));
        let plain = self.unit.read(at).map(|plain| plain.at);
        let now = self.now();
        let Moment { ready, verified } = self.note(plain).unwrap_or(Moment::at(now));
        let verified = self.unit.port_mut().timeline.join(ready, verified);
        self.end_access();
        Moment { ready, verified }
    }

    /// Writes a block back; when it was sent. A page of instructions that is written becomes one of
    /// data, as if it had been touched as such first.
    fn send(&mut self, block: BlockAddresses) -> When {
        self.counts.write_backs += 1;
        let at = self.address_of(block);
        if self.unit.page_use(at.page) == PageUse::Instructions {
            self.allocate(at.page, PageUse::Private);
        }
        self.ask(Asked::WriteBack(at));
        let now = self.now();
        self.unit.port_mut().stored_data = now;
        let written = self.unit.write(at, &plaintext(now));
        self.note(written);
        // The block's own store comes last, after those of blocks that were encrypted anew.
        let sent = self.unit.port_mut().stored_data;
        self.end_access();
        sent
    }

    fn drop_logged(&mut self, block: BlockAddresses) {
        self.counts.clean_drops += 1;
        let at = self.address_of(block);
        self.ask(Asked::DropClean(at));
        let now = self.now();
        let dropped = self.unit.drop_clean(at, &plaintext(now));
        self.note(dropped);
        self.throw_out();
    }

    /// A page is touched for the first time.
    fn touch(&mut self, page: PageAddresses, page_use: PageUse) {
        self.counts.pages_touched += 1;
        let is_plaintext = self.plaintext_pages.contains(page.virtual_address)
            && self.unit.has_instruction_pages();
        let page_use = if is_plaintext { PageUse::Plaintext } else { page_use };
        let page = self.page_of(page.frame_address, page.virtual_address);
        self.allocate(page, page_use);
    }

    /// Brings a page under protection. That takes no time and no traffic, is not counted, and
    /// leaves nothing on chip that was not there (SPEC.md, "First touch").
    fn allocate(&mut self, page: PageAddress, page_use: PageUse) {
        self.ask(match page_use {
            PageUse::Instructions => Asked::AllocateInstructions(page),
            PageUse::Plaintext => Asked::AllocatePlaintext(page),
            PageUse::Private | PageUse::Shared => Asked::Allocate(page),
        });
        self.unit.port_mut().free = true;
        let before = Rewritten::of(&self.unit);
        let contents = plaintext(When::PAST);
        let allocated = match page_use {
            PageUse::Instructions => self.unit.first_touch_of_instructions(page, &contents),
            PageUse::Plaintext => self.unit.first_touch_of_plaintext(page, &contents),
            PageUse::Private | PageUse::Shared => self.unit.first_touch(page, &contents),
        };
        self.note(allocated);
        self.forget_touched();
        self.ask(Asked::AllocateEnds);
        self.unit.first_touch_ends();
        self.unit.port_mut().free = false;
        self.uncounted = self.uncounted + (Rewritten::of(&self.unit) - before);
    }

    /// The cycle of the operation that goes on.
    fn now(&mut self) -> When {
        When::at(self.unit.port_mut().now)
    }
}

impl<const LINE: usize> Backing for Unit<LINE> {
    fn line_bytes(&self) -> u64 {
        LINE as u64
    }

    fn read(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> Fill {
        let Moment { ready, verified } = self.operate(timeline, |this| this.bring_in(block));
        let usable = match self.verification {
            Verification::Precise => verified,
            Verification::Timely => ready,
        };
        Fill { usable, verified }
    }

    fn write_back(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> When {
        self.operate(timeline, |this| this.send(block))
    }

    fn drop_clean(&mut self, block: BlockAddresses, timeline: &mut Timeline) {
        if self.unit.checks_at_intervals() {
            self.operate(timeline, |this| this.drop_logged(block));
        }
    }

    fn touch_page(&mut self, page: PageAddresses, timeline: &mut Timeline) {
        self.operate(timeline, |this| this.touch(page, PageUse::Private));
    }

    fn touch_instruction_page(&mut self, page: PageAddresses, timeline: &mut Timeline) {
        let apart = self.instruction_pages == InstructionPages::ConstantSeeds
            && self.unit.has_instruction_pages();
        let page_use = if apart { PageUse::Instructions } else { PageUse::Private };
        self.operate(timeline, |this| this.touch(page, page_use));
    }

    fn let_run(&mut self, process: u32, timeline: &mut Timeline) {
        self.switch_to(process, timeline);
    }

    fn metadata_uses(&mut self, out: &mut Vec<MetadataUse>) {
        self.unit.port_mut().on_chip.take_uses(out);
    }

    fn evict_metadata(&mut self, address: u64, timeline: &mut Timeline) {
        let port = self.unit.port_mut();
        let Some(place) = port.map.place(address) else { return };
        port.on_chip.left_last_level(address);
        self.operate(timeline, |this| {
            this.evict(place);
            this.throw_out();
        });
    }
}

impl Backing for Protected {
    fn line_bytes(&self) -> u64 {
        match &self.0 {
            InLines::One(unit) => unit.line_bytes(),
            InLines::Two(unit) => unit.line_bytes(),
            InLines::Four(unit) => unit.line_bytes(),
        }
    }

    fn read(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> Fill {
        in_lines!(self, unit => unit.read(block, timeline))
    }

    fn write_back(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> When {
        in_lines!(self, unit => unit.write_back(block, timeline))
    }

    fn drop_clean(&mut self, block: BlockAddresses, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.drop_clean(block, timeline));
    }

    fn touch_page(&mut self, page: PageAddresses, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.touch_page(page, timeline));
    }

    fn touch_instruction_page(&mut self, page: PageAddresses, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.touch_instruction_page(page, timeline));
    }

    fn let_run(&mut self, process: u32, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.let_run(process, timeline));
    }

    fn metadata_uses(&mut self, out: &mut Vec<MetadataUse>) {
        in_lines!(self, unit => unit.metadata_uses(out));
    }

    fn evict_metadata(&mut self, address: u64, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.evict_metadata(address, timeline));
    }
}

/// Contents of a line, which are there from some moment on.
fn plaintext<const LINE: usize>(from: When) -> Timed<[u8; LINE]> {
    Timed { value: ciphertext(), at: Moment::at(from) }
}
