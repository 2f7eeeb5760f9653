//! Values of keys: what each key takes, how people write it, and how it is written back.

use std::fmt;

use casemate_schemes::nearest::meant;
use serde_json::Value as Json;

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number between two bounds, both inclusive.
    Number(u64, u64),
    /// Bytes between two bounds; people may write `64K`, `2M`, `1G`.
    Size(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of some names.
    Name(&'static [&'static str]),
    /// Lines of a set up to a bound, or `"full"` for all of them.
    Ways(u64),
    /// A name with rules of its own, which the part that it is for checks; an example.
    Text(&'static str),
}

/// A value that its key takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number or a size.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Text(String),
}

/// All lines of a cache are one set.
const FULL: &str = "full";

/// The letters after a size, and the powers of two that they stand for.
const UNITS: [(&str, u32); 4] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];

impl Kind {
    /// Takes what a TOML file says.
    ///
    /// # Errors
    /// What was found and what is expected.
    pub(super) fn take(self, value: &toml::Value) -> Result<Value, (String, String)> {
        let taken = match (self, value) {
            (Kind::Number(..) | Kind::Size(..) | Kind::Ways(_), toml::Value::Integer(number)) => {
                u64::try_from(*number).ok().map(Value::Number)
            }
            (Kind::Size(..), toml::Value::String(text)) => size(text).map(Value::Number),
            (Kind::Flag, toml::Value::Boolean(flag)) => Some(Value::Flag(*flag)),
            (Kind::Name(_) | Kind::Text(_) | Kind::Ways(_), toml::Value::String(text)) => {
                Some(Value::Text(text.clone()))
            }
            _ => None,
        };
        let found = || match value {
            toml::Value::String(text) => format!("{text:?}"),
            other => other.to_string(),
        };
        let text = value.as_str().unwrap_or_default();
        taken.filter(|value| self.admits(value)).ok_or_else(|| (found(), self.expected(text)))
    }

    /// Takes text from the command line.
    ///
    /// # Errors
    /// What was found and what is expected.
    pub(super) fn read(self, text: &str) -> Result<Value, (String, String)> {
        let text = text.trim();
        let taken = match self {
            Kind::Number(..) => number(text).map(Value::Number),
            Kind::Size(..) => size(text).map(Value::Number),
            Kind::Ways(_) => Some(number(text).map_or(Value::Text(text.to_owned()), Value::Number)),
            Kind::Flag => text.parse().ok().map(Value::Flag),
            Kind::Name(_) | Kind::Text(_) => Some(Value::Text(text.to_owned())),
        };
        taken.filter(|v| self.admits(v)).ok_or_else(|| (format!("{text:?}"), self.expected(text)))
    }

    /// What is said of a value that was written like this: a name is answered by the nearest one.
    fn expected(self, text: &str) -> String {
        match self {
            Kind::Name(names) => format!("{self}{}", meant(text, names.iter().copied())),
            _ => self.to_string(),
        }
    }

    fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Number(least, most) | Kind::Size(least, most), Value::Number(number)) => {
                (least..=most).contains(number)
            }
            (Kind::Ways(most), Value::Number(ways)) => (1..=most).contains(ways),
            (Kind::Ways(_), Value::Text(text)) => text == FULL,
            (Kind::Flag, Value::Flag(_)) => true,
            (Kind::Name(names), Value::Text(text)) => names.contains(&text.as_str()),
            (Kind::Text(_), Value::Text(text)) => !text.is_empty(),
            _ => false,
        }
    }
}

/// A phrase that ends "it must be ...".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number(least, most) => write!(f, "a whole number from {least} to {most}"),
            Kind::Size(least, most) => {
                write!(
                    f,
                    "a size from {} to {}, for example 64K or 2M",
                    human(*least),
                    human(*most)
                )
            }
            Kind::Ways(most) => write!(f, "a whole number from 1 to {most}, or {FULL}"),
            Kind::Flag => f.write_str("true or false"),
            Kind::Name(names) => write!(f, "one of {}", names.join(", ")),
            Kind::Text(example) => write!(f, "a name, for example {example}"),
        }
    }
}

