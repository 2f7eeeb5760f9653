//! How a trace was made, in a file beside it: so it is seen whether it still is what is wanted.

use std::path::Path;

use anyhow::Result;
use toml::{Table, Value};

use super::manifest::Program;

/// The version of the trace format that `casemate` writes. Older ones say less of a program.
pub const FORMAT: u16 = 3;

/// The program's entry, with the length that is recorded, a sum of its inputs, and the format.
pub(super) fn text(program: &Program, length: u64, inputs: u64) -> Result<String> {
    let recorded = Program { length, ..program.clone() };
    let entry = toml::to_string(&recorded)?;
    Ok(format!("{entry}inputs = \"{inputs:016x}\"\nformat = {FORMAT}\n"))
}

/// How long the trace beside this recipe is, if it was made like this apart from its length.
pub(super) fn length_of_same(file: &Path, program: &Program, inputs: u64) -> Result<Option<u64>> {
    let Ok(old) = std::fs::read_to_string(file) else { return Ok(None) };
    // What cannot be read is not the same.
    let Ok(mut old) = toml::from_str::<Table>(&old) else { return Ok(None) };
    let length = old.get("length").and_then(Value::as_integer);
    let mut new: Table = toml::from_str(&text(program, program.length, inputs)?)?;
    for recipe in [&mut old, &mut new] {
        recipe.remove("length");
        recipe.remove("about");
    }
    Ok(length.filter(|_| old == new).and_then(|length| length.try_into().ok()))
}

#[cfg(test)]
mod tests {
    use super::super::Folder;
    use super::*;

    fn program() -> Program {
        Program {
            name: "gzip".into(),
            about: "compression, a window of 32 KiB".into(),
            package: Some("gzip".into()),
            run: vec!["/usr/bin/gzip".into(), "-9".into(), "-c".into(), "archive.tar".into()],
            threads: 1,
            skip: 100_000_000,
            length: 50_000_000,
        }
    }

    /// Recipes lie beside traces that took minutes, so their format stays.
    const RECIPE: &str = "name = \"gzip\"\nabout = \"compression, a window of 32 KiB\"\npackage = \"gzip\"\n\
        run = [\"/usr/bin/gzip\", \"-9\", \"-c\", \"archive.tar\"]\nthreads = 1\nskip = 100000000\n\
        length = 50000000\ninputs = \"00000000000000ff\"\nformat = 3\n";

    #[test]
    fn the_format_stays() {
        assert_eq!(text(&program(), 50_000_000, 255).expect("it can be said"), RECIPE);
    }

    #[test]
    fn only_length_and_description_may_differ() {
        let folder = Folder::new("recipe");
        let file = folder.0.join("gzip.recipe");
        let length = |recipe: &str, program: &Program, inputs| {
            std::fs::write(&file, recipe).expect("it can be written");
            length_of_same(&file, program, inputs).expect("it can be compared")
        };
        let own = program();
        assert_eq!(length(RECIPE, &own, 255), Some(50_000_000));
        assert_eq!(length(RECIPE, &Program { length: 7, ..own.clone() }, 255), Some(50_000_000));
        let about = "something".into();
        assert_eq!(length(RECIPE, &Program { about, ..own.clone() }, 255), Some(50_000_000));
        assert_eq!(length(RECIPE, &own, 254), None);
        assert_eq!(length(RECIPE, &Program { skip: 7, ..own.clone() }, 255), None);
        assert_eq!(length(RECIPE, &Program { threads: 2, ..own.clone() }, 255), None);
        assert_eq!(length(RECIPE, &Program { run: vec!["a".into()], ..own.clone() }, 255), None);
        assert_eq!(length(&RECIPE.replace("format = 3", "format = 2"), &own, 255), None);
        assert_eq!(length(&RECIPE.replace("format = 3\n", ""), &own, 255), None);
        assert_eq!(length("name = ", &own, 255), None);
        assert_eq!(length(&RECIPE.replace("length = 50000000\n", ""), &own, 255), None);
    }

    #[test]
    fn no_recipe_is_no_trace() {
        let gone = Path::new("/proc/no/such.recipe");
        assert_eq!(length_of_same(gone, &program(), 255).expect("it can be compared"), None);
    }
}
