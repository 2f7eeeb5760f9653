//! SimPoint's choice of windows (Sherwood, Perelman, Hamerly, Calder: Automatically Characterizing
//! Large Scale Program Behavior, ASPLOS 2002): intervals of one length, each with the share of the
//! program that runs as it does.
//!
//! SimPoint writes two files with a line for each phase: `.simpoints` has an interval's number and
//! the phase's, `.weights` its weight and the phase's. In a configuration both are one text
//! (`run.sample_points`): `12:0.25 40:0.75`.

use std::collections::BTreeMap;
use std::fmt;

/// What `run.sample_points` says if there are none.
pub const NONE: &str = "none";
/// Weights are rounded by who writes them.
const MOST_WEIGHT: f64 = 1.001;

/// An interval that stands for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimPoint {
    /// Which interval of the region, counted from 0.
    pub interval: u64,
    /// The share of the region's instructions that it stands for.
    pub weight: f64,
}

/// Why files or a text are no choice of windows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimPointsError {
    /// A line is no pair.
    #[error("line {line} of the {file} is {text:?}; it must be {expected}")]
    Line {
        /// Which file.
        file: &'static str,
        /// Counted from 1.
        line: usize,
        /// What stands there.
        text: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A phase is in one file only, or twice in one.
    #[error(
        "phase {phase} has {simpoints} lines in the simpoints and {weights} in the weights; it must have one in each"
    )]
    Phase {
        /// Its number.
        phase: u64,
        /// Lines of the one.
        simpoints: usize,
        /// Lines of the other.
        weights: usize,
    },
    /// A text of a configuration is no list.
    #[error("{0:?} is no interval with its weight; write INTERVAL:WEIGHT, for example 12:0.25")]
    Pair(String),
    /// An interval is there twice.
    #[error("interval {0} is there twice; give it the sum of both weights")]
    Twice(u64),
    /// Weights are more than all.
    #[error("weights sum to {0}; they are shares of the program, 1 together at most")]
    Weights(String),
    /// There is nothing in it.
    #[error("there is no interval in it")]
    Empty,
}

/// Reads SimPoint's two files.
///
/// # Errors
/// A line is malformed, a phase is not in both, or weights are no shares.
pub fn read(simpoints: &str, weights: &str) -> Result<Vec<SimPoint>, SimPointsError> {
    const INTERVAL: &str = "an interval's number and a phase's";
    const WEIGHT: &str = "a weight and a phase's number";
    let mut phases: BTreeMap<u64, (Vec<u64>, Vec<f64>)> = BTreeMap::new();
    for (interval, phase) in pairs("simpoints", simpoints, INTERVAL)? {
        phases.entry(phase).or_default().0.push(interval);
    }
    for (weight, phase) in pairs("weights", weights, WEIGHT)? {
        phases.entry(phase).or_default().1.push(weight);
    }
    let point = |(phase, (intervals, weights)): (u64, (Vec<u64>, Vec<f64>))| {
        if let ([interval], [weight]) = (&intervals[..], &weights[..]) {
            return Ok(SimPoint { interval: *interval, weight: *weight });
        }
        let (simpoints, weights) = (intervals.len(), weights.len());
        Err(SimPointsError::Phase { phase, simpoints, weights })
    };
    checked(phases.into_iter().map(point).collect::<Result<_, _>>()?)
}

/// Reads the text of a configuration; no points for [`NONE`].
///
/// # Errors
/// As of files.
pub fn parse(text: &str) -> Result<Vec<SimPoint>, SimPointsError> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let point = |pair: &str| {
        let parsed = pair.split_once(':').and_then(|(interval, weight)| {
            Some(SimPoint { interval: interval.parse().ok()?, weight: weight.parse().ok()? })
        });
        parsed.ok_or_else(|| SimPointsError::Pair(pair.to_owned()))
    };
    checked(text.split_whitespace().map(point).collect::<Result<_, _>>()?)
}

