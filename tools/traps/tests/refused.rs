//! Processes that cannot get their agents: the run ends before they have taken much more than there
//! was room for.

mod common;

use common::sampler::Sampler;
use common::{Run, Scratch, casemate, traps};

const CLEAR: u64 = 8 << 20;
/// What a process may take until the keeper knows that it grows and can get no agent, and has ended
/// the run.
const ALLOWED: u64 = 2 << 20;

/// A tracer lets no other in, so a process that it has can get no agent.
#[test]
fn a_process_that_another_traces_does_not_outgrow_the_clear() {
    const WHAT: &str = "traced-while-growing";
    let scratch = Scratch::new("refused");
    let program = Run::plain([traps().to_str().expect("a path of ours"), WHAT, "--mib", "64"]);
    let clear = CLEAR.to_string();
    for bound in ["strict", "lazy"] {
        let flags = ["--clear", &clear, "--bound", bound];
        let run = program.protected(&flags, scratch.path()).without_ballast().seconds(60).start();
        let sampler = Sampler::start(run.pid, &casemate());
        let done = run.finish();
        let seen = sampler.finish();
        done.ended_with(123, WHAT);
        assert!(done.stderr.contains("is being traced by process"), "{}", done.stderr);
        assert!(seen.most_own_bytes > CLEAR / 2, "vacuous: {seen:?}");
        assert!(seen.most_own_bytes <= CLEAR + ALLOWED, "{bound}: {seen:?}");
    }
}
