//! The group casemate and its members, through the system's own tools.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{GROUP, Work};
use crate::failure::Failure;

/// One line of /etc/group.
struct Line {
    id: u32,
    members: Vec<String>,
}

fn line(work: &Work) -> Result<Option<Line>> {
    let path = work.path("/etc/group");
    let text = fs::read_to_string(&path)
        .with_context(|| format!("cannot read the groups in {}", path.display()))?;
    Ok(text.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != GROUP {
            return None;
        }
        let id = fields.nth(1)?.parse().ok()?;
        let members = fields.next().unwrap_or_default().split(',').filter(|name| !name.is_empty());
        Some(Line { id, members: members.map(str::to_owned).collect() })
    }))
}

/// The group's number; none if there is no such group (yet).
pub fn id(work: &Work) -> Result<Option<u32>> {
    Ok(line(work)?.map(|line| line.id))
}

/// Creates the group.
pub fn create(work: &mut Work) -> Result<()> {
    if line(work)?.is_some() {
        return Ok(());
    }
    work.note(|record| record.group_created = true)?;
    work.done.push(format!("create the system group {GROUP}"));
    tool(work, "groupadd", "-P", &["--system", GROUP])
}

/// Adds a user, whom there is.
pub fn add(work: &mut Work, user: &str) -> Result<()> {
    if line(work)?.is_some_and(|line| line.members.iter().any(|member| member == user)) {
        return Ok(());
    }
    if !work.record.members_added.iter().any(|member| member == user) {
        let name = user.to_owned();
        work.note(|record| record.members_added.push(name))?;
    }
    work.done.push(format!("add {user} to the group {GROUP}"));
    tool(work, "usermod", "-P", &["-aG", GROUP, user])?;
    work.todo.push(format!("{user} has to log in again (or type `newgrp {GROUP}`)"));
    Ok(())
}

/// Removes the group if we created it, or else the users whom we added.
pub fn undo(work: &mut Work) -> Result<()> {
    let Some(line) = line(work)? else { return Ok(()) };
    if work.record.group_created {
        work.done.push(format!("remove the group {GROUP}"));
        return tool(work, "groupdel", "-P", &[GROUP]);
    }
    for user in std::mem::take(&mut work.record.members_added) {
        if line.members.contains(&user) {
            work.done.push(format!("take {user} out of the group {GROUP}"));
            tool(work, "gpasswd", "-Q", &["-d", &user, GROUP])?;
        }
    }
    Ok(())
}

/// Runs a tool of the shadow package, on another root if need be.
fn tool(work: &Work, name: &str, root_flag: &str, arguments: &[&str]) -> Result<()> {
    if work.dry_run {
        return Ok(());
    }
    let mut command = Command::new(name);
    if !work.whole_system() {
        command.arg(root_flag).arg(&work.root);
    }
    // sudo and su may leave /usr/sbin out of the PATH.
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin"));
    let line = format!("{name} {}", arguments.join(" "));
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            Err(Failure::no(format!("`{line}` failed: {said} (mend that and run setup again)"))
                .into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::no(format!(
            "there is no {name} here: do by other means what `{line}` does, then run setup again"
        ))
        .into()),
        Err(error) => Err(error).with_context(|| format!("cannot run `{line}`")),
    }
}
