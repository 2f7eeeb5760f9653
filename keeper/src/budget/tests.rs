//! What the budget counts, and what it makes of another size.

use super::*;

#[test]
fn a_count_below_zero_is_no_limit_without_end() {
    let budget = Budget::new(ClearSize::percent(25), 0);
    budget.track(1000);
    budget.sealed(0, 2000);
    assert_eq!((budget.limit(), budget.protected(0)), (ClearSize::FLOOR_BYTES / 4096, 1000));
}

#[test]
fn a_percentage_follows_what_is_used() {
    let budget = Budget::new(ClearSize::percent(25), 0);
    assert_eq!(budget.limit(), ClearSize::FLOOR_BYTES / 4096);
    budget.track(1000);
    budget.sealed(7000, 0);
    assert_eq!(budget.limit(), 2000);
    assert_eq!(budget.free(), 1000);
}

#[test]
fn a_ciphertext_that_forks_share_is_protected_once() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 10);
    budget.track(1000);
    budget.sealed(5000, 0);
    assert_eq!(budget.protected(5000), 6000);
    // Three children.
    budget.sealed(3 * 5000, 0);
    assert_eq!(budget.protected(5000), 6000);
    // Of 300 in the Clear the ciphertext is kept.
    budget.sealed(0, 4 * 300);
    assert_eq!(budget.protected(4900), 5900);
}

#[test]
fn what_forks_share_is_used_by_each_and_no_peak() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 10);
    budget.track(2038);
    assert!(!budget.seems_exceeded(budget.recent()));
    budget.set_found(1962, 0, 0);
    assert!(budget.seems_exceeded(budget.recent()));
    budget.judge_peak(budget.recent(), Some(budget.confirmed(1000)));
    assert_eq!((budget.used(), budget.free(), budget.kept().peak), (4010, 0, 2048));
    // The kernel confirms a use above the limit.
    budget.set_found(1963, 0, 0);
    assert!(budget.seems_exceeded(budget.recent()));
    budget.judge_peak(budget.recent(), Some(budget.confirmed(3990)));
    assert_eq!(budget.kept().peak, 4000);
    assert!(!budget.seems_exceeded(budget.recent()));
}

#[test]
fn a_peak_counts_where_the_kernel_was_not_asked() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
    budget.track(3000);
    budget.untrack(2900);
    assert_eq!(budget.kept().peak, 3000);
    budget.judge_peak(budget.recent(), None);
    assert_eq!(budget.kept().peak, 3000);
}

#[test]
fn what_was_used_while_a_peak_was_judged_is_judged_next() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
    budget.track(2048);
    let recent = budget.recent();
    budget.track(100);
    // The kernel counted before that.
    budget.judge_peak(recent, Some(2048));
    let recent = budget.recent();
    assert!(budget.seems_exceeded(recent));
    budget.judge_peak(recent, Some(2100));
    assert_eq!((budget.recent(), budget.kept().peak), (0, 2100));
}

#[test]
fn what_cannot_be_evicted_leaves_room_to_work_in() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
    budget.set_found(0, 100, 0);
    assert_eq!(budget.free(), 2048 - 100);
    assert_eq!(budget.protected(0), 0);
    budget.set_found(0, 2000, 0);
    assert_eq!(budget.free(), 2048 - 512);
}

#[test]
fn the_default_share_does_not_fall_below_its_floor() {
    let budget = Budget::new(ClearSize::default_for(1 << 30), 0);
    assert_eq!(budget.limit(), (64 << 20) / 4096);
    budget.track(4 * (65 << 20) / 4096);
    assert_eq!(budget.limit(), (65 << 20) / 4096);
}

/// 64 MiB with 10,000 pages in use; 8 MiB are 2048.
fn shrinking() -> Budget {
    let budget = Budget::new(ClearSize::Bytes(64 << 20), 0);
    budget.track(10_000);
    budget.aim_at(2048);
    budget
}

#[test]
fn room_is_made_for_a_smaller_clear_before_it_is_promised() {
    let budget = shrinking();
    assert_eq!((budget.limit(), budget.free()), (2048, 0));
    assert_eq!(budget.promised(), ClearSize::Bytes(64 << 20));
    assert!(!budget.seems_exceeded(budget.recent()), "16,384 pages are promised still");
    budget.untrack(7953);
    budget.promise(ClearSize::Bytes(8 << 20));
    assert_eq!((budget.limit(), budget.free()), (2048, 1));
    let wanted =
        Kept { least: 2048, greatest: 16_384, last: 2048, changes: 1, peak: 10_000, excess: 0 };
    assert_eq!(budget.kept(), wanted);
}

