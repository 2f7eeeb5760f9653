//! Puts agents into real programs and looks whether the programs notice.
use casemate_keeper::hand::{
    Action, Hand, HandError, InjectError, Injector, Op, Progress, StagingKind,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: [&str; 18] = [
    "nanosleep",
    "epoll_wait",
    "epoll_wait-signal",
    "epoll_pwait",
    "read",
    "futex",
    "futex-timed",
    "poll",
    "ppoll",
    "ppoll-signal",
    "select",
    "pause",
    "sigsuspend",
    "sigtimedwait",
    "recv",
    "semop",
    "msgrcv",
    "compute",
];

fn try_inject(pid: i32) -> Result<Hand, InjectError> {
    match Injector::new().unwrap().begin(pid, None)?.wait(Duration::from_secs(5)) {
        Progress::Done(hand) => Ok(hand),
        Progress::Failed(error) => Err(error),
        Progress::Pending => panic!("process {pid} does not stop"),
    }
}

fn inject(pid: i32) -> Hand {
    try_inject(pid).unwrap_or_else(|error| panic!("no agent in {pid}: {error}"))
}

/// A program under test, killed if the test fails.
struct Program {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Program {
    fn start(path: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Program {
        let mut command = Command::new(path);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Program { child, out }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn tell(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Everything it still prints; it must end well.
    fn finish(mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest.trim().to_owned()
    }

    fn state(&self) -> char {
        state_of(self.pid()).unwrap()
    }
}

fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles one of the programs beside this file; nothing if the machine has no libc for that.
fn compiled(name: &str, how: &[&str]) -> Option<PathBuf> {
    let source = format!("{}/tests/hand/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let unique = format!("{name}{}-{:?}", how.concat(), std::thread::current().id());
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(unique.replace(['(', ')'], ""));
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&out)
        .arg(source)
        .args(how)
        .stderr(Stdio::null())
        .status();
    if status.is_ok_and(|s| s.success()) {
        return Some(out);
    }
    eprintln!("skipped: cc {how:?} does not work here");
    None
}

fn pause_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn no_call_notices(how: &[&str]) {
    let Some(path) = compiled("blocked", how) else { return };
    for call in CALLS {
        let mut program = Program::start(&path, &[call]);
        assert_eq!(program.line(), "ready");
        pause_ms(20);
        for _ in 0..3 {
            let hand = inject(program.pid());
            assert!(hand.still_in(program.pid()));
            hand.kill();
        }
        let _hand = inject(program.pid());
        program.tell();
        assert_eq!(program.finish(), format!("ok {call}"));
    }
}

#[test]
fn no_call_in_progress_notices_in_a_dynamic_program() {
    no_call_notices(&[]);
}

#[test]
fn no_call_in_progress_notices_in_a_static_program() {
    no_call_notices(&["-static"]);
}

#[test]
fn a_program_that_is_injected_again_and_again_under_signals_computes_the_same() {
    let Some(path) = compiled("alarms", &[]) else { return };
    let mut alone = Program::start(&path, &[]);
    alone.line();
    let expected = alone.finish();
    let mut program = Program::start(&path, &[]);
    program.line();
    pause_ms(5);
    let mut injected = 0;
    while program.state() != 'Z' && injected < 200 {
        match try_inject(program.pid()) {
            Ok(_) => injected += 1,
            Err(InjectError::Gone | InjectError::AgentDied { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(injected > 0);
    assert_eq!(program.finish(), expected);
}

#[test]
fn a_process_that_was_just_forked_can_be_injected_and_its_parent_too() {
    let Some(path) = compiled("alarms", &[]) else { return };
    let mut alone = Program::start(&path, &[]);
    alone.line();
    let expected = alone.finish();
    let mut program = Program::start(&path, &["fork"]);
    program.line();
    let child: i32 = program.line().parse().unwrap();
    let in_child = inject(child);
    assert!(in_child.still_in(child), "state of the child: {:?}", state_of(child));
    assert!(!in_child.still_in(program.pid()), "the parent is another");
    let in_parent = inject(program.pid());
    assert!(in_parent.still_in(program.pid()) && !in_parent.still_in(child));
    assert_eq!(program.finish(), expected);
}

#[test]
fn a_forked_child_has_no_trace_of_the_hand() {
    let script = "import os,sys\nprint('ready',flush=True)\nsys.stdin.readline()\n\
                  print(open('/proc/self/maps').read().count('casemate'))\n\
                  r=os.fork()\n\
                  if r==0:\n print(open('/proc/self/maps').read().count('casemate'),flush=True)\n os._exit(0)\n\
                  os.waitpid(r,0)\nsys.stdout.flush()\n";
    let mut program = Program::start("python3", &["-c", script]);
    program.line();
    let hand = inject(program.pid());
    for range in hand.owned_ranges() {
        assert!(range.start > 0 && range.end > range.start && range.start % 4096 == 0);
    }
    program.tell();
    let mut counts: Vec<String> = program.finish().lines().map(str::to_owned).collect();
    counts.sort();
    assert_eq!(counts, ["0", "1"]);
}

#[test]
fn interpreters_go_on() {
    let scripts: [(&str, &str); 3] = [
        (
            "python3",
            "import sys;print('ready',flush=True);sys.stdin.readline();print(sum(range(10**6)))",
        ),
        ("perl", "$|=1;print \"ready\\n\";<STDIN>;$s=0;$s+=$_ for 0..999999;print \"$s\\n\""),
        ("sh", "echo ready; read x; echo 499999500000"),
    ];
    for (interpreter, script) in scripts {
        let flag = if interpreter == "perl" { "-e" } else { "-c" };
        if Command::new(interpreter).args([flag, ""]).status().is_err() {
            eprintln!("skipped: no {interpreter}");
            continue;
        }
        let mut program = Program::start(interpreter, &[flag, script]);
        assert_eq!(program.line(), "ready");
        let hand = inject(program.pid());
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", hand.agent_pid())).unwrap();
        assert_eq!(comm.trim(), "casemate-agent");
        program.tell();
        assert_eq!(program.finish(), "499999500000");
    }
}

#[test]
fn a_stopped_program_is_injected_and_stays_stopped() {
    let Some(path) = compiled("blocked", &[]) else { return };
    let mut program = Program::start(&path, &["read"]);
    program.line();
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(program.pid(), libc::SIGSTOP) };
    while program.state() != 'T' {
        pause_ms(1);
    }
    let hand = inject(program.pid());
    assert!(hand.still_in(program.pid()));
    pause_ms(20);
    assert_eq!(program.state(), 'T');
    program.tell();
    pause_ms(50);
    assert_eq!(program.state(), 'T');
    // SAFETY: as above.
    unsafe { libc::kill(program.pid(), libc::SIGCONT) };
    assert_eq!(program.finish(), "ok read");
}

#[test]
fn where_no_process_may_be_made_there_is_an_error_and_no_harm() {
    let Some(path) = compiled("blocked", &[]) else { return };
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--clear-groups", "prlimit", "--nproc=3"])
        .arg(&path)
        .arg("read");
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        eprintln!("skipped: no setpriv");
        return;
    };
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut program = Program { child, out };
    if program.line() != "ready" {
        eprintln!("skipped: the program cannot run as another user here");
        return;
    }
    let error = try_inject(program.pid()).unwrap_err();
    assert!(matches!(error, InjectError::Call { .. }), "{error}");
    program.tell();
    assert_eq!(program.finish(), "ok read");
}

#[test]
fn programs_in_unusual_states_are_injected() {
    let Some(path) = compiled("odd", &[]) else { return };
    for how in ["leaderless", "mlockall", "no-exec"] {
        let mut program = Program::start(&path, &[how]);
        assert_eq!(program.line(), "ready");
        pause_ms(10);
        let mut hand = inject(program.pid());
        assert!(hand.still_in(program.pid()), "{how}");
        let _uffd = make_staging(&mut hand, StagingKind::Rw);
        program.tell();
        assert_eq!(program.finish(), "ok");
    }
}

#[test]
fn a_program_whose_filter_forbids_the_agent_goes_on_without_one() {
    let Some(path) = compiled("odd", &[]) else { return };
    let mut program = Program::start(&path, &["filtered"]);
    assert_eq!((program.line(), program.line()), ("warm".into(), "ready".into()));
    let error = try_inject(program.pid()).unwrap_err();
    assert!(matches!(error, InjectError::AgentDied { .. }), "{error}");
    program.tell();
    assert_eq!(program.finish(), "ok");
}

#[test]
fn a_parent_in_vfork_is_pending_until_its_child_is_done() {
    let Some(path) = compiled("odd", &[]) else { return };
    let mut program = Program::start(&path, &["vfork"]);
    assert_eq!(program.line(), "ready");
    pause_ms(50);
    let mut injection = Injector::new().unwrap().begin(program.pid(), None).unwrap();
    assert!(matches!(injection.poll(), Progress::Pending));
    assert!(matches!(injection.wait(Duration::from_secs(2)), Progress::Done(_)));
    assert_eq!(program.finish(), "ok");

    let mut program = Program::start(&path, &["vfork"]);
    assert_eq!(program.line(), "ready");
    pause_ms(50);
    drop(Injector::new().unwrap().begin(program.pid(), None).unwrap());
    assert_eq!(program.finish(), "ok", "a dropped injection lets go when it can");
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
            Err(InjectError::Gone | InjectError::AgentDied { .. }) => failed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    println!("{done} injected, {failed} not");
    assert!(done > 0);
    assert_eq!(program.finish(), "done");
}

#[test]
fn a_hand_whose_agent_was_killed_says_so() {
    let program = Program::start("sleep", &["5"]);
    pause_ms(50);
    let mut hand = inject(program.pid());
    // SAFETY: a signal to the agent.
    unsafe { libc::kill(hand.agent_pid(), libc::SIGKILL) };
    assert_eq!(hand.run(&[Action::Nop.into()], &mut || ()), Err(HandError::Gone));
    assert_eq!(program.state(), 'S');
}

#[test]
fn with_the_device_an_unprivileged_program_needs_no_leave_for_userfaultfd() {
    let Ok(device) = std::fs::File::open("/dev/userfaultfd") else {
        eprintln!("skipped: no /dev/userfaultfd");
        return;
    };
    let mut program = Program::start(
        "setpriv",
        &["--reuid=65534", "--clear-groups", "sh", "-c", "echo ready; read x; echo ok"],
    );
    assert_eq!(program.line(), "ready");
    let mut injection =
        Injector::new().unwrap().begin(program.pid(), Some(device.as_fd())).unwrap();
    let Progress::Done(mut hand) = injection.wait(Duration::from_secs(5)) else { panic!("failed") };
    let _uffd = make_staging(&mut hand, StagingKind::Rw);
    hand.kill();
    if std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|s| s == "0\n") {
        let error = try_inject(program.pid()).unwrap_err();
        assert!(matches!(error, InjectError::AgentDied { error: libc::EPERM }), "{error}");
    }
    program.tell();
    assert_eq!(program.finish(), "ok");
}

#[test]
fn a_traced_program_is_refused() {
    let program = Program::start("sleep", &["5"]);
    let first = Injector::new().unwrap();
    let injection = first.begin(program.pid(), None).unwrap();
    let error = first.begin(program.pid(), None).err().unwrap();
    assert!(matches!(error, InjectError::Traced { .. }), "{error}");
    drop(injection);
    pause_ms(10);
    assert_eq!(program.state(), 'S');
    inject(program.pid());
}

#[test]
fn a_program_that_ends_or_changes_takes_its_hand_with_it() {
    let mut program = Program::start("sh", &["-c", "echo ready; read x; exec sleep 0.2"]);
    program.line();
    let mut hand = inject(program.pid());
    program.tell();
    pause_ms(100);
    assert!(!hand.still_in(program.pid()), "the shell called exec");
    assert!(hand.run(&[Action::Nop.into()], &mut || ()).is_ok(), "the agent holds the old memory");
    drop(hand);
    program.finish();
}

/// The other half of the next test, in a process of its own.
#[test]
fn keeper_that_will_be_killed() {
    let Ok(pid) = std::env::var("CASEMATE_TEST_PROGRAM") else { return };
    let _hand = inject(pid.parse().unwrap());
    println!("armed");
    pause_ms(20_000);
}

#[test]
fn when_the_keeper_is_killed_the_program_dies() {
    let mut program = Program::start("sleep", &["30"]);
    pause_ms(50);
    let mut keeper = Command::new(std::env::current_exe().unwrap());
    keeper.args(["--exact", "keeper_that_will_be_killed", "--nocapture"]);
    keeper.env("CASEMATE_TEST_PROGRAM", program.pid().to_string());
    let mut keeper = keeper.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("armed")));
    assert!(program.child.try_wait().unwrap().is_none());
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    let killed = Instant::now();
    while program.child.try_wait().unwrap().is_none() {
        assert!(killed.elapsed() < Duration::from_secs(2), "the program outlives its keeper");
        pause_ms(5);
    }
}

fn ioctl<const N: usize>(uffd: &OwnedFd, request: u64, mut words: [u64; N]) {
    // SAFETY: `words` is the request's struct, all of whose fields are 64 bits wide.
    let result = unsafe { libc::ioctl(uffd.as_raw_fd(), request, words.as_mut_ptr()) };
    assert_eq!(result, 0, "ioctl {request:x}: {}", std::io::Error::last_os_error());
}

fn registered(hand: &mut Hand, at: u64, pages: u64) -> OwnedFd {
    let uffd = hand.take_program_uffd().unwrap();
    ioctl(&uffd, 0xc018_aa3f, [0xaa, 1 << 16, 0]);
    ioctl(&uffd, 0xc020_aa00, [at, pages * 4096, 1, 0]);
    uffd
}

/// A staging whose first half is under `uffd`, or else under the program's own.
fn make_staging_under(hand: &mut Hand, kind: StagingKind, uffd: &OwnedFd) {
    let mut register = |start: u64, len: u64| {
        ioctl(uffd, 0xc020_aa00, [start, len, 1, 0]);
        Ok(())
    };
    hand.make_staging(kind, &mut register, &mut || ()).unwrap();
}

fn make_staging(hand: &mut Hand, kind: StagingKind) -> OwnedFd {
    let uffd = hand.take_program_uffd().unwrap();
    ioctl(&uffd, 0xc018_aa3f, [0xaa, 1 << 16, 0]);
    make_staging_under(hand, kind, &uffd);
    uffd
}

fn value(page: u64, i: u64) -> u64 {
    (page * 512 + i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn expected_page(page: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    for i in 0..512 {
        bytes[i as usize * 8..][..8].copy_from_slice(&value(page, i).to_le_bytes());
    }
    bytes
}

fn pages_go_out_and_come_back(how: &str, kind: StagingKind) {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &[how]);
    let at: u64 = program.line().parse().unwrap();
    let mut hand = inject(program.pid());
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, kind, &uffd);
    let staging = kind.id();
    let ops: Vec<Op> = [
        Action::MoveOut { src: at, len: 128 * 4096, staging, index: 0 },
        Action::CopyOut { staging, index: 0, pages: 128, slot: 0 },
        Action::DropStaging { staging, index: 0, pages: 128 },
        Action::CopyOut { staging, index: 0, pages: 128, slot: 0 },
    ]
    .map(Op::from)
    .to_vec();
    for round in 0..3 {
        let results = hand.run(&ops, &mut || ()).unwrap();
        let numbers: Vec<i64> = results.iter().map(|r| r.result).collect();
        assert_eq!(numbers, [128 * 4096, 128, 0, 0], "round {round}: {results:?}");
        for page in 0..128 {
            let mut copy = [0; 4096];
            hand.copy_data(page, &mut copy);
            assert!(copy == expected_page(page as u64), "page {page}");
            ioctl(&uffd, 0xc028_aa03, [at + page as u64 * 4096, copy.as_ptr() as u64, 4096, 0, 0]);
        }
    }
    program.tell();
    assert_eq!(program.finish(), "same");
}

#[test]
fn pages_moved_out_are_copied_out_and_can_be_brought_back() {
    pages_go_out_and_come_back("plain", StagingKind::Rw);
}

#[test]
fn executable_pages_go_through_an_executable_staging() {
    pages_go_out_and_come_back("exec", StagingKind::Rwx);
}

#[test]
fn locked_pages_go_through_a_locked_staging() {
    pages_go_out_and_come_back("locked", StagingKind::RwLocked);
}

#[test]
fn a_pinned_page_stays_where_it_is() {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &["pinned"]);
    let Ok(at) = program.line().parse::<u64>() else {
        eprintln!("skipped: no io_uring");
        return;
    };
    let mut hand = inject(program.pid());
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, StagingKind::Rw, &uffd);
    let out = |page: u64, pages: u64| {
        Op::from(Action::MoveOut {
            src: at + page * 4096,
            len: pages * 4096,
            staging: 0,
            index: page,
        })
    };
    let results = hand.run(&[out(3, 1), out(0, 8)], &mut || ()).unwrap().to_vec();
    assert_eq!((results[0].result, results[0].error), (-16, 16), "EBUSY");
    // The run stops before the pinned page and says how far it came.
    assert_eq!((results[1].result, results[1].error), (3 * 4096, libc::EAGAIN));
    let copy = Action::CopyOut { staging: 0, index: 0, pages: 8, slot: 0 };
    assert_eq!(hand.run(&[copy.into()], &mut || ()).unwrap()[0].result, 3);
    for page in 0..3 {
        let from = hand.data(page as usize) as u64;
        ioctl(&uffd, 0xc028_aa03, [at + page * 4096, from, 4096, 0, 0]);
    }
    program.tell();
    assert_eq!(program.finish(), "same");
}

#[test]
fn malformed_ops_are_answered_with_errors() {
    let program = Program::start("sleep", &["5"]);
    pause_ms(50);
    let mut hand = inject(program.pid());
    let odd = [
        (Op { kind: 99, ..Op::default() }, -libc::ENOSYS),
        (Action::CopyOut { staging: 0, index: 0, pages: 1, slot: 0 }.into(), -libc::ENXIO),
        (Action::CopyOut { staging: 77, index: 0, pages: 1, slot: 0 }.into(), -libc::EINVAL),
        (Action::Advise { addr: 4096, len: 1, advice: 4 }.into(), -libc::EINVAL),
        (Action::Advise { addr: 4096, len: 4096, advice: 9 }.into(), -libc::EINVAL),
    ];
    let ops: Vec<Op> = odd.iter().map(|(op, _)| *op).collect();
    for (result, (op, expected)) in hand.run(&ops, &mut || ()).unwrap().iter().zip(odd) {
        assert_eq!(result.result, i64::from(expected), "{op:?}");
    }
    let _uffd = make_staging(&mut hand, StagingKind::Rw);
    let beyond = Action::CopyOut { staging: 0, index: 127, pages: 2, slot: 0 };
    assert_eq!(hand.run(&[beyond.into()], &mut || ()).unwrap()[0].error, libc::EINVAL);
    let agent = hand.agent_pid();
    hand.kill();
    assert!(!std::path::Path::new(&format!("/proc/{agent}")).exists(), "reaped");
    assert_eq!(program.state(), 'S');
}

/// Prints what requests cost: `cargo test --release -p casemate-keeper --test hand cost -- --nocapture`.
#[test]
fn cost_of_requests() {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &["plain"]);
    let at: u64 = program.line().parse().unwrap();
    // SAFETY: binds this thread to the CPU that it is on; an all-zero cpu_set_t is the empty set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
    let begun = Instant::now();
    let mut hand = inject(program.pid());
    println!("injection: {:.0} us", begun.elapsed().as_secs_f64() * 1e6);
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, StagingKind::Rw, &uffd);
    let move_out = |page: u64, pages: u64| {
        Op::from(Action::MoveOut {
            src: at + page * 4096,
            len: pages * 4096,
            staging: 0,
            index: page,
        })
    };
    let copy = |pages| Op::from(Action::CopyOut { staging: 0, index: 0, pages, slot: 0 });
    let empty = |pages| Op::from(Action::DropStaging { staging: 0, index: 0, pages });
    let scattered: Vec<Op> = (0..64).map(|i| move_out(i, 1)).collect();
    let mut whole = scattered.clone();
    whole.extend([copy(64), empty(64)]);
    let requests: [(&str, u64, Vec<Op>); 4] = [
        ("round trip, nothing to do", 0, vec![Action::Nop.into()]),
        ("one page: move, copy, drop", 1, vec![move_out(0, 1), copy(1), empty(1)]),
        ("64 single pages: move, copy, drop", 64, whole),
        ("a run of 64: move, copy, drop", 64, vec![move_out(0, 64), copy(64), empty(64)]),
    ];
    for (what, pages, ops) in requests {
        let mut times: Vec<f64> = (0..2000)
            .map(|_| {
                let begun = Instant::now();
                let results = hand.run(&ops, &mut || ()).unwrap();
                let time = begun.elapsed().as_secs_f64() * 1e6;
                assert!(results.iter().all(|r| r.result >= 0));
                for page in 0..pages {
                    let from = hand.data(page as usize) as u64;
                    ioctl(&uffd, 0xc028_aa03, [at + page * 4096, from, 4096, 0, 0]);
                }
                time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let each = median / pages.max(1) as f64;
        println!("{what}: {median:.1} us, {each:.2} us each");
    }
    program.tell();
    assert_eq!(program.finish(), "same");
}
