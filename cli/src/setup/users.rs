//! Whether there is a user of a name.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use casemate_schemes::nearest::meant;

use super::Work;
use crate::failure::Failure;

/// Refuses a name that is no user's of the system that is worked on.
pub fn check(work: &Work, user: &str) -> Result<()> {
    if user.is_empty() || user.starts_with('-') || user.contains([':', ',', '\n', '/']) {
        return Err(Failure::own(format!("{user:?} is no user name; name one with --user")).into());
    }
    let path = work.path("/etc/passwd");
    let text = fs::read_to_string(&path)
        .with_context(|| format!("cannot read the users in {}", path.display()))?;
    let known = || text.lines().filter_map(|line| line.split(':').next());
    if known().any(|name| name == user) || work.whole_system() && is_elsewhere(user) {
        return Ok(());
    }
    let meant = meant(user, known());
    Err(Failure::own(format!("there is no user {user}{meant}; name one with --user")).into())
}

/// Whether the running system knows the user from a directory (LDAP, for example) and not from its
/// file.
fn is_elsewhere(user: &str) -> bool {
    let mut command = Command::new("getent");
    let found = command.args(["passwd", user]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    // It takes numbers too, which usermod does not.
    let prefix = format!("{user}:");
    found.is_ok_and(|found| found.status.success() && found.stdout.starts_with(prefix.as_bytes()))
}
