//! A part of ours is stopped, and does not end: within a second that is noticed, and the program
//! stopped.

mod common;

use common::keeper::{assert_all_die, assert_no_mismatch, cpu_ticks, steady_oracle};
use common::run::Running;
use common::{Scratch, processes};
use std::time::{Duration, Instant};

const KEEPER_FAILED: i32 = 122;
const MANY: u64 = 2_000_000_000;
/// Processor time, in hundredths of a second, that no agent uses before it serves.
const AGENT_TICKS: u64 = 5;
/// A second until it is noticed, and what a busy machine takes to end everything.
const PATIENCE: Duration = Duration::from_secs(10);

fn kill(pid: i32, signal: i32) {
    // SAFETY: a process of a run that this test started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill({pid}, {signal})");
}

/// An agent that moves pages. A keeper may be busy before the program has one, and one that is
/// stopped before it serves is replaced by another.
fn agent(run: &mut Running) -> i32 {
    let works = |pid: &i32| {
        processes::agent(*pid) && processes::alive(*pid) && cpu_ticks(*pid) >= AGENT_TICKS
    };
    run.wait_until("the program's agent works", |run| run.family().into_iter().find(works))
}

/// Stops one process of ours while the program pages. The program must not go on for long, nor may
/// it have read anything wrong.
fn ends_when_stopped(what: &str, choose: impl FnOnce(&mut Running, i32) -> i32, seed: u64) {
    let scratch = Scratch::new("stall");
    let mut run = steady_oracle(MANY, seed, &[], &scratch).seconds(60).start();
    run.hostile = true;
    let keeper = run.busy_keeper(20);
    let chosen = choose(&mut run, keeper);
    let family: Vec<i32> = run.family().into_iter().filter(|pid| *pid != run.pid).collect();
    kill(chosen, libc::SIGSTOP);
    let since = Instant::now();
    while run.goes_on() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let elapsed = since.elapsed();
    println!("{what}: ended after {elapsed:?}");
    assert_all_die(&family, what);
    let done = run.finish();
    assert_no_mismatch(&done);
    done.ended_with(KEEPER_FAILED, what);
    assert!(done.stderr.contains(what), "no word about it: {}", done.stderr);
    assert!(elapsed < PATIENCE, "{what}: not noticed for {elapsed:?}");
}

#[test]
fn a_stopped_agent_ends_the_run() {
    let agent = |run: &mut Running, _| agent(run);
    ends_when_stopped("was stopped by a signal and does not answer", agent, 1);
}

#[test]
fn a_stopped_keeper_ends_the_run() {
    ends_when_stopped("was stopped by a signal (the keeper failed", |_, keeper| keeper, 2);
}

/// A process that is let go again at once has not stalled.
#[test]
fn a_short_stop_ends_nothing() {
    let scratch = Scratch::new("pause");
    let mut run = steady_oracle(8_000_000, 3, &[], &scratch).seconds(200).start();
    let keeper = run.busy_keeper(5);
    let agent = agent(&mut run);
    let mut stops = 0;
    while run.goes_on() {
        for pid in [agent, keeper] {
            // SAFETY: processes of a run that this test started; they may end between the two.
            unsafe {
                libc::kill(pid, libc::SIGSTOP);
                std::thread::sleep(Duration::from_millis(30));
                libc::kill(pid, libc::SIGCONT);
            }
        }
        stops += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    let done = run.finish();
    done.good("an oracle whose keeper is stopped for moments").really_paged("oracle");
    assert!(stops > 3, "only {stops} stops");
}
