//! How ways and policies are written in a configuration: `8` or `"full"`; `"lru"`, `"random:7"`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use super::{Replacement, Ways};

impl fmt::Display for Replacement {
    /// The name that [`FromStr`](std::str::FromStr) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replacement::Lru => f.write_str("lru"),
            Replacement::Fifo => f.write_str("fifo"),
            Replacement::Random { seed } => write!(f, "random:{seed}"),
            Replacement::TreePlru => f.write_str("tree-plru"),
        }
    }
}

impl Serialize for Replacement {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Replacement {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Ways {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Ways::Set(ways) => to.serialize_u64(*ways),
            Ways::Full => to.serialize_str("full"),
        }
    }
}

impl<'de> Deserialize<'de> for Ways {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(WaysVisitor)
    }
}

struct WaysVisitor;

impl Visitor<'_> for WaysVisitor {
    type Value = Ways;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of ways or \"full\"")
    }

    fn visit_u64<E: Error>(self, ways: u64) -> Result<Ways, E> {
        Ok(Ways::Set(ways))
    }

    fn visit_i64<E: Error>(self, ways: i64) -> Result<Ways, E> {
        u64::try_from(ways)
            .map(Ways::Set)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(ways), &self))
    }

    fn visit_str<E: Error>(self, ways: &str) -> Result<Ways, E> {
        match ways {
            "full" => Ok(Ways::Full),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }
}
