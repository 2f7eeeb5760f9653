//! Programs in states that make an injection hard or impossible.
use super::pages::make_staging;
use super::support::{Program, compiled, inject, try_inject};
use casemate_keeper::hand::{InjectError, Injector, Progress, StagingKind};
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[test]
fn where_no_process_may_be_made_there_is_an_error_and_no_harm() {
    // A user of its own: other tests' processes would count.
    let Some(mut program) = limited("65533", &["--nproc=3"]) else { return };
    if may_raise_hard_limits() {
        let hand = inject(program.pid());
        assert!(!hand.is_left_by(program.pid()));
    } else {
        let error = try_inject(program.pid()).unwrap_err();
        assert!(matches!(error, InjectError::Limited { .. }), "{error}");
        assert!(error.to_string().contains("RLIMIT_NPROC"), "{error}");
    }
    program.tell();
    assert_eq!(program.finish(), "ok read");
}

/// A program of this user that waits for a line, under limits as prlimit(1) takes them.
fn limited(user: &str, limits: &[&str]) -> Option<Program> {
    let path = compiled("blocked", &[])?;
    let mut command = Command::new("setpriv");
    let user = format!("--reuid={user}");
    command.args([&user, "--clear-groups", "prlimit"]).args(limits).arg(&path).arg("read");
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        eprintln!("skipped: no setpriv");
        return None;
    };
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut program = Program { child, out };
    if program.line() != "ready" {
        eprintln!("skipped: the program cannot run as another user here");
        return None;
    }
    Some(program)
}

/// CAP_SYS_RESOURCE, which root in a container may lack.
fn may_raise_hard_limits() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own");
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("a set");
    u64::from_str_radix(set.trim(), 16).expect("it is hexadecimal") & 1 << 24 != 0
}

#[test]
fn soft_limits_that_are_used_up_are_raised_for_the_moment_only() {
    let Some(path) = compiled("blocked", &[]) else { return };
    let mut program = Program::start(&path, &["read"]);
    assert_eq!(program.line(), "ready");
    program.becomes('S');
    let set = |soft: [u64; 3]| {
        let which = [libc::RLIMIT_NOFILE, libc::RLIMIT_AS, libc::RLIMIT_DATA];
        for ((which, rlim_cur), rlim_max) in which.into_iter().zip(soft).zip(HARD) {
            let limit = libc::rlimit64 { rlim_cur, rlim_max };
            let (new, old) = (&raw const limit, std::ptr::null_mut());
            // SAFETY: one live block is read.
            let set = unsafe { libc::prlimit64(program.pid(), which, new, old) };
            assert_eq!(set, 0, "limit {which}");
        }
    };
    const HARD: [u64; 3] = [100, 1 << 40, 1 << 40];
    // It has more than that already.
    set([3, 4096, 4096]);
    let read = || std::fs::read_to_string(format!("/proc/{}/limits", program.pid())).unwrap();
    let before = read();
    let mut hand = inject(program.pid());
    let _uffd = make_staging(&mut hand, StagingKind::Rw);
    assert_eq!(read(), before);
    // What it does next needs some.
    set(HARD);
    program.tell();
    assert_eq!(program.finish(), "ok read");
}

#[test]
fn programs_in_unusual_states_are_injected() {
    let Some(path) = compiled("odd", &[]) else { return };
    for how in ["leaderless", "mlockall", "no-exec"] {
        let mut program = Program::start(&path, &[how]);
        assert_eq!(program.line(), "ready");
        program.becomes(if how == "leaderless" { 'Z' } else { 'S' });
        let mut hand = inject(program.pid());
        assert!(!hand.is_left_by(program.pid()), "{how}");
        let _uffd = make_staging(&mut hand, StagingKind::Rw);
        program.tell();
        assert_eq!(program.finish(), "ok");
    }
}

#[test]
fn a_program_whose_filter_forbids_what_an_agent_does_has_one_that_is_supervised() {
    let Some(path) = compiled("odd", &[]) else { return };
    for how in ["filtered", "strict"] {
        let mut program = Program::start(&path, &[how]);
        assert_eq!((program.line(), program.line()), ("warm".into(), "ready".into()));
        program.becomes('S');
        for _ in 0..2 {
            let mut hand = inject(program.pid());
            assert!(!hand.is_left_by(program.pid()), "{how}");
            let _uffd = make_staging(&mut hand, StagingKind::Rw);
            let tracer = tracer_of(hand.agent_pid());
            assert_ne!(tracer, 0, "{how}: no process traces the agent");
            assert!(hand.supervisor_found().is_none(), "{how}");
        }
        program.tell();
        assert_eq!(program.finish(), "ok");
    }
}

