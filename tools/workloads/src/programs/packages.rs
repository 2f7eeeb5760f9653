//! Debian's packages: what is missing, and how it is installed.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A file that a package brings, and the package.
pub type Needed<'a> = (&'a str, &'a str);

/// The packages whose files are not there.
#[must_use]
pub fn missing<'a>(needed: &[Needed<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (file, name) in needed {
        if !Path::new(file).exists() && !names.contains(name) {
            names.push(*name);
        }
    }
    names
}

/// Whether this is root on Debian.
pub fn can_install() -> Result<bool> {
    Ok(root()? && Path::new("/usr/bin/apt-get").exists())
}

/// Installs what is missing. Afterwards all of it is there, or this is an error.
pub fn install(needed: &[Needed<'_>], told: &mut dyn FnMut(&str)) -> Result<()> {
    let names = missing(needed);
    if names.is_empty() {
        return Ok(());
    }
    let listed = names.join(" ");
    if !can_install()? {
        bail!("packages are missing; as root: apt-get install --no-install-recommends {listed}");
    }
    told(&format!("installing {listed}"));
    let mut install = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    install.extend(&names);
    for words in [&["update", "--quiet"][..], &install] {
        apt_get(words).with_context(|| format!("cannot install {listed}"))?;
    }
    let still = missing(needed);
    ensure!(still.is_empty(), "not there, though apt-get has installed it: {}", still.join(" "));
    Ok(())
}

fn apt_get(words: &[&str]) -> Result<()> {
    // Our own standard output is for results.
    let output = std::io::stderr().as_fd().try_clone_to_owned()?;
    let status = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Servers are for the tests to start: no init script starts in run level 1.
        .env("RUNLEVEL", "1")
        .stdout(output)
        .status()
        .context("apt-get does not start")?;
    ensure!(status.success(), "apt-get {} failed ({status})", words.join(" "));
    Ok(())
}

fn root() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc is not mounted")?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    Ok(uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_missing_once_if_one_of_its_files_is() {
        let needed = [("/proc/self", "a"), ("/no/1", "b"), ("/no/2", "c"), ("/no/3", "b")];
        assert_eq!(missing(&needed), ["b", "c"]);
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let mut said = Vec::new();
        install(&[("/proc/self", "a")], &mut |line| said.push(line.to_owned())).expect("there");
        assert!(said.is_empty(), "{said:?}");
    }
}
