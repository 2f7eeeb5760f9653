//! What the arguments ask for: one configuration for each combination of schemes and values.

use std::path::Path;

use anyhow::{Context, Result};
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES, by_name};
use casemate_sim::config::nearest::meant;
use casemate_sim::config::{ConfigurationError, Layer, Preset, Resolved};

use super::args::SimArgs;
use crate::failure::Failure;

/// More are taken for a slip in a list: they would run for too long.
const MOST_CONFIGURATIONS: usize = 100_000;

/// A configuration that is to be simulated.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// All keys.
    pub resolved: Resolved,
    /// The keys that were given several values, with this one's.
    pub varied: Vec<(String, String)>,
}

impl Configuration {
    /// Its scheme's name.
    pub fn scheme(&self) -> &str {
        self.resolved.text("run.scheme")
    }
}

/// All configurations, each of which makes a machine. For each combination of values, all schemes, in the order in which
/// they were given. What is asked for twice is there once.
pub fn configurations(args: &SimArgs) -> Result<Vec<Configuration>> {
    let mut resolved = base(&args.preset, args.config.as_deref())?;
    let usage = |error: ConfigurationError| Failure::own(error.to_string());
    let sets = sets(args)?;
    let varied: Vec<&String> =
        sets.iter().filter(|(_, values)| values.len() > 1).map(|(key, _)| key).collect();
    let options = options(args).map_err(usage)?;
    resolved = resolved.with(&options).map_err(usage)?;
    let mut all: Vec<Configuration> = Vec::new();
    for layer in combinations(&sets)? {
        let resolved = resolved.with(&layer).map_err(usage)?;
        for scheme in schemes(args, &resolved)? {
            let mut name = Layer::default();
            name.set("--scheme", "run.scheme", &scheme).map_err(usage)?;
            let resolved = resolved.with(&name).map_err(usage)?;
            resolved.check().map_err(usage)?;
            let value = |key: &&String| {
                let value = resolved.value(key).map_or(String::new(), ToString::to_string);
                (String::clone(key), value.replace('"', ""))
            };
            let varied = varied.iter().map(value).collect();
            all.push(Configuration { resolved, varied });
        }
    }
    Ok(all)
}

/// The values of each key that `--set` names, each once; the last `--set` of a key counts.
fn sets(args: &SimArgs) -> Result<Vec<(String, Vec<Layer>)>> {
    let mut sets: Vec<(String, Vec<Layer>)> = Vec::new();
    for text in &args.set {
        let given = Layer::alternatives("--set", text);
        let mut values: Vec<Layer> = Vec::new();
        for value in given.map_err(|error| Failure::own(error.to_string()))? {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let Some(key) = values[0].values().next().map(|(key, _)| key.to_owned()) else { continue };
        sets.retain(|(known, _)| *known != key);
        sets.push((key, values));
    }
    if !args.scheme.is_empty() {
        // --scheme comes last, over all of them.
        sets.retain(|(key, _)| key != "run.scheme");
    }
    Ok(sets)
}

/// One layer for each combination of values; the last key's change fastest.
fn combinations(sets: &[(String, Vec<Layer>)]) -> Result<Vec<Layer>> {
    let mut all = vec![Layer::default()];
    for (_, values) in sets {
        if all.len() * values.len() > MOST_CONFIGURATIONS {
            let sentence = format!("--set asks for more than {MOST_CONFIGURATIONS} configurations");
            return Err(Failure::own(sentence).into());
        }
        let over = |layer: &Layer| -> Vec<Layer> {
            let covered = |value: &Layer| {
                let mut layer = layer.clone();
                layer.cover(value);
                layer
            };
            values.iter().map(covered).collect()
        };
        all = all.iter().flat_map(over).collect();
    }
    Ok(all)
}

/// Preset and file.
pub fn base(preset: &str, file: Option<&Path>) -> Result<Resolved> {
    let usage = |error: ConfigurationError| Failure::own(error.to_string());
    let preset = Preset::of_name(preset).map_err(usage)?;
    let mut layers = vec![preset.layer().map_err(usage)?];
    if let Some(path) = file {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{name}: the configuration cannot be read"))?;
        layers.push(Layer::read(&name, &text).map_err(usage)?);
    }
    Ok(Resolved::new(&layers).map_err(usage)?)
}

/// One machine: preset, file, and single values over both.
pub fn machine(preset: &str, file: Option<&Path>, values: &[String]) -> Result<Resolved> {
    let usage = |error: ConfigurationError| Failure::own(error.to_string());
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

/// What has an option of its own.
fn options(args: &SimArgs) -> Result<Layer, ConfigurationError> {
    let mut layer = Layer::default();
    for (option, key, value) in [
        ("--skip", "run.skip_instructions", args.skip),
        ("--warmup", "run.warmup_instructions", args.warmup),
        ("--length", "run.length_instructions", args.length),
        ("--every", "run.every_instructions", args.every),
        ("--seed", "run.seed", args.seed),
    ] {
        if let Some(value) = value {
            layer.set(option, key, &value.to_string())?;
        }
    }
    Ok(layer)
}

/// The schemes that are asked for; their parts go together.
fn schemes(args: &SimArgs, resolved: &Resolved) -> Result<Vec<String>> {
    let own = [resolved.text("run.scheme").to_owned()];
    let wanted = if args.scheme.is_empty() { &own[..] } else { &args.scheme };
    let mut names: Vec<String> = Vec::new();
    for name in wanted {
        let all = || SCHEMES.iter().map(|named| named.name.to_string());
        let more: Vec<String> = if name == "all" { all().collect() } else { vec![checked(name)?] };
        names.extend(more.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    Ok(names)
}

fn checked(name: &str) -> Result<String> {
    let Some(named) = by_name(name) else {
        return Err(Failure::own(unknown_scheme(name)).into());
    };
    match named.scheme.check() {
        Ok(()) => Ok(name.to_owned()),
        Err(error) => {
            Err(Failure::own(format!("the parts of {name} do not go together: {error}")).into())
        }
    }
}

fn unknown_scheme(name: &str) -> String {
    let names = SCHEMES.iter().map(|named| &*named.name);
    let parts = || {
        ENCRYPTIONS
            .iter()
            .flat_map(|(e, _)| INTEGRITIES.iter().map(move |(i, _)| format!("{e}/{i}")))
    };
    let composed: Vec<String> = if name.contains('/') { parts().collect() } else { Vec::new() };
    let meant = meant(name, names.chain(composed.iter().map(String::as_str)));
    format!("there is no scheme {name}{meant} (casemate sim --list names all)")
}
