//! `casemate bench`: what things cost. [`schemes`] measures the engine's protection units, [`sim`]
//! the simulator, [`programs`] whole programs under the pager, [`memeater`] Cryptkeeper's
//! microbenchmark; the rest is `casemate bench pager`: the pager beside the floor, plain Linux and
//! zram, in one invocation.
//!
//! Every system runs the same program over the same region with the same contents. The systems
//! take turns within a run, so that a slow minute of the machine hits all of them; the table shows
//! median, least and greatest.

pub mod accuracy;
pub mod args;
mod cgroup;
pub mod crypto;
mod floor;
mod folder;
pub mod load;
mod measure;
pub mod memeater;
mod numbers;
mod profile;
pub mod programs;
pub mod results;
pub mod schemes;
pub mod sim;
mod swap_file;
mod table;
mod targets;
mod timer;
mod zram;

use anyhow::{Context, Result};

use casemate_keeper::{ClearSize, PAGE_BYTES};

use crate::failure::{Failure, sentence};
use crate::output;
use crate::progress;
use crate::size::Size;
use crate::sys::signals;
use args::{PagerArgs, Part};

use cgroup::Cgroup;
use measure::{Bench, System};
use results::Results;
use zram::Zram;

/// The Clear of `bench pager` if nothing is said: the size at which its targets were measured.
const DEFAULT_CLEAR: u64 = 64 << 20;
/// More than any machine that this is run on, and far from overflow.
const LARGEST_CLEAR: u64 = 64 << 30;
/// Accesses of the program that fits: some tenths of a second.
const FITS_ACCESSES: u64 = 12_000_000;
/// Pairs of runs of that program, for each of `--runs`, at most.
const FITS_PAIRS: u32 = 60;
/// Half the width of the interval at which no further pairs are needed.
const FITS_HALF_WIDTH: f64 = 0.003;

/// Swap on zram, and a cgroup for what is to use it.
struct Swapping {
    cgroup: Cgroup,
    device: Zram,
}

impl Swapping {
    fn start(limit: u64) -> Result<Self> {
        let device = Zram::start(limit * 3)?;
        Ok(Swapping { cgroup: Cgroup::with_limit(limit)?, device })
    }
}

/// The bytes of a Clear, for a benchmark that gives others as much.
///
/// # Errors
/// They are no whole pages, or fewer or more than a Clear may have.
fn checked_clear(clear: Size) -> Result<u64> {
    let bytes = clear.0;
    if (ClearSize::FLOOR_BYTES..=LARGEST_CLEAR).contains(&bytes)
        && bytes.is_multiple_of(PAGE_BYTES as u64)
    {
        return Ok(bytes);
    }
    Err(Failure::own(format!(
        "--clear is {bytes} bytes; choose whole pages from 2M to 64G (64M is the default)"
    ))
    .into())
}

/// Measures and prints.
pub fn pager(args: &PagerArgs) -> Result<u8> {
    checked_clear(args.clear)?;
    let wanted = |part: Part| args.only.is_empty() || args.only.contains(&part);
    let mut results = Results::new(args);
    results.notes.extend(results::notes());
    signals::remember_stop().context("cannot catch signals")?;
    let bench = Bench::new(args)?;

    let zram = if wanted(Part::Zram) {
        match Swapping::start(args.clear.0) {
            Ok(zram) => Some(zram),
            Err(why) => {
                results.notes.push(format!("zram: {}", sentence(&why)));
                None
            }
        }
    } else {
        None
    };
    results.zram_algorithm = zram.as_ref().map(|zram| zram.device.algorithm.clone());
    let systems: Vec<System> = [
        (System::Plain, wanted(Part::Plain)),
        (System::Floor, wanted(Part::Floor)),
        (System::Casemate, wanted(Part::Casemate)),
        (System::Zram, zram.is_some()),
    ]
    .into_iter()
    .filter_map(|(system, wanted)| wanted.then_some(system))
    .collect();
    pages(args, &bench, &systems, zram.as_ref(), &mut results)?;
    // Swapping to zram must not help the programs that are measured next.
    drop(zram);

    if wanted(Part::Profile) {
        match profile::measure(&bench, args) {
            Ok(columns) => results.profile = columns,
            Err(error) if signals::stop_wanted() => return Err(error),
            Err(error) => results.notes.push(format!("profile: {}", sentence(&error))),
        }
    }
    if wanted(Part::Fits) {
        fits(args, &bench, &mut results)?;
    }
    if wanted(Part::Crypto) {
        progress::stage("page encryption");
        results.crypto = Some(crypto::measure(args.runs)?);
    }
    results.judge();
    match &args.json.to {
        Some(to) => output::json(to, &results)?,
        None => output::stdout(&table::table(&results))?,
    }
    refuse_wrong(&results.notes)?;
    refuse_unmeasured(&results.notes)?;
    targets::gate(&results.targets)?;
    Ok(0)
}

