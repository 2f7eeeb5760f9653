//! Runs the benchmarks of a paper that is measured: those of `casemate bench`, with the paper's
//! sizes.

use std::collections::BTreeSet;
use std::fs;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use casemate_reproduce::measured::spec::{Benchmark, Figure, OWN, PAGE, PAGE_STEPS, Spec};
use casemate_reproduce::measured::{Measured, Measurements, Session};
use clap::ValueEnum;

use crate::bench::args::{Home, Mode, ProgramsArgs};
use crate::bench::memeater::start::Bench;
use crate::bench::memeater::{self, Broken, Row, Step, Sweep, System};
use crate::bench::results::machine;
use crate::bench::{crypto, programs};
use crate::output::Json;
use crate::progress;
use crate::size::Size;

/// The longest that a program may take, in seconds.
const LONGEST_S: u64 = 120;
/// What is measured of a program, in seconds: user, system and wall-clock time.
const QUANTITIES: [&str; 3] = ["user", "sys", "real"];

/// Measures what figures of these names need, or all if there are none.
///
/// # Errors
/// Something read another byte than it wrote, or a signal asks to stop. What this machine or user
/// cannot run is a note.
pub fn measure(spec: &Spec, figures: &[String], quick: bool) -> Result<Measurements> {
    let wanted: BTreeSet<&str> =
        spec.wanted(figures).map(|figure: &Figure| &*figure.benchmark).collect();
    let benchmarks = spec.benchmarks.iter().filter(|benchmark| wanted.contains(benchmark.id()));
    let benchmarks: Vec<&Benchmark> = benchmarks.collect();
    let session = Session {
        benchmarks: benchmarks.iter().map(|benchmark| benchmark.id().to_owned()).collect(),
        machine: machine(),
        date: date(SystemTime::now()),
        load: [load(), 0.0],
        commit: env!("CASEMATE_COMMIT").to_owned(),
        rounds: if quick { spec.quick_rounds } else { spec.rounds },
        notes: Vec::new(),
    };
    let mut run = Run { quick, session, cells: Vec::new() };
    run.pages(&benchmarks)?;
    benchmarks.iter().try_for_each(|benchmark| run.whole_programs(benchmark))?;
    run.session.load[1] = load();
    Ok(Measurements { quick, sessions: vec![run.session], cells: run.cells })
}

/// What is measured so far.
struct Run {
    quick: bool,
    session: Session,
    cells: Vec<Measured>,
}

impl Run {
    /// Everything about pages, in turns: each round has all sizes under all systems.
    fn pages(&mut self, benchmarks: &[&Benchmark]) -> Result<()> {
        let rounds = self.session.rounds;
        let mut sweeps = Vec::new();
        for benchmark in benchmarks {
            for (place, sweep) in swept(benchmark, self.quick)? {
                sweeps.push((benchmark.id(), place, sweep));
            }
        }
        let (names, mut sweeps): (Vec<_>, Vec<Sweep>) =
            sweeps.into_iter().map(|(id, place, sweep)| ((id, place), sweep)).unzip();
        let steps = benchmarks.iter().find(|of| matches!(of, Benchmark::Cryptography { .. }));
        let mut broken = Broken::new();
        let mut page: [Vec<f64>; 3] = Default::default();
        for round in 1..=rounds {
            let named =
                |what: &str| progress::stage(&format!("round {round} of {}: {what}", rounds));
            memeater::round(&mut sweeps, u64::from(round), &mut broken, named)?;
            if steps.is_some() {
                named("a page's cryptography");
                let [seal, open, ..] = crypto::run()?;
                page.iter_mut().zip([seal, open, seal + open]).for_each(|(all, us)| all.push(us));
            }
        }
        for ((id, place), sweep) in names.iter().zip(&sweeps) {
            for row in &sweep.rows {
                self.add_row(id, place.as_deref(), row);
            }
        }
        if let Some(benchmark) = steps {
            for (step, rounds) in PAGE_STEPS.into_iter().zip(page) {
                self.cells.push(cell((benchmark.id(), step), OWN, PAGE, rounds));
            }
        }
        self.session.notes.extend(memeater::reasons(&broken));
        Ok(())
    }

    fn add_row(&mut self, id: &str, place: Option<&str>, row: &Row) {
        let pages = row.pages.to_string();
        let place = place.unwrap_or(&pages);
        for (system, runs) in &row.systems {
            if let Some(ended) = runs.ended {
                let name = system.name();
                self.session
                    .notes
                    .push(format!("{id}, {place}, {name}: {ended}, for want of memory"));
            }
            if runs.ended.is_some() || runs.runs.len() < self.session.rounds as usize {
                continue;
            }
            for step in Step::ALL {
                let rounds = runs.runs.iter().map(|times| step.of(times, row.pages)).collect();
                self.cells.push(cell((id, place), &word(system), step.word(), rounds));
            }
        }
    }

