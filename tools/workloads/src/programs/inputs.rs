//! Makes the programs' inputs.

use std::cell::OnceCell;
use std::path::Path;

use anyhow::{Context, Result};

use super::manifest::{Input, Manifest, Program};
use crate::{inputs, size};

/// The inputs of a manifest. Each is made, in memory, when the first program is asked about that
/// reads it: some are large.
pub(super) struct Inputs {
    inputs: Vec<(Input, OnceCell<Vec<u8>>)>,
}

impl Inputs {
    /// Of a manifest; nothing is made yet.
    pub fn new(manifest: &Manifest) -> Self {
        let inputs = manifest.inputs.iter();
        Inputs { inputs: inputs.map(|input| (input.clone(), OnceCell::new())).collect() }
    }

    /// Changes when one of the program's inputs does.
    pub fn sum(&self, program: &Program) -> Result<u64> {
        let mut sum = 0xcbf2_9ce4_8422_2325;
        for made in self.of(program) {
            // FNV-1a.
            for byte in made?.1 {
                sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        Ok(sum)
    }

    /// Writes those of the program's that are missing in `folder`, or that a program has changed.
    pub fn write(&self, program: &Program, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: no folder for inputs", folder.display()))?;
        for made in self.of(program) {
            let (file, content) = made?;
            let path = folder.join(file);
            let name = || format!("{}: the input cannot be written", path.display());
            if std::fs::read(&path).is_ok_and(|old| old == *content) {
                continue;
            }
            let parent = path.parent().context("an input has no folder")?;
            std::fs::create_dir_all(parent).with_context(name)?;
            std::fs::write(&path, content).with_context(name)?;
        }
        Ok(())
    }

    /// The program's inputs: files and contents, in the manifest's order.
    fn of(&self, program: &Program) -> impl Iterator<Item = Result<(&str, &[u8])>> {
        let own = self.inputs.iter().filter(|(input, _)| program.reads(input.file()));
        own.map(|(input, made)| {
            if made.get().is_none() {
                let content = content(input).with_context(|| format!("input {}", input.file()))?;
                // It was empty, and only this thread has the inputs.
                let _ = made.set(content);
            }
            Ok((input.file(), made.get().map_or(&[][..], Vec::as_slice)))
        })
    }
}

fn content(input: &Input) -> Result<Vec<u8>> {
    match input {
        Input::Text { text, .. } => Ok(text.clone().into_bytes()),
        Input::Made { kind, size, seed, .. } => {
            let made = inputs::of_name(kind).with_context(|| format!("no kind {kind:?}"))?;
            let size_bytes = size::of(size).with_context(|| format!("{size:?} is no size"))?;
            Ok((made.make)(size_bytes, *seed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[environment]\n[[input]]\nfile = 'a/b'\ntext = 'foobar'\n\
        [[input]]\nfile = 'c'\nkind = 'text'\nsize = '2K'\nseed = 1\n\
        [[program]]\nname = 'd'\nabout = ''\nrun = ['e', 'a', '.read c']\nskip = 0\nlength = 1\n\
        [[program]]\nname = 'f'\nabout = ''\nrun = ['e', 'a/b', 'cc']\nskip = 0\nlength = 1\n";

    /// Of the program `d`, which reads both, and of `f`, which reads one.
    fn sums(text: &str) -> [u64; 2] {
        let manifest = Manifest::parse(text).expect("as above");
        let inputs = Inputs::new(&manifest);
        [0, 1].map(|at| inputs.sum(&manifest.programs[at]).expect("they can be made"))
    }

    #[test]
    fn the_sum_is_fnv_and_depends_on_every_input_of_the_program() {
        let [both, one] = sums(MANIFEST);
        // As the authors of FNV publish it.
        assert_eq!(one, 0x8594_4171_f739_67e8);
        for (from, to, changes_one) in
            [("foobar", "foobas", true), ("seed = 1", "seed = 2", false), ("2K", "3K", false)]
        {
            let changed = sums(&MANIFEST.replace(from, to));
            assert_ne!(changed[0], both, "{to}");
            assert_eq!(changed[1] != one, changes_one, "{to}");
        }
    }

    #[test]
    fn what_a_program_changed_is_written_again() {
        let folder = super::super::Folder::new("inputs");
        let manifest = Manifest::parse(MANIFEST).expect("as above");
        let inputs = Inputs::new(&manifest);
        let [both, one] = &*manifest.programs else { panic!("two programs") };
        inputs.write(one, &folder.0).expect("written");
        assert!(!folder.0.join("c").exists());
        std::fs::write(folder.0.join("a/b"), "other").expect("written");
        inputs.write(both, &folder.0).expect("written");
        assert_eq!(std::fs::read_to_string(folder.0.join("a/b")).expect("there"), "foobar");
        assert!(std::fs::read(folder.0.join("c")).expect("there").len() >= 1024);
    }

    #[test]
    fn what_cannot_be_made_is_named() {
        for wrong in [MANIFEST.replace("'text'", "'txet'"), MANIFEST.replace("2K", "2Q")] {
            let manifest = Manifest::parse(&wrong).expect("strings are not looked at");
            let error = Inputs::new(&manifest).sum(&manifest.programs[0]).expect_err("wrong");
            assert!(format!("{error:#}").contains("input c"), "{error:#}");
        }
    }
}
