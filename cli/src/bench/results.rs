//! What was measured, gathered over the runs.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Serialize;

use super::WRONG;
use super::args::{Content, PagerArgs};
use super::crypto::Crypto;
use super::measure::{Measured, System};
use super::numbers::{MedianInterval, Spread};
use super::profile::Column;
use super::targets::{Target, targets};
use super::timer::Phase;
use crate::output::SCHEMA;

/// Everything.
#[derive(Serialize)]
pub struct Results {
    schema: u32,
    casemate: &'static str,
    /// Kernel and processor.
    pub machine: String,
    /// The Clear, and the limit of the others.
    pub clear_bytes: u64,
    /// The region.
    pub region_bytes: u64,
    /// Runs of every system.
    pub runs: u32,
    /// Page contents.
    pub content: &'static str,
    /// What zram compresses with.
    pub zram_algorithm: Option<String>,
    /// Original bytes for each compressed byte that zram kept.
    pub zram_compression: Option<f64>,
    /// A row for each system, number of threads and phase.
    pub rows: Vec<Row>,
    /// The program that fits.
    pub fits: Option<Fits>,
    /// Where the time of a page goes.
    pub profile: Vec<Column>,
    /// Page encryption.
    pub crypto: Option<Crypto>,
    /// Untrusted metadata as a share of what is protected, the greatest.
    pub metadata_share: Option<f64>,
    /// Trusted bytes of the keeper.
    pub trusted_bytes: Option<u64>,
    /// The targets.
    pub targets: Vec<Target>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
    #[serde(skip)]
    samples: BTreeMap<(System, usize, Phase), Vec<Sample>>,
    #[serde(skip)]
    fits_samples: BTreeMap<System, Vec<FitsSample>>,
    #[serde(skip)]
    fits_checksum: Option<u64>,
}

/// A cell of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Under which system.
    pub system: System,
    /// With how many threads.
    pub threads: usize,
    /// Doing what.
    pub phase: Phase,
    /// Time that a thread spends on an access to a page.
    pub us_per_access: Spread,
    /// The same for each access that missed; none where nothing missed.
    pub us_per_miss: Option<Spread>,
    /// Share of accesses that missed, median.
    pub miss_rate: f64,
    /// Minor and major faults, median.
    pub faults: [f64; 2],
}

struct Sample {
    us_per_access: f64,
    miss_rate: f64,
    faults: [u64; 2],
}

/// The program that fits the Clear.
#[derive(Clone, Debug, Serialize)]
pub struct Fits {
    /// Its own time in a plain run, and under casemate, in seconds.
    pub work_s: [Spread; 2],
    /// Of each pair of runs, the time under casemate over the plain one's.
    pub work_ratio: MedianInterval,
    /// What a command takes beside that work, to start and to end, in milliseconds: plain, and
    /// under casemate.
    pub start_and_end_ms: [Spread; 2],
}

/// A run of the program that fits, in seconds.
#[derive(Clone, Copy, Debug)]
struct FitsSample {
    work: f64,
    command: f64,
}

impl Results {
    /// Nothing measured yet.
    pub fn new(args: &PagerArgs) -> Self {
        Results {
            schema: SCHEMA,
            casemate: env!("CARGO_PKG_VERSION"),
            machine: machine(),
            clear_bytes: args.clear.0,
            region_bytes: args.clear.0 * 3,
            runs: args.runs,
            content: match args.content {
                Content::Half => "half of every 64 bytes random, half zero",
                Content::Random => "all random",
            },
            zram_algorithm: None,
            zram_compression: None,
            rows: Vec::new(),
            fits: None,
            profile: Vec::new(),
            crypto: None,
            metadata_share: None,
            trusted_bytes: None,
            targets: Vec::new(),
            notes: Vec::new(),
            samples: BTreeMap::new(),
            fits_samples: BTreeMap::new(),
            fits_checksum: None,
        }
    }

