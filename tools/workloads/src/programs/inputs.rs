//! Makes the programs' inputs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::manifest::{Input, Manifest};
use crate::{inputs, size};

/// All inputs of a manifest, made.
pub(super) struct Inputs {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Changes when one of them does.
    pub sum: u64,
}

impl Inputs {
    /// Makes them, in memory.
    pub fn make(manifest: &Manifest) -> Result<Self> {
        let mut made = Inputs { files: Vec::new(), sum: 0xcbf2_9ce4_8422_2325 };
        for input in &manifest.inputs {
            let content = content(input).with_context(|| format!("input {}", input.file()))?;
            // FNV-1a.
            for byte in &content {
                made.sum = (made.sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            made.files.push((input.file().into(), content));
        }
        Ok(made)
    }

    /// Writes those that are missing in `folder`, or that a program has changed.
    pub fn write(&self, folder: &Path) -> Result<()> {
        for (file, content) in &self.files {
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
        [[program]]\nname = 'd'\nabout = ''\nrun = ['e']\nskip = 0\nlength = 1\n";

    fn sum(text: &str) -> u64 {
        Inputs::make(&Manifest::parse(text).expect("as above")).expect("they can be made").sum
    }

    #[test]
    fn the_sum_is_fnv_and_depends_on_every_input() {
        let start = MANIFEST.split("[[input]]\nfile = 'c'").next().expect("it is there");
        let program = MANIFEST.split("seed = 1\n").nth(1).expect("it is there");
        // As the authors of FNV publish it.
        assert_eq!(sum(&format!("{start}{program}")), 0x8594_4171_f739_67e8);
        assert_ne!(sum(MANIFEST), sum(&MANIFEST.replace("foobar", "foobas")));
        assert_ne!(sum(MANIFEST), sum(&MANIFEST.replace("seed = 1", "seed = 2")));
        assert_ne!(sum(MANIFEST), sum(&MANIFEST.replace("2K", "3K")));
    }

    #[test]
    fn what_a_program_changed_is_written_again() {
        let folder = super::super::Folder::new("inputs");
        let made = Inputs::make(&Manifest::parse(MANIFEST).expect("as above")).expect("made");
        made.write(&folder.0).expect("written");
        std::fs::write(folder.0.join("a/b"), "other").expect("written");
        made.write(&folder.0).expect("written");
        assert_eq!(std::fs::read_to_string(folder.0.join("a/b")).expect("there"), "foobar");
        assert!(std::fs::read(folder.0.join("c")).expect("there").len() >= 1024);
    }

    #[test]
    fn what_cannot_be_made_is_named() {
        for wrong in [MANIFEST.replace("'text'", "'txet'"), MANIFEST.replace("2K", "2Q")] {
            let manifest = Manifest::parse(&wrong).expect("strings are not looked at");
            let error = Inputs::make(&manifest).err().expect("it is wrong");
            assert!(format!("{error:#}").contains("input c"), "{error:#}");
        }
    }
}
