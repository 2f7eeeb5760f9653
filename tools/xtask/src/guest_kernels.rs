//! Kernels to boot guests with, unpacked into `target/guest`. They are not installed: the machine
//! itself boots as before.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The package that brings the newest kernel for guests.
const KERNEL: &str = "linux-image-cloud-amd64";
/// The suite whose kernel can run Casemate in a guest (6.8 or later).
const BACKPORTS: &str = "bookworm-backports";
/// The suite of the machine's own that has it as well, as `apt-cache policy` names it.
const SUITE: &str = "bookworm/main";

/// Unpacks what is missing, and says what cannot be had.
pub fn unpack() {
    let folder = crate::root().join("target/guest");
    if !has_kernel(Path::new("/boot"))
        && let Err(error) = unpack_into(&folder.join("vmlinuz"), None)
    {
        println!("NO KERNEL for guests: {error:#} (a test that needs one will be skipped)");
    }
    let newer = folder.join("vmlinuz-backports");
    let unpacked = backports(&folder).and_then(|sources| unpack_into(&newer, Some(&sources)));
    if let Err(error) = unpacked {
        println!("NO KERNEL for cold boots: {error:#} (tests that need one will be skipped)");
    }
}

fn is_kernel(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"vmlinuz")
}

fn kernel_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).find(|path| path.file_name().is_some_and(is_kernel))
}

fn has_kernel(folder: &Path) -> bool {
    kernel_in(folder).is_some()
}

/// A configuration of apt's that knows the backports alone, of where the machine's own packages
/// come from.
fn backports(folder: &Path) -> Result<PathBuf> {
    let (configuration, lists) = (folder.join("apt.conf"), folder.join("lists"));
    let policy = Apt(None).say("apt-cache", &["policy"], Path::new("/"))?;
    let source = policy.lines().find_map(|line| {
        let (before, _) = line.split_once(&format!(" {SUITE} "))?;
        before.split_whitespace().last()
    });
    let source = source.context("this machine's packages are not of Debian 12")?;
    fs::create_dir_all(lists.join("partial"))?;
    fs::write(
        folder.join("backports.list"),
        format!(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {source} {BACKPORTS} main\n"
        ),
    )?;
    let text = format!(
        "Dir::Etc::SourceList \"{0}/backports.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
         Dir::State::Lists \"{0}/lists\";\nDir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\n",
        folder.display()
    );
    fs::write(&configuration, text)?;
    Ok(configuration)
}

/// Unpacks the newest kernel of a source into a file, unless that is there.
fn unpack_into(kernel: &Path, sources: Option<&Path>) -> Result<()> {
    if kernel.exists() {
        return Ok(());
    }
    let apt = Apt(sources);
    let folder = kernel.with_extension("unpacked");
    fs::create_dir_all(&folder)?;
    if sources.is_some() {
        apt.say("apt-get", &["update"], &folder)?;
    }
    let depends = apt.say("apt-cache", &["depends", KERNEL], &folder)?;
    let package =
        depends.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    let package = format!("linux-image-{}", package.context("apt-cache names no kernel")?);
    apt.say("apt-get", &["download", &package], &folder)?;
    let archives: Vec<PathBuf> = fs::read_dir(&folder)?.flatten().map(|e| e.path()).collect();
    for archive in archives.iter().filter(|path| path.extension().is_some_and(|e| e == "deb")) {
        apt.say("dpkg-deb", &["-x", &archive.to_string_lossy(), "."], &folder)?;
    }
    let found = kernel_in(&folder.join("boot")).context("the package has no kernel")?;
    fs::rename(found, kernel)?;
    Ok(fs::remove_dir_all(folder)?)
}

/// Commands of Debian's, with a configuration of ours or without.
struct Apt<'a>(Option<&'a Path>);

impl Apt<'_> {
    /// What a command prints, once it has ended well.
    fn say(&self, program: &str, words: &[&str], folder: &Path) -> Result<String> {
        let mut command = Command::new(program);
        command.args(words).current_dir(folder);
        if let Some(configuration) = self.0 {
            command.env("APT_CONFIG", configuration);
        }
        let output = command.output().with_context(|| format!("{program} does not start"))?;
        let failed = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ensure!(output.status.success(), "{program} {}: {}", words.join(" "), failed());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
