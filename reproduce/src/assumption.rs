//! What the papers do not say of their machines, and what else it could have been.

use anyhow::{Context, Result, ensure};
use casemate_sim::config::{Layer, Resolved};
use serde::Deserialize;

use crate::spec::Point;

/// A value of the machine that is not the paper's: `[[assumption]]` in figures.toml.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// The key.
    pub key: String,
    /// Half of it.
    pub half: Option<String>,
    /// What has to change with that for a machine to come out.
    #[serde(default)]
    pub half_needs: Vec<String>,
    /// Why there is no half.
    pub no_half: Option<String>,
    /// Twice as much.
    pub double: Option<String>,
    /// As for the half.
    #[serde(default)]
    pub double_needs: Vec<String>,
    /// What else it could be, where there is no half or no double.
    #[serde(default)]
    pub other: Vec<String>,
    /// As for the half.
    #[serde(default)]
    pub other_needs: Vec<String>,
    /// Why it is what it is.
    pub why: String,
}

impl Assumption {
    /// Machines with another value, named by what they change.
    pub fn variants(&self) -> Vec<Point> {
        let half = self.half.iter().map(|value| (value, &self.half_needs));
        let double = self.double.iter().map(|value| (value, &self.double_needs));
        let other = self.other.iter().map(|value| (value, &self.other_needs));
        let variant = |(value, needs): (&String, &Vec<String>)| {
            let mut set = vec![format!("{}={value}", self.key)];
            set.extend(needs.iter().cloned());
            Point { name: set.join(", ").replace('=', " = "), set }
        };
        half.chain(double).chain(other).map(variant).collect()
    }

    /// Whether a half is one of `machine`'s value, and a double, and whether there are both, or
    /// something else.
    pub fn check(&self, machine: &Resolved) -> Result<()> {
        let key = &self.key;
        ensure!(machine.value(key).is_some(), "assumption {key}: there is no such key");
        let value = machine.number(key);
        let number = |text: &String| -> Result<u64> {
            let layer = Layer::assignment("figures.toml", &format!("{key}={text}"))?;
            Ok(machine.with(&layer)?.number(key))
        };
        if let Some(half) = &self.half {
            let half = number(half).with_context(|| format!("assumption {key}"))?;
            let is_half = half == value / 2 || half == value.div_ceil(2);
            ensure!(half > 0 && is_half, "assumption {key}: {half} is not half of {value}");
        }
        if let Some(double) = &self.double {
            let double = number(double).with_context(|| format!("assumption {key}"))?;
            ensure!(double > 0 && double == 2 * value, "assumption {key}: {double} is not twice");
        }
        let is_halved = self.half.is_some() || self.no_half.is_some() || value <= 1;
        let both = is_halved && self.double.is_some();
        ensure!(
            both || !self.other.is_empty(),
            "assumption {key} has neither half and double nor another value"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use casemate_sim::config::Preset;

    use super::*;

    fn refused(text: &str) -> String {
        let assumption: Assumption = toml::from_str(text).expect("it can be read");
        let preset = Preset::of_name("aise-bmt").and_then(|preset| preset.layer());
        let machine = Resolved::new(&[preset.expect("it is there")]).expect("it says every key");
        assumption.check(&machine).map_or_else(|error| format!("{error:#}"), |()| String::new())
    }

    #[test]
    fn half_is_half_and_double_is_double() {
        let of = |rest: &str| refused(&format!("key = \"core.issue_width\"\nwhy = \"\"\n{rest}"));
        // 3: half of it is 1 or 2, twice 6.
        let double = "double = \"6\"\n";
        for right in ["half = \"1\"", "half = \"2\"", "no_half = \"it is odd\""] {
            assert_eq!(of(&format!("{double}{right}")), "", "{right}");
            assert!(of(right).contains("neither half and double"), "{right}");
        }
        assert_eq!(of("other = [\"4\"]"), "");
        assert!(of("half = \"3\"").contains("3 is not half of 3"));
        assert!(of("double = \"5\"").contains("5 is not twice"));
        assert!(of("").contains("neither half and double"));
        assert!(of(double).contains("neither half and double"));
        assert!(refused("key = \"core.width\"\nwhy = \"\"\nother = [\"1\"]").contains("no such"));
    }

    #[test]
    fn a_variant_is_named_by_all_that_it_changes() {
        let text =
            "key = \"a.b\"\nwhy = \"\"\nhalf = \"1\"\ndouble = \"4\"\ndouble_needs = [\"c=8\"]";
        let assumption: Assumption = toml::from_str(text).expect("it can be read");
        let variants = assumption.variants();
        let named: Vec<&str> = variants.iter().map(|point| &*point.name).collect();
        assert_eq!(named, ["a.b = 1", "a.b = 4, c = 8"]);
        assert_eq!(variants[1].set, ["a.b=4", "c=8"]);
    }
}
