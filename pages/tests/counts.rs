//! What can be counted: metadata, trusted state, LPIDs.

mod common;

use std::collections::HashSet;
use std::sync::Mutex;

use casemate_core::{GlobalPageCounter, Lpid, Refusal, Violation};
use casemate_pages::adversary::TracedMemory;
use casemate_pages::{HeapMemory, KeySet, PageDirectory, PageRecord, SpaceId, StorePlace, Tag};
use common::{PageRandom, Random};

fn directory() -> PageDirectory<HeapMemory> {
    let keys = KeySet::from_master(&[1; 32]);
    let mut directory = PageDirectory::new(HeapMemory::new(), &keys.directory, 256 << 10);
    directory.create_space(SpaceId(1)).expect("untrusted memory is unchanged");
    directory
}

fn record(lpid: u64) -> Option<PageRecord> {
    Some(PageRecord { lpid: Lpid(lpid), tag: Tag([7; 16]), place: StorePlace(lpid) })
}

#[test]
fn metadata_of_a_dense_gibibyte_is_below_1_25_percent() {
    let mut directory = directory();
    let (empty, trusted) = (directory.metadata_bytes(), directory.trusted_bytes());
    let pages = (1 << 30) / 4096;
    for vpn in 0..pages {
        directory.replace(SpaceId(1), 0x7_f000_0000 + vpn, record(vpn + 1)).expect("sound");
    }
    let share = directory.metadata_bytes() as f64 / f64::from(1 << 30);
    println!("metadata: {:.3} % of a dense GiB", 100.0 * share);
    assert!(share <= 0.0125, "{share}");
    assert_eq!(directory.trusted_bytes(), trusted, "trusted state does not grow");
    assert!(trusted < (256 << 10) + (8 << 10), "{trusted}");

    let mut removed = 0;
    directory
        .remove_range(SpaceId(1), 0, 1 << 52, &mut |_| removed += 1)
        .expect("untrusted memory is unchanged");
    assert_eq!(removed, pages);
    assert_eq!(directory.metadata_bytes(), empty);
}

#[test]
fn freed_tables_are_used_again() {
    let mut directory = directory();
    let mut peak = 0;
    for round in 0..50 {
        for vpn in 0..2_000 {
            directory.replace(SpaceId(1), (round << 30) + vpn, record(vpn + 1)).expect("sound");
        }
        peak = peak.max(directory.metadata_bytes());
        directory.remove_range(SpaceId(1), round << 30, 2_000, &mut |_| {}).expect("sound");
    }
    directory.flush().expect("sound");
    // Blocks that were freed were taken again: the memory behind them never grew past one round's.
    assert!(directory.memory_mut().reserved_bytes() <= 12 << 20);
    assert!(peak < 128 << 10, "{peak}");
}

#[test]
fn requests_that_make_no_sense_are_refused_and_harm_nothing() {
    let mut directory = directory();
    let space = SpaceId(1);
    let refused = |refusal| Err(Violation::Refused(refusal));
    let far = 1 << 52;
    assert_eq!(directory.lookup(space, far), refused(Refusal::VpnOutOfRange(far)));
    assert_eq!(directory.replace(space, far, None), refused(Refusal::VpnOutOfRange(far)));
    let end = directory.remove_range(space, far - 1, 2, &mut |_| {});
    assert_eq!(end, Err(Refusal::VpnOutOfRange(far + 1).into()));
    let zero = Some(PageRecord { lpid: Lpid(1), tag: Tag([0; 16]), place: StorePlace(0) });
    assert_eq!(directory.replace(space, 0, zero), refused(Refusal::PlaceIsZero));
    assert_eq!(directory.lookup(SpaceId(9), 0), refused(Refusal::UnknownSpace(9)));
    assert_eq!(directory.replace(space, far - 1, record(1)), Ok(None));
    assert_eq!(directory.lookup(space, far - 1), Ok(record(1)));
}

#[test]
fn no_lpid_is_handed_out_twice_among_threads() {
    let gpc = GlobalPageCounter::new();
    let all = Mutex::new(HashSet::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mine: Vec<Lpid> = (0..50_000).map(|_| gpc.next().expect("far off")).collect();
                let mut all = all.lock().expect("no panics");
                for lpid in mine {
                    assert!(all.insert(lpid), "{lpid} twice");
                }
            });
        }
    });
    assert_eq!(gpc.taken(), 200_000);
}

/// A random mixture of page-outs, forks and removals never seals under an LPID twice.
#[test]
fn no_seed_is_used_twice_in_traffic() {
    let mut directory = directory();
    let gpc = GlobalPageCounter::new();
    let mut used = HashSet::new();
    let mut random = Random::new(4);
    for _ in 0..100_000 {
        let vpn = random.vpn();
        if random.one_in(3) {
            directory.replace(SpaceId(1), vpn, None).expect("sound");
        } else {
            let lpid = gpc.next().expect("far off");
            assert!(used.insert(lpid));
            directory.replace(SpaceId(1), vpn, record(lpid.0)).expect("sound");
        }
    }
    // Every record in the directory names a seed that was sealed under, and no two the same one.
    let mut seen = HashSet::new();
    let each = &mut |_, record: PageRecord| assert!(seen.insert(record.lpid));
    directory.for_each(SpaceId(1), 0, 1 << 52, each).expect("sound");
    assert!(seen.is_subset(&used) && !seen.is_empty());
}

/// What a page fault at random costs in lines, when a GiB is protected under the default cache.
#[test]
fn lines_fetched_by_a_random_lookup() {
    let keys = KeySet::from_master(&[1; 32]);
    let mut directory = PageDirectory::new(TracedMemory::default(), &keys.directory, 256 << 10);
    directory.create_space(SpaceId(1)).expect("untrusted memory is unchanged");
    let pages = (1 << 30) / 4096;
    for vpn in 0..pages {
        directory.replace(SpaceId(1), vpn, record(vpn + 1)).expect("sound");
    }
    directory.flush().expect("sound");
    directory.memory_mut().accesses.clear();
    let mut random = Random::new(6);
    let lookups = 20_000;
    for _ in 0..lookups {
        let vpn = random.below(pages);
        assert_eq!(directory.lookup(SpaceId(1), vpn), Ok(record(vpn + 1)));
    }
    let fetched = directory.memory_mut().accesses.len() as f64 / f64::from(lookups);
    println!("lines fetched and verified by a random lookup in a GiB: {fetched:.2}");
    assert!(fetched < 4.0, "{fetched}");
}
