//! A configuration in which every key has its value.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::error::ConfigurationError;
use super::keys::{self, SECTIONS};
use super::layer::Layer;
use super::simpoints;
use super::value::Value;

/// All keys with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    values: BTreeMap<String, Value>,
}

impl Resolved {
    /// From layers, of which the first says every key.
    ///
    /// # Errors
    /// A key has no value.
    pub fn new(layers: &[Layer]) -> Result<Self, ConfigurationError> {
        let mut whole = Layer::default();
        layers.iter().for_each(|layer| whole.cover(layer));
        let missing = keys::paths().find(|path| !whole.values.contains_key(path));
        if let Some(key) = missing {
            let expected = "given, since nothing else says it".to_owned();
            let (origin, found) = ("the configuration".to_owned(), "missing".to_owned());
            return Err(ConfigurationError::WrongValue { origin, key, found, expected });
        }
        Ok(Resolved { values: whole.values })
    }

    /// With another layer over it.
    ///
    /// # Errors
    /// None, since every key has a value already.
    pub fn with(&self, over: &Layer) -> Result<Self, ConfigurationError> {
        Self::new(&[Layer { values: self.values.clone() }, over.clone()])
    }

    /// Whether the values make a machine, and say what is measured.
    ///
    /// # Errors
    /// They do not; the key is named.
    pub fn check(&self) -> Result<(), ConfigurationError> {
        super::memory::memory(self)?;
        let processor = super::machine::processor(self)?;
        let unit = super::protection::protection(self)?;
        let refused = |refusal| ConfigurationError::Refused { refusal };
        processor.hierarchy.validate_lines(unit.line_bytes).map_err(refused)?;
        let points = simpoints::parse(self.text("run.sample_points"))?;
        if self.number("run.sample_windows") > 0 && !points.is_empty() {
            return Err(ConfigurationError::WindowsSaidTwice);
        }
        Ok(())
    }

    /// The value of a key.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.values.get(path)
    }

    /// A number; 0 if the key has none.
    #[must_use]
    pub fn number(&self, path: &str) -> u64 {
        match self.value(path) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    /// A name; empty if the key has none.
    #[must_use]
    pub fn text(&self, path: &str) -> &str {
        match self.value(path) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// As a TOML file that says all of it again, with what each key means.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = String::new();
        for section in &SECTIONS {
            if !text.is_empty() {
                text.push('\n');
            }
            text += &format!("# {}\n[{}]\n", section.meaning, section.name);
            for key in section.keys {
                let path = format!("{}.{}", section.name, key.name);
                if let Some(value) = self.values.get(&path) {
                    text += &format!("{} = {value} # {}\n", key.name, key.meaning);
                }
            }
        }
        text
    }

    /// As nested objects.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut root = Json::Object(Map::new());
        for (path, value) in &self.values {
            let mut place = &mut root;
            for name in path.split('.') {
                // An index makes what is not there yet.
                place = &mut place[name];
            }
            *place = value.into();
        }
        root
    }

    /// The keys of a section, as the structure that they are for.
    ///
    /// # Errors
    /// The structure does not take them.
    pub(super) fn section<T: DeserializeOwned>(&self, name: &str) -> Result<T, ConfigurationError> {
        let mut members = Map::new();
        for key in SECTIONS.iter().filter(|s| s.name == name).flat_map(|s| s.keys) {
            if let Some(value) = self.values.get(&format!("{name}.{}", key.name)) {
                members.insert(key.name.to_owned(), value.into());
            }
        }
        serde_json::from_value(Json::Object(members)).map_err(|error| ConfigurationError::Section {
            section: name.to_owned(),
            sentence: error.to_string(),
        })
    }
}
