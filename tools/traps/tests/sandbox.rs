//! Programs in a sandbox of their own: their agents stay in it.

mod common;

use common::{Run, Scratch, root, skip, traps};

/// The keeper failed, or something that it relies on.
const KEEPER_FAILED: i32 = 122;

/// Runs a program that writes code over its agent, which makes a file, and what the report says.
fn taken_over(trap: &str) -> Option<String> {
    if !root() {
        skip("takeover", "only root can set a program's filters aside");
        return None;
    }
    let scratch = Scratch::new("takeover");
    let file = scratch.join("made-by-the-agent");
    let traps = traps();
    let words = [traps.as_os_str(), trap.as_ref(), "--mib".as_ref(), "64".as_ref()];
    let run = Run::plain(words)
        .with_words(&["--accesses", "1000", "--file", &file.to_string_lossy()])
        .directory(scratch.path());
    let done =
        run.protected(&["--clear", "40M"], scratch.path()).without_ballast().start().finish();
    assert!(!file.exists(), "the agent made a call that its program may not make: {}", done.stderr);
    done.ended_with(KEEPER_FAILED, "takeover");
    Some(done.stderr)
}

/// The agent came after the sandbox, whose filters rest for it: its calls are judged.
#[test]
fn an_agent_that_its_program_takes_over_makes_no_call_of_the_programs() {
    if let Some(said) = taken_over("takeover") {
        assert!(said.contains("call that agents do not make (257)"), "{said}");
    }
}

/// The agent came before the sandbox: its own filter refuses the call, and the keeper waits for no
/// answer.
#[test]
fn an_agent_that_its_program_takes_over_does_not_hang_the_run() {
    if let Some(said) = taken_over("takeover-in-sandbox") {
        assert!(said.contains("does not answer"), "{said}");
    }
}
