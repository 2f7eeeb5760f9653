//! The file of `run --policy`: what the processes of single programs may have of the Clear.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use casemate_keeper::{ClearSize, Config, ProgramRule};
use serde::Deserialize;

use super::command;
use crate::size::{self, Size, too_small};
use crate::time::Time;

/// The longest file that is read, for one that has no end.
const LONGEST_BYTES: u64 = 1 << 20;
/// The longest value of a key, in characters: of a path that the kernel takes.
const LONGEST_VALUE: usize = 4096;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    #[serde(default)]
    program: Vec<Program>,
}

/// One of its tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: Option<String>,
    path: Option<PathBuf>,
    clear: Option<String>,
    idle: Option<String>,
}

/// Reads the rules of a file.
///
/// # Errors
/// A sentence that names the file, the rule, and what is wrong with it.
pub fn read(file: &Path) -> Result<Vec<ProgramRule>, String> {
    let text = text(file).and_then(|text| rules(&text));
    text.map_err(|why| format!("--policy {}: {why}", file.display()))
}

fn text(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let read = opened.take(LONGEST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > LONGEST_BYTES {
        return Err(format!("is larger than {}", size::format(LONGEST_BYTES)));
    }
    Ok(text)
}

fn rules(text: &str) -> Result<Vec<ProgramRule>, String> {
    let policy: Policy = toml::from_str(text).map_err(|error| in_a_line(text, &error))?;
    if policy.program.is_empty() {
        return Err("names no program; write for example [[program]] with name and clear".into());
    }
    let mut rules: Vec<ProgramRule> = Vec::new();
    for (program, n) in policy.program.into_iter().zip(1..) {
        let rule = rule(program).map_err(|why| format!("program {n} {why}"))?;
        // The first that names a process decides: this one would never.
        if let Some(before) = rules.iter().position(|before| before.program == rule.program) {
            let (program, before) = (rule.program.display(), before + 1);
            return Err(format!("program {n} names {program}, as program {before} does; keep one"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// What TOML says of a file, without the picture of the place.
fn in_a_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', ", "))
}

fn rule(program: Program) -> Result<ProgramRule, String> {
    let path = program.path.as_ref().map(|path| path.to_string_lossy());
    let values = [&program.name, &program.clear, &program.idle].map(|value| value.as_deref());
    let values = values.into_iter().chain([path.as_deref()]).flatten();
    for value in values {
        if value.chars().count() > LONGEST_VALUE || value.contains('\0') {
            return Err("has a value that is too long, or has a NUL in it".to_owned());
        }
    }
    let clear_bytes = program.clear.map(|text| clear(&text)).transpose()?;
    let idle = program.idle.map(|text| time(&text)).transpose()?;
    if let Some(idle) = idle.filter(|&idle| idle < Config::LEAST_IDLE) {
        return Err(format!("has pages idle after {} ms; choose 1s or more", idle.as_millis()));
    }
    if clear_bytes.is_none() && idle.is_none() {
        return Err("has neither clear nor idle, so the rule says nothing".to_owned());
    }
    let rule = ProgramRule { program: OsString::new(), name: None, path: None, clear_bytes, idle };
    match (program.name, program.path) {
        (Some(name), None) if ["", ".", ".."].contains(&&*name) || name.contains('/') => {
            Err(format!("has the name {name:?}, which is that of no file; write path = for a path"))
        }
        // What is found by that name may be a link to a file of another.
        (Some(name), None) => Ok(ProgramRule {
            path: command::look_up(name.as_ref()).ok().and_then(|path| fs::canonicalize(path).ok()),
            name: Some(OsString::from(&name)),
            program: name.into(),
            ..rule
        }),
        (None, Some(path)) if !path.is_absolute() || path.file_name().is_none() => {
            Err(format!("has the path {path:?}, which is no file's; it must begin with /"))
        }
        (None, Some(path)) => Ok(ProgramRule {
            path: Some(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())),
            program: path.into(),
            ..rule
        }),
        _ => Err("must have either a name or a path".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = Time::from_str(text).map_err(|why| format!("has an idle that is none: {why}"))?;
    Ok(time.0)
}

fn clear(text: &str) -> Result<u64, String> {
    let Size(bytes) = text.parse().map_err(|why| format!("has a clear that is none: {why}"))?;
    if bytes < ClearSize::FLOOR_BYTES {
        return Err(format!("has a clear that is too small: {}", too_small(text)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_a_part_of_the_clear_and_a_time() {
        let text = "[[program]]\nname = \"no-such-program\"\nclear = \"8M\"\n\
                    [[program]]\npath = \"/no/such/file\"\nidle = \"10s\"\n";
        let rules = rules(text).expect("it is right");
        assert_eq!(rules.len(), 2);
        assert_eq!(rules[0].name.as_deref(), Some("no-such-program".as_ref()));
        assert_eq!(
            (rules[0].clear_bytes, rules[0].idle, &rules[0].path),
            (Some(8 << 20), None, &None)
        );
        assert_eq!(rules[1].path.as_deref(), Some("/no/such/file".as_ref()));
        assert_eq!((rules[1].clear_bytes, rules[1].idle), (None, Some(Duration::from_secs(10))));
    }

    /// `/bin` is a link on many machines, and so is what many names are found by.
    #[test]
    fn links_are_followed() {
        let by_name = rules("[[program]]\nname = \"sh\"\nclear = \"2M\"").expect("it is right");
        let by_path =
            rules("[[program]]\npath = \"/bin/sh\"\nclear = \"2M\"").expect("it is right");
        let file = fs::canonicalize("/bin/sh").expect("there is one");
        assert_eq!(by_path[0].path, Some(file.clone()));
        assert_eq!(
            (by_path[0].program.as_os_str(), by_path[0].name.is_some()),
            ("/bin/sh".as_ref(), false)
        );
        assert_eq!(by_name[0].path, Some(file));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, why) in [
            ("", "names no program"),
            ("program = 3", "line 1: invalid type"),
            ("[[program]]\nname = \"a\"\nclaer = \"8M\"", "line 3: unknown field `claer`"),
            ("[[program]]\nname = \"a\n", "line 2"),
            ("[[program]]\nname = \"a\"", "program 1 has neither clear nor idle"),
            ("[[program]]\nclear = \"8M\"", "program 1 must have either a name or a path"),
            ("[[program]]\nname = \"a/b\"\nclear = \"8M\"", "which is that of no file"),
            ("[[program]]\npath = \"a/b\"\nclear = \"8M\"", "it must begin with /"),
            ("[[program]]\npath = \"/\"\nclear = \"8M\"", "which is no file's"),
            ("[[program]]\nname = \"..\"\nclear = \"8M\"", "which is that of no file"),
            ("[[program]]\nname = \"a\\u0000\"\nclear = \"8M\"", "or has a NUL in it"),
            ("[[program]]\nname = \"a\"\nclear = \"12Q\"", "program 1 has a clear that is none"),
            ("[[program]]\nname = \"a\"\nclear = \"25%\"", "program 1 has a clear that is none"),
            ("[[program]]\nname = \"a\"\nclear = \"1M\"", "1M is less than the 2 MiB"),
            (
                "[[program]]\nname = \"a\"\nidle = \"10\"",
                "program 1 has an idle that is none: \"10\" has no unit that is known",
            ),
            ("[[program]]\nname = \"a\"\nidle = \"10ms\"", "choose 1s or more"),
            (
                "[[program]]\nname = \"a\"\nidle = \"9s\"\n[[program]]\nname = \"b\"\nidle = \"9s\"\n\
                 [[program]]\nname = \"a\"\nclear = \"8M\"",
                "program 3 names a, as program 1 does; keep one",
            ),
        ] {
            let error = rules(text).map(drop).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let long = format!("[[program]]\nname = \"a\"\nclear = \"{}\"", "8".repeat(5000));
        assert!(rules(&long).is_err_and(|why| why.contains("too long")));
        let endless = read(Path::new("/dev/zero")).map(drop).expect_err("it has no end");
        assert_eq!(endless, "--policy /dev/zero: is larger than 1 MiB");
        let error = read(Path::new("/no/such/policy")).map(drop).expect_err("it is not there");
        assert!(error.starts_with("--policy /no/such/policy: No such file"), "{error}");
    }
}
