//! `workloads/programs.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The file.
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize, Serialize)]
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

fn one() -> u32 {
    1
}

impl Manifest {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        let manifest: Manifest = toml::from_str(&text).with_context(name)?;
        for (at, program) in manifest.programs.iter().enumerate() {
            let same = |other: &Program| other.name == program.name;
            ensure!(!manifest.programs[..at].iter().any(same), "{} is there twice", program.name);
            ensure!(!program.run.is_empty(), "{} runs nothing", program.name);
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_can_be_read_and_say_where_they_come_from() {
        let manifest =
            Manifest::read(&crate::root().join("workloads/programs.toml")).expect("it is ours");
        assert!(manifest.programs.len() >= 15);
        for program in &manifest.programs {
            let is_ours = program.run[0] == "{workload}";
            assert_eq!(program.package.is_none(), is_ours, "{}", program.name);
            assert!(program.length > 0, "{}", program.name);
            // Files that a program names are inputs.
            for word in program
                .run
                .iter()
                .filter(|word| word.starts_with("archive") || word.starts_with("script"))
            {
                assert!(manifest.inputs.iter().any(|input| input.file() == word), "{word}");
            }
        }
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        let start = "[environment]\n[[input]]\nfile = 'a'\ntext = 'b'\n";
        let program = "[[program]]\nname = 'a'\nabout = 'b'\nrun = ['c']\nskip = 0\nlength = 1\n";
        let read = |text: String| toml::from_str::<Manifest>(&text);
        assert!(read(format!("{start}{program}")).is_ok());
        assert!(read(format!("{start}{program}thread = 4\n")).is_err());
        assert!(read(format!("{start}sixe = 'b'\n{program}").replace("text", "txt")).is_err());
    }
}