    /// Programs with a part of their memory, each under all systems in turns.
    fn whole_programs(&mut self, benchmark: &Benchmark) -> Result<()> {
        let Benchmark::Programs { id, part, programs, quick_programs, systems } = benchmark else {
            return Ok(());
        };
        let home = |name: &String| {
            Home::from_str(name, false).map_err(|error| anyhow!("benchmark {id}: {error}"))
        };
        let args = ProgramsArgs {
            only: if self.quick { quick_programs } else { programs }.clone(),
            systems: systems.iter().map(home).collect::<Result<_>>()?,
            parts: vec![*part],
            runs: self.session.rounds,
            longest: LONGEST_S,
            json: Json { to: None },
        };
        let report = programs::measured(&args)?;
        for row in &report.rows {
            for (home, found) in &row.systems {
                if found.runs.len() < self.session.rounds as usize {
                    let what =
                        format!("{id}, {}, {}: too long, or killed", row.program, word(home));
                    self.session.notes.push(what);
                    continue;
                }
                for (at, quantity) in QUANTITIES.into_iter().enumerate() {
                    let of = |run: &programs::Run| [run.user_s, run.system_s, run.seconds][at];
                    let rounds = found.runs.iter().map(of).collect();
                    self.cells.push(cell((id, row.program), &word(home), quantity, rounds));
                }
            }
        }
        self.session.notes.extend(report.notes);
        Ok(())
    }
}

/// The sweeps of a benchmark, with their place if that is not the number of pages.
fn swept(benchmark: &Benchmark, quick: bool) -> Result<Vec<(Option<String>, Sweep)>> {
    let Benchmark::Memeater { id, mode, clears, crypt, pages, quick_pages, systems } = benchmark
    else {
        return Ok(Vec::new());
    };
    let wrong = |what: String| anyhow!("benchmark {id}: {what}");
    let bytes = |text: &String| -> Result<u64> { Ok(Size::from_str(text).map_err(wrong)?.0) };
    let mode = Mode::from_str(mode, false).map_err(wrong)?;
    let crypt = crypt.as_ref().map(bytes).transpose()?;
    let systems: Vec<System> =
        systems.iter().map(|name| system(name)).collect::<Result<_>>().context(id.clone())?;
    let pages = if quick { quick_pages } else { pages };
    let sweep = |clear: &String| {
        let bench = Bench::new(bytes(clear)?, crypt, mode)?;
        let rows = pages.iter().map(|pages| Row::new(*pages, &systems)).collect();
        Ok(((clears.len() > 1).then(|| clear.clone()), Sweep { bench, rows }))
    };
    clears.iter().map(sweep).collect()
}

/// A system as `figures.toml` writes it.
fn system(name: &str) -> Result<System> {
    serde_json::from_value(name.into()).with_context(|| format!("there is no system {name}"))
}

fn cell(
    (benchmark, place): (&str, &str),
    system: &str,
    quantity: &str,
    rounds: Vec<f64>,
) -> Measured {
    let [benchmark, place, system, quantity] =
        [benchmark, place, system, quantity].map(str::to_owned);
    Measured { benchmark, place, system, quantity, rounds }
}

/// A name as `figures.toml` writes it.
fn word(named: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(named).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Processes that want to run, mean of a minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// The day of a time, in UTC: days are counted from 0000-03-01, in eras of 400 years, whose leap
/// day is the last of all (Hinnant, "chrono-compatible low-level date algorithms").
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_reproduce::papers::MEASURED;
    use std::time::Duration;

    /// What `date -u -d @SECONDS +%F` prints.
    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_399), "2000-02-28");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(951_868_800), "2000-03-01");
        assert_eq!(day(1_798_675_199), "2026-12-30");
        assert_eq!(day(1_798_761_600), "2027-01-01");
    }

    /// Systems, modes, sizes, programs and quantities of `figures.toml` are those that there are.
    #[test]
    fn what_papers_name_can_be_run() {
        for folder in MEASURED {
            let (spec, _) = folder.read_measured().expect("it is right");
            for benchmark in &spec.benchmarks {
                swept(benchmark, true).unwrap_or_else(|error| panic!("{error:#}"));
                if let Benchmark::Programs { programs, quick_programs, systems, .. } = benchmark {
                    assert!(systems.iter().all(|name| Home::from_str(name, false).is_ok()));
                    programs::chosen(programs).unwrap_or_else(|error| panic!("{error:#}"));
                    programs::chosen(quick_programs).unwrap_or_else(|error| panic!("{error:#}"));
                }
            }
            for figure in &spec.figures {
                let known: Vec<&str> = match spec.benchmark_of(figure) {
                    Some(Benchmark::Memeater { .. }) => Step::ALL.map(Step::word).to_vec(),
                    Some(Benchmark::Cryptography { .. }) => vec![PAGE],
                    _ => QUANTITIES.to_vec(),
                };
                let is_known = |quantity: &String| known.contains(&&**quantity);
                assert!(figure.quantity.iter().all(is_known), "figure {}", figure.id);
            }
        }
    }
}
