//! Real programs under the pager give the same bytes as in a plain run, with the Clear at a third
//! of the plain run's peak resident size and at a sixteenth.
//!
//! `CASEMATE_SOAK=1` makes the inputs larger (`cargo xtask soak`).

mod common;
#[path = "real/inputs.rs"]
mod inputs;

use common::run::ALLOWANCE;
use common::sampler::{Sampler, Seen};
use common::{Done, Run, Scratch, casemate, loud, root, skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A program, its inputs, and what of its results is compared besides standard output.
struct Program<'a> {
    name: &'a str,
    /// Programs that must be there.
    needs: &'a [&'a str],
    /// What bash runs.
    script: &'a str,
    /// Makes the inputs in a directory.
    inputs: &'a dyn Fn(&Path),
    /// Files whose bytes must be equal.
    results: &'a [&'a str],
}

fn soak() -> bool {
    std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1")
}

/// The bounded size, or the one of a soak.
fn size(bounded: usize, long: usize) -> usize {
    if soak() { long } else { bounded }
}

fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
        || Path::new("/usr/bin").join(program).exists()
        || Path::new(program).exists()
}

impl Program<'_> {
    fn run(
        &self,
        scratch: &Scratch,
        step: &str,
        clear: Option<u64>,
    ) -> (Done, BTreeMap<String, Vec<u8>>, Seen) {
        let directory = scratch.join(step);
        std::fs::create_dir(&directory).expect("a directory for the run");
        (self.inputs)(&directory);
        let script = format!(
            "export LC_ALL=C PYTHONHASHSEED=0 SCALE={} REQUESTS={}\n{}",
            size(1, 10),
            size(1_200, 100_000),
            self.script
        );
        std::fs::write(directory.join("script.sh"), script).expect("the script");
        let run = Run::plain(["/bin/bash", "script.sh"])
            .directory(&directory)
            .seconds(size(500, 7200) as u64);
        let run = match clear {
            None => run.measured(),
            Some(bytes) => run.protected(&["--clear", &bytes.to_string()], scratch.path()),
        };
        let running = run.start();
        let sampler = Sampler::start_sparing(clear.unwrap_or(0), running.pid, &casemate());
        let done = running.finish();
        let seen = sampler.finish();
        done.good(&format!("{} ({step})", self.name));
        let mut results: BTreeMap<String, Vec<u8>> = self
            .results
            .iter()
            .map(|name| {
                let bytes = std::fs::read(directory.join(name));
                ((*name).to_owned(), bytes.unwrap_or_else(|e| panic!("{name} ({step}): {e}")))
            })
            .collect();
        results.insert("standard output".into(), done.stdout.clone());
        std::fs::remove_dir_all(&directory).expect("the run's directory can be removed");
        (done, results, seen)
    }

    fn test(&self) {
        self.test_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
    }

    fn test_in(&self, directory: &Path) {
        let missing: Vec<&&str> = self.needs.iter().filter(|program| !found(program)).collect();
        if !missing.is_empty() {
            let why = format!("not installed: {missing:?}");
            // `cargo xtask` has installed them, or could have.
            assert!(std::env::var_os("CASEMATE_INSTALLED").is_none(), "{}: {why}", self.name);
            skip(self.name, &format!("{why} (cargo xtask test installs as root)"));
            return;
        }
        // One at a time: two programs with two threads each would wait for two processors, not for
        // the pager.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch::under(directory, self.name);
        if self.needs.contains(&"setpriv") {
            open_to_all(scratch.path());
        }
        let (plain, expected, seen) = self.run(&scratch, "plain", None);
        assert!(!plain.stdout.is_empty(), "{}: nothing to compare", self.name);
        let (own, peak) = (seen.most_own_bytes, plain.peak_bytes);
        assert!(
            own > peak / 4,
            "{}: the judge saw too little of {peak} bytes: {seen:?}",
            self.name
        );
        for (step, share) in [("third", 3), ("sixteenth", 16)] {
            let clear = (plain.peak_bytes / share).max(2 << 20) / 4096 * 4096;
            let (done, results, seen) = self.run(&scratch, step, Some(clear));
            for (what, expected) in &expected {
                same_bytes(&format!("{} ({step}): {what}", self.name), expected, &results[what]);
            }
            done.really_paged(self.name);
            let statistics = done.statistics(self.name);
            let why = "no program here has a listener of its own";
            assert_eq!(statistics.number("processes_unannounced"), 0, "{}: {why}", self.name);
            let limit = statistics.number("clear_bytes_limit");
            let peak = statistics.number("clear_bytes_peak");
            assert!(limit <= clear, "{}: Clear of {limit} where {clear} was asked for", self.name);
            let most = limit + ALLOWANCE;
            assert!(peak <= most, "{} ({step}): {peak} bytes in a Clear of {limit}", self.name);
            let by_kernel = seen.most_own_bytes;
            assert!(by_kernel <= most, "{} ({step}): a Clear of {limit}, and {seen:?}", self.name);
            loud(&format!(
                "{}: peak {} MiB, Clear {:.1} MiB ({:.1} seen): plain {:.1} s, protected {:.1} s, {} pages out, {} in",
                self.name,
                plain.peak_bytes >> 20,
                clear as f64 / f64::from(1 << 20),
                by_kernel as f64 / f64::from(1 << 20),
                plain.elapsed.as_secs_f64(),
                done.elapsed.as_secs_f64(),
                statistics.number("pages_out"),
                statistics.number("pages_in"),
            ));
        }
    }
}

