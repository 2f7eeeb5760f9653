//! Processes that ask for more memory while there is hardly room left and they have no agent: no
//! room could be made for what they touched without one. Their calls wait until they have one.
//!
//! A thread whose call waits cannot be stopped, as it must be for the agent to be made. So once it
//! has been asked to stop, its call is ended without having been made, in a way that the kernel
//! makes it anew when the thread goes on.

use crate::config::PAGE_BYTES;
use crate::sys::clock::Instant;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// How long a process waits for an agent while none is made for any: it cannot be given one. On a
/// busy machine the watcher, which makes them, may not look for a second: it must have looked.
const PATIENCE: Patience = Patience { time: Duration::from_millis(500), looks: 500 };
/// The same while others get theirs. Hundreds of processes wait for one another.
const LONGEST_PATIENCE: Patience = Patience { time: Duration::from_secs(20), looks: 5_000 };

struct Patience {
    time: Duration,
    looks: u64,
}

/// A moment, and how often the watcher had looked until then.
#[derive(Debug, Clone, Copy)]
struct Moment {
    when: Instant,
    looks: u64,
}

impl Moment {
    fn is_past(self, patience: &Patience, now: Moment) -> bool {
        now.when > self.when + patience.time && now.looks > self.looks + patience.looks
    }
}

/// What becomes of a call that gets its process more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It needs no agent for that.
    Now,
    /// It is to have an agent first: ask again.
    Later,
    /// It is made anew by the kernel.
    Anew,
    /// Its process gets no agent: it goes on.
    Without,
}

/// What is known of processes without an agent.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    processes: HashMap<i32, Process>,
    /// Looks of the watcher.
    looks: u64,
    /// When the last of them got its agent.
    got_agent: Option<Moment>,
}

#[derive(Debug, Default)]
struct Process {
    /// What it mapped, in pages.
    pages: u64,
    /// It was about to execute another program when it was last heard of.
    executes: bool,
    /// What of that is `MAP_DROPPABLE`.
    droppable_pages: u64,
    /// Where it set its break last.
    brk: u64,
    /// Calls that wait, and their threads.
    waiting: HashMap<u64, i32>,
    /// Those of them whose threads have been asked to stop.
    stopping: HashSet<u64>,
    /// Since when it has been waiting for its agent.
    since: Option<Moment>,
    goes_without: bool,
    /// It has got more than it would get now: it is to have an agent.
    has_much: bool,
    /// Whose memory it shares.
    owner: Option<i32>,
}

impl Growing {
    /// A thread of process `pid` calls for `pages` more by the call `id`. `allows` says whether a
    /// process may have so many without an agent, and all of them together so many.
    pub fn ask(
        &mut self,
        now: Instant,
        pid: i32,
        (id, tid): (u64, i32),
        pages: u64,
        allows: impl FnOnce(u64, u64) -> bool,
    ) -> Turn {
        let all = pages + self.processes.values().map(|process| process.pages).sum::<u64>();
        let (now, got_agent) = (self.moment(now), self.got_agent);
        let process = self.processes.entry(pid).or_default();
        if process.stopping.remove(&id) {
            process.waiting.remove(&id);
            return Turn::Anew;
        }
        if process.goes_without {
            return Turn::Without;
        }
        if allows(process.pages + pages, all) {
            process.waiting.remove(&id);
            process.since = None;
            process.pages += pages;
            return Turn::Now;
        }
        let since = *process.since.get_or_insert(now);
        let resumed = got_agent.filter(|got| got.when > since.when).unwrap_or(since);
        process.goes_without =
            resumed.is_past(&PATIENCE, now) || since.is_past(&LONGEST_PATIENCE, now);
        process.waiting.insert(id, tid);
        Turn::Later
    }

    /// Process `pid` is about to execute another program.
    pub fn executes(&mut self, pid: i32) {
        self.processes.insert(pid, Process { executes: true, ..Process::default() });
    }

