//! The keeper needs more than a program that it protects: it raises its own limits, and leaves the
//! program's.

mod common;

use common::keeper::steady_oracle;
use common::{Json, Run, Scratch, casemate, root, skip, traps};
use std::time::{Duration, Instant};

/// A shell that sets a limit and runs `words` under the pager.
fn limited(limit: &str, words: &str, scratch: &Scratch) -> common::Done {
    limited_with(limit, "--clear 8M", words, scratch)
}

fn limited_with(limit: &str, flags: &str, words: &str, scratch: &Scratch) -> common::Done {
    let json = scratch.join("stats.json");
    let script = format!(
        "{limit}; exec {} run {flags} --json={} -- {words}",
        casemate().display(),
        json.display()
    );
    Run::plain(["/bin/bash", "-c", &script]).with_ballast().finish()
}

#[test]
fn soft_limits_are_the_programs_alone() {
    let scratch = Scratch::new("limits");
    let traps = traps();
    for (limit, asked, expected) in [
        ("ulimit -Sn 20", "ulimit -n", "20"),
        // Of 512 bytes, as a shell has it; of KiB.
        ("ulimit -Sf 8", "ulimit -f", "8"),
        ("ulimit -Sv 4000000", "ulimit -v", "4000000"),
        ("ulimit -Sd 3000000", "ulimit -d", "3000000"),
        ("ulimit -St 500", "ulimit -t", "500"),
        // Signals that wait, and timers.
        ("ulimit -i 0", "ulimit -i", "0"),
    ] {
        let words = format!("/bin/bash -c '{asked}; exec {} fork --mib 48'", traps.display());
        let done = limited(limit, &words, &scratch);
        done.good(limit);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(said.lines().next(), Some(expected), "{limit}: the program's own: {said}");
        assert!(said.ends_with("ok fork\n"), "{limit}: {said}");
    }
}

#[test]
fn a_hard_limit_that_is_too_low_is_named() {
    let scratch = Scratch::new("hard");
    let done = limited("ulimit -n 20", "true", &scratch);
    assert_eq!(done.code, 122, "{}", done.stderr);
    assert!(done.stderr.contains("the hard limit is 20 open files"), "{}", done.stderr);
    // Of 1024 bytes.
    let fork = format!("{} fork --mib 48", traps().display());
    let done = limited("ulimit -f 100", &fork, &scratch);
    assert_eq!(done.code, 123, "{}", done.stderr);
    assert!(
        done.stderr.contains("the hard limit is 102400 bytes of a file, `ulimit -f`"),
        "{}",
        done.stderr
    );
    // It was not tried again and again, while the program goes on in plaintext.
    let peak = Json::read(&scratch.join("stats.json")).number("clear_bytes_peak");
    assert!(peak <= 2 << 20, "{peak} bytes of plaintext meanwhile");
}

/// Children of a shell that fill memory, sleep, and look at it: what each ends with is printed.
const CHILDREN: &str = r#"
for i in 1 2 3 4 5 6 7 8; do
    perl -e '$x = "abcdefgh" x 400000; $s = unpack("%32C*", $x); select(undef, undef, undef, 0.5);
        exit($s == unpack("%32C*", $x) ? 0 : 3)' &
    p="$p $!"
done
for k in $p; do wait $k; echo "status $?"; done
"#;

/// With fewer descriptors than it needs the keeper must not take what it cannot open for what has
/// ended: the run ends as a plain one, or with the limit named.
#[test]
fn children_see_no_shortage_of_descriptors() {
    let scratch = Scratch::new("descriptors");
    let script = scratch.join("children.sh");
    std::fs::write(&script, CHILDREN).expect("a script");
    let words = format!("/bin/sh {}", script.display());
    let (mut named, mut whole) = (0, 0);
    for limit in (60..=140).step_by(4).chain([1024]) {
        let done = limited(&format!("ulimit -n {limit}"), &words, &scratch);
        let said = String::from_utf8_lossy(&done.stdout);
        if done.code == 122 {
            let name = format!("the hard limit is {limit} open files, `ulimit -n`");
            assert!(done.stderr.contains(&name), "{limit}: {}", done.stderr);
            named += 1;
            continue;
        }
        assert_eq!(said, "status 0\n".repeat(8), "{limit}: {}", done.stderr);
        done.good(&format!("{limit} descriptors"));
        assert!(!done.stderr.contains("EXCEEDED"), "{limit}: {}", done.stderr);
        whole += 1;
    }
    assert!(named > 0 && whole > 0, "{named} named, {whole} whole");
}

/// A program whose calls cannot be heard for want of a descriptor is killed. That is told as the
/// shortage that it is, and not as an end of the program's own.
#[test]
fn a_program_that_cannot_be_heard_has_not_ended_by_itself() {
    let scratch = Scratch::new("unheard");
    let words = format!("{} fork --mib 8", traps().display());
    let mut named = 0;
    // Which of them are too low depends on how many processors there are.
    for limit in 56..=100 {
        let asked = format!("ulimit -n {limit}");
        let done = limited_with(&asked, "--clear 3M --bound lazy", &words, &scratch);
        if done.code == 122 {
            let name = format!("the hard limit is {limit} open files, `ulimit -n`");
            assert!(done.stderr.contains(&name), "{limit}: {}", done.stderr);
            named += 1;
        } else {
            done.good(&asked);
        }
    }
    assert!(named > 0, "no limit was too low");
}

/// A process of the same user, also one of the run, may lower the limits of the keeper and of the
/// front process: then they can open nothing, and do not know what lives.
#[test]
fn a_part_of_ours_that_can_open_nothing_ends_the_run() {
    const SOON: Duration = Duration::from_secs(20);
    if !root() {
        return skip("own limits", "only root may find the keeper");
    }
    let scratch = Scratch::new("lowered");
    for of_keeper in [true, false] {
        let program = steady_oracle(2_000_000_000, 5, &[], &scratch);
        let mut run = program.seconds(120).start();
        run.hostile = true;
        let keeper = run.busy_keeper(20);
        let (family, programs) = (run.family(), run.programs());
        let limited = if of_keeper { keeper } else { run.pid };
        let few = libc::rlimit64 { rlim_cur: 10, rlim_max: 10 };
        // SAFETY: one live block is read.
        let r = unsafe {
            libc::prlimit64(limited, libc::RLIMIT_NOFILE, &raw const few, std::ptr::null_mut())
        };
        assert_eq!(r, 0, "{}", std::io::Error::last_os_error());
        if !of_keeper {
            // The front process opens something only when there is something to do.
            for pid in programs {
                // SAFETY: signals a process of ours.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
        let began = Instant::now();
        let done = run.finish();
        let took = began.elapsed();
        assert!(took < SOON, "it took {took:?} to end");
        let expected = if of_keeper { 122 } else { 128 + libc::SIGKILL };
        assert_eq!(done.code, expected, "{}", done.stderr);
        common::keeper::assert_all_die(&family, "a limit that was lowered");
    }
}
