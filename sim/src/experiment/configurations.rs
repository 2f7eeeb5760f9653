//! Which configurations an experiment is of: one for each combination of values and schemes.

use casemate_schemes::choice::{ChoiceError, chosen};

use crate::config::{ConfigurationError, Layer, Resolved};

/// More are taken for a slip in a list: they would run for too long.
const MOST_CONFIGURATIONS: usize = 100_000;
/// The key that names the scheme.
const SCHEME: &str = "run.scheme";

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
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.resolved.text(SCHEME)
    }
}

impl From<Resolved> for Configuration {
    fn from(resolved: Resolved) -> Self {
        Configuration { resolved, varied: Vec::new() }
    }
}

/// What is varied over a machine.
#[derive(Clone, Debug, Default)]
pub struct Variations {
    /// `KEY=VALUE[,VALUE...]`, as `--set` takes them; the last of a key counts.
    pub assignments: Vec<String>,
    /// Names of schemes, or "all"; the configuration's own if there are none. They come last, over
    /// all assignments.
    pub schemes: Vec<String>,
}

/// Why there are no such configurations.
#[derive(Debug, thiserror::Error)]
pub enum VariationError {
    /// One of them is impossible.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// There are too many.
    #[error("--set asks for more than {MOST_CONFIGURATIONS} configurations")]
    TooMany,
    /// There is no such scheme.
    #[error(transparent)]
    Scheme(#[from] ChoiceError),
}

/// All configurations, each of which makes a machine. For each combination of values, all schemes,
/// in the order in which they were given. What is asked for twice is there once.
///
/// # Errors
/// A key, a value or a scheme is wrong, or there are too many combinations.
pub fn configurations(
    machine: &Resolved,
    variations: &Variations,
) -> Result<Vec<Configuration>, VariationError> {
    let sets = sets(variations)?;
    let varied: Vec<&String> =
        sets.iter().filter(|(_, values)| values.len() > 1).map(|(key, _)| key).collect();
    let mut all: Vec<Configuration> = Vec::new();
    for layer in combinations(&sets)? {
        let resolved = machine.with(&layer)?;
        for scheme in schemes(variations, &resolved)? {
            let mut name = Layer::default();
            name.set("--scheme", SCHEME, &scheme)?;
            let resolved = resolved.with(&name)?;
            resolved.check()?;
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

/// The values of each key that is assigned, each once.
fn sets(variations: &Variations) -> Result<Vec<(String, Vec<Layer>)>, ConfigurationError> {
    let mut sets: Vec<(String, Vec<Layer>)> = Vec::new();
    for text in &variations.assignments {
        let mut values: Vec<Layer> = Vec::new();
        for value in Layer::alternatives("--set", text)? {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let Some(key) = values[0].values().next().map(|(key, _)| key.to_owned()) else { continue };
        sets.retain(|(known, _)| *known != key);
        sets.push((key, values));
    }
    if !variations.schemes.is_empty() {
        sets.retain(|(key, _)| key != SCHEME);
    }
    Ok(sets)
}

/// One layer for each combination of values; the last key's change fastest.
fn combinations(sets: &[(String, Vec<Layer>)]) -> Result<Vec<Layer>, VariationError> {
    let mut all = vec![Layer::default()];
    for (_, values) in sets {
        if all.len() * values.len() > MOST_CONFIGURATIONS {
            return Err(VariationError::TooMany);
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

/// The names of the schemes that are asked for; their parts go together.
fn schemes(variations: &Variations, resolved: &Resolved) -> Result<Vec<String>, VariationError> {
    let own = [resolved.text(SCHEME).to_owned()];
    let wanted = if variations.schemes.is_empty() { &own[..] } else { &variations.schemes };
    Ok(chosen(wanted)?.into_iter().map(|named| named.name.into_owned()).collect())
}
