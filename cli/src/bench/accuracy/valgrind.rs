//! Programs under Valgrind: what cachegrind counts of them, and what we count of the trace that
//! lackey gives.
//!
//! Both tools see the same instructions in the same order if everything lies at the same place:
//! addresses are not random (`setarch -R`), the environment, the folder, the words of the command
//! and what standard output is are the same. What the dynamic linker saves lazily would be of the
//! processor's own size, so it binds at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use casemate_sim::locality::geometry::lru;
use casemate_sim::locality::reference::{Compared, Totals};
use casemate_sim::locality::{Geometry, Rules, Survey};
use casemate_sim::machine::cache::{CacheConfig, Ways};
use casemate_sim::trace::any::AnyTrace;

use crate::bench::folder::Folder;
use crate::failure::Failure;

/// The caches: small, so that inputs of 20 KB do not fit the first.
pub(super) const GEOMETRY: Geometry = Geometry {
    instruction: lru(8192, 2, 64),
    data: lru(8192, 4, 64),
    last: lru(65_536, 8, 64),
    cores: 1,
};
const EVENTS: &str = "events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw";
/// Lines of the programs' input, six words each.
const LINES: usize = 500;

/// A program that every Debian has, and its arguments. Each is of another kind.
const PROGRAMS: [(&str, &[&str]); 6] = [
    // Searches chains of hashes in a window of 32 KiB.
    ("gzip", &["-nc", "text"]),
    // Follows pointers to strings.
    ("sort", &["--parallel=1", "-S", "1M", "text"]),
    // Interprets, and collects by hashes.
    (
        "awk",
        &["{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) s += n[w]; print s }", "text"],
    ),
    // Interprets, over many times as much code.
    ("perl", &["-ne", "$n{$_}++ for split; END { print scalar keys %n }", "text"]),
    // Builds an automaton and lets it run.
    ("sed", &["-nE", "/(w[0-9]*1 w[0-9]*2|w3.*w4[0-9]*5)/p", "text"]),
    // Computes on one stream.
    ("sha256sum", &["text"]),
];

/// Runs all of them; with which Valgrind.
pub(super) fn run_all() -> Result<(String, Vec<Compared>)> {
    let folder = Folder::new()?;
    fs::write(folder.0.join("text"), input()).context("the input cannot be written")?;
    let version = output(Command::new("valgrind").arg("--version"), "valgrind --version")?;
    let compared = PROGRAMS.iter().map(|(name, words)| compare(&folder.0, name, words));
    Ok((String::from_utf8_lossy(&version).trim().to_owned(), compared.collect::<Result<_>>()?))
}

/// Words that a linear congruential generator draws.
fn input() -> String {
    let mut number = 1_u64;
    let mut word = || {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("w{}", (number >> 40) % 5000)
    };
    (0..LINES).map(|_| [(); 6].map(|()| word()).join(" ") + "\n").collect()
}

fn compare(folder: &Path, name: &str, arguments: &[&str]) -> Result<Compared> {
    let program = find(name)?;
    let cachegrind = cachegrind(folder, &program, arguments)?;
    let trace = folder.join("trace");
    let casemate = std::env::current_exe().context("the command's own file is not known")?;
    let mut record = same_everywhere(folder, &casemate);
    record.args(["trace", "record", "-q", "--with", "valgrind", "-o"]).arg(&trace).arg("--");
    output(record.arg(&program).args(arguments), name)?;
    Ok(Compared {
        program: name.to_owned(),
        cachegrind,
        same_rules: count(&trace, Rules::Cachegrind)?,
        machine: count(&trace, Rules::WriteBack)?,
    })
}

/// The file that a name stands for: tools would show it to the program by other names.
fn find(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| Failure::no(format!("{name}: there is no such program here")).into())
}

/// A command in whose runs everything lies at the same place.
fn same_everywhere(folder: &Path, program: &Path) -> Command {
    let mut command = Command::new("setarch");
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.arg("-R").arg(program).current_dir(folder).env_clear().env("PATH", path);
    command.envs([("LD_BIND_NOW", "1"), ("LC_ALL", "C"), ("PERL_HASH_SEED", "0")]);
    command
}

/// What a command that has to succeed printed.
fn output(command: &mut Command, name: &str) -> Result<Vec<u8>> {
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.map_err(|why| Failure::no(format!("{name}: it does not start: {why}")))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(Failure::no(format!("{name}: {}: {}", ended.status, said.trim())).into());
    }
    Ok(ended.stdout)
}

fn cachegrind(folder: &Path, program: &Path, arguments: &[&str]) -> Result<Totals> {
    let file = folder.join("cachegrind.out");
    let mut command = same_everywhere(folder, Path::new("valgrind"));
    command.args(["--tool=cachegrind", "--cache-sim=yes"]);
    let Geometry { instruction, data, last, .. } = &GEOMETRY;
    for (cache, of) in [("I1", instruction), ("D1", data), ("LL", last)] {
        command.arg(format!("--{cache}={}", words(of)));
    }
    command.arg(format!("--cachegrind-out-file={}", file.display())).arg("--");
    let name = || program.display().to_string();
    output(command.arg(program).args(arguments), &name())?;
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let totals = totals(&text);
    totals.ok_or_else(|| Failure::no(format!("{}: cachegrind's file is another", name())).into())
}

/// A cache as cachegrind wants it.
pub(super) fn words(cache: &CacheConfig) -> String {
    let ways = match cache.ways {
        Ways::Set(ways) => ways,
        Ways::Full => cache.size_bytes / cache.block_bytes,
    };
    format!("{},{ways},{}", cache.size_bytes, cache.block_bytes)
}

/// The totals of cachegrind's file.
fn totals(text: &str) -> Option<Totals> {
    text.lines().find(|line| line.trim_end() == EVENTS)?;
    let summary = text.lines().find_map(|line| line.strip_prefix("summary:"))?;
    let numbers: Result<Vec<u64>, _> = summary.split_whitespace().map(str::parse).collect();
    Some(Totals(numbers.ok()?.try_into().ok()?))
}

fn count(trace: &Path, rules: Rules) -> Result<Totals> {
    let caches = |why| Failure::own(format!("these caches cannot be built: {why}"));
    let mut survey = Survey::new(&GEOMETRY, rules).map_err(caches)?;
    survey.take_all(&mut AnyTrace::open(trace, None)?, 0)?;
    Ok(survey.counts().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_only_where_the_events_are_known() {
        let text = format!("desc: x\n{EVENTS} \nfn=f\n1 2\nsummary: 1 2 3 4 5 6 7 8 9\n");
        assert_eq!(totals(&text), Some(Totals([1, 2, 3, 4, 5, 6, 7, 8, 9])));
        assert_eq!(totals(&text.replace("DLmw", "Bc")), None);
        assert_eq!(totals(&text.replace(" 9", "")), None);
    }
}
