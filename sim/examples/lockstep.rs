//! Runs a real program under QEMU and holds every value that it loads against protection units of
//! many schemes.
//!
//! ```text
//! cargo run --release -p casemate-sim --example lockstep -- \
//!     [--scheme all|NAME,NAME…] [--loads N] [--skip N] [--frames N] -- PROGRAM [ARGUMENT…]
//! ```
//!
//! `--loads` is for each scheme. Prints what was compared; ends with 1 if something was not as it
//! should be.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use casemate_schemes::catalogue::{NamedScheme, SCHEMES};
use casemate_schemes::choice::chosen;
use casemate_sim::lockstep::machine::PlainUnit;
use casemate_sim::lockstep::{Lockstep, LockstepConfig, LockstepError};
use casemate_sim::trace::live::{Ending, Live, Options, Which};
use casemate_sim::trace::{Instruction, Source};

/// Instructions that are handed to one unit after the other.
const CHUNK: usize = 1 << 14;

struct Arguments {
    schemes: Vec<NamedScheme>,
    loads: u64,
    skip: u64,
    frames: u64,
    command: Vec<OsString>,
}

struct Run {
    name: String,
    machine: Lockstep<PlainUnit>,
    result: Result<(), LockstepError>,
    seconds: f64,
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(sentence) => {
            eprintln!("lockstep: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let frames = LockstepConfig::default().frames;
    let mut parsed =
        Arguments { schemes: SCHEMES.to_vec(), loads: 1_000_000, skip: 0, frames, command: vec![] };
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.command = words.collect();
            break;
        }
        let value = words.next().and_then(|value| value.into_string().ok());
        let value = value.ok_or(format!("{} wants a value", word.display()))?;
        let number = || value.parse().map_err(|_| format!("{value} is no number"));
        match word.to_str() {
            Some("--scheme") if value == "all" => {}
            Some("--scheme") => {
                let names: Vec<&str> = value.split(',').collect();
                parsed.schemes = chosen(&names).map_err(|error| error.to_string())?;
            }
            Some("--loads") => parsed.loads = number()?,
            Some("--skip") => parsed.skip = number()?,
            Some("--frames") => parsed.frames = number()?,
            _ => return Err(format!("there is no option {}", word.display())),
        }
    }
    if parsed.command.is_empty() {
        return Err("name a program behind --".to_owned());
    }
    Ok(parsed)
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let config = LockstepConfig { frames: arguments.frames, ..LockstepConfig::default() };
    let machine = |named: &NamedScheme| {
        let machine = Lockstep::new(&named.scheme, &config).map_err(|error| error.to_string())?;
        Ok(Run { name: named.name.to_string(), machine, result: Ok(()), seconds: 0.0 })
    };
    let mut runs = arguments.schemes.iter().map(machine).collect::<Result<Vec<Run>, String>>()?;
    let (command, skip) = (arguments.command.clone(), arguments.skip);
    let options = Options { command, skip, length: None, values: true, with: Some(Which::Qemu) };
    let start = Instant::now();
    let mut live = Live::start(&options).map_err(|error| error.to_string())?;
    let mut chunk = vec![Instruction::default(); CHUNK];
    let mut more = true;
    while more {
        let mut filled = 0;
        while filled < CHUNK && more {
            more = live.next(&mut chunk[filled]).map_err(|error| error.to_string())?;
            filled += usize::from(more);
        }
        runs.iter_mut().for_each(|run| run.advance(&chunk[..filled]));
        more &= runs.iter().any(|run| run.goes_on(arguments.loads));
    }
    let ending = live.ending();
    drop(live);
    runs.iter_mut().for_each(Run::finish);
    print(&runs, ending, start.elapsed().as_secs_f64());
    Ok(runs.iter().all(|run| run.result.is_ok()))
}

impl Run {
    fn goes_on(&self, loads: u64) -> bool {
        let compared = self.machine.compared();
        self.result.is_ok() && compared.loads + compared.unknown_loads < loads
    }

    fn advance(&mut self, chunk: &[Instruction]) {
        let start = Instant::now();
        if self.result.is_ok() {
            self.result = chunk.iter().try_for_each(|instruction| self.machine.step(instruction));
        }
        self.seconds += start.elapsed().as_secs_f64();
    }

    /// Schemes that check at intervals have still to say whether all was right.
    fn finish(&mut self) {
        let start = Instant::now();
        if self.result.is_ok() {
            self.result = self.machine.check();
        }
        self.seconds += start.elapsed().as_secs_f64();
    }
}

fn print(runs: &[Run], ending: Option<Ending>, seconds: f64) {
    println!(
        "{:<14} {:>12} {:>12} {:>12} {:>10} {:>9} {:>9} {:>10} {:>10} {:>7}  result",
        "scheme",
        "instructions",
        "loads equal",
        "bytes equal",
        "adopted B",
        "extents",
        "unknown",
        "fetched",
        "written",
        "s"
    );
    let mut total = 0;
    for run in runs {
        let compared = run.machine.compared();
        total += compared.loads;
        let result = run.result.as_ref().map_or_else(ToString::to_string, |()| "equal".to_owned());
        println!(
            "{:<14} {:>12} {:>12} {:>12} {:>10} {:>9} {:>9} {:>10} {:>10} {:>7.1}  {result}",
            run.name,
            run.machine.instructions(),
            compared.loads,
            compared.bytes,
            compared.adopted_bytes,
            compared.kernel_extents,
            compared.unknown_loads,
            compared.fetched_blocks,
            compared.written_blocks,
            run.seconds,
        );
    }
    let forgotten = runs.first().map_or(0, |run| run.machine.compared().forgotten_all);
    let ending = match ending {
        Some(Ending::Exited(status)) => status.to_string(),
        Some(Ending::BrokeOff(status)) => format!("broke off, {status}"),
        Some(Ending::Stopped) | None => "stopped after the loads that were wanted".to_owned(),
    };
    println!(
        "{total} loads compared over {} schemes in {seconds:.1} s; all memory forgotten {forgotten} times; program: {ending}",
        runs.len()
    );
}
