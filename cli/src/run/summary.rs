//! The human summary of a run: few lines, only what matters.

use std::ffi::OsString;
use std::fmt::Write;

use casemate_keeper::{
    CLEAR_ALLOWANCE_BYTES, Ending, FailingFrame, OnViolation, Outcome, ProgramUse, Statistics,
};

use super::outside;
use crate::size::{self, format as size};

/// The summary of a program that was started, for stderr.
pub fn summary(command: &[OsString], outcome: &Outcome, policy: OnViolation) -> String {
    let s = &outcome.statistics;
    let mut text = String::new();
    let name = command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let processes = match s.processes_seen {
        0 | 1 => String::new(),
        n => format!(", {n} processes"),
    };
    let _ = writeln!(
        text,
        "casemate: {name} {} after {}{processes}",
        ending(&outcome.ending, policy),
        seconds(s.elapsed_s)
    );
    row(&mut text, "memory", &memory(s));
    let mut label = "outside";
    for line in outside::lines(s) {
        row(&mut text, std::mem::take(&mut label), &line);
    }
    row(&mut text, "plaintext", &plaintext(&outcome.ending, s));
    let mut label = "programs";
    for program in &s.programs {
        row(&mut text, std::mem::take(&mut label), &used(program));
    }
    if s.pages_out > 0 || s.crypt_bytes_peak > 0 || s.swap_bytes_peak > 0 {
        row(&mut text, "ciphertext", &ciphertext(s));
        row(&mut text, "pages", &pages(s));
    }
    if s.faults > 0 {
        row(&mut text, "faults", &faults(s));
    }
    if s.processes_unannounced + s.listeners_refused + s.userfaults_refused + s.grown_without_agent
        > 0
    {
        row(&mut text, "calls", &calls(s));
    }
    row(&mut text, "integrity", &integrity(s));
    if s.output_bytes_given_up > 0 {
        let given_up =
            format!("{} given up: no check passed after it", size(s.output_bytes_given_up));
        row(&mut text, "output", &given_up);
    }
    if s.healed_bits > 0 || s.scrubbed_pages > 0 {
        row(&mut text, "stored", &stored(s));
    }
    if s.key_rotations + s.resealed_pages + s.root_reveals > 0 {
        row(&mut text, "keys", &keys(s));
    }
    for frame in &s.failing_frames {
        row(&mut text, "failing", &failing(frame));
    }
    text
}

fn row(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {label:<11}{value}");
}

fn ending(ending: &Ending, policy: OnViolation) -> String {
    match ending {
        Ending::Exited { code: 0 } => "ended well".to_owned(),
        Ending::Exited { code } => format!("ended with code {code}"),
        Ending::Signaled { signal } => format!("was ended by signal {signal}"),
        // It may have lived on after SIGBUS, and what its end was is not told.
        Ending::Violation { .. } if policy == OnViolation::Sigbus => "ended".to_owned(),
        Ending::NotExecuted { .. } => "was not executed".to_owned(),
        Ending::Violation { .. }
        | Ending::StoreFailed { .. }
        | Ending::Unprotectable { .. }
        | Ending::TooLittleProtected { .. }
        | Ending::KeeperFailed { .. } => "was stopped".to_owned(),
    }
}

fn memory(s: &Statistics) -> String {
    let heap = match s.unprotectable_bytes_peak {
        0 => String::new(),
        bytes => format!(", {} of heap", size(bytes)),
    };
    format!(
        "{} protected, {} unprotected (files, shared memory{heap}) at most",
        size(s.protected_bytes_peak),
        size(s.unprotected_bytes_peak)
    )
}

fn plaintext(ending: &Ending, s: &Statistics) -> String {
    let (peak, limit) = size::apart(s.clear_bytes_peak, s.clear_bytes_limit);
    let mut text = format!("{peak} at most; limit {limit}");
    if s.clear_size_changes > 0 {
        let (least, last) = (size(s.clear_bytes_limit_least), size(s.clear_bytes_limit_last));
        let _ = write!(
            text,
            ", changed {}: {least} at least, {last} last",
            times(s.clear_size_changes)
        );
    }
    let exceeded = s.clear_bytes_excess_peak > CLEAR_ALLOWANCE_BYTES;
    if exceeded {
        let _ = write!(
            text,
            " (EXCEEDED by {}: docs/limits.md has the cases that do this; any other is a defect of \
             casemate)",
            size(s.clear_bytes_excess_peak)
        );
    }
    // A program that was stopped might yet have grown.
    let ended = matches!(ending, Ending::Exited { .. } | Ending::Signaled { .. });
    if ended && !exceeded && s.pages_out == 0 && s.processes_armed == 0 {
        text.push_str("; all of it fitted, nothing had to be encrypted");
    }
    text
}

