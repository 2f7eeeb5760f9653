//! Page references and what policies make of them, against published examples, a search through all
//! choices, and each other.

use casemate_replacement::catalogue::{ALL, by_name};
use casemate_sim::paging::{
    Advice, Costs, Counts, Distances, FaultSets, PageNumbers, ReferenceString, optimum, replay,
};
use casemate_sim::trace::{Extent, Instruction, Kind, Reference};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

fn misses(name: &str, string: &ReferenceString, capacity: usize) -> u64 {
    let policy = by_name(name).expect("a policy");
    let counts = replay(string, &policy, capacity, FaultSets::Nothing);
    counts.first_touches + counts.page_ins
}

/// The string by which Belady, Nelson and Shedler (1969) showed that FIFO can miss more often with
/// more memory, with the numbers of textbooks.
#[test]
fn beladys_string_misses_as_often_as_published() {
    let string = ReferenceString::of([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]);
    assert_eq!(string.pages(), 5);
    assert_eq!([3, 4].map(|capacity| misses("fifo", &string, capacity)), [9, 10]);
    assert_eq!([3, 4].map(|capacity| misses("lru", &string, capacity)), [10, 8]);
    assert_eq!([3, 4].map(|capacity| optimum(&string, capacity) + 5), [7, 6]);
}

/// The fewest page-ins by trying every victim.
fn fewest(references: &[u32], present: &BTreeSet<u32>, capacity: usize, memo: &mut Memo) -> u64 {
    let Some((&page, rest)) = references.split_first() else { return 0 };
    if present.contains(&page) {
        return fewest(rest, present, capacity, memo);
    }
    let key = (references.len(), present.clone());
    if let Some(known) = memo.get(&key) {
        return *known;
    }
    let with = |without: Option<&u32>| {
        let kept = present.iter().filter(|other| Some(*other) != without);
        kept.copied().chain([page]).collect::<BTreeSet<u32>>()
    };
    let best = if present.len() < capacity {
        1 + fewest(rest, &with(None), capacity, memo)
    } else {
        let choices: Vec<_> = present.iter().map(|victim| with(Some(victim))).collect();
        let best = choices.iter().map(|next| fewest(rest, next, capacity, memo)).min();
        1 + best.expect("memory is full")
    };
    memo.insert(key, best);
    best
}

type Memo = HashMap<(usize, BTreeSet<u32>), u64>;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_optimum_is_the_best_of_all_choices(
        pages in prop::collection::vec(0..7u64, 0..24), capacity in 1..5usize,
    ) {
        let string = ReferenceString::of(pages);
        let best = fewest(string.references(), &BTreeSet::new(), capacity, &mut Memo::new());
        prop_assert_eq!(optimum(&string, capacity) + u64::from(string.pages()), best);
    }

    #[test]
    fn no_policy_is_better_than_the_optimum(
        pages in prop::collection::vec(0..60u64, 0..600), capacity in 1..40usize,
    ) {
        let string = ReferenceString::of(pages);
        let least = optimum(&string, capacity);
        for policy in ALL {
            for fault_sets in [FaultSets::TheBit, FaultSets::Nothing] {
                let counts = replay(&string, &policy, capacity, fault_sets);
                prop_assert!(counts.page_ins >= least, "{}: {:?}", policy.name, counts);
                prop_assert_eq!(counts.first_touches, u64::from(string.pages()));
                if capacity >= string.pages() as usize {
                    let no_more = Counts { first_touches: counts.first_touches, ..Counts::default() };
                    prop_assert_eq!(counts, no_more, "{}: all of it fits", policy.name);
                }
            }
        }
    }

    #[test]
    fn distances_say_what_lru_does(pages in prop::collection::vec(0..30u64, 0..500)) {
        let string = ReferenceString::of(pages);
        let mut distances = Distances::default();
        string.references().iter().for_each(|page| distances.refer(*page));
        for capacity in 1..35 {
            let lru = replay(&string, &by_name("lru").expect("lru"), capacity, FaultSets::TheBit);
            prop_assert_eq!(distances.page_ins(capacity), lru.page_ins, "{} pages", capacity);
        }
    }
}

