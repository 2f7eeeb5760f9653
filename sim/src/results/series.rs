//! Results as series: what is on which axis.

use serde_json::Value;

use super::compare::Baselines;
use super::estimates::Sampling;
use super::{document, tree};
use casemate_schemes::nearest::{nearest, suggestion};

/// Where keys may be without saying so.
const PREFIXES: [&str; 5] = ["", "derived.", "statistics.", "config.", "trace."];
/// The value that needs a second result: the one of the same run without protection.
pub const OVERHEAD: &str = "overhead";
/// A short name of the trace's name.
const TRACE: &str = "trace";

/// Values of several results that belong together, each with its place on the level axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What they have in common.
    pub name: String,
    /// Places and values, in the order of the results; NaN where a result has no value.
    pub points: Vec<(String, f64)>,
    /// Places, and half of the values' intervals, where results are sampled.
    pub half_widths: Vec<(String, f64)>,
}

/// Why results are no series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// Two results are for one place of one series.
    #[error("there are several results for {series} {name:?} at {by} {place:?}{}", advice(differ))]
    NotToldApart {
        /// The key that tells series apart.
        series: String,
        /// Its value in both.
        name: String,
        /// The key on the level axis.
        by: String,
        /// Its value in both.
        place: String,
        /// Keys that would tell them apart.
        differ: Vec<String>,
    },
    /// Samples are wanted, and a result has none.
    #[error(
        "a result has no samples; simulate with --every N, or say with --by what is on the level axis"
    )]
    NoSamples,
    /// There is nothing to compare with.
    #[error(
        "overhead needs the results of the same run with --scheme none; simulate that too, or choose another --value"
    )]
    NoBaseline,
    /// The value is something else.
    #[error("{key} is {value}, and no number")]
    NoNumber {
        /// The key.
        key: String,
        /// Its value.
        value: String,
    },
    /// No result has such a key.
    #[error(
        "the results have no value {key}{meant}; it is one of the columns of a CSV file, or of result.csv in a run's folder"
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// What follows it in the sentence: which key may have been meant.
        meant: String,
    },
}

/// What to do about two results for one place, by the keys in which they differ.
fn advice(differ: &[String]) -> String {
    match differ {
        [] => ", with the same configuration and trace; name fewer results".to_owned(),
        [key] => format!("; they differ in {key}: add --series {key} or --by {key}"),
        [key, ..] => format!(
            "; they differ in {}: add --series or --by with one of them (--series {key}), \
             or name fewer results",
            differ.join(", ")
        ),
    }
}

/// What of results goes where.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The key on the upright axis, or [`OVERHEAD`].
    pub value: String,
    /// The key on the level axis; the samples' places if `None`.
    pub by: Option<String>,
    /// The key that tells series apart.
    pub series: String,
}

/// Sorts results into series, both in the order in which results come.
///
/// # Errors
/// A key is unknown, has no number, or does not tell two results apart.
pub fn series(results: &[Value], wanted: &Wanted) -> Result<Vec<Series>, SeriesError> {
    let baselines = Baselines::of(results);
    let mut all: Vec<Series> = Vec::new();
    for result in results {
        let name = text(result, &wanted.series)?;
        let (points, half_widths) = match &wanted.by {
            Some(by) => {
                let (value, half_width) = value(result, &wanted.value, &baselines)?;
                let place = text(result, by)?;
                let half_width = half_width.map(|half| (place.clone(), half));
                (vec![(place, value)], half_width.into_iter().collect())
            }
            None => (samples(result, &wanted.value)?, Vec::new()),
        };
        let Some(series) = all.iter_mut().find(|series| series.name == name) else {
            all.push(Series { name, points, half_widths });
            continue;
        };
        series.half_widths.extend(half_widths);
        for (place, value) in points {
            if series.points.iter().any(|(known, _)| *known == place) {
                return Err(not_told_apart(results, result, wanted, name, place));
            }
            series.points.push((place, value));
        }
    }
    Ok(all)
}

/// A value of a result, and half of its interval if it has one.
fn value(
    result: &Value,
    key: &str,
    baselines: &Baselines,
) -> Result<(f64, Option<f64>), SeriesError> {
    if key == OVERHEAD {
        let overhead = baselines.overhead(result).ok_or(SeriesError::NoBaseline)?;
        return Ok((overhead.mean, overhead.half_width));
    }
    let ratio = |name: &str| Sampling::read(result)?.ratio(name)?.half_width;
    Ok((number(result, key, Some(OVERHEAD))?, ratio(key.trim_start_matches("derived."))))
}

/// Two results for one place: finds the keys that tell them apart.
fn not_told_apart(
    results: &[Value],
    result: &Value,
    wanted: &Wanted,
    name: String,
    place: String,
) -> SeriesError {
    let is_there = |key: &str, value: &str| text(result, key).is_ok_and(|text| text == value);
    let same = |other: &&Value| {
        let at = |key: &str| text(other, key).is_ok_and(|value| is_there(key, &value));
        !std::ptr::eq(*other, result) && at(&wanted.series) && wanted.by.as_deref().is_none_or(at)
    };
    let differ = results.iter().find(same).map_or(Vec::new(), |other| differing(result, other));
    let by = wanted.by.clone().unwrap_or_else(|| "samples".to_owned());
    SeriesError::NotToldApart { series: wanted.series.clone(), name, by, place, differ }
}

