//! `run` starts nothing where nothing can be protected, and says what `doctor` says. Needs root, to
//! play a user without rights and to stand above a run with a filter.

mod common;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use common::{Folder, code, copy, root, stderr, stdout};
use serde_json::Value;

/// A folder that every user may use, with a copy of casemate: the build may be out of their reach.
struct Open {
    folder: Folder,
    casemate: PathBuf,
}

impl Open {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        let casemate = folder.path("casemate");
        copy(env!("CARGO_BIN_EXE_casemate"), &casemate);
        Open { folder, casemate }
    }

    /// Runs casemate as `nobody`.
    fn as_nobody(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        command.arg(&self.casemate).args(arguments).current_dir(&self.folder.0).output().unwrap()
    }
}

fn skipped() -> bool {
    let skipped = !root() || Command::new("setpriv").arg("--version").output().is_err();
    if skipped {
        eprintln!("skipped: needs root and setpriv, to play another user");
    }
    skipped
}

/// What doctor found first that stands in the way.
fn first_failure(doctor: &Output) -> Option<(String, String)> {
    let report: Value = serde_json::from_str(&stdout(doctor)).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let failed = checks.iter().find(|check| check["status"] == "fail")?;
    let word = |key: &str| failed[key].as_str().unwrap().to_owned();
    Some((word("id"), word("remedy")))
}

#[test]
fn a_user_without_rights_gets_the_remedy_and_the_program_never_starts() {
    if skipped() {
        return;
    }
    let open = Open::new("no-rights");
    let (id, remedy) = first_failure(&open.as_nobody(&["doctor", "--json"])).expect("an obstacle");
    for clear in ["16M", "200M", "25%"] {
        let clear = format!("--clear={clear}");
        let output = open.as_nobody(&["run", &clear, "--", "sh", "-c", "echo started > mark"]);
        assert_eq!(code(&output), 123, "{clear}: {}", stderr(&output));
        assert!(!open.folder.path("mark").exists(), "{clear}: the program was started");
        let text = stderr(&output);
        assert!(text.contains(&id) && text.contains(&remedy), "{clear}: {text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{clear}: {text}");
    }
}

#[test]
fn a_user_without_rights_may_run_without_protection() {
    if skipped() {
        return;
    }
    let open = Open::new("no-rights-allowed");
    let run = ["run", "--allow-unprotected", "--", "sh", "-c", "echo started; exit 3"];
    let output = open.as_nobody(&run);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_eq!(stdout(&output), "started\n");
    assert!(stderr(&output).contains("without protection"), "{}", stderr(&output));
}

#[test]
fn what_must_be_protected_is_not_started_where_nothing_can_be() {
    if skipped() {
        return;
    }
    let open = Open::new("required");
    let run = |percent: &str| {
        let flags = ["run", "--allow-unprotected", "--require-protected", percent, "--"];
        open.as_nobody(&[&flags[..], &["sh", "-c", "echo started"]].concat())
    };
    for percent in ["1", "90%"] {
        let output = run(percent);
        assert_eq!(code(&output), 123, "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("without --require-protected"), "{}", stderr(&output));
    }
    let output = run("0");
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "started\n"), "{}", stderr(&output));
}

/// Puts this process under a filter with a listener, which what it executes keeps open.
fn listen() -> io::Result<()> {
    let mut allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    // SAFETY: the program has the one instruction that it says, and lives for the call; the
    // descriptor that comes of it is this process's own.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        );
        if fd < 0 || libc::fcntl(fd as i32, libc::F_SETFD, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[test]
fn under_another_listener_the_program_never_starts() {
    if !root() {
        return eprintln!("skipped: needs root to listen without no_new_privs");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_casemate"));
    command.args(["run", "--", "echo", "started"]);
    // SAFETY: two system calls are made between fork and exec, which allocate nothing.
    unsafe { command.pre_exec(listen) };
    let output = command.output().unwrap();
    assert_eq!(code(&output), 123, "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("seccomp-listener"), "{}", stderr(&output));
}

/// Without `/proc`, or with that of another PID namespace, no process of a run would be found.
#[test]
fn a_proc_that_does_not_name_our_processes_is_an_obstacle() {
    let can_unshare = |flag| Command::new("unshare").args([flag, "-f", "true"]).status();
    if !can_unshare("-m").is_ok_and(|status| status.success()) {
        eprintln!("skipped: needs root and unshare, to have another /proc");
        return;
    }
    let casemate = env!("CARGO_BIN_EXE_casemate");
    let run = format!("exec {casemate} run --clear 8M -- echo began");
    let none = format!("mount -t tmpfs none /proc && {run}");
    for words in [["-m", "-f", "sh", "-c", &none], ["-p", "-f", "sh", "-c", &run]] {
        let output = Command::new("unshare").args(words).output().unwrap();
        assert_eq!(code(&output), 123, "{words:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("mount -t proc proc /proc"), "{}", stderr(&output));
    }
}