    /// Adds a start of the load.
    pub fn add(&mut self, system: System, threads: usize, measured: &Measured) {
        for line in &measured.lines {
            let sample = Sample {
                // What one thread waits: its share of the accesses took the whole time.
                us_per_access: line.seconds * 1e6 * threads as f64 / line.accesses as f64,
                miss_rate: line.miss_rate,
                faults: line.faults,
            };
            self.samples.entry((system, threads, line.phase)).or_default().push(sample);
            if let Some([original, compressed]) = line.zram_bytes {
                self.zram_compression = Some(original as f64 / compressed.max(1) as f64);
            }
        }
        let Some(statistics) = measured.report.as_ref().map(|report| &report["statistics"]) else {
            return;
        };
        let bytes = |name: &str| statistics[name].as_u64();
        if let (Some(metadata), Some(protected @ 1..)) =
            (bytes("metadata_bytes_peak"), bytes("protected_bytes_peak"))
        {
            let share = metadata as f64 / protected as f64;
            self.metadata_share = Some(self.metadata_share.unwrap_or(0.0).max(share));
        }
        self.trusted_bytes = bytes("trusted_bytes");
    }

    /// Adds a run of the program that fits; its result must not depend on the system.
    pub fn add_fits(&mut self, system: System, measured: &Measured) -> Result<()> {
        let Some(line) = measured.lines.first() else { bail!("the load said nothing") };
        if *self.fits_checksum.get_or_insert(line.checksum) != line.checksum {
            bail!("{WRONG}: the program that fits came to another result under {system:?}");
        }
        let sample = FitsSample { work: line.seconds, command: measured.seconds };
        self.fits_samples.entry(system).or_default().push(sample);
        Ok(())
    }

    /// Sums up once all is gathered.
    pub fn judge(&mut self) {
        self.rows = self
            .samples
            .iter()
            .map(|((system, threads, phase), samples)| row(*system, *threads, *phase, samples))
            .collect();
        self.fits = self.sum_up_fits();
        self.targets = targets(self);
    }

    fn sum_up_fits(&self) -> Option<Fits> {
        let [plain, casemate] =
            [System::Plain, System::Casemate].map(|system| self.fits_samples.get(&system));
        let (plain, casemate) = (plain?, casemate?);
        let spread = |pick: fn(&FitsSample) -> f64| {
            [plain, casemate]
                .map(|samples| Spread::of(&samples.iter().map(pick).collect::<Vec<_>>()))
        };
        Some(Fits {
            work_s: spread(|run| run.work),
            work_ratio: self.fits_ratio()?,
            start_and_end_ms: spread(|run| (run.command - run.work) * 1000.0),
        })
    }

    /// Of each pair of runs of the program that fits, the time under casemate over the plain one's;
    /// none of fewer pairs than an interval needs.
    pub fn fits_ratio(&self) -> Option<MedianInterval> {
        let samples = |system| self.fits_samples.get(&system);
        let pairs = samples(System::Plain)?.iter().zip(samples(System::Casemate)?);
        let ratios: Vec<f64> = pairs.map(|(plain, casemate)| casemate.work / plain.work).collect();
        MedianInterval::of(&ratios)
    }

    /// A cell, if it was measured.
    pub fn row(&self, system: System, threads: usize, phase: Phase) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.system == system && row.threads == threads && row.phase == phase)
    }
}

fn row(system: System, threads: usize, phase: Phase, samples: &[Sample]) -> Row {
    let spread =
        |pick: &dyn Fn(&Sample) -> f64| Spread::of(&samples.iter().map(pick).collect::<Vec<_>>());
    let missed = system != System::Plain && samples.iter().all(|s| s.miss_rate > 0.01);
    Row {
        system,
        threads,
        phase,
        us_per_access: spread(&|s| s.us_per_access),
        us_per_miss: missed.then(|| spread(&|s| s.us_per_access / s.miss_rate)),
        miss_rate: if system == System::Plain { 0.0 } else { spread(&|s| s.miss_rate).median },
        faults: [spread(&|s| s.faults[0] as f64).median, spread(&|s| s.faults[1] as f64).median],
    }
}

/// What the report of a benchmark begins with.
#[derive(Serialize)]
pub struct Header {
    schema: u32,
    casemate: &'static str,
    /// Kernel and processor.
    pub machine: String,
    /// Runs over everything.
    pub runs: u32,
}

impl Header {
    /// Of this program, on this machine.
    pub fn new(runs: u32) -> Self {
        Header { schema: SCHEMA, casemate: env!("CARGO_PKG_VERSION"), machine: machine(), runs }
    }
}

/// What has to be known of this build before a figure is believed.
pub fn notes() -> Vec<String> {
    let is_debug = cfg!(debug_assertions);
    let note = "this is a debug build: build with --release before you believe a figure";
    is_debug.then(|| note.to_owned()).into_iter().collect()
}

pub fn machine() -> String {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    let count = info.lines().filter(|line| line.starts_with("processor")).count();
    format!("Linux {kernel}, {count} x {model}")
}
