//! `--policy`: each process of a program that has a part of the Clear keeps to it, by the kernel's
//! own count, and others have the rest; pages of one that is idle leave.

mod common;

use common::run::{ALLOWANCE, Running};
use common::sampler::{self, Sampler};
use common::{Run, Scratch, casemate, poll, processes, traps};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// What the program that has a rule is called.
const NAME: &str = "limited";
const PART: u64 = 6 * MIB;
const MARKER: &str = "00112233445566778899aabbccddeeff";
/// What may be left of an idle program, as in `idle.rs`.
const LEFT: u64 = 2 * MIB;
const LIMIT: Duration = Duration::from_secs(120);

/// The trap program under the name that has a rule.
fn limited(scratch: &Scratch) -> PathBuf {
    let path = scratch.join(NAME);
    std::fs::copy(traps(), &path).expect("room for a copy");
    path
}

/// A file of one rule.
fn policy(scratch: &Scratch, rule: &str) -> String {
    let path = scratch.join("policy.toml");
    std::fs::write(&path, format!("[[program]]\n{rule}\n")).expect("room for a line");
    path.to_str().expect("a path of ours").to_owned()
}

fn with_part(scratch: &Scratch) -> String {
    policy(scratch, &format!("name = \"{NAME}\"\nclear = \"{}K\"", PART >> 10))
}

/// Runs a trap under that name, without a policy or with one, and says how much of it was seen.
fn seen(trap: &str, mib: u64, scratch: &Scratch, policy: Option<&str>) -> (u64, common::Done) {
    let (program, mib) = (limited(scratch), mib.to_string());
    let fixed = [program.as_os_str(), trap.as_ref(), "--mib".as_ref(), mib.as_ref()];
    let run = Run::plain(fixed).directory(scratch.path());
    let flags = policy.map_or(vec![], |policy| vec!["--policy", policy]);
    let flags = [&["--clear", "512M"], &flags[..]].concat();
    let running = run.protected(&flags, scratch.path()).without_ballast().start();
    let sampler = Sampler::start(running.pid, &casemate());
    let done = running.finish();
    done.good(trap);
    (sampler.finish().most_bytes, done)
}

fn keeps_to_its_part(trap: &str, mib: u64, processes: u64) {
    let scratch = Scratch::new("policy");
    let (all, _) = seen(trap, mib, &scratch, None);
    assert!(all > 3 * processes * PART, "{trap}: {all} bytes are nothing to keep");
    let (kept, done) = seen(trap, mib, &scratch, Some(&with_part(&scratch)));
    println!("{trap}: {} KiB without a part, {} with", all >> 10, kept >> 10);
    assert!(kept <= processes * (PART + ALLOWANCE), "{trap}: {kept} bytes\n{}", done.stderr);
    let statistics = done.really_paged(trap).statistics(trap);
    let program = &statistics.0["statistics"]["programs"][0];
    assert_eq!(program["program"], NAME);
    assert_eq!(program["clear_bytes_limit"], PART);
    assert!(program["processes"].as_u64() >= Some(processes), "{program}");
    let peak = program["clear_bytes_peak"].as_u64().expect("a number");
    assert!(peak <= PART + ALLOWANCE && peak > PART / 2, "{program}");
}

#[test]
fn a_program_keeps_to_its_part() {
    keeps_to_its_part("free-again", 48, 1);
}

#[test]
fn a_program_that_maps_in_bursts_keeps_to_its_part() {
    keeps_to_its_part("bursts", 48, 1);
}

/// One call fills more than the part.
#[test]
fn a_program_that_reads_files_keeps_to_its_part() {
    keeps_to_its_part("read-at-once", 64, 1);
}