/// What came of a rule for a program.
fn used(program: &ProgramUse) -> String {
    let name = &program.program;
    let processes = match program.processes {
        0 => return format!("{name}: no process of it came under the pager"),
        1 => "1 process".to_owned(),
        n => format!("{} processes", count(n)),
    };
    match program.clear_bytes_limit {
        None => format!("{name}: {processes}"),
        Some(most) => {
            let (peak, limit) = size::apart(program.clear_bytes_peak, most);
            let beyond = program.clear_bytes_peak.saturating_sub(most);
            let passed = if beyond > CLEAR_ALLOWANCE_BYTES { ", passed" } else { "" };
            format!("{name}: {processes}, {peak} of plaintext at most; limit {limit} each{passed}")
        }
    }
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", count(n)) }
}

fn ciphertext(s: &Statistics) -> String {
    let mut text = format!("{} in memory", size(s.crypt_bytes_peak));
    if s.swap_bytes_peak > 0 {
        let _ = write!(text, ", {} in the swap file", size(s.swap_bytes_peak));
    }
    let _ = write!(text, ", {} of metadata", size(s.metadata_bytes_peak));
    text
}

fn pages(s: &Statistics) -> String {
    let mut text = format!("{} in, {} out", count(s.pages_in), count(s.pages_out));
    for (n, what) in [
        (s.zero_evictions, "zero"),
        (s.clean_evictions, "clean"),
        (s.idle_evictions, "idle"),
        (s.readahead_pages, "read ahead"),
    ] {
        if n > 0 {
            let _ = write!(text, ", {} {what}", count(n));
        }
    }
    text
}

fn faults(s: &Statistics) -> String {
    let l = &s.fault_latency;
    format!(
        "{}, median {}, 99 % {}, slowest {}; keeper used {} of CPU",
        count(s.faults),
        micros(l.p50_us),
        micros(l.p99_us),
        micros(l.max_us),
        seconds(s.keeper_cpu_s)
    )
}

/// What the keeper did not hear, and what the program could not.
fn calls(s: &Statistics) -> String {
    let mut parts = Vec::new();
    if s.processes_unannounced > 0 {
        let n = count(s.processes_unannounced);
        let why = &s.processes_unannounced_why;
        parts.push(format!("of {n} processes not announced ({why})"));
    }
    if s.listeners_refused > 0 {
        let n = count(s.listeners_refused);
        parts.push(format!("{n} listeners of the program's own refused (EBUSY)"));
    }
    if s.userfaults_refused > 0 {
        let n = count(s.userfaults_refused);
        parts
            .push(format!("{n} registrations with the program's own userfaultfds refused (EBUSY)"));
    }
    if s.grown_without_agent > 0 {
        let n = count(s.grown_without_agent);
        parts.push(format!("{n} got memory before their process could be protected"));
    }
    parts.join("; ")
}

fn integrity(s: &Statistics) -> String {
    match s.violations {
        0 if s.pages_out == 0 => "nothing left the plaintext, so nothing was to verify".to_owned(),
        0 if s.pages_in == 0 => "nothing came back, so nothing was to verify".to_owned(),
        0 if s.checks > 0 => {
            let longest = micros(s.check_us_peak as f64);
            let checks = if s.checks == 1 { "check" } else { "checks" };
            format!("verified by {} {checks} of {longest} at most; no violation", count(s.checks))
        }
        0 => "every page that came back was verified; no violation".to_owned(),
        1 => "1 VIOLATION".to_owned(),
        n => format!("{} VIOLATIONS", count(n)),
    }
}

/// What became of pages while they were stored.
fn stored(s: &Statistics) -> String {
    let mut parts = Vec::new();
    if s.scrubbed_pages > 0 {
        parts.push(format!("{} pages verified by the scrubber", count(s.scrubbed_pages)));
    }
    if s.healed_bits > 0 {
        let bits = if s.healed_bits == 1 { "bit" } else { "bits" };
        let pages = if s.healed_pages == 1 { "page" } else { "pages" };
        let (n, of) = (count(s.healed_bits), count(s.healed_pages));
        parts.push(format!("{n} flipped {bits} in {of} {pages} put right"));
    }
    parts.join(", ")
}

/// What became of keys.
fn keys(s: &Statistics) -> String {
    let mut parts = Vec::new();
    if s.key_rotations + s.resealed_pages > 0 {
        let pages = count(s.resealed_pages);
        parts.push(format!("rotated {}, {pages} pages sealed anew", times(s.key_rotations)));
    }
    if s.root_reveals > 0 {
        let slowest = micros(s.root_reveal_us_peak as f64);
        parts.push(format!("out of hiding {}, for {slowest} at most", times(s.root_reveals)));
    }
    parts.join(", ")
}

