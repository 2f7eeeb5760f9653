//! The thread that asks the kernel how much plaintext the run has. Of a hundred processes that
//! takes a tenth of a second, on a busy machine seconds, and the watcher must look meanwhile.

use super::family::Family;
use super::kernel_count::Members;
use crate::pager::Pager;
use crate::sys::sched;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The least and the longest time from one count to the next, and the time in between as a multiple
/// of what the last one took...
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const PAUSES: u32 = 20;
/// ...and at least so many times that, however long it took: a fifth of a processor.
const LEAST_PAUSES: u32 = 4;

/// What is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// All plaintext, since the account is above the bound: `recent` pages by it. Where there is
    /// haste, a count that is ready sooner and may be too high comes first.
    Plaintext { recent: u64, is_hasty: bool },
    /// What is in RAM of what the account says is protected.
    Protected,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The pages of plaintext; none if they could not be counted.
    Plaintext { recent: u64, pages: Option<u64> },
    /// What the account said, less what of it is not there. None if that could not be counted.
    Protected { counted: u64, pages: Option<u64> },
}

/// The thread, as the watcher sees it.
pub(super) struct Counting {
    questions: SyncSender<(Question, Members)>,
    answers: Receiver<Answer>,
    asked: Option<(Question, Instant)>,
    is_dropped: bool,
    /// When the last count of plaintext began, and how long it took.
    judged: Option<(Instant, Duration)>,
}

impl Counting {
    /// Starts the thread. It ends when this value is dropped.
    pub fn begin(pager: &Arc<Pager>) -> io::Result<Self> {
        let (questions, asked) = sync_channel::<(Question, Members)>(1);
        let (answer, answers) = sync_channel(1);
        let pager = Arc::downgrade(pager);
        let count = move || {
            // Faults wait while it counts at a standstill.
            sched::hurry(0);
            while let Ok((question, members)) = asked.recv() {
                let Some(found) = count(&pager, question, &members) else { return };
                if answer.send(found).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("counting".to_owned()).spawn(count)?;
        Ok(Counting { questions, answers, asked: None, is_dropped: false, judged: None })
    }

    /// Asks the thread, unless it is at work.
    pub fn ask(&mut self, question: Question, family: &Family) {
        if self.asked.is_none() && self.questions.try_send((question, family.members())).is_ok() {
            self.asked = Some((question, Instant::now()));
        }
    }

    /// Whether the thread is at work.
    pub fn is_at_work(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether plaintext may be counted now.
    pub fn is_due(&self) -> bool {
        self.asked.is_none() && self.judged.is_none_or(|(when, cost)| is_due(when, cost))
    }

    /// Another size is promised: what is being counted was above the bound of the one before, by
    /// which it has been judged. Its answer is dropped.
    pub fn drop_plaintext(&mut self) {
        self.is_dropped = matches!(self.asked, Some((Question::Plaintext { .. }, _)));
    }

    /// The answer, if there is one by now. (A thread that panics ends the keeper: `panics.rs`.)
    pub fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv().ok()?;
        self.note(answer)
    }

    /// The answer of a thread that is at work.
    pub fn await_answer(&mut self) -> Option<Answer> {
        self.asked?;
        let answer = self.answers.recv().ok()?;
        self.note(answer)
    }

    fn note(&mut self, answer: Answer) -> Option<Answer> {
        if let Some((Question::Plaintext { .. }, when)) = self.asked.take() {
            self.judged = Some((when, when.elapsed()));
        }
        let is_dropped = std::mem::take(&mut self.is_dropped);
        (!is_dropped).then_some(answer)
    }
}

/// Whether the time has come since `when`, as a count took so long.
fn is_due(when: Instant, cost: Duration) -> bool {
    let pause = (cost * PAUSES).clamp(LEAST_PAUSE, LONGEST_PAUSE);
    when.elapsed() >= pause.max(cost * LEAST_PAUSES)
}

/// The answer; none if the run is over.
fn count(pager: &Weak<Pager>, question: Question, members: &Members) -> Option<Answer> {
    let pager = pager.upgrade()?;
    let answer = match question {
        Question::Plaintext { recent, is_hasty } => {
            let most = is_hasty.then(|| members.plaintext_at_most(&pager)).flatten();
            let within = most.filter(|&pages| pager.budget.allows(pages));
            let pages = within.or_else(|| members.least_plaintext(&pager));
            Answer::Plaintext { recent, pages }
        }
        Question::Protected => {
            let counted = pager.protected_pages();
            let plaintext = pager.budget.plaintext();
            let resident = members.resident_by_kernel(&pager);
            let there = resident.map(|pages| pages + pager.spared_pages());
            let excess = there.map(|there| plaintext.saturating_sub(there));
            Answer::Protected { counted, pages: excess.map(|e| counted.saturating_sub(e)) }
        }
    };
    pager.attention.stir();
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pager::tests::pager_and_space;

    #[test]
    fn what_was_above_the_bound_of_another_size_is_not_judged_by_this_one() {
        let (pager, _space) = pager_and_space();
        let pager = Arc::new(pager);
        let mut counting = Counting::begin(&pager).expect("a thread");
        let family = Family::default();
        let question = Question::Plaintext { recent: 9000, is_hasty: false };
        counting.ask(question, &family);
        counting.drop_plaintext();
        assert_eq!(counting.await_answer(), None);
        assert!(!counting.is_at_work());
        counting.ask(question, &family);
        let answer = counting.await_answer();
        assert!(matches!(answer, Some(Answer::Plaintext { recent: 9000, .. })), "{answer:?}");
        counting.ask(Question::Protected, &family);
        counting.drop_plaintext();
        let answer = counting.await_answer();
        assert!(matches!(answer, Some(Answer::Protected { .. })), "{answer:?}");
    }

    #[test]
    fn a_count_takes_a_fifth_of_the_time_at_most() {
        const COST: Duration = Duration::from_secs(1);
        let ago = |time| Instant::now().checked_sub(time).expect("the machine runs for longer");
        assert!(!is_due(ago(COST * (LEAST_PAUSES - 1)), COST));
        assert!(is_due(ago(COST * LEAST_PAUSES), COST));
        assert!(!is_due(ago(COST / 1000), COST / 1000));
        assert!(is_due(ago(COST / 1000 * PAUSES), COST / 1000));
    }
}
