//! What was there before `setup` changed it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::output;

const FILE: &str = "var/lib/casemate/setup.json";

/// The state before, as far as it was changed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// We created the group.
    pub group_created: bool,
    /// Users whom we added to it.
    pub members_added: Vec<String>,
    /// The udev rule before.
    pub rule_before: Option<RuleBefore>,
    /// Folders that we made on the way to the rule.
    pub folders_made: Vec<PathBuf>,
    /// The device before.
    pub device_before: Option<DeviceBefore>,
    /// Binaries that we gave the capability.
    pub binaries: Vec<BinaryBefore>,
}

/// The file of the udev rule.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleBefore {
    /// There was none.
    Absent,
    /// It said this.
    Text(String),
}

/// Owner, group and mode of /dev/userfaultfd.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeviceBefore {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// A binary's capabilities.
#[derive(Debug, Serialize, Deserialize)]
pub struct BinaryBefore {
    /// Where it is.
    pub path: PathBuf,
    /// The bytes of security.capability before; none: it had none.
    pub capability: Option<Vec<u8>>,
}

impl Record {
    /// Reads the record; none yet is an empty one.
    pub fn load(root: &Path) -> Result<Self> {
        let path = root.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| {
                format!(
                    "cannot understand the record of setup in {} (repair or remove it)",
                    path.display()
                )
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::default()),
            // Only --dry-run gets here without root.
            Err(error) => Err(error)
                .with_context(|| format!("cannot read the record of setup in {}", path.display())),
        }
    }

    /// Writes it in one step.
    pub fn save(&self, root: &Path) -> Result<()> {
        let path = root.join(FILE);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        }
        output::replace(&path, &serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write the record of setup to {}", path.display()))
    }

    /// Forgets it, and the folder that held only it.
    pub fn remove(root: &Path) -> Result<()> {
        let path = root.join(FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error)
                .with_context(|| format!("cannot remove the record of setup, {}", path.display())),
            _ => {
                if let Some(folder) = path.parent() {
                    // Not empty means that it is not only ours.
                    let _ = fs::remove_dir(folder);
                }
                Ok(())
            }
        }
    }
}
