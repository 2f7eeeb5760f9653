//! Runs a program, plain or under `casemate run`, with a deadline.

use super::{Json, Scratch, casemate, processes, tally};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a trap fills before it begins: several times the Clear of the tests.
const BALLAST_MIB: &str = "32";

/// Something to run.
#[derive(Clone)]
pub struct Run {
    words: Vec<OsString>,
    directory: PathBuf,
    limit: Duration,
    input: bool,
    measure: bool,
    json: Option<PathBuf>,
    /// What a trap fills before it begins, so that the pager has begun too.
    ballast_mib: &'static str,
}

/// Something that runs. Dropping it ends what is left of it.
pub struct Running {
    /// The process that was started; also its process group.
    pub pid: i32,
    /// Its standard input, if that was asked for.
    pub input: Option<std::process::ChildStdin>,
    /// What marks its descendants' environments.
    pub tag: String,
    /// A part of it is killed by the test.
    pub hostile: bool,
    words: Vec<OsString>,
    stdout: PathBuf,
    stderr: PathBuf,
    deadline: Instant,
    start: Instant,
    status: Option<i32>,
    peak: Option<u64>,
    json: Option<PathBuf>,
    _scratch: Scratch,
}

/// Something that ran.
pub struct Done {
    /// Exit code, or 128 and the signal's number, as a shell has it.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
    /// Largest resident set of the largest process seen, if that was asked for.
    pub peak_bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// The statistics of a protected run that wrote them.
    pub json: Option<Json>,
}

/// Seconds before a run counts as hanging; `CASEMATE_TEST_SECONDS` makes it less, in a search for
/// hangs.
fn patience(limit: u64) -> u64 {
    let told = std::env::var("CASEMATE_TEST_SECONDS").ok();
    told.and_then(|seconds| seconds.parse().ok()).unwrap_or(limit).min(limit)
}

impl Run {
    /// A plain run of these words.
    pub fn plain<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Self {
        Run {
            words: words.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            directory: std::env::temp_dir(),
            limit: Duration::from_secs(patience(240)),
            input: false,
            measure: false,
            json: None,
            ballast_mib: "0",
        }
    }

    /// The same words under `casemate run` with these flags, with statistics.
    pub fn protected(&self, flags: &[&str], scratch: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let json = scratch.join(format!("stats-{}.json", NEXT.fetch_add(1, Ordering::Relaxed)));
        let mut words = super::as_user();
        words.extend([casemate().into(), "run".into()]);
        words.extend(flags.iter().map(OsString::from));
        let mut option = OsString::from("--json=");
        option.push(&json);
        words.extend([option, "--".into()]);
        words.extend(self.words.iter().cloned());
        Run {
            words,
            directory: self.directory.clone(),
            limit: self.limit,
            input: self.input,
            measure: false,
            json: Some(json),
            ballast_mib: if flags.contains(&"--clear") { BALLAST_MIB } else { "0" },
        }
    }

    /// With these further words.
    pub fn with_words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(OsString::from));
        self
    }

    /// Fills that ballast although the pager is not in these words by [`Run::protected`].
    pub fn with_ballast(mut self) -> Self {
        self.ballast_mib = BALLAST_MIB;
        self
    }

    /// Does without the ballast that makes the pager begin before a trap does.
    pub fn without_ballast(mut self) -> Self {
        self.ballast_mib = "0";
        self
    }

    /// Runs in this directory.
    pub fn directory(mut self, path: &Path) -> Self {
        self.directory = path.to_owned();
        self
    }

    /// Fails after so many seconds.
    pub fn seconds(mut self, limit: u64) -> Self {
        self.limit = Duration::from_secs(patience(limit));
        self
    }

    /// Leaves standard input to the test.
    pub fn with_input(mut self) -> Self {
        self.input = true;
        self
    }

    /// Watches how large its processes become. (A child's `ru_maxrss` starts with its parent's.)
    pub fn measured(mut self) -> Self {
        self.measure = true;
        self
    }

    // `Running::ended` waits for it.
    #[allow(clippy::zombie_processes)]
    /// Starts it in a process group of its own, its output going to files.
    pub fn start(self) -> Running {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let tag = format!("CASEMATE_TEST={}.{number}", std::process::id());
        let scratch = Scratch::new("run");
        let (stdout, stderr) = (scratch.join("stdout"), scratch.join("stderr"));
        let (name, value) = tag.split_once('=').expect("the tag has an equals sign");
        let mut command = Command::new(&self.words[0]);
        let adopts = self.measure;
        // SAFETY: between fork and exec only signal(2) and prctl(2) are called, which are
        // async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                forget_nohup()?;
                if adopts { adopt_daemons() } else { Ok(()) }
            })
        };
        let mut child = command
            .args(&self.words[1..])
            .current_dir(&self.directory)
            .env(name, value)
            .env("CASEMATE_TRAPS_AWAIT_MIB", self.ballast_mib)
            .stdin(if self.input { Stdio::piped() } else { Stdio::null() })
            .stdout(File::create(&stdout).expect("a file for standard output"))
            .stderr(File::create(&stderr).expect("a file for standard error"))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{:?} does not start: {error}", self.words));
        let start = Instant::now();
        Running {
            pid: child.id() as i32,
            input: child.stdin.take(),
            tag,
            hostile: false,
            words: self.words,
            stdout,
            stderr,
            deadline: start + self.limit,
            start,
            status: None,
            peak: self.measure.then_some(0),
            json: self.json,
            _scratch: scratch,
        }
    }

    /// Runs it to its end.
    pub fn finish(self) -> Done {
        self.start().finish()
    }
}