    /// Whether process `pid` has executed another program since it last asked for memory: then what
    /// it has of the program's file is to be counted.
    pub fn has_executed(&self, pid: i32) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.executes)
    }

    /// Process `pid` began its program with so many pages mapped.
    pub fn begins(&mut self, pid: i32, pages: u64) {
        let process = self.processes.entry(pid).or_default();
        (process.executes, process.pages) = (false, pages);
    }

    /// Whether this call of process `pid` waits.
    pub fn waits(&self, pid: i32, id: u64) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.waiting.contains_key(&id))
    }

    /// Pages of `MAP_DROPPABLE` memory that process `pid` mapped.
    pub fn droppable_pages(&self, pid: i32) -> u64 {
        self.processes.get(&pid).map_or(0, |process| process.droppable_pages)
    }

    /// Process `pid` maps `pages` of such memory.
    pub fn maps_droppable(&mut self, pid: i32, pages: u64) {
        self.processes.entry(pid).or_default().droppable_pages += pages;
    }

    /// By how many pages process `pid` grows if it sets its break to `address`; `start` says where
    /// its heap begins.
    pub fn growth_by_break(
        &self,
        pid: i32,
        address: u64,
        start: impl FnOnce() -> Option<u64>,
    ) -> u64 {
        // To set the break to 0 is to ask where it is.
        if address == 0 {
            return 0;
        }
        let known = self.processes.get(&pid).map(|process| process.brk).filter(|&brk| brk > 0);
        known
            .or_else(start)
            .map_or(0, |before| address.saturating_sub(before).div_ceil(PAGE_BYTES as u64))
    }

    /// Process `pid` sets its break to `address`.
    pub fn sets_break(&mut self, pid: i32, address: u64) {
        if address > 0 {
            self.processes.entry(pid).or_default().brk = address;
        }
    }

    /// These threads of a process have been asked to stop, and have not been let go since. (Whose
    /// call waits has not stopped yet.)
    pub fn stop(&mut self, pid: i32, threads: &[i32]) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let asked = process.waiting.iter().filter(|(_, tid)| threads.contains(tid));
        process.stopping.extend(asked.map(|(id, _)| *id));
    }

    fn moment(&self, when: Instant) -> Moment {
        Moment { when, looks: self.looks }
    }

    /// The watcher looks: the processes that are to have an agent at once.
    pub fn look(&mut self) -> Vec<i32> {
        self.looks += 1;
        self.wanting()
    }

    fn wanting(&self) -> Vec<i32> {
        let wants = |process: &Process| {
            !process.goes_without && (process.has_much || !process.waiting.is_empty())
        };
        let wanting = self.processes.iter().filter(|(_, process)| wants(process));
        wanting.map(|(pid, process)| process.owner.unwrap_or(*pid)).collect()
    }

    /// What is allowed is less than before: processes that have got more are to have an agent at
    /// once. Whether there are any.
    pub fn look_again(&mut self, allows: impl Fn(u64, u64) -> bool) -> bool {
        let all: u64 = self.processes.values().map(|process| process.pages).sum();
        let mut any = false;
        for process in self.processes.values_mut().filter(|p| p.pages > 0 && !p.goes_without) {
            process.has_much = !allows(process.pages, all);
            any |= process.has_much;
        }
        any
    }

    /// The agent that process `pid` waits for is another's, whose memory it shares.
    pub fn shares(&mut self, pid: i32, owner: i32) {
        self.processes.entry(pid).or_default().owner = Some(owner);
    }

    /// A call goes on that waited.
    pub fn let_go(&mut self, pid: i32, id: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.waiting.remove(&id);
            process.stopping.remove(&id);
        }
    }

    /// The process cannot have an agent.
    pub fn give_up(&mut self, pid: i32) {
        self.processes.entry(pid).or_default().goes_without = true;
    }

    /// The process has an agent.
    pub fn forget(&mut self, now: Instant, pid: i32) {
        self.processes.remove(&pid);
        self.got_agent = Some(self.moment(now));
    }

    /// The pages that each process has been allowed.
    pub fn allowed(&self) -> impl Iterator<Item = (i32, u64)> {
        self.processes.iter().map(|(pid, process)| (*pid, process.pages))
    }

    /// Forgets processes that have ended.
    pub fn retain(&mut self, lives: impl Fn(i32) -> bool) {
        self.processes.retain(|&pid, _| lives(pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: (u64, i32) = (70, 7);

    fn ask(growing: &mut Growing, call: (u64, i32), pages: u64) -> Turn {
        growing.ask(Instant::now(), 7, call, pages, |pages, _| pages <= 10)
    }

    #[test]
    fn what_is_allowed_is_the_sum() {
        let mut growing = Growing::default();
        assert_eq!(ask(&mut growing, CALL, 6), Turn::Now);
        assert_eq!(ask(&mut growing, (71, 7), 4), Turn::Now);
        assert!(growing.wanting().is_empty());
        assert_eq!(ask(&mut growing, (72, 7), 1), Turn::Later);
        assert_eq!(growing.wanting(), [7]);
        growing.forget(Instant::now(), 7);
        assert_eq!(ask(&mut growing, (73, 7), 1), Turn::Now);
    }

    #[test]
    fn many_that_are_small_are_not_small_together() {
        let mut growing = Growing::default();
        let ask = |growing: &mut Growing, pid| {
            growing.ask(Instant::now(), pid, (pid as u64, pid), 4, |own, all| own <= 5 && all <= 10)
        };
        assert_eq!(
            [1, 2, 3].map(|pid| ask(&mut growing, pid)),
            [Turn::Now, Turn::Now, Turn::Later]
        );
        assert_eq!(growing.wanting(), [3]);
        // One of them has ended, or has an agent: there is room for the third.
        growing.retain(|pid| pid != 1);
        assert_eq!(ask(&mut growing, 3), Turn::Now);
        assert!(growing.wanting().is_empty());
    }

    #[test]
    fn only_the_call_of_a_thread_that_was_asked_to_stop_is_made_anew_and_once() {
        let mut growing = Growing::default();
        // No call waits yet.
        growing.stop(7, &[7]);
        assert_eq!(ask(&mut growing, CALL, 11), Turn::Later);
        assert_eq!(ask(&mut growing, (80, 8), 11), Turn::Later);
        assert_eq!(ask(&mut growing, CALL, 11), Turn::Later);
        growing.stop(7, &[7]);
        assert_eq!(ask(&mut growing, (80, 8), 11), Turn::Later);
        assert_eq!(ask(&mut growing, CALL, 11), Turn::Anew);
        // Made anew it is another call, of a thread that was let go.
        assert_eq!(ask(&mut growing, (90, 7), 11), Turn::Later);
        // Even of a process that goes without, a call that was ended has to be made.
        growing.stop(7, &[8]);
        growing.give_up(7);
        assert_eq!(ask(&mut growing, (90, 7), 11), Turn::Without);
        assert_eq!(ask(&mut growing, (80, 8), 11), Turn::Anew);
    }

    /// Asks so long after the beginning.
    fn ask_after(growing: &mut Growing, start: Instant, time: Duration) -> Turn {
        growing.ask(start + time, 7, CALL, 11, |own, _| own <= 10)
    }

    fn look_often(growing: &mut Growing, looks: u64) {
        (0..looks).for_each(|_| drop(growing.look()));
    }

    #[test]
    fn who_gets_no_agent_does_not_wait_for_ever() {
        let (mut growing, start) = (Growing::default(), Instant::now());
        let moment = Duration::from_millis(1);
        let ask = |growing: &mut Growing, time| ask_after(growing, start, time);
        assert_eq!(ask(&mut growing, Duration::ZERO), Turn::Later);
        look_often(&mut growing, PATIENCE.looks + 1);
        assert_eq!(ask(&mut growing, PATIENCE.time), Turn::Later);
        // Others get theirs: it is waited for as long again.
        growing.forget(start + PATIENCE.time, 8);
        look_often(&mut growing, PATIENCE.looks + 1);
        assert_eq!(ask(&mut growing, PATIENCE.time * 2), Turn::Later);
        assert_eq!(growing.look(), [7]);
        let late = PATIENCE.time * 2 + moment;
        assert_eq!([late, late].map(|time| ask(&mut growing, time)), [Turn::Later, Turn::Without]);
        assert!(growing.look().is_empty());
        growing.retain(|_| false);
        assert_eq!(ask(&mut growing, late), Turn::Later);
    }

    #[test]
    fn time_in_which_the_watcher_does_not_look_is_no_patience() {
        let (mut growing, start) = (Growing::default(), Instant::now());
        let minute = Duration::from_secs(60);
        let ask = |growing: &mut Growing, time| ask_after(growing, start, time);
        assert_eq!(ask(&mut growing, Duration::ZERO), Turn::Later);
        look_often(&mut growing, PATIENCE.looks);
        assert_eq!([minute; 2].map(|time| ask(&mut growing, time)), [Turn::Later; 2]);
        look_often(&mut growing, 1);
        assert_eq!([minute; 2].map(|time| ask(&mut growing, time)), [Turn::Later, Turn::Without]);
    }

    #[test]
    fn nor_does_who_gets_none_while_others_get_theirs_all_the_time() {
        let (mut growing, start) = (Growing::default(), Instant::now());
        let went_without = (0..1000_u32).find(|quarter| {
            let time = Duration::from_millis(250) * *quarter;
            growing.forget(start + time, 8);
            look_often(&mut growing, LONGEST_PATIENCE.looks / 10);
            ask_after(&mut growing, start, time) == Turn::Without
        });
        assert_eq!(went_without, Some(82), "after twenty seconds, and two times");
    }

    #[test]
    fn who_has_more_than_is_allowed_now_is_to_have_an_agent() {
        let mut growing = Growing::default();
        growing.begins(7, 6);
        growing.begins(8, 5);
        growing.begins(9, 6);
        growing.give_up(9);
        assert!(!growing.look_again(|own, all| own <= 6 && all <= 17));
        assert!(growing.wanting().is_empty());
        assert!(growing.look_again(|own, _| own <= 5));
        assert_eq!(growing.wanting(), [7], "8 has no more, and 9 gets none");
        // All together have too much: each is to be armed.
        assert!(growing.look_again(|_, all| all <= 16));
        assert_eq!(growing.wanting().len(), 2);
        growing.forget(Instant::now(), 7);
        growing.forget(Instant::now(), 8);
        assert!(!growing.look_again(|_, _| false));
    }

    #[test]
    fn who_shares_memory_waits_for_its_owners_agent() {
        let mut growing = Growing::default();
        assert_eq!(ask(&mut growing, CALL, 11), Turn::Later);
        growing.shares(7, 3);
        assert_eq!(growing.wanting(), [3]);
        growing.let_go(7, CALL.0);
        assert!(growing.wanting().is_empty());
    }

    #[test]
    fn what_a_program_has_of_its_file_counts_once() {
        let mut growing = Growing::default();
        assert!(!growing.has_executed(7));
        assert_eq!(ask(&mut growing, CALL, 10), Turn::Now);
        growing.executes(7);
        assert!(growing.has_executed(7));
        growing.begins(7, 9);
        assert!(!growing.has_executed(7));
        assert_eq!(ask(&mut growing, (71, 7), 1), Turn::Now);
        assert_eq!(ask(&mut growing, (72, 7), 1), Turn::Later);
    }

    #[test]
    fn breaks_grow_by_what_they_are_moved() {
        let mut growing = Growing::default();
        let moves = [0, 0x10_0000, 0x10_8001, 0x10_0000].map(|to| {
            let pages = growing.growth_by_break(7, to, || Some(0xf_0000));
            // It is asked again, and made.
            assert_eq!(growing.growth_by_break(7, to, || Some(0xf_0000)), pages);
            growing.sets_break(7, to);
            pages
        });
        assert_eq!(moves, [0, 16, 9, 0]);
    }
}
