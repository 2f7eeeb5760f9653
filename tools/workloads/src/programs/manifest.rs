//! `tools/workloads/programs.toml`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What every program's environment is.
    pub environment: BTreeMap<String, String>,
    /// Files to make.
    #[serde(rename = "input")]
    pub inputs: Vec<Input>,
    /// Programs to record.
    #[serde(rename = "program")]
    pub programs: Vec<Program>,
}

/// A file to make, below the inputs' folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Input {
    /// By `casemate-workload input`.
    Made {
        /// Where.
        file: String,
        /// Which input.
        kind: String,
        /// `--size`.
        size: String,
        /// `--seed`.
        seed: u64,
    },
    /// As it stands there.
    Text {
        /// Where.
        file: String,
        /// The file's content.
        text: String,
    },
}

impl Input {
    /// Where it is to be.
    pub fn file(&self) -> &str {
        match self {
            Input::Made { file, .. } | Input::Text { file, .. } => file,
        }
    }
}

/// A program to record.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// What it is called here, and its trace.
    pub name: String,
    /// What it does.
    pub about: String,
    /// The Debian package that brings it; none for our own.
    pub package: Option<String>,
    /// Program and arguments.
    pub run: Vec<String>,
    /// How many threads do its work.
    #[serde(default = "one")]
    pub threads: u32,
    /// Instructions before the first that is recorded.
    pub skip: u64,
    /// Instructions that are recorded.
    pub length: u64,
}

impl Program {
    /// Whether one of its arguments names that input, or a folder that it lies in.
    #[must_use]
    pub fn reads(&self, file: &str) -> bool {
        let words = self.run[1..].iter().flat_map(|argument| argument.split_whitespace());
        words.into_iter().any(|word| {
            file.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

fn one() -> u32 {
    1
}

/// Compiled in, so that recording needs no repository.
const BUILT_IN: &str = include_str!("../../programs.toml");

impl Manifest {
    /// `tools/workloads/programs.toml`.
    pub fn built_in() -> Result<Self> {
        Self::parse(BUILT_IN).context("tools/workloads/programs.toml")
    }

    /// Any other, in the same format.
    pub fn parse(text: &str) -> Result<Self> {
        let manifest: Manifest = toml::from_str(text)?;
        for (at, program) in manifest.programs.iter().enumerate() {
            let same = |other: &Program| other.name == program.name;
            ensure!(!manifest.programs[..at].iter().any(same), "{} is there twice", program.name);
            ensure!(!program.run.is_empty(), "{} runs nothing", program.name);
        }
        Ok(manifest)
    }

    /// The programs of these names, in this order; all of them if none is named.
    pub fn wanted(&self, names: &[&str]) -> Result<Vec<&Program>> {
        if names.is_empty() {
            return Ok(self.programs.iter().collect());
        }
        names.iter().map(|name| self.of_name(name)).collect()
    }

    fn of_name(&self, name: &str) -> Result<&Program> {
        let found = self.programs.iter().find(|program| program.name == name);
        found.with_context(|| {
            let known: Vec<&str> = self.programs.iter().map(|program| &*program.name).collect();
            format!("no program is called {name:?} (there are {})", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_can_be_read_and_say_where_they_come_from() {
        let manifest = Manifest::built_in().expect("it is ours");
        assert!(manifest.programs.len() >= 15);
        for program in &manifest.programs {
            let is_ours = program.run[0] == "{workload}";
            assert_eq!(program.package.is_none(), is_ours, "{}", program.name);
            assert!(program.length > 0, "{}", program.name);
            // Files that a program names are inputs.
            let words = program.run[1..].iter().flat_map(|argument| argument.split(' '));
            let endings = [".tar", ".txt", ".sql", ".c", ".pl", ".py", ".y4m", ".pov"];
            for word in words.filter(|word| endings.iter().any(|ending| word.ends_with(ending))) {
                assert!(manifest.inputs.iter().any(|input| input.file() == word), "{word}");
            }
        }
        for input in &manifest.inputs {
            let read = manifest.programs.iter().any(|program| program.reads(input.file()));
            assert!(read, "no program reads {}", input.file());
        }
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        let start = "[environment]\n[[input]]\nfile = 'a'\ntext = 'b'\n";
        let program = "[[program]]\nname = 'a'\nabout = 'b'\nrun = ['c']\nskip = 0\nlength = 1\n";
        let read = |text: String| Manifest::parse(&text);
        assert!(read(format!("{start}{program}")).is_ok());
        assert!(read(format!("{start}{program}thread = 4\n")).is_err());
        assert!(read(format!("{start}sixe = 'b'\n{program}").replace("text", "txt")).is_err());
        assert!(read(format!("{start}{program}{program}")).is_err());
    }

    #[test]
    fn programs_come_in_the_order_in_which_they_are_wanted() {
        let manifest = Manifest::built_in().expect("it is ours");
        let names = |wanted: &[&str]| -> Vec<String> {
            let found = manifest.wanted(wanted).expect("all are there");
            found.iter().map(|program| program.name.clone()).collect()
        };
        assert_eq!(names(&["network", "gcc"]), ["network", "gcc"]);
        assert_eq!(names(&[]).len(), manifest.programs.len());
        let error = manifest.wanted(&["gcc", "gdc"]).expect_err("there is no gdc").to_string();
        assert!(error.contains("gdc") && error.contains("gcc"), "{error}");
    }
}
