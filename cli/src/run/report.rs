//! The JSON of a run.

use std::ffi::OsString;

use anyhow::Result;
use casemate_keeper::Outcome;
use serde::Serialize;

use crate::output::SCHEMA;

/// A run that has ended.
#[derive(Serialize)]
pub struct Report<'a> {
    schema: u32,
    casemate: &'static str,
    nested: bool,
    command: Vec<String>,
    exit_code: u8,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

impl<'a> Report<'a> {
    /// The report of `command`, which ended with `outcome` and is reported as `exit_code`.
    pub fn new(command: &[OsString], outcome: &'a Outcome, exit_code: u8) -> Self {
        Report {
            schema: SCHEMA,
            casemate: env!("CARGO_PKG_VERSION"),
            nested: false,
            command: lossy(command),
            exit_code,
            outcome,
        }
    }
}

/// The report as one line, for a stream that it shares with the program.
pub fn line(command: &[OsString], outcome: &Outcome, exit_code: u8) -> Result<String> {
    let mut text = serde_json::to_string(&Report::new(command, outcome, exit_code))?;
    text.push('\n');
    Ok(text)
}

/// A run inside a run: the outer keeper has the counters.
#[derive(Serialize)]
pub struct Nested {
    schema: u32,
    casemate: &'static str,
    nested: bool,
    keeper: u32,
    command: Vec<String>,
}

impl Nested {
    /// The note that `command` runs under the outer `keeper`.
    pub fn new(command: &[OsString], keeper: u32) -> Self {
        Nested {
            schema: SCHEMA,
            casemate: env!("CARGO_PKG_VERSION"),
            nested: true,
            keeper,
            command: lossy(command),
        }
    }

    /// As one line.
    pub fn line(&self) -> Result<String> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        Ok(text)
    }
}

fn lossy(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_keeper::{Ending, Statistics};

    #[test]
    fn a_report_is_one_line_with_a_schema_and_the_counters() {
        let outcome = Outcome {
            ending: Ending::Exited { code: 3 },
            started: true,
            statistics: Statistics::default(),
        };
        let text = line(&["true".into()], &outcome, 3).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["nested"], false);
        assert_eq!(value["ended"], "exited");
        assert_eq!(value["code"], 3);
        assert_eq!(value["exit_code"], 3);
        assert_eq!(value["statistics"]["pages_in"], 0);
    }
}
