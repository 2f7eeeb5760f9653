//! An agent is killed at any moment: its program reads nothing wrong, and is stopped.

mod common;

use common::keeper::{assert_all_die, assert_no_mismatch, steady_oracle};
use common::{Scratch, processes};
use std::time::Duration;

/// Ends without the agent before another page is served (SPEC.md, section 8).
const KEEPER_FAILED: i32 = 122;
const MANY: u64 = 2_000_000_000;

/// Kills every agent of a run that pages, after so many hundredths of a second of its keeper's
/// work. A run that goes on with another agent, as if nothing had happened, loses that one as well.
fn kill_agents(ticks: u64, seed: u64) {
    let scratch = Scratch::new("agent");
    let mut run = steady_oracle(MANY, seed, &[], &scratch).seconds(20).start();
    run.hostile = true;
    run.busy_keeper(ticks);
    let family: Vec<i32> = run.family().into_iter().filter(|pid| *pid != run.pid).collect();
    let mut killed = 0;
    while run.goes_on() {
        let agents = run.family().into_iter().filter(|pid| processes::agent(*pid));
        for agent in agents.filter(|pid| processes::alive(*pid)) {
            // SAFETY: an agent of a run that this test started.
            killed += u64::from(unsafe { libc::kill(agent, libc::SIGKILL) } == 0);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let what = format!("seed {seed}: {killed} agents killed, the first after {ticks} ticks");
    assert!(killed > 0, "{what}: the run ended before");
    let done = run.finish();
    assert_no_mismatch(&done);
    done.ended_with(KEEPER_FAILED, &what);
    assert!(done.stderr.contains("agent"), "{what}: no word about it: {}", done.stderr);
    assert_all_die(&family, &what);
}

#[test]
fn a_killed_agent_ends_the_run() {
    let soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    for seed in 1..=if soak { 400 } else { 20 } {
        kill_agents(3 + seed * 7 % 20, seed);
    }
}