/// What is configured, or traced, otherwise: the names that `--series` takes.
fn differing(one: &Value, other: &Value) -> Vec<String> {
    const MOST: usize = 4;
    let leaves = tree::flatten(one);
    let changed = leaves.iter().filter(|(name, value)| tree::part(other, name) != Some(value));
    let short = |name: &str| {
        let of_trace = name.starts_with("trace.").then(|| name.to_owned());
        name.strip_prefix("config.").map(str::to_owned).or(of_trace)
    };
    changed.filter_map(|(name, _)| short(name)).take(MOST).collect()
}

/// The value of each sample of a result.
fn samples(result: &Value, key: &str) -> Result<Vec<(String, f64)>, SeriesError> {
    let samples = document::sample_trees(result);
    if samples.is_empty() {
        return Err(SeriesError::NoSamples);
    }
    let point = |sample: &Value| {
        let place = sample["end_instructions"].to_string();
        Ok((place, number(sample, key, None)?))
    };
    samples.iter().map(point).collect()
}

fn number(result: &Value, key: &str, other: Option<&str>) -> Result<f64, SeriesError> {
    let value = find(result, key, other)?;
    match value {
        Value::Null => Ok(f64::NAN),
        Value::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        value => value
            .as_f64()
            .ok_or_else(|| SeriesError::NoNumber { key: key.to_owned(), value: value.to_string() }),
    }
}

fn text(result: &Value, key: &str) -> Result<String, SeriesError> {
    Ok(match find(result, key, Some(TRACE))? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// A leaf of a result, by its name or what its name ends with. `other` is what the key might be
/// besides.
fn find<'a>(result: &'a Value, key: &str, other: Option<&str>) -> Result<&'a Value, SeriesError> {
    let key = if key == TRACE { "trace.name" } else { key };
    let at = |prefix: &&str| tree::part(result, &format!("{prefix}{key}"));
    let found = PREFIXES.iter().find_map(at).filter(|part| !part.is_object() && !part.is_array());
    found.ok_or_else(|| {
        let leaves = tree::flatten(result);
        let names = || leaves.iter().map(|(name, _)| name.as_str());
        // What the key is most like, with the section or without.
        let bare = |name: &str| {
            PREFIXES.iter().rev().find_map(|p| name.strip_prefix(p)).unwrap_or("").to_owned()
        };
        let short: Vec<String> = names().map(bare).collect();
        let short = short.iter().map(String::as_str).chain(other).filter(|name| *name != key);
        let meant = nearest(key, short).or_else(|| nearest(key, names()));
        SeriesError::UnknownKey { key: key.to_owned(), meant: suggestion(meant) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(scheme: &str, size: u64, cycles: u64) -> Value {
        json!({
            "scheme": scheme, "trace": {"name": "t"},
            "config": {"l2": {"size_bytes": size}, "run": {"scheme": scheme}},
            "derived": {"ipc": 0.5}, "statistics": {"cycles": cycles}, "samples": [],
        })
    }

    fn wanted(value: &str, by: &str) -> Wanted {
        Wanted { value: value.into(), by: Some(by.into()), series: "scheme".into() }
    }

    #[test]
    fn results_are_sorted_by_series_and_place() {
        let results = [
            result("none", 1, 100),
            result("none", 2, 80),
            result("mt", 1, 150),
            result("mt", 2, 88),
        ];
        let found =
            series(&results, &wanted("overhead", "l2.size_bytes")).expect("all keys are there");
        let points = |name: &str, points: [(&str, f64); 2]| Series {
            name: name.into(),
            points: points.map(|(place, value)| (place.to_owned(), value)).to_vec(),
            half_widths: Vec::new(),
        };
        // 150 / 100 - 1 and 88 / 80 - 1.
        assert_eq!(found[0], points("none", [("1", 0.0), ("2", 0.0)]));
        assert_eq!(found[1].points[0], ("1".into(), 0.5));
        assert!((found[1].points[1].1 - 0.1).abs() < 1e-12);
    }

    #[test]
    fn keys_that_are_not_there_or_tell_nothing_apart_are_named() {
        let results = [result("none", 1, 100), result("none", 2, 80)];
        let sentence =
            |wanted: &Wanted| series(&results, wanted).expect_err("it is refused").to_string();
        assert!(sentence(&wanted("cycels", "trace")).contains("did you mean cycles?"));
        assert!(
            sentence(&wanted("cycles", "trac")).contains("(did you mean trace?); it is one of")
        );
        assert!(sentence(&wanted("overhed", "trace")).contains("did you mean overhead?"));
        let told = sentence(&wanted("cycles", "trace"));
        assert!(told.ends_with("add --series l2.size_bytes or --by l2.size_bytes"), "{told}");
        let twice = [result("none", 1, 100), result("none", 1, 80)];
        let same = series(&twice, &wanted("cycles", "trace")).expect_err("they are the same");
        assert!(same.to_string().ends_with("name fewer results"), "{same}");
        assert!(sentence(&wanted("scheme", "trace")).contains("no number"));
        let no_baseline = [result("mt", 1, 1)];
        let error = series(&no_baseline, &wanted("overhead", "trace")).expect_err("no baseline");
        assert!(error.to_string().contains("--scheme none"));
        let along = Wanted { by: None, ..wanted("ipc", "") };
        assert!(sentence(&along).contains("--every"));
    }
}
