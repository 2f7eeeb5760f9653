//! The processes whose announced calls reach the keeper though they were not armed: a listener is
//! handed down.

use std::collections::HashSet;

/// Which processes are heard: also the children of a heard one, but for those born before its
/// listener was made.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    processes: HashSet<i32>,
    born_before: HashSet<i32>,
    /// The program was heard before it was executed.
    everyone: bool,
}

impl Heard {
    /// A call of this process was announced.
    pub fn insert(&mut self, pid: i32) {
        self.processes.insert(pid);
    }

    /// A listener was made in the program's process before that was executed: all are its
    /// descendants.
    pub fn begin_with_program(&mut self, pid: i32) {
        self.insert(pid);
        self.everyone = true;
    }

    /// A listener was made in this process, which has these descendants.
    pub fn begin(&mut self, pid: i32, descendants: Vec<i32>) {
        self.insert(pid);
        let not_heard = descendants.into_iter().filter(|pid| !self.processes.contains(pid));
        self.born_before.extend(not_heard);
    }

    /// Whether a call of this process was announced.
    pub fn contains(&self, pid: i32) -> bool {
        self.processes.contains(&pid)
    }

    /// Whether the calls of this process are announced, though it may have made none yet.
    pub fn includes(&self, mut pid: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
        loop {
            if self.everyone || self.contains(pid) {
                return true;
            }
            if self.born_before.contains(&pid) {
                return false;
            }
            match parent(pid) {
                Some(of) if of > 1 => pid = of,
                _ => return false,
            }
        }
    }

    /// Whether a listener of another process was made after this one had begun, and no call of this
    /// one was announced.
    pub fn was_born_before(&self, pid: i32) -> bool {
        !self.everyone && !self.contains(pid) && self.born_before.contains(&pid)
    }

    /// Forgets processes that have ended.
    pub fn retain(&mut self, lives: impl Fn(i32) -> bool) {
        self.processes.retain(|&pid| lives(pid));
        self.born_before.retain(|&pid| lives(pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 descends from 2, as 4 and 5 do from 3.
    fn parent(pid: i32) -> Option<i32> {
        [(2, 1), (3, 2), (4, 3), (5, 3)].iter().find(|(of, _)| *of == pid).map(|(_, is)| *is)
    }

    #[test]
    fn a_child_is_heard_before_its_first_call() {
        let mut heard = Heard::default();
        assert!(!heard.includes(4, parent));
        heard.begin(2, vec![]);
        assert!(heard.includes(4, parent) && !heard.contains(4));
        assert!(!heard.includes(6, parent));
        assert!(!heard.was_born_before(4) && !heard.was_born_before(6));
    }

    #[test]
    fn who_was_born_before_the_listener_is_not_heard_before_its_first_call() {
        let mut heard = Heard::default();
        heard.begin(2, vec![3, 4]);
        assert!(
            !heard.includes(3, parent) && !heard.includes(4, parent) && !heard.includes(5, parent)
        );
        heard.begin(3, vec![4]);
        assert!(heard.includes(3, parent) && heard.includes(5, parent));
        assert!(!heard.includes(4, parent));
        heard.insert(4);
        assert!(heard.includes(4, parent));
    }

    #[test]
    fn all_are_heard_who_descend_from_a_program_that_was_heard_from_its_start() {
        let mut heard = Heard::default();
        heard.begin_with_program(2);
        // An orphan has no ancestor that is still there.
        assert!(heard.includes(9, |_| None));
    }

    #[test]
    fn who_is_heard_already_was_not_born_before_another_listener() {
        let mut heard = Heard::default();
        heard.begin(3, vec![]);
        heard.begin(2, vec![3, 5]);
        assert!(heard.includes(3, parent));
        heard.retain(|pid| pid != 5);
        assert!(heard.includes(5, parent));
    }
}
