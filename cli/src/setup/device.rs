//! /dev/userfaultfd for the group: now, and by a udev rule after every start.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::record::{DeviceBefore, RuleBefore};
use super::{Work, group};
use crate::output;

const RULE_FILE: &str = "/etc/udev/rules.d/60-casemate.rules";
const RULE: &str = "# Written by `casemate setup`; `casemate setup --undo` removes it.\n\
                    KERNEL==\"userfaultfd\", GROUP=\"casemate\", MODE=\"0660\"\n";
const DEVICE: &str = "/dev/userfaultfd";
const MODE: u32 = 0o660;

/// Writes the rule and applies it at once, which also serves where there is no udevd.
pub fn apply(work: &mut Work) -> Result<()> {
    rule(work)?;
    let device = work.path(DEVICE);
    let metadata = match fs::metadata(&device) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            work.todo.push(format!(
                "there is no {} here: hand it in (containers: --device {DEVICE}) or use a kernel \
                 that has it (6.1 or later), then run setup again",
                device.display()
            ));
            return Ok(());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot look at {}", device.display()));
        }
    };
    let gid = group::id(work)?;
    let mode = metadata.mode() & 0o7777;
    if gid == Some(metadata.gid()) && mode == MODE {
        return Ok(());
    }
    if work.record.device_before.is_none() {
        let before = DeviceBefore { uid: metadata.uid(), gid: metadata.gid(), mode };
        work.note(|record| record.device_before = Some(before))?;
    }
    work.done.push(format!("give {} to the group casemate (mode 0660)", device.display()));
    match gid {
        Some(gid) if !work.dry_run => change(&device, metadata.uid(), gid, MODE),
        _ => Ok(()),
    }
}

fn rule(work: &mut Work) -> Result<()> {
    let file = work.path(RULE_FILE);
    let before = match fs::read_to_string(&file) {
        Ok(text) if text == RULE => return Ok(()),
        Ok(text) => RuleBefore::Text(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => RuleBefore::Absent,
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", file.display()));
        }
    };
    let missing: Vec<_> = file
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.exists())
        .map(Path::to_owned)
        .collect();
    if work.record.rule_before.is_none() {
        work.note(|record| {
            record.rule_before = Some(before);
            record.folders_made.extend(missing);
        })?;
    }
    work.done.push(format!("write the rule {}", file.display()));
    if work.dry_run {
        return Ok(());
    }
    file.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| output::replace(&file, RULE.as_bytes()))
        .with_context(|| format!("cannot write the rule {}", file.display()))?;
    reload(work);
    Ok(())
}

fn change(device: &Path, uid: u32, gid: u32, mode: u32) -> Result<()> {
    chown(device, Some(uid), Some(gid))
        .and_then(|()| fs::set_permissions(device, Permissions::from_mode(mode)))
        .with_context(|| format!("cannot change who may open {}", device.display()))
}

/// Puts the rule and the device back to what they were.
pub fn undo(work: &mut Work) -> Result<()> {
    let file = work.path(RULE_FILE);
    // Without a record, only a rule that is word for word ours is removed.
    let ours = fs::read_to_string(&file).is_ok_and(|text| text == RULE);
    let before = work.record.rule_before.take().or(ours.then_some(RuleBefore::Absent));
    if let Some(before) = before
        && ours
    {
        let verb = if matches!(before, RuleBefore::Absent) { "remove" } else { "restore" };
        work.done.push(format!("{verb} the rule {}", file.display()));
        if !work.dry_run {
            match before {
                RuleBefore::Absent => fs::remove_file(&file),
                RuleBefore::Text(text) => output::replace(&file, text.as_bytes()),
            }
            .with_context(|| format!("cannot {verb} the rule {}", file.display()))?;
            for folder in &work.record.folders_made {
                // Another program may have put something there since; then it stays.
                let _ = fs::remove_dir(folder);
            }
            reload(work);
        }
    }
    let device = work.path(DEVICE);
    if let Some(before) = work.record.device_before.take()
        && device.exists()
    {
        work.done.push(format!(
            "give {} back to owner {}, group {} (mode {:04o})",
            device.display(),
            before.uid,
            before.gid,
            before.mode
        ));
        if !work.dry_run {
            change(&device, before.uid, before.gid, before.mode)?;
        }
    }
    Ok(())
}

/// Tells udevd, where there is one.
fn reload(work: &Work) {
    if work.whole_system() {
        let _ = Command::new("udevadm")
            .args(["control", "--reload"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}
