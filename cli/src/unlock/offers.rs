//! What locked runs are locked under.

use anyhow::Error;
use casemate_keeper::lock::Offer;

use crate::door::runs::Known;
use crate::failure::Failure;
use crate::lock::key::SoundKey;

/// A locked run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// The run.
    pub run: Known,
    /// What it was locked under.
    pub offer: Offer,
}

/// Runs that one passphrase unlocks.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// What all of them were locked under.
    pub key: SoundKey,
    /// One at least.
    pub locked: Vec<Locked>,
}

impl Group {
    /// Its runs, for a question.
    pub fn name(&self) -> String {
        let fronts: Vec<_> = self.locked.iter().map(|l| l.run.front.to_string()).collect();
        let runs = if fronts.len() == 1 { "run" } else { "runs" };
        format!("{runs} {}", fronts.join(", "))
    }
}

/// Groups runs by key. Those with an offer that is not believed are refused, by their front
/// processes' numbers.
pub fn groups(all: Vec<Locked>) -> (Vec<Group>, Vec<(u32, Error)>) {
    let (mut groups, mut refused): (Vec<Group>, Vec<_>) = (Vec::new(), Vec::new());
    for &locked in &all {
        match believed(&locked, &all) {
            Ok(key) => match groups.iter_mut().find(|group| group.key == key) {
                Some(group) => group.locked.push(locked),
                None => groups.push(Group { key, locked: vec![locked] }),
            },
            Err(sentence) => refused.push((locked.run.front, Failure::no(sentence).into())),
        }
    }
    (groups, refused)
}

/// Each lock has an ephemeral pair of its own. Who offers another's would be told its sealing key.
fn believed(locked: &Locked, all: &[Locked]) -> Result<SoundKey, String> {
    let front = locked.run.front;
    let is_same = |other: &&Locked| {
        other.run != locked.run && other.offer.ephemeral == locked.offer.ephemeral
    };
    if let Some(other) = all.iter().find(is_same) {
        return Err(format!(
            "run {front} offers the same lock as run {}, so one of them is no run: unlock the \
             one that you began by its number",
            other.run.front
        ));
    }
    SoundKey::new(locked.offer.key).map_err(|why| {
        format!(
            "run {front} offers a key that is not tried: {why} (unlock it with the binary that \
             began it)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_keeper::lock::{Hex, LockKey, offer, public_key};

    fn key(private: u8, passes: u32) -> LockKey {
        let public = Hex(public_key(&[private; 32]).expect("any 32 bytes are a private key"));
        LockKey { salt: Hex([private; 16]), memory_kib: 8 << 10, passes, public }
    }

    fn locked(front: u32, key: LockKey) -> Locked {
        let of = |key| offer(key).expect("an offer").1;
        Locked {
            run: Known::for_test(front),
            offer: Offer { key, ..of(LockKey { passes: 1, ..key }) },
        }
    }

    fn fronts(group: &Group) -> Vec<u32> {
        group.locked.iter().map(|locked| locked.run.front).collect()
    }

    #[test]
    fn runs_that_are_locked_under_one_key_are_one_group() {
        let (one, other) = (key(3, 1), key(4, 1));
        let all = vec![locked(10, one), locked(11, other), locked(12, one), locked(13, key(3, 2))];
        let (groups, refused) = groups(all);
        assert!(refused.is_empty());
        assert_eq!(
            groups.iter().map(fronts).collect::<Vec<_>>(),
            [vec![10, 12], vec![11], vec![13]]
        );
        assert_eq!(groups[0].name(), "runs 10, 12");
        assert_eq!(groups[1].name(), "run 11");
    }

    #[test]
    fn an_offer_that_asks_for_too_much_is_refused_and_the_others_stay() {
        let (groups, refused) = groups(vec![locked(10, key(3, 65)), locked(11, key(4, 1))]);
        assert_eq!(groups.iter().map(fronts).collect::<Vec<_>>(), [[11]]);
        let [(10, error)] = &refused[..] else { panic!("{refused:?}") };
        assert!(
            error.to_string().contains("run 10 offers a key that is not tried: it asks for 65")
        );
    }

    #[test]
    fn who_offers_anothers_lock_is_told_nothing() {
        let own = locked(10, key(3, 1));
        let copied = Locked { run: Known::for_test(11), ..own };
        // Another key, and the same ephemeral half.
        let lured = Locked {
            run: Known::for_test(12),
            offer: Offer { key: key(3, 2), ephemeral: own.offer.ephemeral },
        };
        let (groups, refused) = groups(vec![own, copied, lured, locked(13, key(3, 1))]);
        assert_eq!(groups.iter().map(fronts).collect::<Vec<_>>(), [[13]]);
        let mut names: Vec<u32> = refused.iter().map(|(front, _)| *front).collect();
        names.sort_unstable();
        assert_eq!(names, [10, 11, 12]);
        assert!(refused.iter().all(|(_, error)| error.to_string().contains("the same lock as")));
    }
}
