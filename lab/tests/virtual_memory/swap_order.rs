//! The order in which two pages change places.

use super::*;
use casemate_core::UntrustedMemory;

/// Memory that remembers what was asked of it.
#[derive(Default)]
struct Observed {
    memory: SparseMemory,
    accesses: Vec<Access>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read(Place),
    Write(Place),
}

impl UntrustedMemory<Place, Block> for Observed {
    fn read(&mut self, place: Place) -> Block {
        self.accesses.push(Access::Read(place));
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.accesses.push(Access::Write(place));
        self.memory.write(place, block);
    }
}

/// AISE/BMT, section 5.1, of a page B that comes in where a page A was: B's page root is looked up,
/// A's page goes to disk with its page root in the directory, then B's data is loaded; and only
/// then is anything of B used.
#[test]
fn pages_change_places_in_the_papers_order() {
    for integrity in [IntegrityKind::MerkleTree, IntegrityKind::Bonsai] {
        let size = MemorySize { frames: 1, ..SIZE };
        let (memory, scheme) = (Observed::default(), under(aise(), integrity));
        let memory = VirtualMemory::new(&scheme, memory, size, Care::Careful, &SECRET);
        let mut memory: VirtualMemory<Observed> = memory.expect("the parts go together");
        let process = memory.spawn();
        memory.switch_to(process).expect("it was just made");
        let [page_a, page_b] = [1, 2];
        memory.map(process, page_b).expect("there is a frame");
        memory.write(page_b, 9, &[0xb; 64]).expect("memory is intact");
        memory.map(process, page_a).expect("B leaves");
        memory.write(page_a, 9, &[0xa; 64]).expect("memory is intact");

        let frame = memory.resident(process, page_a).expect("it is mapped").expect("in memory");
        let slot_b = memory.slot(process, page_b).expect("it is mapped").expect("on disk");
        memory.unit_mut().port_mut().memory_mut().accesses.clear();
        assert_eq!(memory.read(page_b, 9), Ok([0xb; 64]));
        let slot_a = memory.slot(process, page_a).expect("it is mapped").expect("on disk");

        let record = |slot| {
            let at = memory.record(slot).expect("a tree needs a directory");
            Place::new(Region::Data, at.physical())
        };
        let (root_b, root_a) = (record(slot_b), record(slot_a));
        let data = Place::new(Region::Data, frame.block(9).physical());
        let accesses = &memory.unit_mut().port_mut().memory_mut().accesses;
        let steps = [
            Access::Read(root_b),
            Access::Read(data),
            Access::Write(root_a),
            Access::Write(data),
            Access::Read(data),
        ];
        let mut rest = accesses.iter();
        for step in steps {
            assert!(rest.any(|access| *access == step), "{integrity:?}: {step:?} in {accesses:?}");
        }
    }
}
