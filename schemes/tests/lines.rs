//! Lines of 128 and 256 bytes: what is read is what was written last, no pad is used twice, and
//! what is kept for a line lies where it should.

mod traffic;

use std::collections::HashSet;

use casemate_core::random::Random;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES, by_name};
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::{IntegrityKind, SchemeError};
use casemate_schemes::unit::seed::SeedScheme;
use casemate_schemes::unit::{PageAddress, ProtectionUnit, Scheme};
use traffic::{SECRET, governed_of, random_block, run, run_throwing_out, size, unit_of};

/// All schemes that can have lines of so many blocks, with their names.
fn schemes(line_blocks: u64) -> Vec<(String, Scheme)> {
    let parts = ENCRYPTIONS.iter().flat_map(|(encryption, _)| {
        INTEGRITIES.iter().map(move |(integrity, _)| format!("{encryption}/{integrity}"))
    });
    let names = SCHEMES.iter().map(|named| named.name.to_string()).chain(parts);
    let wider = names.map(|name| {
        let scheme = by_name(&name).expect("it is in the catalogue").scheme;
        (name, Scheme { line_blocks, ..scheme })
    });
    wider.filter(|(_, scheme)| scheme.check().is_ok()).collect()
}

fn scheme(name: &str, line_blocks: u64) -> Scheme {
    Scheme { line_blocks, ..by_name(name).expect("it is in the catalogue").scheme }
}

fn reads_what_was_written<const LINE: usize>() {
    let schemes = schemes(LINE as u64 / 64);
    let names: Vec<_> = schemes.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["mac", "chtree", "lhash", "h-lhash", "otp-lru", "otp+chtree", "delta+bmt"] {
        assert!(names.contains(&name), "{name} has no lines of {LINE} bytes");
    }
    for (number, (name, scheme)) in (1..).zip(&schemes) {
        let mut random = Random::new(number);
        println!("{name}, lines of {LINE} bytes, seed {number}");
        for cache_bytes in [0, 1 << 14] {
            let mut unit = unit_of::<LINE>(scheme, cache_bytes);
            unit.port_mut().log_seeds();
            run(&mut unit, &mut random, 400);
            assert_seeds_are_unique(scheme, &mut unit);
        }
        run_throwing_out(&mut governed_of::<LINE>(scheme), &mut random, 400, 4);
    }
}

/// No pad encrypts two chunks, but with seeds that promise no such thing: a virtual page of
/// another process.
fn assert_seeds_are_unique<const LINE: usize>(scheme: &Scheme, unit: &mut traffic::Unit<LINE>) {
    let used = unit.port_mut().used_seeds().log.clone().expect("seeds are logged");
    let mut seen = HashSet::new();
    for seed in used {
        assert!(seen.insert(seed), "{scheme:?}: a pad was used twice");
    }
}

#[test]
fn lines_of_two_blocks_read_what_was_written_last() {
    reads_what_was_written::<128>();
}

#[test]
fn lines_of_four_blocks_read_what_was_written_last() {
    reads_what_was_written::<256>();
}

/// A page of 4 KiB has 32 lines of 128 bytes: so many MACs of 16 bytes, sequence numbers, time
/// stamps of 4 bytes and leaves of a tree, eight to a node of 128 bytes.
#[test]
fn what_is_kept_is_kept_for_a_line() {
    let lines = |name, region| {
        let scheme = scheme(name, 2);
        let extents = scheme.extents(size(8, 0)).expect("it can be built");
        let of_region = extents.iter().filter(|extent| extent.region == region);
        of_region.filter(|extent| extent.first == 0).map(|extent| extent.lines).sum::<u64>()
    };
    assert_eq!(lines("mac", Region::Data), 8 * 32);
    assert_eq!(lines("mac", Region::Macs), 8 * 32 / 8);
    assert_eq!(lines("chtree", Region::Nodes(1)), 8 * 32 / 8);
    assert_eq!(lines("chtree", Region::Nodes(2)), 8 * 32 / 64);
    assert_eq!(lines("lhash", Region::TimeStamps), 8 * 32 * 4 / 128);
    // A node for 4 KiB: 32 chunks.
    assert_eq!(lines("h-lhash", Region::Nodes(1)), 8);
    // 64 counters of 7 bits and a reference in each 64 bytes: two such, 128 lines, in a line.
    assert_eq!(lines("delta+bmt", Region::Counters), 8 * 32 / 128);
}

