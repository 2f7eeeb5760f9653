//! A whole machine as one protected program: what its kernel and its programs hold is private
//! memory of QEMU's.

mod common;

use common::run::ALLOWANCE;
use common::sampler::Sampler;
use common::{Done, Run, Scratch, casemate, skip};
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
/// Of the guest's 128 MiB and QEMU's own.
const CLEAR: u64 = 48 * MIB;
/// `examples/guest.sh` found no kernel.
const NO_KERNEL: i32 = 3;
/// Less is protected than is required.
const TOO_LITTLE: i32 = 123;

fn guest(ram: &str) -> Option<Run> {
    let there = |file: &str| Path::new(file).exists();
    if !there("/usr/bin/qemu-system-x86_64") || !there("/usr/bin/busybox") {
        skip("a guest", "needs qemu-system-x86 and busybox-static");
        return None;
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/guest.sh");
    let script = script.canonicalize().expect("an example of ours");
    let words = ["/usr/bin/env", ram, "/bin/sh", script.to_str().expect("a plain path")];
    Some(Run::plain(words).seconds(300))
}

/// The script runs the guest under these words. (Not `Run::protected`: only QEMU is protected.)
fn under(run: Run, words: &[&str]) -> Run {
    let casemate = casemate();
    let head = [casemate.to_str().expect("a plain path"), "run", "--clear", "48M"];
    run.with_words(&head).with_words(words).with_words(&["--"])
}

fn is_without_kernel(done: &Done) -> bool {
    let is = done.code == NO_KERNEL;
    if is {
        skip("a guest", "needs a kernel to boot (cargo xtask packages)");
    }
    is
}

#[test]
fn a_guest_boots_works_forks_and_powers_off() {
    let Some(plain) = guest("RAM=-m 128M") else { return };
    let plain = plain.start().finish();
    if is_without_kernel(&plain) {
        return;
    }
    plain.good("the guest alone");
    let text = String::from_utf8_lossy(&plain.stdout);
    assert!(text.contains("child 4 is right") && text.contains("all of it is right"), "{text}");

    let scratch = Scratch::new("guest");
    let report = scratch.join("report");
    let words = [&format!("--json={}", report.display()), "--require-protected", "80%"];
    let run = under(guest("RAM=-m 128M").expect("as before"), &words).start();
    let sampler = Sampler::start_sparing(CLEAR, run.pid, &casemate());
    let done = run.finish();
    let seen = sampler.finish();
    done.good("the guest");
    assert_eq!(done.stdout, plain.stdout);
    assert!(seen.looks > 20 && seen.most_bytes > CLEAR / 2, "{seen:?}");
    assert!(seen.most_bytes <= CLEAR + ALLOWANCE, "{seen:?}\n{}", done.stderr);
    let report = common::Json::read(&report);
    let statistics = common::Json(report.0["statistics"].clone());
    assert_eq!(statistics.number("violations"), 0);
    assert!(statistics.number("protected_bytes_peak") > 128 * MIB, "{}", statistics.0);
    assert!(statistics.number("pages_in") > 4096, "{}", statistics.0);
}

/// Shared memory, huge or not, is no private memory: such a guest is not run in plaintext.
#[test]
fn a_guest_whose_memory_is_a_file_is_refused() {
    for backend in [
        "memory-backend-memfd,id=m,size=128M",
        "memory-backend-file,id=m,size=128M,mem-path=/dev/shm,share=on",
        "memory-backend-file,id=m,size=128M,mem-path=/dev/shm,share=off",
    ] {
        let ram = format!("RAM=-m 128M -object {backend} -machine memory-backend=m");
        let Some(run) = guest(&ram) else { return };
        let done = under(run, &["--require-protected", "80%"]).start().finish();
        if is_without_kernel(&done) {
            return;
        }
        assert_eq!(done.code, TOO_LITTLE, "{backend}: {}", done.stderr);
        assert!(done.stderr.contains("--require-protected"), "{backend}: {}", done.stderr);
        assert!(done.stdout.is_empty(), "it ran: {}", String::from_utf8_lossy(&done.stdout));
    }
}
