use super::super::verify_stored::tests::{STORED, flip, record, with_stored};
use super::*;
use crate::outcome::Ending;
use crate::pager::Pager;
use crate::pager::space::SpaceState;
use crate::sys::uffd::Userfault;
use casemate_core::{PAGE_BYTES, Violation};
use casemate_pages::SpaceId;
use casemate_pages::page_protocol::PagePort;
use std::fs::File;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A space that shares what the other one has stored.
fn fork(pager: &Pager, space: &Arc<Space>, id: u32) -> Arc<Space> {
    let child = SpaceId(id);
    assert_eq!(pager.records().fork(space.id, child).expect("a copy"), STORED);
    let file = File::options().write(true).open("/dev/null").expect("there is one");
    let child = Space::new(child, Userfault::unusable(file.into()), SpaceState::default());
    pager.add_space(&child);
    child
}

fn records(pager: &Pager, space: &Space) -> Vec<(Vpn, PageRecord)> {
    let mut found = Vec::new();
    pager.records().from(space.id, 0, 1000, &mut found).expect("verified");
    found
}

/// What a page holds, as its record has it.
fn open(pager: &Pager, record: &PageRecord) -> Result<[u8; PAGE_BYTES], Violation> {
    let mut plain = [0; PAGE_BYTES];
    let fetched = pager.store.with(record.place, |cipher| {
        page_protocol::fetch(pager.page_keys(), record, cipher, &mut plain)
    });
    fetched.expect("stored").open(pager.page_keys())?;
    Ok(plain)
}

fn rotate(pager: &Arc<Pager>) -> Result<bool, crate::pager::Stop> {
    pager.rotate(&mut |_, _: Duration| ())
}

#[test]
fn every_page_is_under_a_new_key_and_none_opens_under_the_old() {
    let (pager, space) = with_stored();
    pager.add_space(&space);
    let pager = Arc::new(pager);
    let before = records(&pager, &space);
    rotate(&pager).expect("places");
    let after = records(&pager, &space);
    assert_eq!(after.len() as u64, STORED);
    for ((vpn, new), (old_vpn, old)) in after.iter().zip(&before) {
        assert_eq!(vpn, old_vpn);
        assert!(new.lpid >= Lpid(4096) && old.lpid < Lpid(4096), "a segment of the next epoch");
        assert_eq!(open(&pager, new), Ok([(vpn / 3) as u8; PAGE_BYTES]));
        let mut page = [0; PAGE_BYTES];
        let opened = pager.page_keys().open_in_place(old.lpid, &old.tag, &mut page);
        assert_eq!(opened, Err(Violation::NoKey { lpid: old.lpid }));
    }
    assert_eq!(pager.store.pages(), STORED, "the old ciphertexts are given back");
    assert_eq!(pager.counts.key_rotations.load(Relaxed), 1);
    assert_eq!(pager.counts.resealed_pages.load(Relaxed), STORED);
    rotate(&pager).expect("places");
    assert!(records(&pager, &space).iter().all(|(_, record)| record.lpid >= Lpid(8192)));
    assert!(pager.ending().is_none());
}

#[test]
fn what_a_fork_shares_stays_shared() {
    let (pager, space) = with_stored();
    pager.add_space(&space);
    let pager = Arc::new(pager);
    let children = [2, 3].map(|id| fork(&pager, &space, id));
    // One has given one up, and another is of its own.
    pager.records().forget(children[0].id, 3).expect("verified");
    rotate(&pager).expect("places");
    let wanted = records(&pager, &space);
    assert_eq!(records(&pager, &children[1]), wanted);
    assert_eq!(records(&pager, &children[0]).len() as u64, STORED - 1);
    assert_eq!(pager.store.pages(), STORED);
    for space in [&space, &children[0], &children[1]] {
        for (vpn, record) in records(&pager, space) {
            assert_eq!(open(&pager, &record), Ok([(vpn / 3) as u8; PAGE_BYTES]));
        }
        pager.events().retire(space);
        while pager.events().drop_ended().expect("verified") {}
    }
    assert_eq!(
        (pager.store.pages(), pager.store.stats().strays),
        (0, 0),
        "each hold is given back"
    );
}

/// A page that does not verify cannot be sealed anew: it is a violation, as when it comes in.
#[test]
fn a_page_that_was_changed_ends_the_run() {
    let (pager, space) = with_stored();
    pager.add_space(&space);
    let pager = Arc::new(pager);
    flip(&pager, 3 * 11, &[1, 2, 3]);
    assert!(rotate(&pager).is_err());
    assert!(matches!(pager.ending(), Some(Ending::Violation { .. })), "{:?}", pager.ending());
    assert_eq!(pager.counts.key_rotations.load(Relaxed), 0);
}

