//! userfaultfd: reachable how, with which features, and for system calls too?

use std::io;
use std::sync::atomic::Ordering;

use casemate_keeper::PAGE_BYTES;
use casemate_keeper::sys::uffd::abi::{USER_MODE_ONLY, feature};

use super::container::Container;
use super::{Check, Status, read};
use crate::sys::caps::with_sys_ptrace;
use crate::sys::child::Child;
use crate::sys::region::{PAGE_WORDS, Region};
use crate::sys::uffd::{FEATURES, Uffd};

/// The check that all others are built on.
const REACH: &str = "userfaultfd";

/// Without these, `run` still works.
const DISPENSABLE: [&str; 2] = ["THREAD_ID", "WP_ASYNC"];

/// Everything about userfaultfd that `run` needs.
pub fn checks(checks: &mut Vec<Check>, container: &Container) {
    if reach(checks, container) {
        features(checks, container);
        checks.push(operations());
    }
}

/// Whether system calls on missing pages are served, tried. `run` believes it of a descriptor that
/// is not for user-mode faults only: a tracer of it and of the child that serves here would wait
/// for that child for ever.
pub fn trial(checks: &mut Vec<Check>, container: &Container) {
    if !checks.iter().any(|check| check.id == REACH && check.status == Status::Ok) {
        return;
    }
    checks.push(match serves_system_calls() {
        Ok(()) => Check::ok("kernel-mode-faults", "a system call on a missing page is served"),
        Err(error) => Check::fail(
            "kernel-mode-faults",
            format!("a system call on a missing page fails: {error}"),
            container.remedy(),
        ),
    });
}

/// The ways to a userfaultfd that this user has.
fn reach(checks: &mut Vec<Check>, container: &Container) -> bool {
    const ID: &str = REACH;
    let sysctl = read("/proc/sys/vm/unprivileged_userfaultfd").unwrap_or_else(|| "absent".into());
    let mut ways = Vec::new();
    let by_syscall = Uffd::by_syscall(0);
    if by_syscall.is_ok() {
        ways.push("userfaultfd(2)");
    }
    let by_device = Uffd::by_device();
    if by_device.is_ok() {
        ways.push("/dev/userfaultfd");
    }
    if !ways.is_empty() {
        checks.push(Check::ok(
            ID,
            format!("through {} (vm.unprivileged_userfaultfd={sysctl})", ways.join(" and ")),
        ));
        return true;
    }
    let device = match by_device {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "/dev/userfaultfd does not exist".to_owned()
        }
        Err(error) => format!("/dev/userfaultfd: {error}"),
        Ok(_) => String::new(),
    };
    if by_syscall.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOSYS)) {
        checks.push(Check::fail(
            ID,
            "this kernel has none",
            "use a kernel with CONFIG_USERFAULTFD=y, 6.8 or later",
        ));
    } else if Uffd::by_syscall(USER_MODE_ONLY).is_ok() {
        checks.push(Check::fail(
            ID,
            format!(
                "for user-mode faults only ({device}): system calls on missing pages would get \
                 EFAULT, so unmodified programs break"
            ),
            container.remedy(),
        ));
    } else {
        checks.push(Check::fail(ID, format!("out of reach ({device})"), container.remedy()));
    }
    false
}

/// Lets the kernel read a missing page, which a child serves.
fn serves_system_calls() -> io::Result<()> {
    let region = Region::anonymous(PAGE_BYTES)?;
    let uffd = Uffd::open()?;
    uffd.api(0)?;
    uffd.register(&region, false)?;
    let page = [7_u64; PAGE_WORDS];
    let _server = Child::fork(|| {
        loop {
            if uffd.serve(|address| uffd.copy(address, &page)).is_err() {
                return 1;
            }
        }
    })?;
    crate::sys::probe::kernel_reads(&region)
}

/// Tries the handshake with every feature, each on a descriptor of its own.
fn features(checks: &mut Vec<Check>, container: &Container) {
    const ID: &str = "userfaultfd-features";
    let mut refused = Vec::new();
    for (name, bit) in FEATURES {
        let offered = with_sys_ptrace(|| Uffd::open().and_then(|uffd| uffd.api(bit)));
        if !matches!(offered, Ok(Ok(_))) {
            refused.push((name, bit));
        }
    }
    let fork = refused.iter().any(|(_, bit)| *bit == feature::EVENT_FORK);
    refused.retain(|(_, bit)| *bit != feature::EVENT_FORK);
    checks.push(if fork {
        Check::fail(
            "fork-event",
            "EVENT_FORK is refused: it needs CAP_SYS_PTRACE, and without it a child would read \
             evicted pages as zeros",
            container.remedy(),
        )
    } else {
        Check::ok("fork-event", "EVENT_FORK is granted")
    });
    let names: Vec<&str> = refused.iter().map(|(name, _)| *name).collect();
    checks.push(if names.is_empty() {
        let all: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
        Check::ok(ID, all.join(" "))
    } else if names.iter().all(|name| DISPENSABLE.contains(name)) {
        Check::warn(ID, format!("missing: {}", names.join(" ")), "use Linux 6.8 or later")
    } else {
        Check::fail(ID, format!("missing: {}", names.join(" ")), "use Linux 6.8 or later")
    });
}

/// Copies, protects, moves and poisons a page for real.
fn operations() -> Check {
    const ID: &str = "userfaultfd-operations";
    let tried = || -> io::Result<()> {
        let step = |what: &str, result: io::Result<()>| {
            result.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))
        };
        let region = Region::anonymous(4 * PAGE_BYTES)?;
        region.no_huge_pages();
        let uffd = Uffd::open()?;
        uffd.api(0).map(drop)?;
        uffd.register(&region, true)?;
        let page = [7_u64; PAGE_WORDS];
        let at = |n: u64| region.address() + n * PAGE_BYTES as u64;
        step("UFFDIO_COPY", uffd.copy(at(0), &page))?;
        step("UFFDIO_COPY", uffd.copy(at(1), &page))?;
        step("UFFDIO_WRITEPROTECT", uffd.write_protect(at(0)))?;
        step("UFFDIO_MOVE", uffd.relocate(at(2), at(1)))?;
        step("UFFDIO_POISON", uffd.poison(at(3)))?;
        match region.word(2 * PAGE_BYTES).load(Ordering::Relaxed) {
            7 => Ok(()),
            _ => Err(io::Error::other("a moved page lost its content")),
        }
    };
    match tried() {
        Ok(()) => Check::ok(ID, "copy, write-protect, move and poison work"),
        Err(error) => Check::fail(ID, error.to_string(), "use Linux 6.8 or later"),
    }
}