/// The first process and its children.
#[test]
fn each_of_many_processes_has_the_part() {
    let scratch = Scratch::new("policy");
    let (_, done) = seen("children-grow-together", 240, &scratch, Some(&with_part(&scratch)));
    let statistics = done.really_paged("children").statistics("children");
    let program = &statistics.0["statistics"]["programs"][0];
    assert!(program["processes"].as_u64() >= Some(20), "{program}");
    let peak = program["clear_bytes_peak"].as_u64().expect("a number");
    assert!(peak <= PART + ALLOWANCE && peak > PART / 2, "{program}");
}

/// Two that fill their memory and sleep until their input ends: one of the name that has a rule.
fn two_asleep(mib: u64, flags: &[&str], scratch: &Scratch) -> Running {
    let marker = format!("marker --marker {MARKER} --mib {mib} --mode plain --seconds 300");
    let (program, other) = (limited(scratch), traps());
    let script = format!(
        "exec 3<&0; {} {marker} <&3 & {} {marker}; wait $!",
        program.display(),
        other.display()
    );
    let run = Run::plain(["/bin/sh", "-c", &script]).with_input();
    let mut run = run.protected(flags, scratch.path()).without_ballast().start();
    run.wait_until("both sleep", |run| (run.stdout().matches("ready").count() == 2).then_some(()));
    run
}

/// Anonymous memory of the processes that execute a file, by the kernel's count.
fn plaintext_of(run: &Running, file: &Path) -> u64 {
    let file = std::fs::canonicalize(file).expect("it is there");
    let all = processes::family(run.pid, &run.tag);
    let is_one = |pid: &&i32| {
        processes::executable(**pid).as_ref() == Some(&file) && !processes::agent(**pid)
    };
    all.iter().filter(is_one).map(|&pid| sampler::now(pid, &casemate())).sum()
}

#[test]
fn other_programs_have_what_is_left() {
    let scratch = Scratch::new("policy");
    let flags = ["--clear", "512M", "--policy", &with_part(&scratch)];
    let mut run = two_asleep(48, &flags, &scratch);
    let (its_own, others) = (plaintext_of(&run, &scratch.join(NAME)), plaintext_of(&run, &traps()));
    assert!(its_own <= PART + ALLOWANCE && its_own > 0, "{its_own} bytes");
    assert!(others >= 48 * MIB, "{others} bytes");
    run.input = None;
    run.finish().good("two programs").really_paged("two programs");
}

#[test]
fn pages_of_one_program_are_idle_and_of_another_not() {
    let scratch = Scratch::new("policy");
    let policy =
        policy(&scratch, &format!("path = \"{}\"\nidle = \"1s\"", limited(&scratch).display()));
    let mut run = two_asleep(24, &["--clear", "512M", "--policy", &policy], &scratch);
    let its_own = || plaintext_of(&run, &scratch.join(NAME));
    poll("its pages leave", LIMIT, || (its_own() < LEFT).then_some(()));
    let others = plaintext_of(&run, &traps());
    assert!(others >= 24 * MIB, "{others} bytes");
    run.input = None;
    let done = run.finish();
    let left = done.good("idle").statistics("idle").number("idle_evictions");
    assert!(left >= 24 * MIB / 4096 * 9 / 10, "{left} pages left for being idle");
}

/// A row for each rule: more than a pipe has room for.
#[test]
fn thousands_of_rules_are_told_of() {
    const RULES: usize = 3000;
    let scratch = Scratch::new("policy");
    let rules: String = (0..RULES)
        .map(|n| format!("[[program]]\nname = \"program-{n}\"\nclear = \"8M\"\n"))
        .collect();
    let path = scratch.join("policy.toml");
    std::fs::write(&path, rules).expect("room for it");
    let flags = ["--policy", path.to_str().expect("a path of ours")];
    let done = Run::plain(["/bin/true"]).seconds(60).protected(&flags, scratch.path()).finish();
    let statistics = done.good("true").statistics("true");
    let programs = statistics.0["statistics"]["programs"].as_array().expect("rows");
    assert_eq!(programs.len(), RULES);
    assert!(programs.iter().all(|program| program["processes"] == 0));
}