fn same_bytes(what: &str, expected: &[u8], got: &[u8]) {
    if expected == got {
        return;
    }
    let first = expected.iter().zip(got).position(|(a, b)| a != b);
    let first = first.unwrap_or(expected.len().min(got.len()));
    let part = |bytes: &[u8]| {
        let to = bytes.len().min(first + 64);
        String::from_utf8_lossy(&bytes[first.min(to)..to]).into_owned()
    };
    panic!(
        "{what}: {} bytes expected, {} got; from byte {first} on {:?} expected, {:?} got",
        expected.len(),
        got.len(),
        part(expected),
        part(got)
    );
}

/// Lets a server that gives up root into its directory.
fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, everybody).expect("the directory is ours");
}

fn put(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).expect("an input file");
}

#[test]
fn a_difference_of_one_byte_is_found() {
    let caught =
        std::panic::catch_unwind(|| same_bytes("canary", b"same but here", b"same but Here"));
    let text = caught.expect_err("a difference must be found");
    assert!(text.downcast_ref::<String>().is_some_and(|text| text.contains("from byte 9 ")));
}

#[test]
fn python() {
    Program {
        name: "python3",
        needs: &["python3"],
        script: "$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3) dicts.py\n",
        inputs: &|at| put(at, "dicts.py", include_str!("real/dicts.py")),
        results: &[],
    }
    .test();
}

#[test]
fn sqlite() {
    let sql = include_str!("real/join.sql").replace("ROWS", &size(25_000, 400_000).to_string());
    Program {
        name: "sqlite3",
        needs: &["sqlite3"],
        script: "sqlite3 -batch -init /dev/null data.db <join.sql\n",
        inputs: &|at| put(at, "join.sql", &sql),
        results: &["data.db"],
    }
    .test();
}

#[test]
fn xz() {
    Program {
        name: "xz",
        needs: &["xz"],
        script: "set -e; xz -T2 -6 --block-size=3MiB -k in; xz -T2 -dc in.xz | sha256sum\n",
        inputs: &|at| inputs::text(&at.join("in"), (20, 8192), size(6 << 20, 240 << 20), 11),
        results: &["in.xz"],
    }
    .test();
}

