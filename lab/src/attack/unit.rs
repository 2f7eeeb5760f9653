//! The unit that an epoch attacks: how large it is, which frames are in use, and how it is switched
//! on.

use super::governor::metadata_cache;
use super::memory::HostileMemory;
use casemate_core::checks::Checks;
use casemate_core::random::Random;
use casemate_schemes::unit::bytes::{BytesUnit, UnitSecret};
use casemate_schemes::unit::scheme::{Residency, SchemeError, UnitSize};
use casemate_schemes::unit::{PageAddress, ProtectionUnit, Scheme};

/// Page frames of an epoch's memory: so many that every tree has nodes off chip. One of arity eight
/// over a line of counters for each page, as Delta/ECC's, has eight of them.
pub const FRAMES: u64 = 64;
/// Frames that an epoch uses, in runs side by side; the others are never allocated. Few, so that an
/// epoch costs little and some blocks are written often.
const RUNS: usize = 3;
/// Frames of a run: a line of Morphable Counters covers two.
const RUN_FRAMES: u64 = 2;
/// Nothing on chip but a tree's root, so that there are nodes to attack.
const ON_CHIP_TREE_BYTES: usize = 0;

/// The unit, of lines of so many bytes.
pub(super) type Unit<C, const LINE: usize> =
    ProtectionUnit<BytesUnit<HostileMemory<LINE>, C, LINE>>;

/// How large an epoch's unit is.
pub fn unit_size(residency: Residency) -> UnitSize {
    UnitSize {
        metadata_cache: metadata_cache(residency),
        on_chip_tree_bytes: ON_CHIP_TREE_BYTES,
        ..UnitSize::new(FRAMES, 0)
    }
}

/// Different runs of frames, anywhere in memory.
pub(super) fn frames_in_use(random: &mut Random) -> Vec<u64> {
    let mut runs = Vec::new();
    while runs.len() < RUNS {
        let run = random.below(FRAMES / RUN_FRAMES);
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    runs.into_iter().flat_map(|run| run * RUN_FRAMES..(run + 1) * RUN_FRAMES).collect()
}

/// A unit with some pages of zeros, which goes on from what a global counter had.
pub(super) fn switched_on<C: Checks, const LINE: usize>(
    scheme: &Scheme,
    residency: Residency,
    frames: &[u64],
    secret: &UnitSecret,
    global_counter: Option<u64>,
) -> Result<Unit<C, LINE>, SchemeError> {
    let size = unit_size(residency);
    let mut unit = scheme.in_lines::<_, C, LINE>(HostileMemory::default(), size, secret)?;
    if let Some(counter) = global_counter {
        unit.go_on_from(counter);
    }
    for frame in frames {
        let page = PageAddress::identical(*frame);
        unit.allocate(page).map_err(SchemeError::Boot)?;
        // Lines that the page made on chip were never brought in.
        for at in page.lines::<[u8; LINE]>() {
            let anatomy = unit.anatomy(at);
            let made = anatomy.counter.into_iter().chain(anatomy.path);
            made.for_each(|part| unit.port_mut().memory_mut().remember(part.place));
        }
    }
    Ok(unit)
}
