//! What the machine asks of the unit, and what the engine's unit is asked for that.

use casemate_schemes::unit::Block;

use super::{Protected, Rewritten};
use crate::machine::backing::{Backing, BlockAddresses, Fill, MetadataUse, PageAddresses};
use crate::machine::timeline::{Timeline, When};
use crate::protection::config::Verification;
use crate::protection::moment::{Moment, Timed};
use crate::protection::record::Asked;
use crate::protection::store::CIPHERTEXT;

impl Protected {
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

    /// Writes a block back; when it was sent.
    fn send(&mut self, block: BlockAddresses) -> When {
        self.counts.write_backs += 1;
        let at = self.address_of(block);
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

    /// Brings a page under protection. That takes no time and no traffic, is not counted, and
    /// leaves nothing on chip that was not there (SPEC.md, "First touch").
    fn allocate(&mut self, page: PageAddresses) {
        self.counts.pages_touched += 1;
        let page = self.page_of(page.frame_address, page.virtual_address);
        self.ask(Asked::Allocate(page));
        self.unit.port_mut().free = true;
        let before = Rewritten::of(&self.unit);
        let allocated = self.unit.first_touch(page, &plaintext(When::PAST));
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

impl Backing for Protected {
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
        self.operate(timeline, |this| this.allocate(page));
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

/// Contents of a block, which are there from some moment on.
fn plaintext(from: When) -> Timed<Block> {
    Timed { value: CIPHERTEXT, at: Moment::at(from) }
}