impl Running {
    /// Has it ended?
    pub fn ended(&mut self) -> bool {
        if self.status.is_some() {
            return true;
        }
        let mut status = 0;
        // SAFETY: the place is valid; the process is a child of ours that only this object waits
        // for.
        let got = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) };
        assert!(got >= 0, "waitpid({}): {}", self.pid, std::io::Error::last_os_error());
        if got == self.pid {
            self.status = Some(status);
        }
        self.status.is_some()
    }

    /// Does it go on? A hang fails the test with the state of every process involved.
    pub fn goes_on(&mut self) -> bool {
        if self.ended() {
            return false;
        }
        if Instant::now() > self.deadline {
            let state = processes::dump(&self.family());
            let (out, err) = (self.stdout(), self.stderr());
            let (out, err) = (tail(&out), tail(&err));
            panic!(
                "hangs after {:?}: {:?}\n{state}-- stdout: {out}\n-- stderr: {err}",
                self.start.elapsed(),
                self.words
            );
        }
        true
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stdout).unwrap_or_default()).into_owned()
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stderr).unwrap_or_default()).into_owned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        assert!(self.status.is_none(), "the process has ended already");
        // SAFETY: a child of ours, not yet waited for.
        assert_eq!(unsafe { libc::kill(self.pid, signal) }, 0, "kill({}, {signal})", self.pid);
    }

    /// Its family, dead or alive.
    pub fn family(&self) -> Vec<i32> {
        processes::family(self.pid, &self.tag)
    }

    /// Waits for its end; a hang fails the test with the state of every process involved.
    pub fn finish(self) -> Done {
        self.finish_and(|| {})
    }

    /// The same; what the program left running is ended only after `last`.
    pub fn finish_and(mut self, last: impl FnOnce()) -> Done {
        self.input = None;
        let mut pause = Duration::from_millis(1);
        while self.goes_on() {
            if let Some(peak) = self.peak {
                let now = self.family().into_iter().map(processes::peak_bytes).max();
                self.peak = now.max(Some(peak));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        let status = self.status.expect("it has ended");
        last();
        let code = if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            128 + libc::WTERMSIG(status)
        };
        let done = Done {
            code,
            stdout: std::fs::read(&self.stdout).expect("standard output"),
            stderr: self.stderr(),
            peak_bytes: self.peak.unwrap_or(0),
            elapsed: self.start.elapsed(),
            json: self.json.as_ref().filter(|path| path.exists()).map(|path| Json::read(path)),
        };
        let words: Vec<String> =
            self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        tally::run(&words, &done, self.hostile, || self.family());
        done
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let left: Vec<i32> =
            self.family().into_iter().filter(|pid| processes::alive(*pid)).collect();
        for pid in left {
            // SAFETY: a process that this test started: it descends from ours or carries our tag.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A program inherits that SIGHUP is ignored, as `nohup` leaves it. Tests are about programs that
/// it ends.
fn forget_nohup() -> std::io::Result<()> {
    // SAFETY: no handler is installed.
    match unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) } {
        libc::SIG_ERR => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A daemon stays below the process that was started, as it does under `casemate run`, and so is
/// measured too.
fn adopt_daemons() -> std::io::Result<()> {
    // SAFETY: changes only who becomes the parent of orphans below this process.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(2000);
    text.get(from..).unwrap_or(text)
}

/// What SPEC.md, section 10, allows beyond the Clear.
pub const ALLOWANCE: u64 = 256 << 10;

impl Done {
    /// Fails unless it ended with 0.
    pub fn good(&self, what: &str) -> &Self {
        self.ended_with(0, what)
    }

    /// Fails unless it ended with this code.
    pub fn ended_with(&self, code: i32, what: &str) -> &Self {
        assert_eq!(
            self.code,
            code,
            "{what}: exit code\n-- stdout: {}\n-- stderr: {}",
            tail(&String::from_utf8_lossy(&self.stdout)),
            tail(&self.stderr)
        );
        self
    }

    /// The statistics of a protected run.
    pub fn statistics(&self, what: &str) -> &Json {
        self.json.as_ref().unwrap_or_else(|| {
            panic!("{what}: no statistics were written\n-- stderr: {}", tail(&self.stderr))
        })
    }

    /// Fails if the run's own account says that the Clear passed its bound: that is a defect, be it
    /// of the account. (The summary says EXCEEDED then; with `--json` there is none.)
    pub fn kept_its_bound(&self, what: &str) -> &Self {
        let statistics = self.statistics(what);
        let kib = |name| statistics.number(name) >> 10;
        let excess = statistics.number("clear_bytes_excess_peak");
        assert!(
            excess <= ALLOWANCE,
            "{what}: by its own account {} KiB too much: {} that the kernel did not count, {} that \
             it counted while pages moved\n{}{}",
            excess >> 10,
            kib("excess_uncounted_bytes_peak"),
            kib("excess_moving_bytes_peak"),
            self.stderr,
            statistics.0
        );
        self
    }

    /// Fails unless pages really went out and came back, and nothing was found changed.
    pub fn really_paged(&self, what: &str) -> &Self {
        let json = self.statistics(what);
        assert_eq!(json.number("violations"), 0, "{what}: violations in {}", json.0);
        for counter in ["pages_out", "pages_in"] {
            assert!(json.number(counter) > 0, "{what}: vacuous, no {counter} in {}", json.0);
        }
        self
    }
}
