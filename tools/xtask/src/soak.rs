//! `cargo xtask soak`: the same tests for hours, with new seeds, and what they add up to.

use crate::cargo::{Totals, cargo, run_tests};
use crate::packages;
use crate::phases::Phases;
use anyhow::{Context, Result, bail};
use std::time::{Duration, Instant};

/// Unless something else is told.
const USUAL: Duration = Duration::from_secs(2 * 3600);

/// Once, in their longer versions: the package and the test.
const LONG: &[(&str, &str)] = &[
    ("casemate-traps", "real_programs"),
    ("casemate-traps", "oracle"),
    ("casemate-traps", "agent_dies"),
    ("casemate-schemes", "scheme_oracle"),
    ("casemate-schemes", "unit_oracle"),
    ("casemate-lab", "attack_matrix"),
    ("casemate-vopr", "seeds"),
];

/// Again and again, each time with a seed of its own; tests of `casemate-traps`.
const ROUND: &[&str] = &["traps", "failures", "oracle", "agent_dies", "clear_bound"];

/// How long, as the command line says it.
pub fn time(words: &[&str]) -> Option<Duration> {
    let seconds = match words {
        [] => return Some(USUAL),
        ["--hours", hours] => hours.parse::<u64>().ok()?.checked_mul(3600)?,
        ["--minutes", minutes] => minutes.parse::<u64>().ok()?.checked_mul(60)?,
        _ => return None,
    };
    Some(Duration::from_secs(seconds))
}

/// The long versions first, then rounds until the time has passed. A round that has begun is
/// finished.
pub fn soak(time: Duration) -> Result<()> {
    let start = Instant::now();
    let mut phases = Phases::new();
    phases.run("packages", packages::install)?;
    phases.run("build", || cargo(&["build", "--workspace", "--release"], &[]))?;
    let mut environment = packages::environment()?;
    environment.push(("CASEMATE_TALLY", "1"));
    let mut long = environment.clone();
    long.push(("CASEMATE_SOAK", "1"));
    let mut totals = Totals { good: true, ..Totals::default() };
    for (package, name) in LONG {
        totals.add(&phases.run(&format!("{name}, long"), || one(package, name, &long))?);
    }
    let mut seed = 2_u64;
    while start.elapsed() < time {
        let text = seed.to_string();
        let mut round = environment.clone();
        round.push(("CASEMATE_SEED", &text));
        for name in ROUND {
            totals
                .add(&phases.run(&format!("{name}, seed {seed}"), || {
                    one("casemate-traps", name, &round)
                })?);
        }
        println!("\n== after {}\n{}", hours(start.elapsed()), totals.tally);
        seed = seed.checked_add(1).context("seeds ran out")?;
    }
    phases.print();
    println!("\n{} with {} rounds of seeds\n{}", hours(start.elapsed()), seed - 2, totals.tally);
    crate::finish(&totals)?;
    let defects = totals.tally.defects();
    if !defects.is_empty() {
        bail!("the soak found defects: {}", defects.join(", "));
    }
    Ok(())
}

fn one(package: &str, name: &str, environment: &[(&str, &str)]) -> Result<Totals> {
    let words = ["test", "--release", "-p", package, "--no-fail-fast", "--test", name];
    run_tests(&words, environment)
}

fn hours(time: Duration) -> String {
    format!("{:.2} hours", time.as_secs_f64() / 3600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_hours_or_minutes() {
        assert_eq!(time(&[]), Some(USUAL));
        assert_eq!(time(&["--hours", "3"]), Some(Duration::from_secs(10_800)));
        assert_eq!(time(&["--minutes", "2"]), Some(Duration::from_secs(120)));
        for wrong in [&["--hours"][..], &["--hours", "x"], &["--days", "1"]] {
            assert_eq!(time(wrong), None);
        }
    }
}
