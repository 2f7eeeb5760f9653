//! What a cold boot finds: the whole physical memory of a guest in which a program is protected,
//! dumped from outside. Its kernel must be newer than Debian 12's: that of its backports, which
//! `cargo xtask packages` unpacks, or `CASEMATE_GUEST_KERNEL=FILE`.

mod common;

use common::{Run, casemate, skip, traps};
use std::path::{Path, PathBuf};

/// Each of the program's pages has one.
const PAGES: u64 = 8192;
/// Pages of the Clear of 8 MiB.
const CLEAR_PAGES: u64 = 2048;
/// Copies that the program makes as it reads its command line.
const BESIDES: u64 = 16;

/// What one dump holds.
#[derive(Debug)]
struct Dump {
    markers: u64,
    keys: u64,
    is_locked: bool,
}

/// The dumps of a guest in one of the script's modes, for so many seconds, or until so many were
/// locked; none without what it needs.
fn dumps(mode: &str, limits: &[&str]) -> Option<Vec<Dump>> {
    let there = |file: &str| Path::new(file).exists();
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guest/vmlinuz-backports");
    let told = std::env::var("CASEMATE_GUEST_KERNEL").unwrap_or_else(|_| unpacked.to_owned());
    let kernel = Some(told).filter(|kernel| there(kernel));
    let (Some(kernel), true) = (kernel, there("/usr/bin/qemu-system-x86_64")) else {
        skip(
            "a cold boot",
            "needs qemu-system-x86, and a kernel of 6.8 or later (cargo xtask packages, as root)",
        );
        return None;
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/cold-boot.sh");
    let script = script.canonicalize().expect("an example of ours");
    let set = |name: &str, value: &Path| format!("{name}={}", value.display());
    let words = [
        "/usr/bin/env".to_owned(),
        format!("KERNEL={kernel}"),
        set("CASEMATE", &casemate()),
        set("TRAPS", &traps()),
        "/bin/sh".to_owned(),
        script.display().to_string(),
        mode.to_owned(),
    ];
    let limits = limits.iter().map(|&limit| limit.to_owned());
    let words = words.into_iter().chain(limits);
    let done = Run::plain(words).seconds(600).start().finish();
    done.good(mode);
    let mut is_locked = false;
    let mut dumps = Vec::new();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        if line == "locked" {
            is_locked = true;
            continue;
        }
        let mut numbers = line.split(',').skip(2).map(|word| word.parse().expect("a number"));
        let mut next = || numbers.next().expect("two numbers");
        dumps.push(Dump { markers: next(), keys: next(), is_locked });
    }
    assert!(dumps.len() > 1, "{}", String::from_utf8_lossy(&done.stdout));
    Some(dumps)
}

#[test]
fn without_protection_all_of_it_is_found() {
    let Some(dumps) = dumps("plain", &["6"]) else { return };
    assert!(dumps.iter().all(|dump| dump.markers >= PAGES && dump.keys == 0), "{dumps:?}");
}

/// No more than the Clear holds, wherever the guest's kernel has copies.
#[test]
fn no_more_is_found_than_the_clear_holds() {
    let Some(dumps) = dumps("run", &["6"]) else { return };
    let is_bounded = |dump: &Dump| dump.markers <= CLEAR_PAGES + BESIDES;
    assert!(dumps.iter().all(is_bounded), "{dumps:?}");
    assert!(dumps.iter().all(|dump| dump.markers > CLEAR_PAGES / 2), "vacuous: {dumps:?}");
}

#[test]
fn what_is_idle_is_not_found() {
    // Time for a guest that gets a fraction of a processor, in which two seconds are two all the
    // same.
    let Some(dumps) = dumps("idle", &["60"]) else { return };
    assert!(dumps.last().expect("some").markers <= BESIDES, "{dumps:?}");
    assert!(dumps[0].markers > CLEAR_PAGES, "vacuous: {dumps:?}");
}

/// Nothing of the program's memory, and no key.
#[test]
fn nothing_is_found_of_a_locked_run() {
    // On a busy machine the guest takes minutes to be locked.
    let Some(dumps) = dumps("lock", &["400", "3"]) else { return };
    let (locked, before): (Vec<_>, Vec<_>) = dumps.iter().partition(|dump| dump.is_locked);
    assert!(before.iter().any(|dump| dump.markers > 0 && dump.keys > 0), "vacuous: {before:?}");
    assert!(!locked.is_empty(), "it was not locked in time: {dumps:?}");
    for dump in locked {
        assert!(dump.markers == 0 && dump.keys == 0, "{dump:?}");
    }
}