/// A line of 128 bytes has one sequence number: 32 to a page, which is 64 bytes of a line.
#[test]
fn a_line_has_one_sequence_number() {
    let mut unit = unit_of::<128>(&scheme("otp-lru", 2), 0);
    unit.flush().expect("memory is intact");
    let mut places = HashSet::new();
    for frame in 0..3 {
        let lines = PageAddress::identical(frame).lines::<[u8; 128]>();
        let of_page: HashSet<_> =
            lines.map(|at| unit.anatomy(at).counter.expect("it has a number").place).collect();
        assert_eq!(of_page.len(), 1);
        places.extend(of_page);
    }
    assert!(places.iter().all(|place| place.region == Region::SequenceNumbers));
    assert_eq!(places.len(), 3);
    let numbers = PageAddress::identical(0).lines::<[u8; 128]>().count();
    assert_eq!(numbers, 32);
}

/// The second half of a line is covered as the first is.
#[test]
fn a_change_of_any_block_of_a_line_is_noticed() {
    for name in ["mac", "chtree", "delta+bmt", "lhash", "h-lhash"] {
        for at in [0, 63, 64, 127, 255] {
            let scheme = scheme(name, 4);
            let memory = SparseMemory::<[u8; 256]>::default();
            let unit: Result<ProtectionUnit<_>, _> = scheme
                .in_lines::<_, casemate_core::checks::AllChecks, 256>(memory, size(8, 0), &SECRET);
            let mut unit = unit.expect("it can be built");
            let line = PageAddress::identical(5).block(8);
            let value = random_block(&mut Random::new(9));
            (0..8).for_each(|frame| {
                unit.allocate(PageAddress::identical(frame)).expect("memory is intact");
            });
            unit.write(line, &value).expect("memory is intact");
            unit.flush().expect("memory is intact");
            let place = Place::new(Region::Data, 5 * 16 + 2);
            let memory = unit.port_mut().memory_mut();
            let mut changed = casemate_core::UntrustedMemory::read(memory, place);
            changed[at] ^= 1;
            casemate_core::UntrustedMemory::write(memory, place, &changed);
            let found = unit.read(line).is_err() || unit.check().is_err();
            assert!(found, "{name}: byte {at} of a line");
        }
    }
}

/// Formats for one block, or one page of 64, are refused by their name.
#[test]
fn schemes_whose_format_is_for_one_block_say_so() {
    for (name, part) in [
        ("aise", "AISE's counters"),
        ("aise+bmt", "AISE's counters"),
        ("aise+lhash", "AISE's counters"),
        ("sgx", "a tree of counters"),
        ("vault", "a tree of counters"),
        ("morphable", "a tree of counters"),
        ("delta+ecc", "MACs in the ECC bits"),
    ] {
        let refused = scheme(name, 2).check().expect_err(name);
        assert_eq!(refused, SchemeError::LineNeedsOneBlock { line_bytes: 128, part });
        assert_eq!(
            refused.to_string(),
            format!("lines of 128 bytes do not go with {part}, whose format is for 64")
        );
    }
    for blocks in [0, 3, 8] {
        let refused = scheme("mac", blocks).check();
        assert_eq!(refused, Err(SchemeError::Line(64 * blocks)));
    }
    let other = scheme("mac", 2).in_lines::<_, casemate_core::checks::AllChecks, 64>(
        SparseMemory::default(),
        size(1, 0),
        &SECRET,
    );
    assert_eq!(other.err(), Some(SchemeError::Line(64)));
}

/// A line of four blocks has sixteen chunks of AES: their seeds are apart from those of the same
/// line's next version, and of the next line.
#[test]
fn seeds_of_a_line_are_apart_from_those_of_others() {
    let page = PageAddress::identical(7);
    for seeds in
        [SeedScheme::GlobalCounter, SeedScheme::PhysicalAddress, SeedScheme::VirtualAddress]
    {
        let all = |at, counter| {
            let seed = seeds.seed(at, 4, counter).expect("it fits");
            (0..16).map(move |chunk| seed.base + chunk * seed.step)
        };
        let mut seen = HashSet::new();
        for seed in all(page.block(4), 5).chain(all(page.block(4), 6)) {
            assert!(seen.insert(seed), "{seeds:?}");
        }
        if seeds != SeedScheme::GlobalCounter {
            assert!(all(page.block(8), 5).all(|seed| seen.insert(seed)), "{seeds:?}");
        }
    }
    assert_ne!(scheme("chtree", 2).integrity, IntegrityKind::None);
}
