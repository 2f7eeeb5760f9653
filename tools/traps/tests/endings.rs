//! When a run has ended: with its last process, however that came to be.

mod common;

use common::{Done, Run, Scratch, processes, traps};
use std::path::Path;
use std::time::{Duration, Instant};

/// Each round the run could be taken for ended at a dozen moments.
fn goes_on_until_the_last_one_ends(mode: &str, flags: &[&str]) {
    const ROUNDS: u32 = 20;
    let scratch = Scratch::new("endings");
    let words = ["generations", "--depth", "12", "--mode", mode];
    let program = Run::plain([traps().to_str().expect("a path of ours")].into_iter().chain(words));
    for _ in 0..ROUNDS {
        let run = program.protected(flags, scratch.path()).with_input().without_ballast();
        let mut run = run.seconds(60).start();
        let waits = |stdout: String| stdout.contains("the last one waits").then_some(());
        run.wait_until("the last one waits", |run| waits(run.stdout()));
        run.input = None;
        let done = run.finish();
        done.good("generations");
        let stdout = String::from_utf8_lossy(&done.stdout);
        assert!(stdout.contains("the last one lives"), "{stdout}{}", done.stderr);
    }
}

#[test]
fn a_daemon_outlives_those_that_begot_it() {
    goes_on_until_the_last_one_ends("plain", &[]);
}

#[test]
fn a_daemon_whose_name_is_no_text_outlives_those_that_begot_it() {
    goes_on_until_the_last_one_ends("odd-name", &[]);
}

#[test]
fn a_daemon_under_a_strict_bound_outlives_those_that_begot_it() {
    goes_on_until_the_last_one_ends("plain", &["--clear", "16M"]);
}

/// As `pkill casemate` and `pkill -f 'casemate run'` send it: to each process of the run that has
/// that in its name, or its arguments, and not to the program.
#[test]
fn a_signal_by_name_or_by_pattern_reaches_the_program() {
    const ROUNDS: u32 = 10;
    let has_name = |file: &str, name: &str| {
        let text = std::fs::read(file).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ").contains(name)
    };
    let scratch = Scratch::new("by-name");
    for (file, name) in [("comm", "casemate"), ("cmdline", "casemate run")] {
        for _ in 0..ROUNDS {
            let run = Run::plain(["/bin/sleep", "60"]).protected(&[], scratch.path());
            let mut run = run.seconds(30).start();
            run.wait_until("the program runs", |run| {
                let sleeps = |pid: &i32| has_name(&format!("/proc/{pid}/comm"), "sleep");
                processes::family(run.pid, &run.tag).iter().any(sleeps).then_some(())
            });
            let mut all = processes::family(run.pid, &run.tag);
            all.sort_unstable();
            all.retain(|pid| has_name(&format!("/proc/{pid}/{file}"), name));
            assert!(all.contains(&run.pid), "{name} is in the run's {file}");
            for pid in all {
                // SAFETY: signals a process of ours.
                unsafe { libc::kill(pid, libc::SIGTERM) };
            }
            let done = run.finish();
            assert_eq!(done.code, 128 + libc::SIGTERM, "{file}: {}", done.stderr);
        }
    }
}

/// Children that are killed while they get their agents. An agent that the keeper does not meet
/// waits for ten seconds, and a run that waited for it would end as late.
#[test]
fn agents_of_killed_children_do_not_hold_the_run() {
    const WHAT: &str = "killed-children";
    const SCRIPT: &str = r#"
        $| = 1; srand 7;
        my $memory = 'x' x (8 << 20);
        for my $round (1 .. 30) {
            my $child = fork() // die "fork: $!";
            if (!$child) { substr($memory, int(rand(length $memory)), 1) = 'y' while 1 }
            select undef, undef, undef, rand 0.003;
            kill 9, $child;
            waitpid($child, 0) == $child && $? == 9 or die "a child ended with $?";
        }
        print "all are killed\n";
    "#;
    const SOON: Duration = Duration::from_secs(5);
    let scratch = Scratch::new("endings");
    let program = Run::plain(["perl", "-e", SCRIPT]).without_ballast();
    let mut armed = 0;
    for _ in 0..3 {
        let run = program.protected(&["--clear", "8M", "--bound", "lazy"], scratch.path());
        let mut run = run.without_ballast().seconds(120).start();
        run.wait_until("all are killed", |run| {
            run.stdout().contains("all are killed").then_some(())
        });
        let killed = Instant::now();
        let done = run.finish();
        let late = killed.elapsed();
        armed += done.good(WHAT).statistics(WHAT).number("processes_armed");
        assert!(late < SOON, "the run ended {late:?} after its program");
    }
    assert!(armed > 6, "vacuous: {armed} had agents");
}

