//! An ordinary user runs a protected program. Needs root to play that user.

mod common;

use common::run::ALLOWANCE;
use common::sampler::Sampler;
use common::{Run, Scratch, casemate, root, skip, traps};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `nobody`: a user without rights.
const USER: &str = "65534";

/// What `casemate setup` did, taken back at the end.
struct Setup(PathBuf);

impl Setup {
    fn new(casemate: &Path) -> Self {
        let setup = Setup(casemate.to_owned());
        let done = Command::new(casemate).args(["setup", "--user", "nobody"]).output();
        let done = done.expect("casemate starts");
        assert!(done.status.success(), "casemate setup: {}", String::from_utf8_lossy(&done.stderr));
        setup
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let done = Command::new(&self.0).args(["setup", "--undo"]).output();
        if !done.as_ref().is_ok_and(|done| done.status.success()) {
            common::loud(&format!("NOTE: casemate setup --undo failed: {done:?}"));
        }
    }
}

fn copy(from: &Path, directory: &Path) -> PathBuf {
    let to = directory.join(from.file_name().expect("a program's name"));
    // In a process of its own: a file that this one has open for writing while another test forks
    // cannot be executed (ETXTBSY).
    let words = ["-m", "755", "--"].map(OsStr::new);
    let done = Command::new("install").args(words).args([from, to.as_path()]).status();
    assert!(done.expect("install starts").success(), "no copy of {}", from.display());
    to
}

fn group_id() -> Option<String> {
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    let line = groups.lines().find(|line| line.starts_with("casemate:"))?;
    line.split(':').nth(2).map(str::to_owned)
}

/// Words that run the rest as `nobody`, in these groups.
fn as_nobody(groups: Option<&str>) -> Vec<OsString> {
    let groups = groups.map_or("--clear-groups".to_owned(), |group| format!("--groups={group}"));
    ["setpriv", &format!("--reuid={USER}"), &format!("--regid={USER}"), &groups, "--"]
        .map(OsString::from)
        .to_vec()
}

#[test]
fn an_ordinary_user_runs_protected_programs_after_setup() {
    const TEST: &str = "an ordinary user";
    if !root() {
        return skip(TEST, "only root may play another user");
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return skip(TEST, "setpriv is not installed");
    }
    if group_id().is_some() {
        return skip(TEST, "this machine is set up already; the test would undo that");
    }
    // Not below the build, which other users may not be able to enter.
    let scratch = Scratch::under(&std::env::temp_dir(), "casemate-user");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(scratch.path(), open).expect("the directory is ours");
    let (casemate, traps) = (copy(&casemate(), scratch.path()), copy(&traps(), scratch.path()));
    let _setup = Setup::new(&casemate);
    let group = group_id().expect("setup makes the group casemate");
    // System calls on missing pages, fork, threads, exec: what needs the privileged descriptor.
    // And what meets a keeper that may not set seccomp filters aside, nor raise limits.
    for name in [
        "fork",
        "pipes",
        "vectored",
        "posix-spawn",
        "interleaved",
        "vm-readv",
        "stopped-young",
        "leader-exits",
        "exec-from-thread",
        "vfork-grows",
        "shared-vm-grows",
        "children-grow-together",
        "signals-in-calls",
        "mprotect-none",
    ] {
        let json = scratch.join(&format!("{name}.json"));
        let mut words = as_nobody(Some(&group));
        words.extend([casemate.clone().into(), "run".into(), "--clear=8M".into()]);
        words.push(format!("--json={}", json.display()).into());
        words.extend(["--".into(), traps.clone().into(), name.into()]);
        words.extend(["--mib".into(), "48".into()]);
        words.extend(["--file".into(), scratch.path().into()]);
        let done = Run::plain(words).with_ballast().directory(scratch.path()).finish();
        done.good(&format!("{name} as an ordinary user"));
        assert!(String::from_utf8_lossy(&done.stdout).ends_with(&format!("ok {name}\n")));
        let statistics = common::Json::read(&json);
        assert!(statistics.number("pages_in") > 0, "{name}: vacuous: {}", statistics.0);
        assert_eq!(statistics.number("processes_unannounced"), 0, "{name}: {}", statistics.0);
    }
    the_user_and_root_may_change_a_run(&casemate, &traps, &group, scratch.path());
    programs_that_close_themselves_to_their_user_are_protected(
        &casemate,
        &traps,
        &group,
        scratch.path(),
    );
}

