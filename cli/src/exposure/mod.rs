//! `casemate exposure`: whether keys are recovered from memory that decayed when its power was cut.

pub mod args;

use anyhow::Result;
use casemate_keeper::hiding::ExposureResilient;
use casemate_lab::exposure::trial::Trial;
use casemate_lab::exposure::{Attacker, Target, share_powers};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::size;
use args::ExposureArgs;

/// Small memories, so that a search of few candidates succeeds sometimes.
const TRIAL_BYTES: usize = 128;
const TRIAL_SEARCH_BITS: u32 = 9;

/// A number for each attacker.
#[derive(Serialize, Clone, Copy)]
struct Both {
    reads: f64,
    knows_cells: f64,
}

#[derive(Serialize)]
struct Point {
    log10_of_decayed_share: f64,
    recovered: Both,
}

#[derive(Serialize)]
struct Curve {
    memory: String,
    /// The decayed share at which half of all keys are recovered.
    half_recovered: Both,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Tried {
    attacker: &'static str,
    decayed_share: f64,
    trials: u32,
    recovered: u32,
    computed: f64,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    search_bits: u32,
    curves: Vec<Curve>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trials: Vec<Tried>,
}

/// Computes the curves and prints where they fall.
pub fn exposure(args: &ExposureArgs) -> Result<u8> {
    if let Some(out) = &args.csv {
        out.of_flag_apart_from("--csv", &args.json)?;
    }
    let curves = targets(args)?.into_iter().map(|(name, target)| curve(name, target, args));
    let trials = args.trials.map_or(Ok(Vec::new()), |trials| tried(trials, args.seed))?;
    let search_bits = args.search_bits;
    let report = Report { schema: SCHEMA, search_bits, curves: curves.collect(), trials };
    if let Some(out) = &args.csv {
        out.write(csv(&report.curves).as_bytes())?;
    }
    match (&args.json.to, &args.csv) {
        (Some(to), _) => output::json(to, &report)?,
        (None, Some(out)) => out.say(&text(&report))?,
        (None, None) => output::stdout(&text(&report))?,
    }
    Ok(0)
}

/// What is compared, by name.
fn targets(args: &ExposureArgs) -> Result<Vec<(String, Target)>> {
    let mut targets = vec![
        ("a 256-bit key".to_owned(), Target::Key),
        ("an AES-256 key schedule".to_owned(), Target::Schedule),
    ];
    for size in &args.memory {
        let name = size::format(size.0);
        if !usize::try_from(size.0).is_ok_and(|bytes| ExposureResilient::SIZES.contains(&bytes)) {
            let sentence = format!("a key is spread over 4 KiB to 1 GiB of memory, not {name}");
            return Err(Failure::own(sentence).into());
        }
        targets.push((format!("spread over {name}"), Target::Spread(size.0)));
    }
    Ok(targets)
}

fn curve(memory: String, target: Target, args: &ExposureArgs) -> Curve {
    let both = |of: &dyn Fn(Attacker) -> f64| Both {
        reads: of(Attacker::Reads),
        knows_cells: of(Attacker::KnowsCells),
    };
    let point = |power: f64| Point {
        log10_of_decayed_share: power,
        recovered: both(&|who| target.recovery(10_f64.powf(power), args.search_bits, who)),
    };
    let half_recovered = both(&|who| target.half_recovered(args.search_bits, who));
    Curve { memory, half_recovered, points: share_powers().map(point).collect() }
}

/// Both attackers against the real transform, where each should recover half of the secrets.
fn tried(trials: u32, seed: u64) -> Result<Vec<Tried>> {
    let attackers =
        [("reads memory", Attacker::Reads), ("knows which cells leaked", Attacker::KnowsCells)];
    let one = |(name, attacker): (&'static str, Attacker)| {
        let (bytes, search_bits) = (TRIAL_BYTES, TRIAL_SEARCH_BITS);
        let target = Target::Spread(bytes as u64);
        let decayed = target.half_recovered(search_bits, attacker);
        Ok(Tried {
            attacker: name,
            decayed_share: decayed,
            trials,
            recovered: Trial { bytes, decayed, search_bits, attacker }.recovered(trials, seed)?,
            computed: target.recovery(decayed, search_bits, attacker),
        })
    };
    attackers.into_iter().map(one).collect()
}

fn csv(curves: &[Curve]) -> String {
    let mut text =
        "memory,log10_of_decayed_share,recovered,recovered_knowing_the_cells\n".to_owned();
    for curve in curves {
        for Point { log10_of_decayed_share: power, recovered } in &curve.points {
            let Both { reads, knows_cells } = recovered;
            text += &format!("{},{power:.1},{reads:.6},{knows_cells:.6}\n", curve.memory);
        }
    }
    text
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "Who tries 2^{} candidates recovers half of all keys, if so many cells have leaked\n\n\
         {:<27} {:>12}   {:>24}\n",
        report.search_bits, "the key is", "reads memory", "knows which cells leaked"
    );
    for curve in &report.curves {
        let Both { reads, knows_cells } = curve.half_recovered;
        text += &format!(
            "{:<27} {:>12}   {:>24}\n",
            curve.memory,
            percent(reads),
            percent(knows_cells)
        );
    }
    text += "\nHalf of the cells that leak held no charge: half as many bits read wrong.\n\
             The key schedule: as published (Tsow 2009), by its redundancy.\n";
    if !report.trials.is_empty() {
        text += &format!(
            "\nThe real transform over {TRIAL_BYTES} bytes, and a search of 2^{TRIAL_SEARCH_BITS}\n"
        );
    }
    for tried in &report.trials {
        let Tried { attacker, recovered, trials, .. } = tried;
        let (share, computed) = (percent(tried.decayed_share), tried.computed * 100.0);
        text += &format!(
            "{attacker}: at {share} leaked, {recovered} of {trials} recovered; \
             computed {computed:.1} %\n"
        );
    }
    text
}

/// A share with two digits that say something, however small.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = (1.0 - value.max(1e-30).log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_readable() {
        for (share, text) in [
            (1.0, "100 %"),
            (0.65, "65 %"),
            (0.012, "1.2 %"),
            (0.000_31, "0.031 %"),
            (7.2e-7, "0.000072 %"),
        ] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn a_row_of_the_file_is_a_place_of_a_curve() {
        let half_recovered = Both { reads: 0.1, knows_cells: 0.2 };
        let recovered = Both { reads: 0.25, knows_cells: 1.0 };
        let points = vec![Point { log10_of_decayed_share: -7.9, recovered }];
        let text = csv(&[Curve { memory: "a key".to_owned(), half_recovered, points }]);
        assert_eq!(text.lines().nth(1), Some("a key,-7.9,0.250000,1.000000"));
    }
}
