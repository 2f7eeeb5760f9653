//! Capabilities, ptrace, and what `setup` did.

use std::fs::OpenOptions;
use std::io;

use super::container::Container;
use super::{Check, read};
use crate::setup;
use crate::sys::{caps, probe};

/// How to get the privileges outside containers.
pub fn setup_remedy() -> String {
    // The group may be there already, and this session older than the membership.
    if caps::sys_ptrace().permitted && !device_opens() {
        return format!(
            "log in again if `id -nG YOU` names {0}, or type `newgrp {0}`; else: sudo {1} setup",
            setup::GROUP,
            me()
        );
    }
    format!("sudo {} setup, then log in again (or: newgrp {})", me(), setup::GROUP)
}

/// This binary's path, for commands that can be copied.
fn me() -> String {
    std::env::current_exe()
        .map_or_else(|_| "casemate".to_owned(), |path| path.display().to_string())
}

/// Whether this user may open the device.
pub fn device_opens() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/userfaultfd").is_ok()
}

/// What other processes, and filters of system calls, allow us: `run` needs all of it.
pub fn checks(checks: &mut Vec<Check>, container: &Container) {
    checks.push(capability(container));
    checks.push(closed_programs());
    checks.push(tracing(container));
    checks.push(match probe::read_child() {
        Ok(()) => Check::ok("process-vm-readv", "a child's memory can be read"),
        Err(error) => Check::fail(
            "process-vm-readv",
            format!("a child's memory cannot be read: {error}"),
            container.remedy(),
        ),
    });
    checks.push(match probe::seccomp_filters() {
        Ok(()) => Check::ok("seccomp", "the agent can put itself under a filter"),
        Err(error) => Check::fail(
            "seccomp",
            format!("the agent cannot put itself under a filter: {error}"),
            "use a kernel with CONFIG_SECCOMP_FILTER=y",
        ),
    });
    checks.push(listener());
}

/// A filter of system calls whose listener is ours: a process can have one listener only.
fn listener() -> Check {
    const ID: &str = "seccomp-listener";
    match probe::seccomp_listener() {
        Ok(()) => Check::ok(ID, "system calls can be handed to the keeper"),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Check::fail(
            ID,
            "what started this process listens to its system calls already, and the kernel allows one \
             listener only",
            "start casemate outside the sandbox that listens (a container engine's system call \
             interception, a tracer that uses seccomp)",
        ),
        Err(error) => Check::fail(
            ID,
            format!("system calls cannot be handed to the keeper: {error}"),
            "use a kernel with CONFIG_SECCOMP_FILTER=y, and a seccomp profile that allows seccomp(2)",
        ),
    }
}

/// Where we run: what is neither well nor wrong.
pub fn surroundings(checks: &mut Vec<Check>, container: &Container) {
    if let Some(engine) = container.engine {
        checks.push(Check::ok("container", format!("inside a {engine} container")));
    }
    if let Some(keeper) = casemate_keeper::inside_run() {
        checks.push(Check::ok(
            "nested",
            format!("inside a protected run (keeper {keeper}), which protects what starts here"),
        ));
    }
}

fn capability(container: &Container) -> Check {
    const ID: &str = "cap-sys-ptrace";
    let held = caps::sys_ptrace();
    if held.effective {
        return Check::ok(ID, "effective");
    }
    if held.permitted {
        return Check::ok(ID, "permitted; the keeper raises it for the processes of its run");
    }
    if !held.bounding {
        return Check::fail(ID, "taken away from every program here", container.remedy());
    }
    let on_file = setup::binary::has_capability().unwrap_or(false);
    if !on_file {
        let remedy = container.remedy();
        return Check::fail(
            ID,
            "not held, and not set on this binary (a new build has lost it)",
            remedy,
        );
    }
    if rustix::thread::no_new_privs().unwrap_or(false) {
        return Check::fail(
            ID,
            "set on this binary, but no_new_privs is in force and hides it",
            "start casemate outside the sandbox that set no_new_privs (a container's \
             no-new-privileges, systemd's NoNewPrivileges=, setpriv, bwrap)",
        );
    }
    Check::fail(
        ID,
        "set on this binary, but not in force",
        "move the binary to a file system that is not mounted nosuid, then run setup again",
    )
}

/// Programs that keep their own user from reading their memory (`PR_SET_DUMPABLE` 0).
fn closed_programs() -> Check {
    const ID: &str = "closed-programs";
    if caps::sys_ptrace().permitted && caps::may_read_all() {
        return Check::ok(ID, "can be protected (ssh-agent, gpg-agent)");
    }
    Check::warn(
        ID,
        "a program that closes its memory to its user (ssh-agent, gpg-agent) would be stopped: that \
         takes CAP_DAC_READ_SEARCH",
        format!("sudo {} setup (once more, if it was done by an older version)", me()),
    )
}

fn tracing(container: &Container) -> Check {
    const ID: &str = "ptrace";
    let scope = read("/proc/sys/kernel/yama/ptrace_scope");
    let shown = scope.as_deref().map_or_else(|| "no yama".to_owned(), |s| format!("yama {s}"));
    let Err(error) = probe::ptrace_child() else {
        return Check::ok(ID, format!("attached to a child ({shown})"));
    };
    let traced = read("/proc/self/status").is_some_and(|status| {
        status.lines().any(|l| l.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
    });
    let remedy = match scope.as_deref() {
        _ if traced => {
            "this process is being traced: end the debugger or tracer (strace -f, gdb)".to_owned()
        }
        Some("2") => "sudo sysctl -w kernel.yama.ptrace_scope=1".to_owned(),
        Some("3") => {
            "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d and restart (3 cannot be taken back)"
                .to_owned()
        }
        _ => container.remedy(),
    };
    Check::fail(ID, format!("a child cannot be attached to: {error} ({shown})"), remedy)
}