/// As TOML has it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            // Names have neither quotes nor control characters, or an escape that JSON shares with
            // TOML.
            Value::Text(text) => write!(f, "{}", Json::from(text.as_str())),
        }
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Json {
        match value {
            Value::Number(number) => Json::from(*number),
            Value::Flag(flag) => Json::from(*flag),
            Value::Text(text) => Json::from(text.as_str()),
        }
    }
}

/// A whole number; underscores may group its digits.
fn number(text: &str) -> Option<u64> {
    let digits: String = text.split('_').collect();
    let grouped = !text.starts_with('_') && !text.ends_with('_') && !text.contains("__");
    (grouped && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// A number of bytes, with K, M, G or T (1024 each, `KB` and `KiB` too) or without.
fn size(text: &str) -> Option<u64> {
    let upper = text.trim().to_ascii_uppercase();
    for (unit, shift) in UNITS {
        for end in [format!("{unit}IB"), format!("{unit}B"), unit.to_owned()] {
            if let Some(whole) = upper.strip_suffix(&end) {
                return number(whole.trim_end())?.checked_mul(1 << shift);
            }
        }
    }
    number(upper.strip_suffix('B').unwrap_or(&upper))
}

/// A size as people write it, exact.
pub fn human(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or(bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("32K", 32 << 10),
            ("32kB", 32 << 10),
            ("2M", 2 << 20),
            ("2 MiB", 2 << 20),
            ("1_024", 1024),
            ("1g", 1 << 30),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "12Q", "-1", "M", "1.5M", "0x10", "1__0", "_1", "99999999T", "2MM", "٣K"]
        {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_written_so_that_they_are_read_again() {
        for bytes in [0, 1, 1000, 1024, 1536, 2 << 20, 3 << 30, u64::MAX] {
            assert_eq!(size(&human(bytes)), Some(bytes), "{}", human(bytes));
        }
    }

    #[test]
    fn a_value_out_of_bounds_or_of_another_kind_says_what_is_expected() {
        let (found, expected) = Kind::Number(1, 16).read("17").unwrap_err();
        assert_eq!((found.as_str(), expected.as_str()), ("\"17\"", "a whole number from 1 to 16"));
        let (_, expected) = Kind::Size(64, 1 << 30).read("12Q").unwrap_err();
        assert_eq!(expected, "a size from 64 to 1G, for example 64K or 2M");
        assert!(Kind::Flag.read("maybe").is_err());
        assert_eq!(Kind::Ways(16).read("full"), Ok(Value::Text("full".into())));
        assert_eq!(Kind::Ways(16).read("8"), Ok(Value::Number(8)));
        assert!(Kind::Ways(16).read("half").is_err() && Kind::Ways(16).read("17").is_err());
        let (_, expected) = Kind::Name(&["fifo", "lru"]).read("lrru").unwrap_err();
        assert_eq!(expected, "one of fifo, lru (did you mean lru?)");
        let in_a_file = toml::Value::String("lrru".into());
        assert_eq!(Kind::Name(&["fifo", "lru"]).take(&in_a_file).unwrap_err().1, expected);
        assert_eq!(Kind::Name(&["fifo"]).read("plru").unwrap_err().1, "one of fifo");
        for (kind, value) in [
            (Kind::Number(0, 9), toml::Value::Integer(-1)),
            (Kind::Number(0, 9), toml::Value::Float(1.0)),
            (Kind::Number(0, 9), toml::Value::String("1".into())),
            (Kind::Flag, toml::Value::Integer(1)),
            (Kind::Text("x"), toml::Value::String(String::new())),
            (Kind::Size(0, 9), toml::Value::Array(Vec::new())),
        ] {
            assert!(kind.take(&value).is_err(), "{kind:?} takes {value:?}");
        }
    }
}