#[test]
fn zstd() {
    Program {
        name: "zstd",
        needs: &["zstd"],
        script: "set -e; zstd -q -T2 --long=27 -3 in; zstd -q -dc --long=27 in.zst | sha256sum\n",
        inputs: &|at| inputs::text(&at.join("in"), (6, 1500), size(56 << 20, 560 << 20), 12),
        results: &["in.zst"],
    }
    .test();
}

#[test]
fn gcc() {
    Program {
        name: "gcc",
        needs: &["gcc", "make"],
        script: "set -e; make -s -j2; ./program\n",
        inputs: &|at| inputs::c_program(at, 2, size(60_000, 150_000), size(8, 2000)),
        results: &["f0.o", "f1.o", "main.o"],
    }
    .test();
}

#[test]
fn perl() {
    Program {
        name: "perl",
        needs: &["perl"],
        script: "PERL_HASH_SEED=0 perl hash.pl\n",
        inputs: &|at| put(at, "hash.pl", include_str!("real/hash.pl")),
        results: &[],
    }
    .test();
}

#[test]
fn sort() {
    Program {
        name: "sort",
        needs: &["sort"],
        script: "set -e; sort --parallel=2 -S 40% -T . -o out in; sha256sum out\n",
        inputs: &|at| inputs::text(&at.join("in"), (60, 0), size(40_000_000, 400_000_000), 13),
        results: &["out"],
    }
    .test();
}

/// Processes that executed a program since they were armed, and children of theirs that were not.
#[test]
fn subshells() {
    Program {
        name: "bash",
        needs: &["bash"],
        script: include_str!("real/subshells.sh"),
        inputs: &|_| {},
        results: &[],
    }
    .test();
}

#[test]
fn redis() {
    Program {
        name: "redis",
        needs: &["redis-server", "redis-benchmark", "redis-cli"],
        script: include_str!("real/redis.sh"),
        inputs: &|at| {
            inputs::redis_commands(&at.join("load.txt"), size(20_000, 400_000), 14);
            inputs::redis_commands(&at.join("change.txt"), size(5_000, 100_000), 15);
        },
        results: &[],
    }
    .test();
}

#[test]
fn postgres() {
    let sql = include_str!("real/work.sql").replace("ROWS", &size(60_000, 600_000).to_string());
    let needs: &[&str] =
        if root() { &["/usr/lib/postgresql", "setpriv"] } else { &["/usr/lib/postgresql"] };
    let program = Program {
        name: "postgres",
        needs,
        script: include_str!("real/postgres.sh"),
        inputs: &|at| {
            put(at, "work.sql", &sql);
            put(at, "postgres.sh", include_str!("real/postgres.sh"));
            // Some hundred short processes; with them a run would not be bounded.
            let mut init = Command::new("bash");
            let done = init.args(["postgres.sh", "init"]).current_dir(at).status();
            let done = done.expect("bash starts");
            assert!(done.success(), "initdb: {done}");
        },
        results: &[],
    };
    // The user postgres may not be able to enter this build's directories.
    program.test_in(&std::env::temp_dir());
}

#[test]
fn java() {
    let heap = size(96, 480);
    Program {
        name: "java",
        needs: &["java", "javac"],
        script: &format!("java -Xms{heap}m -Xmx{heap}m -XX:-UsePerfData -cp . Heap\n"),
        inputs: &|at| {
            put(at, "Heap.java", include_str!("real/Heap.java"));
            // Compiled outside of the measurement: the compiler needs more memory than the program.
            let mut javac = Command::new("javac");
            let done = javac.arg("Heap.java").current_dir(at).status().expect("javac starts");
            assert!(done.success(), "javac: {done}");
        },
        results: &[],
    }
    .test();
}

#[test]
fn node() {
    Program {
        name: "node",
        needs: &["node"],
        script: "node heap.js\n",
        inputs: &|at: &Path| put(at, "heap.js", include_str!("real/heap.js")),
        results: &[],
    }
    .test();
}
