//! Programs in a sandbox of their own: their agents stay in it.

mod common;

use common::{Run, Scratch, root, skip, traps};

/// The keeper failed, or something that it relies on.
const KEEPER_FAILED: i32 = 122;

/// A program writes code over its agent that makes a file: the file is not made, and the run ends.
#[test]
fn an_agent_that_its_program_takes_over_makes_no_call_of_the_programs() {
    if !root() {
        return skip("takeover", "only root can set a program's filters aside");
    }
    let scratch = Scratch::new("takeover");
    let file = scratch.join("made-by-the-agent");
    let traps = traps();
    let words = [traps.as_os_str(), "takeover".as_ref(), "--mib".as_ref(), "64".as_ref()];
    let run = Run::plain(words)
        .with_words(&["--accesses", "1000", "--file", &file.to_string_lossy()])
        .directory(scratch.path());
    let done =
        run.protected(&["--clear", "16M"], scratch.path()).without_ballast().start().finish();
    assert!(!file.exists(), "the agent made a call that its program may not make: {}", done.stderr);
    done.ended_with(KEEPER_FAILED, "takeover");
    assert!(done.stderr.contains("call that agents do not make (257)"), "{}", done.stderr);
}