/// Soft faults and bits are counted: of four pages two wait unmapped, and 1 is used there.
#[test]
fn what_a_policy_costs_is_counted() {
    let string = ReferenceString::of([1, 2, 3, 4, 5, 2]);
    let grace = replay(&string, &by_name("grace").expect("grace"), 4, FaultSets::TheBit);
    let expected = Counts { first_touches: 5, soft_faults: 1, ..Counts::default() };
    assert_eq!(grace, expected);
    // CLOCK looks at four pages whose bits the faults have set, and takes the first.
    let clock = by_name("clock").expect("clock");
    let bits = |fault_sets| {
        let counts = replay(&string, &clock, 4, fault_sets);
        (counts.bits_read, counts.bits_cleared)
    };
    assert_eq!(bits(FaultSets::TheBit), (4, 4));
    assert_eq!(bits(FaultSets::Nothing), (1, 0));
}

fn instruction(references: &[(Kind, u64, u16)], changed: &[(u64, u64)]) -> Instruction {
    let reference =
        |&(kind, address, size_bytes)| Reference { kind, size_bytes, address, value: None };
    let extent = |&(address, size_bytes)| Extent { address, size_bytes };
    Instruction {
        references: references.iter().map(reference).collect(),
        changed: changed.iter().map(extent).collect(),
        ..Instruction::default()
    }
}

/// Pages 0x10 to 0x14; 0x12 is stored to late, 0x14 by the kernel. A reference across a border is
/// two, and a repetition none.
#[test]
fn a_page_counts_from_its_first_store_on() {
    use Kind::{Load, Store};
    let (mut numbers, mut told) = (PageNumbers::default(), Vec::new());
    let mut take = |references: &[_], changed: &[_]| {
        numbers.take(&instruction(references, changed), |page| told.push(page));
    };
    take(&[(Load, 0x10_008, 8), (Load, 0x12_000, 8), (Store, 0x10_ffc, 8)], &[]);
    take(&[(Load, 0x11_000, 0), (Load, 0x12_ff8, 8)], &[(0x14_000, 4096)]);
    take(&[(Load, 0x11_000, 1), (Load, 0x12_000, 1), (Load, 0x11_fff, 1)], &[(0, u64::MAX)]);
    take(&[(Load, 0x12_000, 8), (Store, 0x12_000, 8), (Load, 0x12_000, 8)], &[]);
    // 0x10, 0x11, 0x14, 0x11, then 0x12, which counts from its store on.
    assert_eq!(told, [0, 1, 2, 1, 3]);
    assert_eq!(numbers.count(), 4);
}

/// A loop over 100 pages, 11 times: with fewer than 100 pages LRU misses always. 1,000 page-ins of
/// 18 µs are 18 ms, and 1,100 instructions of 1 ms are 1.1 s.
#[test]
fn advice_is_the_least_memory_that_costs_so_little() {
    let (mut advice, mut numbers) = (Advice::default(), PageNumbers::default());
    for page in (0..11).flat_map(|_| 0..100) {
        advice.take(&instruction(&[(Kind::Store, page << 12, 8)], &[]), &mut numbers);
    }
    assert_eq!((advice.pages(), advice.instructions()), (100, 1_100));
    let costs = Costs { hard_ns: 18_000, soft_ns: 0, read_ns: 0, clear_ns: 0 };
    let point = advice.point(99, &costs, 1e6);
    assert_eq!(point.page_ins, 1_000);
    assert!((point.slowdown - 0.018 / 1.1).abs() < 1e-12, "{point:?}");
    assert_eq!(advice.least(0.02, &costs, 1e6).capacity_pages, 1);
    assert_eq!(advice.least(0.01, &costs, 1e6).capacity_pages, 100);
    assert_eq!(advice.least(0.0, &costs, 1e6).slowdown, 0.0);
}