/// Processes one after the other, which store 34 MiB each in a Crypt of 80.
#[test]
fn what_ended_processes_have_stored_does_not_fill_the_crypt() {
    const WHAT: &str = "ended-stored";
    const SCRIPT: &str = r#"
        for my $i (1 .. 20) {
            my $child = fork() // die "fork: $!";
            if (!$child) {
                my @pages = map { sprintf("%4000d", $i * $_) } 1 .. 10_000;
                $pages[$_ - 1] == $i * $_ or exit 1 for 1 .. 10_000;
                exit 0;
            }
            waitpid($child, 0) == $child && $? == 0 or die "child $i ended with $?";
        }
        print "all were right\n";
    "#;
    let scratch = Scratch::new("endings");
    let program = Run::plain(["perl", "-e", SCRIPT]).without_ballast();
    for bound in ["strict", "lazy"] {
        let flags = ["--clear", "8M", "--crypt-limit", "80M", "--bound", bound];
        let done = program.protected(&flags, scratch.path()).without_ballast().seconds(120).start();
        let done = done.finish();
        let statistics = done.good(WHAT).statistics(WHAT);
        let stored_bytes = statistics.number("pages_out") * 4096;
        assert!(stored_bytes > 5 * (80 << 20), "vacuous: {stored_bytes} bytes were stored");
    }
}

/// Runs of which 100 children each live at once, four of them on however few processors. All wait
/// for their agents before they get what they ask for, however long that takes.
#[test]
fn runs_side_by_side_keep_their_bounds() {
    const WHAT: &str = "bounds-side-by-side";
    const SCRIPT: &str = r#"
        my $bad = 0;
        for my $i (1 .. 100) {
            my $child = fork() // die "fork: $!";
            if (!$child) {
                my $text = "child $i " x 130_000;
                select(undef, undef, undef, 0.2);
                exit($text eq "child $i " x 130_000 ? 0 : 1);
            }
        }
        while (wait() > 0) { $bad++ if $? }
        print "all have ended, $bad of them wrongly\n";
    "#;
    let scratch = Scratch::new("bounds-side-by-side");
    for done in four_at_once(SCRIPT, 120, scratch.path()) {
        let statistics = done.good(WHAT).kept_its_bound(WHAT).statistics(WHAT);
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("all have ended, 0 of"), "{said}");
        assert!(statistics.number("processes_armed") > 50, "vacuous: few had agents");
        assert_eq!(statistics.number("grown_without_agent"), 0);
    }
}

/// Runs whose processes all need agents at once, four of them on however few processors: each
/// keeper waits for programs to make its calls, and must leave the processors to them.
#[test]
fn runs_side_by_side_get_on() {
    const WHAT: &str = "side-by-side";
    const SCRIPT: &str = r#"
        my $bad = 0;
        for my $i (1 .. 150) {
            my $child = fork() // die "fork: $!";
            if (!$child) {
                my $text = "child $i " x 130_000;
                exit($text eq "child $i " x 130_000 ? 0 : 1);
            }
            if ($i % 10 == 0) { while (wait() > 0) { $bad++ if $? } }
        }
        print "all have ended, $bad of them wrongly\n";
    "#;
    let scratch = Scratch::new("side-by-side");
    for done in four_at_once(SCRIPT, 60, scratch.path()) {
        let armed = done.good(WHAT).statistics(WHAT).number("processes_armed");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("all have ended, 0 of"), "{said}");
        assert!(armed > 10, "vacuous: {armed} had agents");
    }
}

/// Runs a script of Perl's four times at once, in a Clear of 8 MiB each.
fn four_at_once(script: &str, seconds: u64, directory: &Path) -> Vec<Done> {
    let program = Run::plain(["perl", "-e", script]).without_ballast();
    let start = |_| {
        let run = program.protected(&["--clear", "8M"], directory);
        run.without_ballast().seconds(seconds).start()
    };
    let runs: Vec<_> = (0..4).map(start).collect();
    runs.into_iter().map(|run| run.finish()).collect()
}