/// Flipped bits are put right on the way.
#[test]
fn a_page_of_which_two_bits_flipped_is_sealed_anew_as_it_was() {
    let (pager, space) = with_stored();
    pager.add_space(&space);
    let pager = Arc::new(pager);
    flip(&pager, 3 * 11, &[1, 2]);
    rotate(&pager).expect("places");
    assert_eq!(open(&pager, &record(&pager, 3 * 11)), Ok([11; PAGE_BYTES]));
    assert_eq!(pager.counts.healed_bits.load(Relaxed), 2);
}

/// A record may come back to a place that another had before: only its LPID tells what it became.
#[test]
fn a_place_that_is_used_again_is_not_taken_for_what_was_there() {
    let (pager, space) = with_stored();
    let child = fork(&pager, &space, 2);
    let old = record(&pager, 3);
    let mut resealing = Resealing::before(Lpid(4096), &pager.store);
    pager.page_keys().prepare_epoch(&pager.gpc).expect("seeds");
    let first = pager.page_keys().begin_epoch(&pager.gpc).expect("no key is being derived");
    pager.fault().reseal_stored(&space, 0, 1000, &mut resealing).expect("places");
    let new = record(&pager, 3);
    assert!(old.lpid < first && new.lpid >= first);
    let other = PageRecord { lpid: Lpid(old.lpid.0 + 1000), ..old };
    assert_eq!(resealing.again(&other), None);
    let done = pager.fault().reseal_stored(&child, 0, 1000, &mut resealing).expect("places");
    assert_eq!(done.map(|(_, done)| done.pages), Some(STORED));
    assert_eq!(record(&pager, 3), new);
    assert_eq!(pager.store.pages(), STORED);
    assert!(resealing.shared.is_empty(), "the last one has what was kept for it");
}

/// A child gets what its parent has, which the parent then gives up: a round over the parent finds
/// nothing, and does not know the child.
#[test]
fn a_space_that_is_made_at_the_end_of_a_round_is_not_passed_over() {
    let (pager, space) = with_stored();
    pager.add_space(&space);
    let pager = Arc::new(pager);
    let old = record(&pager, 3);
    pager.store.retain(old.place);
    let (mut rests, mut child) = (0, None);
    let mut rest = |pager: &Pager, _: Duration| {
        rests += 1;
        // The third batch is the last of the first round.
        if rests == 3 {
            let made = fork(pager, &space, 2);
            pager.records().enter(made.id, &[(3, old)]).expect("verified");
            child = Some(made);
        }
    };
    pager.rotate(&mut rest).expect("places");
    let child = child.expect("there were three batches");
    let new = records(&pager, &child);
    assert!(new.iter().all(|(_, record)| open(&pager, record).is_ok()));
    assert_eq!(new.len() as u64, STORED);
}

/// Pages that are moved from before a round to behind it, and back while it is at another space,
/// are met by none.
#[test]
fn pages_that_no_round_meets_keep_their_epoch_open() {
    let (pager, space) = with_stored();
    pager.add_space(&space);
    let pager = Arc::new(pager);
    // It has its pages elsewhere, and so its turn later.
    let elsewhere = fork(&pager, &space, 2);
    pager.records().move_range(elsewhere.id, &(0..3 * STORED), 10_000).expect("there is nothing");
    let (last, other) = (3 * (STORED - 1), 1);
    let mut rests = 0;
    let mut rest = |pager: &Pager, time: Duration| {
        // After a round that met nothing there is a longer one.
        rests += u64::from(time < Duration::from_secs(1));
        // A round has three batches of each space.
        let moved = match rests % 6 {
            _ if rests > 24 => return,
            2 => pager.records().move_range(space.id, &(last..last + 1), other),
            5 => pager.records().move_range(space.id, &(other..other + 1), last),
            _ => return,
        };
        moved.expect("there is nothing");
    };
    pager.rotate(&mut rest).expect("places");
    let new = records(&pager, &space);
    assert!(new.iter().all(|(_, record)| open(&pager, record).is_ok()));
    assert_eq!(new.len() as u64, STORED);
    assert!(rests > 24, "vacuous: it ended after {rests} batches");
}

/// The space that had a page gives it up: what was kept for the other is stored for none.
#[test]
fn what_is_held_for_others_alone_is_given_back_during_the_round() {
    let (pager, space) = with_stored();
    let child = fork(&pager, &space, 2);
    pager.page_keys().prepare_epoch(&pager.gpc).expect("seeds");
    let first = pager.page_keys().begin_epoch(&pager.gpc).expect("no key is being derived");
    let mut resealing = Resealing::before(first, &pager.store);
    pager.fault().reseal_stored(&space, 0, 1000, &mut resealing).expect("places");
    assert_eq!(pager.store.pages(), 2 * STORED, "twice, until the child's turn has come");
    pager.records().drop_range(space.id, &(0..3 * STORED)).expect("verified");
    resealing.give_back();
    assert_eq!((pager.store.pages(), resealing.shared.len()), (STORED, 0));
    pager.fault().reseal_stored(&child, 0, 1000, &mut resealing).expect("places");
    assert!(records(&pager, &child).iter().all(|(_, record)| record.lpid >= first));
    assert_eq!(pager.store.pages(), STORED);
}
