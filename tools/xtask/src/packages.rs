//! The Debian packages that the tests run or build with.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use casemate_workloads::programs::packages::{self, Needed};

/// A file that the package brings, and the package.
const NEEDED: &[Needed] = &[
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
    ("/usr/bin/stress-ng", "stress-ng"),
    ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "libjemalloc2"),
    ("/usr/lib/x86_64-linux-gnu/libmimalloc.so.2", "libmimalloc2.0"),
    ("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("/usr/bin/redis-server", "redis-server"),
    ("/usr/bin/redis-benchmark", "redis-tools"),
    ("/usr/bin/povray", "povray"),
    ("/usr/lib/postgresql", "postgresql"),
    ("/usr/bin/javac", "default-jdk-headless"),
    ("/usr/bin/node", "nodejs"),
    ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
    ("/usr/bin/busybox", "busybox-static"),
    ("/usr/bin/setpriv", "util-linux"),
    ("/usr/bin/mount", "mount"),
];

/// Tests fail where this is set, instead of being skipped, when a program that they need is
/// missing.
pub const INSTALLED: (&str, &str) = ("CASEMATE_INSTALLED", "1");

/// What to tell the tests: [`INSTALLED`] if everything is there, or could be, since this is root on
/// Debian.
pub fn environment() -> Result<Vec<(&'static str, &'static str)>> {
    let there = packages::missing(NEEDED).is_empty() || packages::can_install()?;
    Ok(there.then_some(INSTALLED).into_iter().collect())
}

/// Installs what is missing, if this is root on Debian; otherwise says what will be skipped.
pub fn install() -> Result<()> {
    install_packages()?;
    if let Err(error) = unpack_guest_kernel() {
        println!("NO KERNEL for guests: {error:#} (a test that needs one will be skipped)");
    }
    Ok(())
}

/// The package that brings the newest kernel for guests.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Unpacks a kernel to boot guests with into `target/guest`, unless the machine has one. It is not
/// installed: the machine itself boots as before.
fn unpack_guest_kernel() -> Result<()> {
    let folder = crate::root().join("target/guest");
    let kernel = folder.join("vmlinuz");
    let is_kernel = |name: &OsStr| name.as_encoded_bytes().starts_with(b"vmlinuz");
    let finds = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).find(|path| path.file_name().is_some_and(is_kernel))
    };
    if kernel.exists() || finds(Path::new("/boot")).is_some() {
        return Ok(());
    }
    let depends = said("apt-cache", &["depends", KERNEL], Path::new("/"))?;
    let package =
        depends.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    let package = format!("linux-image-{}", package.context("apt-cache names no kernel")?);
    let unpacked = folder.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    said("apt-get", &["download", &package], &folder)?;
    let archives = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    for archive in archives.filter(|path| path.extension().is_some_and(|e| e == "deb")) {
        let words = ["-x", &archive.to_string_lossy(), &unpacked.to_string_lossy()];
        said("dpkg-deb", &words, &folder)?;
        fs::remove_file(archive)?;
    }
    let found = finds(&unpacked.join("boot")).context("the package has no kernel")?;
    fs::rename(found, kernel)?;
    Ok(fs::remove_dir_all(unpacked)?)
}

/// What a command prints, once it has ended well.
fn said(program: &str, words: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(program).args(words).current_dir(folder).output();
    let output = output.with_context(|| format!("{program} does not start"))?;
    let failed = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{program} {}: {}", words.join(" "), failed());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn install_packages() -> Result<()> {
    if packages::missing(NEEDED).is_empty() {
        println!("nothing to install");
        return Ok(());
    }
    if let Err(error) = packages::install(NEEDED, &mut |line| println!("{line}")) {
        let then = if packages::can_install()? { "fail" } else { "be skipped" };
        println!("NOT INSTALLED: {error:#} (tests that need it will {then})");
    }
    Ok(())
}
