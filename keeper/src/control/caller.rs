//! Who may change a run: its user and root, but none of its own processes.
//!
//! A program of the run is of the same user, and must not widen its own bound. What tells it apart
//! is that it descends from the keeper: the keeper is the subreaper of all that it starts, so that
//! no process of the run can leave its descendants.

use super::Refusal;
use crate::sys::{process, procfs, socket};
use std::os::fd::OwnedFd;

/// How often a caller's ancestors are asked for, if some of them end meanwhile.
const TRIES: u32 = 8;
/// More ancestors than any process has.
const MOST_ANCESTORS: usize = 4096;

/// Whether the process at the other end may change the run of this keeper.
pub(super) fn admit(caller: &OwnedFd, keeper: i32) -> Result<(), Refusal> {
    let (pid, uid) = socket::caller(caller).map_err(|_| Refusal::PerhapsInside)?;
    if !process::is_ours(uid) {
        return Err(Refusal::OtherUser);
    }
    let process = socket::caller_pidfd(caller).map_err(|_| Refusal::PerhapsInside)?;
    let parent = |pid| procfs::state_and_parent(pid).map(|(_, parent)| parent);
    let is_inside = (0..TRIES).find_map(|_| is_inside(pid, keeper, parent));
    // Its number was its own all the time only if it lives still.
    match is_inside.filter(|_| !process::has_ended(&process)) {
        Some(false) => Ok(()),
        Some(true) => Err(Refusal::Inside),
        None => Err(Refusal::PerhapsInside),
    }
}

/// Whether a process is the keeper or descends from it; none if an ancestor is not to be seen, or
/// was another when it was looked at again.
fn is_inside(pid: i32, keeper: i32, parent: impl Fn(i32) -> Option<i32>) -> Option<bool> {
    let ancestors = || {
        let mut line = vec![pid];
        // The parent of the first process of a pid namespace is 0.
        while let Some(&last) = line.last().filter(|&&last| last > 1) {
            line.push(parent(last)?);
            if line.len() > MOST_ANCESTORS {
                return None;
            }
        }
        Some(line)
    };
    let line = ancestors()?;
    // Between two looks the number of one that has ended may become that of a stranger.
    let is_known = pid > 0 && ancestors()? == line;
    is_known.then(|| line.contains(&keeper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// 1 <- 10 (a shell) <- 20 (a front process) <- 30 (its keeper) <- 40 <- 50; 60 is the shell's.
    fn parent(pid: i32) -> Option<i32> {
        let all = [(10, 1), (20, 10), (30, 20), (40, 30), (50, 40), (60, 10), (70, 0)];
        all.iter().find(|(of, _)| *of == pid).map(|(_, is)| *is)
    }

    #[test]
    fn who_descends_from_the_keeper_is_inside_and_no_other() {
        let inside = |pid| is_inside(pid, 30, parent);
        assert_eq!([30, 40, 50].map(inside), [Some(true); 3]);
        assert_eq!([1, 10, 20, 60, 70].map(inside), [Some(false); 5]);
    }

    #[test]
    fn who_cannot_be_seen_may_be_inside() {
        assert_eq!(is_inside(0, 30, parent), None, "of another pid namespace");
        assert_eq!(is_inside(80, 30, parent), None, "it has ended");
        assert_eq!(is_inside(50, 30, |pid| parent(pid).filter(|_| pid != 40)), None);
    }

    #[test]
    fn a_line_of_ancestors_that_changes_is_not_believed() {
        // 40 ends after the first look, its number becomes a stranger's, and 50 an orphan.
        let looks = Cell::new(0);
        let changing = |pid| {
            looks.set(looks.get() + 1);
            if pid == 50 && looks.get() > 4 { Some(30) } else { parent(pid) }
        };
        assert_eq!(is_inside(50, 30, changing), None);
        assert_eq!(is_inside(5, 5, |_| Some(5)), None, "it has no end");
    }
}