/// In the program's order, if they are shares of it.
fn checked(mut points: Vec<SimPoint>) -> Result<Vec<SimPoint>, SimPointsError> {
    points.sort_by_key(|point| point.interval);
    if let Some(two) = points.windows(2).find(|two| two[0].interval == two[1].interval) {
        return Err(SimPointsError::Twice(two[0].interval));
    }
    let sum: f64 = points.iter().map(|point| point.weight).sum();
    let is_share = |point: &SimPoint| point.weight > 0.0 && point.weight <= MOST_WEIGHT;
    match points.iter().find(|point| !is_share(point)) {
        Some(wrong) => Err(SimPointsError::Weights(wrong.weight.to_string())),
        None if points.is_empty() => Err(SimPointsError::Empty),
        None if sum > MOST_WEIGHT => Err(SimPointsError::Weights(sum.to_string())),
        None => Ok(points),
    }
}

/// The pairs in a file's lines; empty lines are none.
fn pairs<T: std::str::FromStr>(
    file: &'static str,
    text: &str,
    expected: &'static str,
) -> Result<Vec<(T, u64)>, SimPointsError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let pair = |(at, line): (usize, &str)| {
        let mut words = line.split_whitespace();
        let both =
            (words.next().and_then(|w| w.parse().ok()), words.next().and_then(|w| w.parse().ok()));
        match (both, words.next()) {
            ((Some(value), Some(phase)), None) => Ok((value, phase)),
            _ => Err(SimPointsError::Line { file, line: at + 1, text: line.to_owned(), expected }),
        }
    };
    lines.map(pair).collect()
}

/// As a configuration has it.
impl fmt::Display for SimPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.interval, self.weight)
    }
}

/// All of them as a configuration has them.
#[must_use]
pub fn text(points: &[SimPoint]) -> String {
    if points.is_empty() {
        return NONE.to_owned();
    }
    points.iter().map(SimPoint::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SimPoint 3.2 writes them: phases in any order, weights with six digits.
    #[test]
    fn two_files_are_one_text_and_that_is_read_again() {
        let points = read("41 1\n3 0\n120 2\n", "0.250000 0\n0.5 2\n\n0.25 1\n").expect("both");
        let expected = [(3, 0.25), (41, 0.25), (120, 0.5)];
        assert_eq!(points, expected.map(|(interval, weight)| SimPoint { interval, weight }));
        assert_eq!(text(&points), "3:0.25 41:0.25 120:0.5");
        assert_eq!(parse(&text(&points)), Ok(points));
        assert_eq!((parse(NONE), text(&[])), (Ok(Vec::new()), NONE.to_owned()));
    }

    #[test]
    fn what_is_no_choice_is_refused_by_its_line_or_its_phase() {
        for (simpoints, weights, words) in [
            ("x 0\n", "1 0\n", "line 1 of the simpoints is \"x 0\""),
            ("1 0\n", "1 0\n\n0.5\n", "line 3 of the weights is \"0.5\""),
            ("1 0 7\n", "1 0\n", "line 1 of the simpoints"),
            ("1 0\n2 1\n", "1 0\n", "phase 1 has 1 lines in the simpoints and 0 in the weights"),
            ("1 0\n", "0.5 0\n0.5 1\n", "phase 1 has 0 lines in the simpoints and 1"),
            ("1 0\n2 0\n", "1 0\n", "phase 0 has 2 lines"),
            ("1 0\n1 1\n", "0.5 0\n0.5 1\n", "interval 1 is there twice"),
            ("1 0\n2 1\n", "0.8 0\n0.8 1\n", "weights sum to 1.6"),
            ("1 0\n", "-1 0\n", "weights sum to -1"),
            ("1 0\n", "nan 0\n", "weights sum to NaN"),
            ("", "", "no interval"),
        ] {
            let error = read(simpoints, weights).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
        for (text, words) in [
            ("12", "INTERVAL:WEIGHT"),
            ("1:x", "INTERVAL:WEIGHT"),
            ("1:0.5 1:0.5", "twice"),
            ("", "no interval"),
        ] {
            let error = parse(text).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
