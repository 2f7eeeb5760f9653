//! The Debian packages that the tests run or build with.

use anyhow::Result;
use casemate_workloads::programs::packages::{self, Needed};

use crate::guest_kernels;

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
    ("/usr/bin/swtpm", "swtpm"),
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
    guest_kernels::unpack();
    Ok(())
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
