//! One layer of a configuration: what a preset, a file or an override says, checked key by key.

use std::collections::BTreeMap;

use super::error::ConfigurationError;
use super::keys::{self, SECTIONS};
use super::value::{Kind, Value};
use casemate_schemes::nearest::nearest;

/// Some keys with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    pub(super) values: BTreeMap<String, Value>,
}

impl Layer {
    /// Reads a TOML text; `origin` names it in errors.
    ///
    /// # Errors
    /// It is no TOML, names a key that does not exist, or gives one a value that it does not take.
    pub fn read(origin: &str, text: &str) -> Result<Self, ConfigurationError> {
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let place = line.map_or(String::new(), |line| format!("line {line}: "));
            let sentence = format!("{place}{}", error.message());
            ConfigurationError::Syntax { origin: origin.to_owned(), sentence }
        })?;
        let mut layer = Layer::default();
        layer.take(origin, "", &table)?;
        Ok(layer)
    }

    /// Takes a table of keys, whose names begin with `section`.
    fn take(
        &mut self,
        origin: &str,
        section: &str,
        table: &toml::Table,
    ) -> Result<(), ConfigurationError> {
        for (name, value) in table {
            let path = join(section, name);
            match value {
                toml::Value::Table(table) if is_section(&path) => {
                    self.take(origin, &path, table)?;
                }
                value => {
                    let kind = kind_of(origin, &path)?;
                    let taken = kind.take(value).map_err(wrong(origin, &path))?;
                    self.values.insert(path, taken);
                }
            }
        }
        Ok(())
    }

    /// What `KEY=VALUE` says.
    ///
    /// # Errors
    /// There is no `=`, no such key, or the key does not take the value.
    pub fn assignment(origin: &str, text: &str) -> Result<Self, ConfigurationError> {
        let (key, value) = split(text)?;
        let mut layer = Layer::default();
        layer.set(origin, key, value)?;
        Ok(layer)
    }

    /// What each of `KEY=VALUE,VALUE,...` says.
    ///
    /// # Errors
    /// As for [`assignment`](Self::assignment).
    pub fn alternatives(origin: &str, text: &str) -> Result<Vec<Self>, ConfigurationError> {
        let (key, values) = split(text)?;
        let alternative = |value: &str| {
            let mut layer = Layer::default();
            layer.set(origin, key, value).map(|()| layer)
        };
        values.split(',').map(alternative).collect()
    }

    /// Gives one key a value, as written on the command line.
    ///
    /// # Errors
    /// There is no such key, or it does not take the value.
    pub fn set(&mut self, origin: &str, key: &str, value: &str) -> Result<(), ConfigurationError> {
        let kind = kind_of(origin, key)?;
        let value = kind.read(value).map_err(wrong(origin, key))?;
        self.values.insert(key.to_owned(), value);
        Ok(())
    }

    /// The keys with their values, in the order of their names.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Puts another layer over this one.
    pub fn cover(&mut self, over: &Layer) {
        self.values.extend(over.values.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

fn split(text: &str) -> Result<(&str, &str), ConfigurationError> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| ConfigurationError::NoAssignment { text: text.to_owned() })?;
    Ok((key.trim(), value))
}

fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// Whether there are keys below this name.
fn is_section(path: &str) -> bool {
    SECTIONS.iter().any(|section| {
        section.name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn kind_of(origin: &str, path: &str) -> Result<Kind, ConfigurationError> {
    let found = keys::all().find(|(section, key)| {
        path.strip_prefix(section.name).and_then(|rest| rest.strip_prefix('.')) == Some(key.name)
    });
    found.map(|(_, key)| key.kind).ok_or_else(|| {
        let known: Vec<String> = keys::paths().collect();
        let (origin, key) = (origin.to_owned(), path.to_owned());
        match nearest(path, known.iter().map(String::as_str)) {
            Some(nearest) => {
                ConfigurationError::UnknownKey { origin, key, nearest: nearest.to_owned() }
            }
            None => ConfigurationError::NothingLikeKey { origin, known: known_beside(path), key },
        }
    })
}

/// What there is in the section of a key; else the sections.
fn known_beside(path: &str) -> String {
    let of = |section: &str| {
        let found = SECTIONS.iter().find(|known| known.name == section)?;
        let keys: Vec<&str> = found.keys.iter().map(|key| key.name).collect();
        (!keys.is_empty()).then(|| format!("[{section}] has {}", keys.join(", ")))
    };
    let outer = path.rsplit_once('.').map_or("", |(section, _)| section);
    of(path).or_else(|| of(outer)).unwrap_or_else(|| {
        let mut names: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        names.retain(|name| !name.is_empty() && !name.contains('.'));
        format!("the sections are {}", names.join(", "))
    })
}

fn wrong(origin: &str, key: &str) -> impl FnOnce((String, String)) -> ConfigurationError {
    let (origin, key) = (origin.to_owned(), key.to_owned());
    |(found, expected)| ConfigurationError::WrongValue { origin, key, found, expected }
}