/// Memory that is likely to be broken.
fn failing(frame: &FailingFrame) -> String {
    let place = match frame.physical_address {
        Some(address) => format!("RAM at {address:#x}"),
        None => format!("the Crypt at {:#x}", frame.crypt_offset),
    };
    let times = times(frame.times);
    format!("{place}: {} bits flipped, {times}; test this memory", count(frame.bits))
}

/// `1234567` as `1,234,567`.
fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn micros(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.1} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => seconds(us / 1e6),
    }
}

fn seconds(s: f64) -> String {
    match s {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{:.0} min {:.0} s", (s / 60.0).floor(), s % 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_keeper::{UnprotectedKind, UnprotectedMemory};

    fn outcome() -> Outcome {
        let statistics = Statistics {
            elapsed_s: 12.34,
            processes_seen: 3,
            processes_armed: 1,
            faults: 1_234_567,
            pages_in: 900_000,
            pages_out: 1_000_000,
            zero_evictions: 10,
            protected_bytes_peak: 512 << 20,
            unprotected_bytes_peak: 14 << 20,
            clear_bytes_peak: 64 << 20,
            clear_bytes_limit: 64 << 20,
            crypt_bytes_peak: 448 << 20,
            metadata_bytes_peak: 3 << 20,
            ..Statistics::default()
        };
        Outcome { ending: Ending::Exited { code: 0 }, started: true, statistics }
    }

    #[test]
    fn says_protected_and_unprotected_and_stays_short() {
        let text = summary(&["sort".into()], &outcome(), OnViolation::Kill);
        assert!(text.contains("512 MiB protected, 14 MiB unprotected"), "{text}");
        assert!(text.contains("1,234,567"), "{text}");
        assert!(text.lines().count() <= 8, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_run_that_fitted_leaves_the_paging_out() {
        let mut fitted = outcome();
        fitted.statistics = Statistics { elapsed_s: 0.1, ..Statistics::default() };
        let text = summary(&["true".into()], &fitted, OnViolation::Kill);
        assert!(!text.contains("ciphertext") && !text.contains("faults"), "{text}");
    }

    #[test]
    fn heap_that_stays_in_plaintext_is_called_heap() {
        let mut left = outcome();
        left.statistics.unprotectable_bytes_peak = 5 << 20;
        let text = summary(&["sort".into()], &left, OnViolation::Kill);
        assert!(
            text.contains("14 MiB unprotected (files, shared memory, 5 MiB of heap)"),
            "{text}"
        );
    }

    #[test]
    fn what_is_outside_is_named_below_what_it_comes_to() {
        let mut named = outcome();
        named.statistics.unprotected_largest = vec![UnprotectedMemory {
            name: "/usr/lib/libpython3.11.so.1.0".to_owned(),
            kind: UnprotectedKind::PrivateFile,
            bytes: 9 << 20,
        }];
        let text = summary(&["python3".into()], &named, OnViolation::Kill);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("  memory"), "{text}");
        let wanted = "  outside    9 MiB /usr/lib/libpython3.11.so.1.0 (file, private)";
        assert_eq!(lines[2], wanted, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn what_is_not_announced_has_its_reason() {
        let mut unheard = outcome();
        unheard.statistics.processes_unannounced = 2;
        unheard.statistics.processes_unannounced_why = "error 16".to_owned();
        unheard.statistics.listeners_refused = 1;
        unheard.statistics.grown_without_agent = 3;
        unheard.statistics.userfaults_refused = 4;
        let text = summary(&["sort".into()], &unheard, OnViolation::Kill);
        assert!(text.contains("of 2 processes not announced (error 16); 1 listeners"), "{text}");
        assert!(text.contains("4 registrations with"), "{text}");
        assert!(text.contains("3 got memory before"), "{text}");
    }

    #[test]
    fn a_violation_is_loud() {
        let mut bad = outcome();
        bad.statistics.violations = 1;
        bad.ending = Ending::Violation { what: "page 7".to_owned() };
        let text = summary(&["sort".into()], &bad, OnViolation::Kill);
        assert!(text.contains("VIOLATION") && text.contains("was stopped"), "{text}");
    }

    #[test]
    fn bits_that_were_put_right_are_told_with_the_memory_that_fails_again() {
        let mut healed = outcome();
        let before = summary(&["sort".into()], &healed, OnViolation::Kill);
        assert!(!before.contains("stored") && !before.contains("failing"), "{before}");
        let s = &mut healed.statistics;
        (s.healed_bits, s.healed_pages, s.scrubbed_pages) = (1, 1, 0);
        let text = summary(&["sort".into()], &healed, OnViolation::Kill);
        assert!(text.contains("  stored     1 flipped bit in 1 page put right\n"), "{text}");
        let s = &mut healed.statistics;
        (s.healed_bits, s.healed_pages, s.scrubbed_pages) = (5, 4, 1000);
        let frame = |physical_address| FailingFrame {
            crypt_offset: 0x3000,
            physical_address,
            times: 2,
            bits: 3,
        };
        s.failing_frames = vec![frame(Some(0x12_3000)), frame(None)];
        let text = summary(&["sort".into()], &healed, OnViolation::Kill);
        let wanted = "  stored     1,000 pages verified by the scrubber, 5 flipped bits in 4 pages put right\n  \
             failing    RAM at 0x123000: 3 bits flipped, 2 times; test this memory\n  \
             failing    the Crypt at 0x3000: 3 bits flipped, 2 times; test this memory\n";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn a_bound_that_was_passed_by_little_is_seen_to_be_passed() {
        let mut over = outcome();
        over.statistics.clear_bytes_limit = 4 << 20;
        over.statistics.clear_bytes_peak = (4 << 20) + (256 << 10);
        over.statistics.clear_bytes_excess_peak = 256 << 10;
        let text = summary(&["sort".into()], &over, OnViolation::Kill);
        assert!(!text.contains("EXCEEDED"), "256 KiB more are promised: {text}");
        over.statistics.clear_bytes_peak += 4096;
        over.statistics.clear_bytes_excess_peak += 4096;
        let text = summary(&["sort".into()], &over, OnViolation::Kill);
        assert!(
            text.contains("4.3 MiB at most; limit 4 MiB (EXCEEDED by 260 KiB: docs/"),
            "{text}"
        );
        over.statistics.pages_out = 0;
        over.statistics.processes_armed = 0;
        let text = summary(&["sort".into()], &over, OnViolation::Kill);
        assert!(!text.contains("fitted"), "{text}");
    }

    #[test]
    fn sizes_that_were_changed_are_told_and_judged_one_by_one() {
        let mut changed = outcome();
        let s = &mut changed.statistics;
        (s.clear_bytes_limit_least, s.clear_bytes_limit_last) = (6 << 20, 32 << 20);
        (s.clear_size_changes, s.clear_bytes_excess_peak) = (3, 256 << 10);
        let text = summary(&["sort".into()], &changed, OnViolation::Kill);
        let wanted = "64 MiB at most; limit 64 MiB, changed 3 times: 6 MiB at least, 32 MiB last\n";
        assert!(text.contains(wanted), "{text}");
        // No more than the largest limit, but more than the one that was in force.
        changed.statistics.clear_bytes_excess_peak = 2 << 20;
        let text = summary(&["sort".into()], &changed, OnViolation::Kill);
        assert!(text.contains("32 MiB last (EXCEEDED by 2 MiB: docs/limits.md"), "{text}");
        changed.statistics.clear_size_changes = 1;
        let text = summary(&["sort".into()], &changed, OnViolation::Kill);
        assert!(text.contains("changed once: "), "{text}");
    }

    #[test]
    fn only_a_program_that_ended_by_itself_fitted() {
        let what = || "something".to_owned();
        let mut fitted = outcome();
        fitted.statistics =
            Statistics { clear_bytes_peak: 1, clear_bytes_limit: 2, ..Statistics::default() };
        for (ending, policy, fits) in [
            (Ending::Exited { code: 1 }, OnViolation::Kill, true),
            (Ending::Signaled { signal: 15 }, OnViolation::Kill, true),
            (Ending::StoreFailed { what: what() }, OnViolation::Kill, false),
            (Ending::Unprotectable { what: what() }, OnViolation::Kill, false),
            (Ending::KeeperFailed { what: what() }, OnViolation::Kill, false),
            (Ending::Violation { what: what() }, OnViolation::Sigbus, false),
        ] {
            fitted.ending = ending;
            let text = summary(&["true".into()], &fitted, policy);
            assert_eq!(text.contains("all of it fitted"), fits, "{text}");
            let stopped = !fits && policy == OnViolation::Kill;
            assert_eq!(text.contains("was stopped"), stopped, "{text}");
        }
    }

    #[test]
    fn what_left_the_plaintext_and_did_not_come_back_did_leave_it() {
        let mut gone = outcome();
        gone.statistics.pages_in = 0;
        let text = summary(&["sort".into()], &gone, OnViolation::Kill);
        assert!(!text.contains("nothing left the plaintext"), "{text}");
    }
}
