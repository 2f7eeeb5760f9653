//! The machine and its variations that the arguments ask for.

use std::path::Path;

use anyhow::{Context, Result};
use casemate_sim::config::{ConfigurationError, Layer, Preset, Resolved, simpoints};
use casemate_sim::experiment::configurations::{Configuration, Variations, configurations};

use super::args::{SimArgs, Windows};
use crate::distribution::files;
use crate::failure::Failure;

/// The longest configuration that is read.
const LONGEST_CONFIG_BYTES: u64 = 1 << 20;
/// The longest file of SimPoint's.
const LONGEST_POINTS_BYTES: u64 = 64 << 20;
/// The key of what SimPoint chose.
const POINTS: &str = "run.sample_points";

/// One configuration for each combination of schemes and values, each of which makes a machine.
pub fn all(args: &SimArgs) -> Result<Vec<Configuration>> {
    said_once(args)?;
    set_once(&args.set)?;
    let machine = base(&args.preset, args.config.as_deref())?;
    let machine = machine.with(&options(args)?).map_err(usage)?;
    let variations = Variations { assignments: args.set.clone(), schemes: args.scheme.clone() };
    let all = configurations(&machine, &variations);
    Ok(all.map_err(|error| Failure::own(error.to_string()))?)
}

/// Preset and file.
pub fn base(preset: &str, file: Option<&Path>) -> Result<Resolved> {
    let preset = Preset::of_name(preset).map_err(usage)?;
    let mut layers = vec![preset.layer().map_err(usage)?];
    if let Some(path) = file {
        let name = path.display().to_string();
        let text = files::text(path, LONGEST_CONFIG_BYTES)
            .with_context(|| format!("{name}: the configuration cannot be read"))?;
        layers.push(Layer::read(&name, &text).map_err(usage)?);
    }
    Ok(Resolved::new(&layers).map_err(usage)?)
}

/// One machine: preset, file, and single values over both.
pub fn one(preset: &str, file: Option<&Path>, values: &[String]) -> Result<Resolved> {
    let mut resolved = base(preset, file)?;
    for text in values {
        let [value] = &Layer::alternatives("--set", text).map_err(usage)?[..] else {
            let sentence = format!("--set {text}: one machine takes one value for each key");
            return Err(Failure::own(sentence).into());
        };
        resolved = resolved.with(value).map_err(usage)?;
    }
    resolved.check().map_err(usage)?;
    Ok(resolved)
}

/// The key of what `--set` takes.
pub fn key(text: &str) -> &str {
    text.split_once('=').map_or(text, |(key, _)| key).trim()
}

/// Options that were given, with the keys that they say.
fn numbers(args: &SimArgs) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    let windows = args.sample.and_then(|windows| match windows {
        Windows::Number(number) => Some(number),
        Windows::Auto => None,
    });
    let all = [
        ("--skip", "run.skip_instructions", args.skip),
        ("--warmup", "run.warmup_instructions", args.warmup),
        ("--length", "run.length_instructions", args.length),
        ("--every", "run.every_instructions", args.every),
        ("--sample", "run.sample_windows", windows),
        ("--window", "run.sample_window_instructions", args.window),
        ("--seed", "run.seed", args.seed),
    ];
    all.into_iter().filter_map(|(option, key, value)| Some((option, key, value?)))
}

/// What has an option of its own.
fn options(args: &SimArgs) -> Result<Layer> {
    let mut layer = Layer::default();
    for (option, key, value) in numbers(args) {
        layer.set(option, key, &value.to_string()).map_err(usage)?;
    }
    if let (Some(points), Some(weights)) = (&args.simpoints, &args.weights) {
        layer.set("--simpoints", POINTS, &simpoints(points, weights)?).map_err(usage)?;
    }
    Ok(layer)
}

/// What SimPoint's files say, as the configuration has it.
fn simpoints(points: &Path, weights: &Path) -> Result<String> {
    let text = |path: &Path| {
        files::text(path, LONGEST_POINTS_BYTES)
            .with_context(|| format!("{}: the file cannot be read", path.display()))
    };
    let read = simpoints::read(&text(points)?, &text(weights)?);
    let refused = |error| {
        let (points, weights) = (points.display(), weights.display());
        Failure::own(format!("{points} and {weights} are no simpoints: {error}"))
    };
    Ok(simpoints::text(&read.map_err(refused)?))
}

/// Refuses a key that both `--set` and its own option say.
fn said_once(args: &SimArgs) -> Result<(), Failure> {
    let scheme = (!args.scheme.is_empty()).then_some(("--scheme", "run.scheme"));
    let points = args.simpoints.is_some().then_some(("--simpoints", POINTS));
    let given = numbers(args).map(|(option, key, _)| (option, key));
    let mut given = given.chain(scheme).chain(points);
    let set = |wanted| args.set.iter().find(|text| key(text) == wanted);
    let twice = given.find_map(|(option, key)| Some((option, set(key)?)));
    twice.map_or(Ok(()), |(option, text)| {
        Err(Failure::own(format!("--set {text} says again what {option} says; leave one out")))
    })
}

/// Refuses a key that `--set` says twice: one of the two values would have no effect.
pub fn set_once(values: &[String]) -> Result<(), Failure> {
    let before = |at: usize| values[..at].iter().find(|text| key(text) == key(&values[at]));
    match (0..values.len()).find_map(|at| Some((&values[at], before(at)?))) {
        Some((text, before)) => Err(Failure::own(format!(
            "--set {text} says again what --set {before} says; leave one out"
        ))),
        None => Ok(()),
    }
}

fn usage(error: ConfigurationError) -> Failure {
    Failure::own(error.to_string())
}