/// Such programs (ssh-agent, gpg-agent) show their user nothing of their memory, and the keeper is
/// that user's.
fn programs_that_close_themselves_to_their_user_are_protected(
    casemate: &Path,
    traps: &Path,
    group: &str,
    folder: &Path,
) {
    let run = |name: &str, clear_mib: u64, mib: &str| {
        let json = folder.join(format!("{name}-{clear_mib}.json"));
        let mut words = as_nobody(Some(group));
        words.extend([casemate.into(), "run".into(), format!("--clear={clear_mib}M").into()]);
        words.push(format!("--json={}", json.display()).into());
        words.extend(["--".into(), traps.into(), name.into(), "--mib".into(), mib.into()]);
        let run = Run::plain(words).directory(folder).without_ballast().start();
        let sampler = Sampler::start(run.pid, casemate);
        let done = run.finish();
        (done, sampler.finish(), json)
    };
    for (name, clear_mib, mib) in
        [("undumpable", 8, "48"), ("undumpable-early", 8, "48"), ("undumpable-early", 40, "160")]
    {
        let (done, seen, json) = run(name, clear_mib, mib);
        done.good(name);
        let statistics = common::Json::read(&json);
        assert!(statistics.number("pages_in") > 0, "{name}: vacuous: {}", statistics.0);
        let most = (clear_mib << 20) + ALLOWANCE;
        assert!(seen.most_own_bytes <= most, "{name} under {clear_mib} MiB: {seen:?}");
    }
    // What an older `setup` granted does not do; nor may the program go on unprotected.
    let with = file_capabilities(casemate, None).expect("setup granted some");
    let mut older = with.clone();
    older[4] = 0;
    file_capabilities(casemate, Some(&older));
    for clear_mib in [8, 40] {
        let (done, seen, _) = run("undumpable-early", clear_mib, "160");
        assert!([122, 123].contains(&done.code), "{}: {}", done.code, done.stderr);
        assert!(seen.most_own_bytes <= (clear_mib + 16) << 20, "{}: {seen:?}", done.stderr);
    }
    file_capabilities(casemate, Some(&with));
}

/// A binary's file capabilities, as they are or as they are made to be.
fn file_capabilities(binary: &Path, made: Option<&[u8]>) -> Option<Vec<u8>> {
    let path = CString::new(binary.as_os_str().as_bytes()).expect("a path");
    let name = c"security.capability";
    let mut bytes = vec![0_u8; 64];
    // SAFETY: both strings end with a zero, and the sizes are those of the buffers.
    let length = unsafe {
        match made {
            Some(made) => {
                let (value, size) = (made.as_ptr().cast(), made.len());
                libc::setxattr(path.as_ptr(), name.as_ptr(), value, size, 0)
            }
            None => {
                let (value, size) = (bytes.as_mut_ptr().cast(), bytes.len());
                libc::getxattr(path.as_ptr(), name.as_ptr(), value, size) as i32
            }
        }
    };
    bytes.truncate(usize::try_from(length).ok()?);
    Some(bytes)
}

/// `casemate set` by the run's user, and by root.
fn the_user_and_root_may_change_a_run(casemate: &Path, traps: &Path, group: &str, folder: &Path) {
    let marker = "00112233445566778899aabbccddeeff";
    let mut words = as_nobody(Some(group));
    words.extend([casemate.into(), "run".into(), "--clear=64M".into(), "--".into(), traps.into()]);
    words.extend(["marker", "--marker", marker, "--mib", "24"].map(OsString::from));
    let mut run = Run::plain(words).with_input().directory(folder).start();
    run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
    // `setpriv` has become `casemate run`.
    let set = ["set", &run.pid.to_string(), "--clear", "8M"].map(OsString::from);
    let mut as_user = as_nobody(Some(group));
    as_user.push(casemate.into());
    for who in [as_user, vec![casemate.into()]] {
        let done = Command::new(&who[0]).args(&who[1..]).args(&set).output();
        let done = done.expect("it starts");
        assert!(done.status.success(), "{who:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    the_user_may_not_read_its_memory(casemate, run.pid, &as_nobody(Some(group)));
    run.input = None;
    let done = run.finish();
    done.good("changed by its user");
    assert!(done.stderr.contains("changed once: 8 MiB at least"), "{}", done.stderr);
}

/// `casemate audit` by the run's user, with the binary that `casemate setup` gave a capability: it
/// must not lend that to a user who would read a process's memory. Root may.
fn the_user_may_not_read_its_memory(casemate: &Path, run: i32, as_user: &[OsString]) {
    let audit = [casemate.into(), "audit".into(), OsString::from(run.to_string())];
    let done = Command::new(&as_user[0]).args(&as_user[1..]).args(&audit).output();
    let done = done.expect("it starts");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), done.stdout.len()), (Some(125), 0), "{stderr}");
    assert!(stderr.contains("takes root or CAP_SYS_PTRACE"), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    let done = Command::new(&audit[0]).args(&audit[1..]).output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn without_setup_an_ordinary_user_is_told_what_to_do() {
    const TEST: &str = "an ordinary user without setup";
    if !root() {
        return skip(TEST, "only root may play another user");
    }
    let scratch = Scratch::under(&std::env::temp_dir(), "casemate-plain-user");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(scratch.path(), open).expect("the directory is ours");
    let (casemate, traps) = (copy(&casemate(), scratch.path()), copy(&traps(), scratch.path()));
    let mut words = as_nobody(None);
    words.extend([casemate.into(), "run".into(), "--clear=8M".into(), "--".into()]);
    words.extend([traps.into(), "pipes".into()]);
    let done = Run::plain(words).directory(scratch.path()).finish();
    assert!(!done.stderr.contains("wrong:"), "it ran and read wrong bytes: {}", done.stderr);
    if done.code != 0 {
        assert_eq!(done.code, 123, "{}", done.stderr);
        assert!(done.stderr.contains("doctor"), "no remedy is named: {}", done.stderr);
    }
}
