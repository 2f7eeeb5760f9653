//! Random processes against maps, every pad that they use, and requests and disks that make no
//! sense.

use super::run::Run;
use super::*;

/// Over a million operations in all.
#[test]
fn every_process_reads_what_it_should() {
    let seed = seed(0x7ab1e);
    let _print = SeedOnFailure(seed);
    let schemes = schemes();
    let each = 1_000_000_u64.div_ceil(schemes.len() as u64);
    for scheme in schemes {
        let mut run = Run::new(&scheme, Care::Careful, seed);
        run.operations(each).unwrap_or_else(|wrong| panic!("{scheme:?}: {wrong}"));
        let counts = run.memory.counts();
        assert!(counts.swapped_in > 50 && counts.super_pages_split > 0, "{counts:?}");
        assert!(counts.context_switches > 50, "{counts:?}");
        let shares = !run.memory_names_virtual_pages();
        assert_eq!(counts.copied_blocks > 0, shares, "{scheme:?}: {counts:?}");
    }
}

/// AISE/BMT, section 4.3: LPIDs make every seed unique, in memory and on disk, over all this.
#[test]
fn no_careful_scheme_with_unique_seeds_uses_a_pad_twice() {
    let seed = seed(0x5eed);
    let _print = SeedOnFailure(seed);
    for encryption in table_1_encryptions() {
        for integrity in [IntegrityKind::None, IntegrityKind::MerkleTree, IntegrityKind::Bonsai] {
            let scheme = under(encryption, integrity);
            let mut run = Run::new(&scheme, Care::Careful, seed);
            run.operations(20_000).unwrap_or_else(|wrong| panic!("{scheme:?}: {wrong}"));
            let counts = run.memory.counts();
            assert!(counts.swapped_in > 0 && counts.super_pages_split > 0, "{counts:?}");
            let twice = run.pads_used_twice();
            // Section 4.2: processes use the same virtual addresses, and the same counters.
            let expected = encryption == table_1_encryptions()[3];
            assert_eq!(twice > 0, expected, "{scheme:?}: {twice} pads");
            let overflowed = run.memory.unit_mut().reencrypted_blocks() > 0;
            let small = encryption == aise() || encryption == table_1_encryptions()[1];
            assert_eq!(overflowed, small, "{scheme:?}");
        }
    }
}

/// A page that is mapped where another was unmapped uses that one's seeds again, with the process
/// in them or not: a block's counter belongs to a frame, and the next frame's may be behind.
#[test]
fn virtual_seeds_repeat_where_an_address_is_used_again() {
    let encryption = table_1_encryptions()[4];
    let scheme = under(encryption, IntegrityKind::Bonsai);
    let mut run = Run::new(&scheme, Care::Careful, 1);
    let process = run.model.running;
    for round in 0..2 {
        assert_eq!(run.memory.map(process, 7), Ok(()));
        assert_eq!(run.memory.write(7, 3, &[round; 64]), Ok(()));
        assert_eq!(run.memory.unmap(process, 7), Ok(()));
    }
    assert!(run.pads_used_twice() > 0);
}

/// AISE moves pages as they are and counts nothing for it; seeds with frames in them cost two
/// encryptions of a page for each round trip.
#[test]
fn only_seeds_with_frames_in_them_cost_encryptions_to_swap() {
    for encryption in table_1_encryptions() {
        for integrity in [IntegrityKind::None, IntegrityKind::MerkleTree, IntegrityKind::Bonsai] {
            let mut run = Run::new(&under(encryption, integrity), Care::Careful, 1);
            let (process, page) = *run.model.pages.keys().next().expect("one page is mapped");
            for _ in 0..5 {
                assert_eq!(run.memory.swap_out(process, page), Ok(()));
                assert_eq!(run.memory.read(page, 0), Ok([0; 64]));
            }
            let physical = encryption == table_1_encryptions()[2];
            let expected = if physical { 5 * 2 * 64 } else { 0 };
            assert_eq!(run.memory.counts().reencrypted_blocks, expected, "{encryption:?}");
            let departure = if physical { Departure::Reencrypted } else { Departure::Moved };
            assert_eq!(run.memory.departure(), departure);
        }
    }
}

