//! The Debian packages that the tests run or build with.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A file that the package brings, and the package.
const NEEDED: &[(&str, &str)] = &[
    ("/usr/bin/gcc", "gcc"),
    ("/usr/bin/make", "make"),
    ("/usr/include/stdio.h", "libc6-dev"),
    ("/usr/bin/cmake", "cmake"),
    ("/usr/bin/python3", "python3"),
    ("/usr/bin/perl", "perl"),
    ("/usr/bin/sqlite3", "sqlite3"),
    ("/usr/bin/xz", "xz-utils"),
    ("/usr/bin/zstd", "zstd"),
    ("/usr/bin/qemu-x86_64", "qemu-user"),
    ("/usr/bin/valgrind", "valgrind"),
    ("/usr/bin/redis-server", "redis-server"),
    ("/usr/bin/redis-benchmark", "redis-tools"),
    ("/usr/lib/postgresql", "postgresql"),
    ("/usr/bin/javac", "default-jdk-headless"),
    ("/usr/bin/node", "nodejs"),
    ("/usr/bin/setpriv", "util-linux"),
    ("/usr/bin/mount", "mount"),
];

/// Tests fail where this is set, instead of being skipped, when a program that they need is missing.
pub const INSTALLED: (&str, &str) = ("CASEMATE_INSTALLED", "1");

/// What to tell the tests: [`INSTALLED`] if everything is there, or could be, since this is root on Debian.
pub fn environment() -> Result<Vec<(&'static str, &'static str)>> {
    let there = missing().is_empty() || (root()? && apt());
    Ok(there.then_some(INSTALLED).into_iter().collect())
}

fn missing() -> Vec<&'static str> {
    missing_of(NEEDED)
}

fn missing_of<'a>(needed: &[(&str, &'a str)]) -> Vec<&'a str> {
    let gone = needed.iter().filter(|(file, _)| !Path::new(file).exists());
    let mut names: Vec<&str> = gone.map(|(_, name)| *name).collect();
    names.dedup();
    names
}

fn apt() -> bool {
    Path::new("/usr/bin/apt-get").exists()
}

/// Installs what is missing, if this is root on Debian; otherwise says what will be skipped.
pub fn install() -> Result<()> {
    install_these(NEEDED)
}

/// The same for these files and packages.
pub fn install_these(needed: &[(&str, &str)]) -> Result<()> {
    let missing = missing_of(needed);
    if missing.is_empty() {
        println!("nothing to install");
        return Ok(());
    }
    let listed = missing.join(" ");
    if !root()? {
        println!("NOT INSTALLED, since this is not root: {listed} (their tests will be skipped)");
        return Ok(());
    }
    if !apt() {
        println!(
            "NOT INSTALLED, since there is no apt-get: {listed} (their tests will be skipped)"
        );
        return Ok(());
    }
    println!("installing {listed}");
    let mut install = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    install.extend(&missing);
    for words in [&["update", "--quiet"][..], &install] {
        let status = Command::new("apt-get")
            .args(words)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // Servers are for the tests to start: no init script starts in run level 1.
            .env("RUNLEVEL", "1")
            .status()
            .context("apt-get does not start")?;
        if !status.success() {
            println!("NOT INSTALLED, since apt-get failed: {listed} (their tests will fail)");
            return Ok(());
        }
    }
    let missing = missing_of(needed);
    if !missing.is_empty() {
        println!(
            "NOT INSTALLED, though apt-get says so: {} (their tests will fail)",
            missing.join(" ")
        );
    }
    Ok(())
}

fn root() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc is not mounted")?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    Ok(uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0"))
}
