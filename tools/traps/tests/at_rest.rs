//! A program under the pager that sleeps costs next to nothing: the pager looks at it about once a
//! second.

mod common;

use common::run::Running;
use common::{Run, Scratch, casemate, processes, traps};
use std::path::Path;
use std::time::Duration;

const MARKER: &str = "00112233445566778899aabbccddeeff";
/// For so long the program sleeps while it is looked at.
const SECONDS: u64 = 10;
/// A look of the watcher and of each agent every second, and as much again for what a busy machine
/// adds.
const MOST_SWITCHES_EACH: u64 = 2 * SECONDS;
/// Each look reads some counters of `/proc`, and one in several which processes there are.
const MOST_READS_EACH: u64 = 20 * SECONDS;
/// A thread that does not sleep takes a thousand. How long so few looks take is the machine's
/// doing: 1 to 5 were seen on different ones.
const MOST_TICKS: u64 = 30;

/// What the parts of a run that are ours have cost so far.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Times that a thread went to sleep. (That one is made to wait for a processor is the
    /// machine's doing.)
    switches: u64,
    /// Calls that read.
    reads: u64,
    /// User and system time, in hundredths of a second.
    ticks: u64,
    threads: usize,
    agents: u64,
}

fn number_after(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

fn cost(run: &Running) -> Cost {
    let mut cost = Cost { switches: 0, reads: 0, ticks: 0, threads: 0, agents: 0 };
    let is_ours = |pid: &i32| {
        let runs_casemate = processes::executable(*pid).is_some_and(|path| path == casemate());
        processes::alive(*pid) && (runs_casemate || processes::agent(*pid))
    };
    for pid in run.family().into_iter().filter(is_ours) {
        cost.agents += u64::from(processes::agent(pid));
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
        for task in tasks.map(|task| task.expect("an entry").path()) {
            let read = |file| std::fs::read_to_string(task.join(file)).expect("it lives");
            let (status, stat) = (read("status"), read("stat"));
            cost.switches += number_after(&status, "voluntary_ctxt_switches:");
            cost.reads += number_after(&read("io"), "syscr:");
            let fields = stat.rsplit_once(") ").expect("the kernel's form").1.split(' ');
            cost.ticks +=
                fields.skip(11).take(2).map(|n| n.parse::<u64>().expect("ticks")).sum::<u64>();
            cost.threads += 1;
        }
    }
    cost
}

/// Pages, then sleeps until its input ends; `wrap` makes the command of a program and its words.
fn sleeps_at_no_cost(what: &str, wrap: impl FnOnce(&Path, &[&str]) -> Run) {
    let scratch = Scratch::new("rest");
    let words = ["marker", "--marker", MARKER, "--mib", "48", "--seconds", "200"];
    let run = wrap(&traps(), &words).with_input();
    let mut run = run.protected(&["--clear", "8M"], scratch.path()).start();
    run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
    // What it has just touched is evicted, and the last of it is looked at.
    std::thread::sleep(Duration::from_secs(2));
    let before = cost(&run);
    std::thread::sleep(Duration::from_secs(SECONDS));
    let after = cost(&run);
    let (switches, ticks) = (after.switches - before.switches, after.ticks - before.ticks);
    let reads = after.reads - before.reads;
    println!(
        "{what}: {switches} switches, {reads} reads, {ticks} ticks, {} threads",
        after.threads
    );
    assert!(before.threads > 4 && before.agents > 0, "{what}: {before:?} is not all of ours");
    let most = MOST_SWITCHES_EACH * (1 + after.agents);
    assert!(switches <= most, "{what}: {switches} switches in {SECONDS} s");
    let most = MOST_READS_EACH * (1 + after.agents);
    assert!(reads > 0 && reads <= most, "{what}: {reads} reads in {SECONDS} s");
    assert!(ticks <= MOST_TICKS, "{what}: {ticks} hundredths of a second in {SECONDS} s");
    run.input = None;
    run.finish().good(what).really_paged(what);
}

#[test]
fn one_process_that_sleeps() {
    sleeps_at_no_cost("one process", |program, words| {
        Run::plain([program.as_os_str()].into_iter().chain(words.iter().map(AsRef::as_ref)))
    });
}

/// A shell that waits for it is under the pager as well, and there is a third that does nothing at
/// all.
#[test]
fn a_family_that_sleeps() {
    sleeps_at_no_cost("a family", |program, words| {
        let script = format!("sleep 300 & {} {}; kill %1", program.display(), words.join(" "));
        Run::plain(["/bin/bash", "-c", &script])
    });
}