#[test]
fn a_smaller_clear_is_judged_from_when_it_is_promised() {
    let budget = shrinking();
    budget.untrack(7952);
    budget.promise(ClearSize::Bytes(8 << 20));
    budget.judge_peak(budget.recent(), None);
    assert!(!budget.seems_exceeded(budget.recent()));
    assert_eq!(budget.kept().excess, 0);
    budget.track(1);
    assert!(budget.seems_exceeded(budget.recent()));
    budget.judge_peak(budget.recent(), None);
    assert_eq!(budget.kept().excess, 1);
    // A larger one makes that no better.
    budget.promise(ClearSize::Bytes(64 << 20));
    assert_eq!(budget.kept().excess, 1);
    assert_eq!(budget.free(), 16_384 - 2049);
}

#[test]
fn a_size_that_was_not_reached_is_given_up() {
    let budget = shrinking();
    budget.aim_as_promised();
    assert_eq!(budget.free(), 6384);
    assert_eq!(budget.kept().changes, 0);
}

#[test]
fn the_bound_of_a_percentage_is_its_largest() {
    let budget = Budget::new(ClearSize::percent(50), 0);
    budget.track(4000);
    budget.sealed(4000, 0);
    assert_eq!(budget.limit(), 4000);
    // What is given back makes the limit smaller than what it allowed.
    budget.sealed(0, 4000);
    assert_eq!(budget.limit(), 2000);
    budget.judge_peak(budget.recent(), None);
    assert_eq!((budget.kept().last, budget.kept().excess), (4000, 0));
}

#[test]
fn watermarks_are_in_order_for_every_size() {
    for bytes in [0, 1 << 21, 1 << 24, 1 << 30, 1 << 40] {
        let b = Budget::new(ClearSize::Bytes(bytes), 0);
        assert!(b.min() < b.low() && b.low() < b.high() && b.high() < b.limit());
        assert!(b.batch() as u64 <= b.limit() / 8);
        b.expect(u64::MAX);
        assert!(b.low() < b.high() && b.high() <= b.limit() / 2);
    }
}

/// What cannot be evicted counts only so far that programs can make progress with the rest.
#[test]
fn copies_of_file_pages_count_up_to_a_quarter_of_the_limit_and_agents_up_to_half() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 10);
    for (copies, agents, counted) in
        [(300, 0, 300), (600, 0, 512), (600, 700, 1212), (0, 1100, 1024)]
    {
        budget.set_found(5, copies, agents);
        assert_eq!(budget.used(), 5 + counted + 10);
        assert_eq!(budget.copies(), copies.min(512));
    }
    assert_eq!(budget.confirmed(1700), 1710);
}

#[test]
fn room_is_claimed_once() {
    let budget = Budget::new(ClearSize::Bytes(8 << 20), 10);
    let free = budget.free();
    assert!(budget.claim(free - 100, 60) && budget.free() == 100);
    assert!(!budget.claim(41, 60) && budget.free() == 100, "a claim that fails leaves nothing");
    assert!(budget.claim(40, 60) && budget.free() == 60);
    assert_eq!((budget.claim_up_to(64), budget.claim_up_to(64), budget.free()), (60, 0, 0));
    // What was claimed has come.
    budget.track(free - 100);
    budget.give_back(free - 100);
    assert_eq!((budget.free(), budget.used()), (0, budget.limit() - 100));
    budget.give_back(60 + 40);
    assert_eq!(budget.free(), 100);
}

/// Each brings in what it has claimed, and takes it out again.
#[test]
fn threads_that_claim_room_stay_within_it() {
    let budget = Budget::new(ClearSize::Bytes(2 << 20), 0);
    let limit = budget.limit();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for round in 0..20_000 {
                    let pages = match round % 2 {
                        0 => budget.claim_up_to(limit / 2),
                        _ => {
                            if budget.claim(limit / 3, 1) {
                                limit / 3
                            } else {
                                0
                            }
                        }
                    };
                    budget.track(pages);
                    budget.give_back(pages);
                    assert!(budget.used() <= limit, "{} of {limit}", budget.used());
                    budget.untrack(pages);
                }
            });
        }
    });
    assert_eq!((budget.used(), budget.free()), (0, limit));
}
