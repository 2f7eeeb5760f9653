//! What `casemate lock` says.

use casemate_keeper::control::Obstacle;

use super::Locked;
use crate::out::Out;
use crate::size::format as size;

/// What a key file is for.
pub fn made(out: &Out) -> String {
    let file = match out.path() {
        Some(path) => path.display().to_string(),
        None => "FILE".to_owned(),
    };
    format!(
        "key made: `casemate lock --key {file} PID` locks a run under it without the passphrase, \
         which only `casemate unlock` asks for; nothing in it is secret\n"
    )
}

/// The line of a run that is locked.
pub fn locked(front: u32, found: Locked) -> String {
    let mut line = format!(
        "run {front}: locked in {}; {}",
        time(found.elapsed_ms),
        match found.threads {
            1 => "1 thread stands still".to_owned(),
            threads => format!("{threads} threads stand still"),
        }
    );
    if found.threads_in_calls > 0 {
        line += &format!(
            " (the registers of {} stay with the kernel, in a call that is not left)",
            found.threads_in_calls
        );
    }
    line += &match found.plaintext_bytes {
        0 => "; nothing of its private memory can be read".to_owned(),
        bytes => format!("; {} of its private memory can be read", size(bytes)),
    };
    if found.outside_bytes > 0 {
        line += &format!(
            "; {} of files and shared memory stay as they were, which is never encrypted",
            size(found.outside_bytes)
        );
    }
    line
}

/// The sentence for a run of whose private memory some can be read still.
pub fn readable(front: u32, found: Locked) -> Option<String> {
    (found.plaintext_bytes > 0).then(|| {
        format!(
            "run {front} is locked, but {} of its private memory can be read still: it is pinned, \
             or of processes that cannot be protected (`casemate audit {front}` says where it is; \
             what must not be read there has to end)",
            size(found.plaintext_bytes)
        )
    })
}

/// The sentence for a run that could not be locked.
pub fn hindered(front: u32, obstacle: Obstacle) -> String {
    let why = match obstacle {
        Obstacle::Agents => {
            "a process of it got no agent in the time that is allowed, without which its memory \
             cannot be encrypted (give the command again when the machine has less to do)"
        }
        Obstacle::Threads => {
            "threads of it cannot be traced, or there are too many (end what traces them, such as \
             gdb or strace, and give the command again)"
        }
        Obstacle::Pages => {
            "pages did not leave the Clear, for which the Crypt has no room, perhaps (begin the \
             run with a larger --crypt-limit, or with --swap)"
        }
        Obstacle::Keeper => {
            "a thread of its keeper did not come to rest (give the command again when the machine \
             has less to do)"
        }
        Obstacle::Output => {
            "the keeper holds output of it in plaintext until the log hash is checked (give the \
             command again after the next check)"
        }
    };
    format!("run {front} was not locked, and goes on: {why}")
}

/// Some milliseconds, as people read them.
pub fn time(elapsed_ms: f64) -> String {
    if elapsed_ms < 1e3 {
        format!("{elapsed_ms:.0} ms")
    } else {
        format!("{:.1} s", elapsed_ms / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: Locked = Locked {
        plaintext_bytes: 0,
        outside_bytes: 0,
        threads: 3,
        threads_in_calls: 0,
        elapsed_ms: 84.4,
    };

    #[test]
    fn a_line_says_what_can_be_read_and_what_not() {
        let line = |found| locked(4711, found);
        let start = "run 4711: locked in 84 ms; 3 threads stand still";
        assert_eq!(line(FOUND), format!("{start}; nothing of its private memory can be read"));
        assert_eq!(readable(4711, FOUND), None);
        let outside = line(Locked { outside_bytes: 12 << 20, ..FOUND });
        assert!(
            outside.ends_with(
                "can be read; 12 MiB of files and shared memory stay as they \
                                   were, which is never encrypted"
            ),
            "{outside}"
        );
        let called = line(Locked { threads_in_calls: 2, ..FOUND });
        assert!(called.starts_with(&format!("{start} (the registers of 2 stay with")), "{called}");
        let one = line(Locked { threads: 1, elapsed_ms: 1250.0, ..FOUND });
        assert!(one.starts_with("run 4711: locked in 1.2 s; 1 thread stands still;"), "{one}");
    }

    #[test]
    fn what_can_be_read_still_is_said_on_both_streams() {
        let found = Locked { plaintext_bytes: 4096, ..FOUND };
        let (line, sentence) =
            (locked(4711, found), readable(4711, found).expect("it is readable"));
        assert!(line.contains("; 4 KiB of its private memory can be read"), "{line}");
        assert!(!line.contains("nothing of"), "{line}");
        assert!(sentence.starts_with("run 4711 is locked, but 4 KiB of its"), "{sentence}");
    }

    #[test]
    fn every_obstacle_names_the_run_and_what_to_do() {
        let all = [
            Obstacle::Agents,
            Obstacle::Threads,
            Obstacle::Pages,
            Obstacle::Keeper,
            Obstacle::Output,
        ];
        let mut known = all.map(|obstacle| hindered(4711, obstacle)).to_vec();
        for text in &known {
            assert!(text.starts_with("run 4711 was not locked, and goes on: "), "{text}");
            assert!(text.ends_with(')') && !text.contains('\n') && !text.contains("  "), "{text}");
        }
        known.dedup();
        assert_eq!(known.len(), all.len());
    }
}
