//! An agent is killed at any moment: its program reads nothing wrong, and is stopped.

mod common;

use common::keeper::{assert_all_die, assert_no_mismatch, steady_oracle};
use common::{Scratch, processes};

/// Ends without the agent before another page is served (SPEC.md, section 8).
const KEEPER_FAILED: i32 = 122;
const MANY: u64 = 2_000_000_000;

/// Kills the agents of a run that pages, after so many hundredths of a second of its keeper's work.
fn kill_agents(ticks: u64, seed: u64) {
    let scratch = Scratch::new("agent");
    let mut run = steady_oracle(MANY, seed, &[], &scratch).seconds(30).start();
    run.busy_keeper(ticks);
    let agents: Vec<i32> = run.family().into_iter().filter(|pid| processes::agent(*pid)).collect();
    assert!(!agents.is_empty(), "no agent in a run that pages");
    let family: Vec<i32> = run.family().into_iter().filter(|pid| *pid != run.pid).collect();
    for agent in agents {
        // SAFETY: an agent of a run that this test started.
        unsafe { libc::kill(agent, libc::SIGKILL) };
    }
    let what = format!("agent killed after {ticks} ticks, seed {seed}");
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
