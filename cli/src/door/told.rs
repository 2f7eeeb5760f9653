//! What came of each run: a line or a sentence as it comes, or JSON when all is done.

use anyhow::{Error, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit_codes;
use crate::failure::{self, Failure};
use crate::output::{self, Json, SCHEMA};

/// What was told, and the worst exit code.
pub struct Told<'a> {
    to: &'a Json,
    runs: Vec<Value>,
    code: u8,
}

impl<'a> Told<'a> {
    /// Nothing yet.
    pub fn new(to: &'a Json) -> Self {
        Told { to, runs: Vec::new(), code: 0 }
    }

    /// What came of a run: as a line for people, and as what JSON has.
    pub fn done(&mut self, line: &str, report: impl Serialize) -> Result<()> {
        match self.to.to {
            Some(_) => self.runs.push(serde_json::to_value(report)?),
            None => output::stdout(&format!("{line}\n"))?,
        }
        Ok(())
    }

    /// That there is no run to do anything with.
    pub fn nothing(&self, sentence: &str) -> Result<()> {
        match self.to.to {
            Some(_) => Ok(()),
            None => output::stdout(&format!("{sentence}\n")),
        }
    }

    /// A run with which it is not as it should be.
    pub fn wanting(&mut self, error: &Error) {
        output::stderr(&format!("casemate: {}\n", failure::sentence(error)));
        let code = error.downcast_ref::<Failure>().map_or(exit_codes::NO, |failure| failure.code);
        self.code = self.code.max(code);
    }

    /// A run to which nothing was done.
    pub fn failed(&mut self, front: u32, error: &Error) {
        self.wanting(error);
        let why = failure::sentence(error);
        self.runs.push(json!({ "run": front, "outcome": "failed", "why": why }));
    }

    /// Writes what is JSON; the exit code.
    pub fn end(self) -> Result<u8> {
        if let Some(to) = &self.to.to {
            output::json(to, &json!({ "schema": SCHEMA, "runs": self.runs }))?;
        }
        Ok(self.code)
    }
}
