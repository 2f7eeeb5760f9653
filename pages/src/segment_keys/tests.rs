use super::*;
use std::collections::HashMap as Map;
use std::sync::Arc;

/// A root, and how often it was asked for.
type Asked = ([u8; 32], u64);

/// Roots by epoch, and the segments that are derived ahead.
#[derive(Clone, Default)]
struct Counted(Arc<Mutex<Map<u64, Asked>>>, u64);

impl Counted {
    fn with(roots: &[u8]) -> Self {
        let roots = (0..).zip(roots).map(|(epoch, &byte)| (epoch, ([byte; 32], 0)));
        Counted(Arc::new(Mutex::new(roots.collect())), 0)
    }

    fn asked(&self) -> u64 {
        self.0.lock().expect("no panic").values().map(|(_, asked)| asked).sum()
    }
}

impl Roots for Counted {
    fn with_root(&self, epoch: u64, with: &mut dyn FnMut(&[u8; 32])) -> Result<(), NoRoot> {
        let mut roots = self.0.lock().expect("no panic");
        let (root, asked) = roots.get_mut(&epoch).ok_or(NoRoot)?;
        *asked += 1;
        with(root);
        Ok(())
    }

    fn begin_epoch(&self, epoch: u64) -> Result<(), NoRoot> {
        self.with_root(epoch, &mut |_| ())
    }

    fn end_epochs_before(&self, epoch: u64) -> Result<(), NoRoot> {
        self.0.lock().expect("no panic").retain(|&of, _| of >= epoch);
        Ok(())
    }

    fn segments_ahead(&self) -> u64 {
        self.1
    }
}

fn keys(roots: &Counted) -> SegmentKeys {
    SegmentKeys::new(Box::new(roots.clone()))
}

fn use_key(keys: &SegmentKeys, segment: u64) -> Result<(), Violation> {
    keys.with_key(Lpid(segment * SEGMENT_PAGES + 5), |_| ())
}

#[test]
fn a_key_is_blake3_of_root_epoch_and_segment_and_no_two_are_one() {
    let keys = keys(&Counted::with(&[7]));
    let mut material = vec![7; 32];
    material.extend([0; 8]);
    material.extend(3_u64.to_le_bytes());
    let key = keys.bytes(Lpid(3 * SEGMENT_PAGES)).expect("there is a root");
    assert_eq!(*key, blake3::derive_key(SEGMENT_CONTEXT, &material));
    let last = keys.bytes(Lpid(4 * SEGMENT_PAGES - 1)).expect("there is a root");
    assert_eq!(last, key, "one segment, one key");
    let next = keys.bytes(Lpid(4 * SEGMENT_PAGES)).expect("there is a root");
    assert_ne!(next, key);
}

#[test]
fn a_root_is_asked_for_once_while_a_key_is_kept_and_the_oldest_goes_first() {
    let roots = Counted::with(&[7]);
    let keys = keys(&roots);
    for segment in 0..MOST_KEYS as u64 {
        for _ in 0..3 {
            use_key(&keys, segment).expect("there is a root");
        }
    }
    assert_eq!((roots.asked(), keys.kept()), (MOST_KEYS as u64, MOST_KEYS));
    use_key(&keys, 0).expect("it is kept");
    use_key(&keys, 1000).expect("there is a root");
    assert_eq!((roots.asked(), keys.kept()), (MOST_KEYS as u64 + 1, MOST_KEYS));
    use_key(&keys, 0).expect("it was used later than the next");
    assert_eq!(roots.asked(), MOST_KEYS as u64 + 1);
    use_key(&keys, 1).expect("there is a root");
    assert_eq!(roots.asked(), MOST_KEYS as u64 + 2, "it had gone");
}

#[test]
fn keys_that_nothing_uses_are_forgotten() {
    let keys = keys(&Counted::with(&[7]));
    use_key(&keys, 1).expect("there is a root");
    use_key(&keys, 2).expect("there is a root");
    let moment = keys.tick();
    use_key(&keys, 2).expect("it is kept");
    assert_eq!(keys.forget_unused_since(moment), 1);
    assert_eq!((keys.derived(), keys.kept()), (2, 1));
    use_key(&keys, 2).expect("it is kept");
    assert_eq!(keys.derived(), 2);
    use_key(&keys, 1).expect("there is a root");
    assert_eq!(keys.derived(), 3);
}

#[test]
fn keys_ahead_are_derived_with_a_new_one_and_not_with_an_old_one() {
    let mut roots = Counted::with(&[7]);
    roots.1 = 3;
    let keys = keys(&roots);
    for segment in 0..4 {
        use_key(&keys, segment).expect("there is a root");
    }
    assert_eq!((roots.asked(), keys.derived()), (1, 4));
    use_key(&keys, 4).expect("there is a root");
    assert_eq!((roots.asked(), keys.derived()), (2, 8));
    let moment = keys.tick();
    assert_eq!(keys.forget_unused_since(moment), 0);
    use_key(&keys, 2).expect("there is a root");
    assert_eq!((roots.asked(), keys.derived()), (3, 9));
}

#[test]
fn an_epoch_has_its_own_root_and_takes_the_earlier_ones_with_it() {
    let mut roots = Counted::with(&[7, 8]);
    roots.1 = 3;
    let keys = keys(&roots);
    let counter = GlobalPageCounter::new();
    let old = counter.next().expect("the first");
    use_key(&keys, 0).expect("there is a root");
    keys.prepare_epoch(&counter).expect("there are seeds");
    let first = keys.begin_epoch(&counter).expect("no key is being derived");
    assert_eq!((first, counter.next()), (Lpid(SEGMENT_PAGES), Ok(first)));
    assert_eq!(keys.kept(), 1, "those ahead were of the root before");
    let mut material = vec![8; 32];
    material.extend(1_u64.to_le_bytes());
    material.extend(1_u64.to_le_bytes());
    let key = keys.bytes(first).expect("there is a root");
    assert_eq!(*key, blake3::derive_key(SEGMENT_CONTEXT, &material));
    assert!(keys.with_key(old, |_| ()).is_ok(), "its epoch has not ended");
    use_key(&keys, 1).expect("there is a root");
    keys.end_earlier_epochs().expect("they end");
    assert_eq!(roots.0.lock().expect("no panic").keys().collect::<Vec<_>>(), [&1]);
    assert_eq!(keys.with_key(old, |_| ()), Err(Violation::NoKey { lpid: old }));
    assert!(keys.with_key(first, |_| ()).is_ok());
    // There is no third root.
    let lpid = Lpid(first.0 + 1);
    assert_eq!(keys.prepare_epoch(&counter), Err(Violation::NoKey { lpid }));
    assert!(keys.with_key(counter.next().expect("another"), |_| ()).is_ok());
}

#[test]
fn seeds_run_out_before_an_epoch_begins_beyond_them() {
    let keys = keys(&Counted::with(&[7, 8]));
    let counter = GlobalPageCounter::starting_at(Lpid(u64::MAX - 5));
    assert_eq!(keys.prepare_epoch(&counter), Err(Violation::SeedsExhausted));
    assert_eq!(counter.next(), Ok(Lpid(u64::MAX - 5)));
}
