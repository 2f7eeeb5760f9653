//! Where plaintext or ciphertext may go: swap, core files, the swap file's io_uring.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::{Check, read};
use crate::sys::probe;

/// Everything about storage.
pub fn checks(checks: &mut Vec<Check>) {
    checks.push(match probe::io_uring() {
        Ok(()) => Check::ok("io-uring", "available for --swap"),
        Err(error) => Check::warn(
            "io-uring",
            format!("not available ({error}); only --swap needs it"),
            "sudo sysctl -w kernel.io_uring_disabled=0 (in containers: the seccomp profile)",
        ),
    });
    checks.push(host_swap());
    checks.push(core_files());
}

/// The Clear is ordinary memory, and the kernel may swap it out: to where?
fn host_swap() -> Check {
    const ID: &str = "host-swap";
    let swaps = read("/proc/swaps").unwrap_or_default();
    let areas: Vec<&str> =
        swaps.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next()).collect();
    if areas.is_empty() {
        return Check::ok(ID, "none");
    }
    let open: Vec<&str> = areas.iter().copied().filter(|area| !encrypted(area)).collect();
    if open.is_empty() {
        return Check::ok(ID, format!("encrypted ({})", areas.join(", ")));
    }
    let open = open.join(" ");
    Check::warn(
        ID,
        format!("{open}: not encrypted, and the kernel may write the Clear there"),
        format!("sudo swapoff {open} (and use --swap), or put the swap on dm-crypt"),
    )
}

/// Whether a swap area is a device-mapper device of dm-crypt.
fn encrypted(area: &str) -> bool {
    let real = fs::canonicalize(area).unwrap_or_else(|_| Path::new(area).to_owned());
    let Some(name) = real.file_name() else { return false };
    let uuid = Path::new("/sys/block").join(name).join("dm/uuid");
    fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("CRYPT-"))
}

fn core_files() -> Check {
    const ID: &str = "core-files";
    let pattern = read("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let limit = getrlimit(Resource::Core).current;
    if pattern.starts_with('|') {
        return Check::warn(
            ID,
            format!("a program's core goes to {}, in plain", pattern.trim_start_matches('|')),
            "sudo sysctl -w kernel.core_pattern=core, and ulimit -c 0",
        );
    }
    match limit {
        Some(0) => Check::ok(ID, "none are written (ulimit -c 0)"),
        _ => Check::warn(
            ID,
            "a program that crashes leaves its memory in a core file, in plain",
            "ulimit -c 0",
        ),
    }
}