/// The oracle can fail: where the manager does not mind what seeds are made of, it must.
#[test]
fn canaries_ciphertext_that_is_moved_or_shared_against_its_seeds_is_noticed() {
    let seed = seed(0xca4a);
    let _print = SeedOnFailure(seed);
    for (number, encryption) in table_1_encryptions().into_iter().enumerate() {
        for integrity in [IntegrityKind::None, IntegrityKind::MerkleTree] {
            let mut run = Run::new(&under(encryption, integrity), Care::Careless, seed);
            let right = run.operations(20_000).is_ok();
            assert_eq!(right, ![2, 3, 4].contains(&number), "{encryption:?} {integrity:?}");
        }
    }
}

/// For all bytes of a disk, however many: an error or a page, and an error if anything is
/// verified.
#[test]
fn a_disk_may_hold_any_bytes() {
    let seed = seed(0xd15c);
    let _print = SeedOnFailure(seed);
    let mut random = Random::new(seed);
    for scheme in schemes() {
        for length in [0, 1, 4095, 4096, 4097, 5200, 1 << 16] {
            let mut run = Run::new(&scheme, Care::Careful, seed);
            let (process, page) = *run.model.pages.keys().next().expect("one page is mapped");
            run.memory.write(page, 0, &[7; 64]).expect("memory is intact");
            run.memory.swap_out(process, page).expect("memory is intact");
            let slot = run.memory.slot(process, page).expect("it is mapped").expect("it left");
            let original = run.memory.disk_mut().read(slot);
            let bytes = (0..length).map(|_| random.next() as u8).collect();
            run.memory.disk_mut().write(slot, bytes);
            let read = run.memory.read(page, 0);
            let verified = scheme.integrity != IntegrityKind::None;
            assert!(read.is_err() || !verified, "{scheme:?}: {length} bytes were believed");
            // The wrong length is noticed before anything is touched, so the page can still come
            // back.
            if length != original.len() && run.memory.slot(process, page) == Ok(Some(slot)) {
                run.memory.disk_mut().write(slot, original);
                assert_eq!(run.memory.read(page, 0), Ok([7; 64]), "{scheme:?}");
            }
        }
    }
}

/// What is asked for wrongly is refused, and changes nothing.
#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut run = Run::new(&under(aise(), IntegrityKind::Bonsai), Care::Careful, 1);
    let (process, page) = *run.model.pages.keys().next().expect("one page is mapped");
    run.memory.write(page, 3, &[5; 64]).expect("memory is intact");
    let unknown = ProcessId(77);
    assert_eq!(run.memory.switch_to(unknown), Err(VmError::NoProcess(unknown)));
    assert_eq!(run.memory.fork(unknown), Err(VmError::NoProcess(unknown)));
    assert_eq!(run.memory.exit(unknown), Err(VmError::NoProcess(unknown)));
    assert_eq!(run.memory.spawn_again(process), Err(VmError::ProcessExists(process)));
    let taken = Err(VmError::AlreadyMapped { process, virtual_page: page });
    assert_eq!(run.memory.map(process, page), taken);
    assert_eq!(run.memory.share((process, page), (process, page), Sharing::Shared), taken);
    for (size_log2, virtual_page) in [(2, 42), (10, 1 << 10), (64, 0)] {
        let misfit = Err(VmError::SuperPage { size_log2, virtual_page });
        assert_eq!(run.memory.map_super_page(process, virtual_page, size_log2), misfit);
    }
    let rooms = SIZE.frames + SIZE.swap_slots - 1;
    let mapped = (100..100 + rooms).take_while(|page| run.memory.map(process, *page).is_ok());
    assert_eq!(mapped.count() as u64, rooms);
    assert_eq!(run.memory.map(process, 1000), Err(VmError::OutOfMemory));
    assert_eq!(run.memory.fork(process).map(|_| ()), Ok(()), "a fork takes no page");
    assert_eq!(run.memory.read(page, 3), Err(VmError::OutOfMemory), "no slot for who must leave");
    assert_eq!(run.memory.unmap(process, 100), Ok(()));
    assert_eq!(run.memory.unmap(ProcessId(process.0 + 1), 100), Ok(()));
    assert_eq!(run.memory.read(page, 3), Ok([5; 64]));
}