/// What the sentence of a program begins with that read another byte than it wrote, or came to
/// another result than plain.
const WRONG: &str = "WRONG BYTE";

/// Fails if a note tells of a wrong byte: no figure stands beside that.
fn refuse_wrong(notes: &[String]) -> Result<()> {
    match notes.iter().find(|note| note.contains(WRONG)) {
        Some(note) => anyhow::bail!("{note}"),
        None => Ok(()),
    }
}

/// Fails if `casemate run` itself could not be measured.
fn refuse_unmeasured(notes: &[String]) -> Result<()> {
    let prefix = format!("{:?}: ", System::Casemate);
    match notes.iter().find(|note| note.starts_with(&prefix)) {
        Some(note) => anyhow::bail!("not measured: {note}"),
        None => Ok(()),
    }
}

fn pages(
    args: &PagerArgs,
    bench: &Bench,
    systems: &[System],
    zram: Option<&Swapping>,
    results: &mut Results,
) -> Result<()> {
    let two = floor::allowed_cpus()?.len() >= 2;
    if !two {
        results.notes.push("one processor only: not measured with two threads".to_owned());
    }
    let mut broken: Vec<System> = Vec::new();
    for run in 0..args.runs {
        for threads in [1, 2].into_iter().filter(|threads| *threads == 1 || two) {
            for system in systems {
                if broken.contains(system) {
                    continue;
                }
                progress::stage(&format!(
                    "run {} of {}: {system:?}, threads: {threads}",
                    run + 1,
                    args.runs
                ));
                match bench.pages(*system, threads, u64::from(run) + 1, zram) {
                    Ok(measured) => results.add(*system, threads, &measured),
                    Err(error) if signals::stop_wanted() => return Err(error),
                    Err(error) => {
                        results.notes.push(format!("{system:?}: {}", sentence(&error)));
                        broken.push(*system);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Pairs of a plain and a protected run, until their ratio is known well enough. Each goes first in
/// every other pair, so that a machine that becomes slower or faster favours none.
fn fits(args: &PagerArgs, bench: &Bench, results: &mut Results) -> Result<()> {
    let most = args.runs * FITS_PAIRS;
    for pair in 0..most {
        progress::stage(&format!("pair {} of at most {most}: a program that fits", pair + 1));
        let mut systems = [System::Plain, System::Casemate];
        systems.rotate_left(pair as usize % 2);
        for system in systems {
            match bench.fits(system, args.clear.0 / 2, FITS_ACCESSES) {
                Ok(measured) => results.add_fits(system, &measured)?,
                Err(error) if signals::stop_wanted() => return Err(error),
                Err(error) => {
                    results
                        .notes
                        .push(format!("a program that fits, {system:?}: {}", sentence(&error)));
                    return Ok(());
                }
            }
        }
        if results.fits_ratio().is_some_and(|ratio| ratio.half_width() <= FITS_HALF_WIDTH) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_ends_the_benchmark() {
        let notes = |last: &str| ["zram: not here".to_owned(), last.to_owned()];
        assert!(refuse_wrong(&notes("Casemate: ended with 137")).is_ok());
        let note = format!("Casemate: {WRONG}: page 7 does not begin with what was written");
        let error = refuse_wrong(&notes(&note)).expect_err("a wrong byte").to_string();
        assert_eq!(error, note);
    }
}
