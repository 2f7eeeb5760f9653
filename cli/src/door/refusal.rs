//! What a run answers when it does not do what it was asked.

use casemate_keeper::control::Refusal;

use super::ended;
use crate::size;

/// The sentence for a refusal of the run of this front process.
pub fn sentence(front: u32, refusal: Refusal) -> String {
    match refusal {
        Refusal::OtherUser => format!(
            "run {front} is another user's; only that user and root may change it (see sudo)"
        ),
        Refusal::Inside => format!(
            "run {front} protects this very process, and no program changes the run that it is \
             in; give the command from outside"
        ),
        Refusal::PerhapsInside => format!(
            "run {front} cannot tell whether this process is one of its own, and refuses; give \
             the command from the pid namespace of `casemate run`, and as root if /proc hides \
             processes"
        ),
        Refusal::TooSmall => size::too_small("the size"),
        Refusal::Version(theirs) => format!(
            "run {front} is of another casemate, which speaks version {theirs}; give the command \
             with the binary that began the run"
        ),
        Refusal::Malformed => format!(
            "run {front} did not understand the request; give the command with the binary that \
             began the run"
        ),
        Refusal::Rotating => format!(
            "run {front} rotates its keys already, as another command asked; give the command \
             again when that one has ended"
        ),
        Refusal::Violated => format!(
            "run {front} keeps its keys: a page of it did not verify (`--on-violation sigbus`), \
             and what cannot be opened cannot be sealed anew; end the run"
        ),
        Refusal::Exhausted => format!(
            "run {front} keeps its keys: there is no memory or no thread left for a rotation; end \
             other programs, and give the command again"
        ),
        Refusal::Locked => {
            format!("run {front} is locked; unlock it first (`casemate unlock {front}`)")
        }
        Refusal::NotLocked => format!("run {front} is not locked, so there is nothing to unlock"),
        Refusal::WrongKey => format!(
            "run {front} stays locked: its key is another than the one of its offer, as after a \
             lock in the meantime; give the command again"
        ),
        Refusal::NoPublicKey => format!(
            "run {front} was not locked, and goes on: the public key is none of X25519; make \
             another key (`casemate lock --make-key FILE`)"
        ),
        Refusal::Ending => ended(front),
    }
}

/// The sentence for a reply that answers another question.
pub fn unexpected(front: u32) -> String {
    format!(
        "run {front} answered what it was not asked; give the command with the binary that began \
         the run"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_run_and_is_one_sentence() {
        let all = [
            Refusal::Malformed,
            Refusal::Version(7),
            Refusal::OtherUser,
            Refusal::Inside,
            Refusal::PerhapsInside,
            Refusal::Locked,
            Refusal::NotLocked,
            Refusal::WrongKey,
            Refusal::NoPublicKey,
            Refusal::Ending,
        ];
        let mut known: Vec<String> = all.map(|refusal| sentence(4711, refusal)).into();
        known.push(unexpected(4711));
        for text in &known {
            assert!(text.starts_with("run 4711 "), "{text}");
            assert!(!text.contains('\n') && !text.contains("  "), "{text}");
        }
        let count = known.len();
        known.sort();
        known.dedup();
        assert_eq!(known.len(), count, "two refusals have one sentence");
        // This one is of a size, whatever the run.
        let sentence = sentence(4711, Refusal::TooSmall);
        assert_eq!(sentence, "the size is less than the 2 MiB that the Clear needs at least");
    }
}