fn tracer_of(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).expect("a line");
    tracer.trim().parse().expect("a number")
}

#[test]
fn a_parent_in_vfork_is_pending_until_its_child_is_done() {
    let Some(path) = compiled("odd", &[]) else { return };
    let mut program = Program::start(&path, &["vfork"]);
    assert_eq!(program.line(), "ready");
    program.becomes('D');
    let mut injection = Injector::new().unwrap().begin(program.pid(), None).unwrap();
    assert!(matches!(injection.poll(), Progress::Pending));
    program.tell();
    assert!(matches!(super::support::ended(&mut injection), Progress::Done(_)));
    assert_eq!(program.finish(), "ok");

    let mut program = Program::start(&path, &["vfork"]);
    assert_eq!(program.line(), "ready");
    program.becomes('D');
    let mut injection = Injector::new().unwrap().begin(program.pid(), None).unwrap();
    assert!(matches!(injection.poll(), Progress::Pending));
    program.tell();
    drop(injection);
    assert_eq!(program.finish(), "ok", "a dropped injection lets go when it can");
}

#[test]
fn a_program_that_cannot_be_let_go_dies_while_its_tracer_lives() {
    let Some(path) = compiled("odd", &[]) else { return };
    let mut program = Program::start(&path, &["vfork"]);
    assert_eq!(program.line(), "ready");
    program.becomes('D');
    // Its child waits for a line that does not come.
    drop(Injector::new().unwrap().begin(program.pid(), None).unwrap());
    program.becomes('Z');
    assert_eq!(program.child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn a_program_that_execs_all_the_time_is_injected_or_not_but_goes_on() {
    let script = r#"import os,sys
n=int(sys.argv[1])
if n: os.execv(sys.executable,[sys.executable,'-SIEc',os.environ['S'],str(n-1)])
print('done')"#;
    let mut command = Command::new("python3");
    command.args(["-SIEc", script, "40"]).env("S", script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let program = Program { child, out };
    let (mut done, mut failed) = (0, 0);
    while program.state() != 'Z' {
        match try_inject(program.pid()) {
            Ok(_) => done += 1,
            // Each says to try again; the last one on a busy machine.
            Err(InjectError::Gone | InjectError::AgentDied { .. } | InjectError::Executing) => {
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    println!("{done} injected, {failed} not");
    assert!(done > 0);
    assert_eq!(program.finish(), "done");
}

#[test]
fn a_traced_program_is_refused() {
    let program = Program::start("sleep", &["30"]);
    let first = Injector::new().unwrap();
    let injection = first.begin(program.pid(), None).unwrap();
    let error = first.begin(program.pid(), None).err().unwrap();
    assert!(matches!(error, InjectError::Traced { .. }), "{error}");
    drop(injection);
    program.becomes('S');
    inject(program.pid());
}

/// The other half of the next test, in a process of its own.
#[test]
fn keeper_under_a_filter() {
    if std::env::var_os("CASEMATE_TEST_FILTERED").is_some() {
        let program = Program::start("sleep", &["30"]);
        program.becomes('S');
        inject(program.pid());
        println!("injected");
    }
}

#[test]
fn a_filter_that_the_keeper_is_under_too_is_no_hindrance() {
    // As in a container: a filter on everything, and no leave to suspend it.
    let script = "import ctypes,os,struct,sys\n\
                  c=ctypes.CDLL(None)\n\
                  b=ctypes.create_string_buffer(struct.pack('HBBI',6,0,0,0x7fff0000))\n\
                  f=ctypes.create_string_buffer(struct.pack('HxxxxxxQ',1,ctypes.addressof(b)))\n\
                  assert c.prctl(38,1,0,0,0)==0 and c.prctl(22,2,f,0,0)==0\n\
                  os.execv(sys.argv[1],sys.argv[1:])\n";
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", "python3", "-c", script]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "unusual::keeper_under_a_filter", "--nocapture"]);
    // SAFETY: takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root has that leave to lose");
        return;
    }
    let output = command.env("CASEMATE_TEST_FILTERED", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("injected"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
