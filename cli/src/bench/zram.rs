//! Linux swapping to zram: set up for the benchmark, and always taken down.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::cgroup::{report, write};
use crate::sys::swap;

const CONTROL: &str = "/sys/class/zram-control";
const DISK_BYTES: u64 = 2 << 30;

/// A zram device in use as swap. Dropping it undoes everything.
#[derive(Default)]
pub struct Zram {
    /// The device's folder in /sys/block.
    pub device: PathBuf,
    /// What compresses.
    pub algorithm: String,
    node: PathBuf,
    added: Option<String>,
    sized: bool,
    swapping: bool,
}

impl Zram {
    /// Sets it up.
    ///
    /// # Errors
    /// One sentence that says why this machine or user cannot; nothing is left behind.
    pub fn start(need: u64) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("not measured: it needs root");
        }
        let mut zram = Zram::default();
        zram.find_device()?;
        zram.algorithm = fs::read_to_string(zram.device.join("comp_algorithm"))
            .ok()
            .and_then(|text| text.split(['[', ']']).nth(1).map(str::to_owned))
            .unwrap_or_else(|| "unknown".to_owned());
        let bytes = DISK_BYTES.max(need.saturating_mul(2));
        zram.sized = true;
        write(&zram.device.join("disksize"), &bytes.to_string())?;
        swap::write_header(&zram.node, bytes)
            .with_context(|| format!("cannot write a swap header to {}", zram.node.display()))?;
        swap::on(&zram.node).with_context(|| format!("cannot swap to {}", zram.node.display()))?;
        zram.swapping = true;
        Ok(zram)
    }

    /// A device of our own where the kernel gives one, else zram0 if it is not in use.
    fn find_device(&mut self) -> Result<()> {
        if let Ok(number) = fs::read_to_string(format!("{CONTROL}/hot_add")) {
            let number = number.trim().to_owned();
            self.device = format!("/sys/block/zram{number}").into();
            self.node = format!("/dev/zram{number}").into();
            self.added = Some(number);
            if self.node.exists() {
                return Ok(());
            }
            // No devtmpfs here (a container): only devices that are there already can be used.
            self.remove_device();
        }
        self.device = "/sys/block/zram0".into();
        self.node = "/dev/zram0".into();
        if !self.node.exists() || !self.device.exists() {
            bail!("not measured: there is no zram device (modprobe zram)");
        }
        if fs::read_to_string(self.device.join("disksize")).is_ok_and(|text| text.trim() != "0") {
            bail!("not measured: zram0 is in use");
        }
        Ok(())
    }

    fn remove_device(&mut self) {
        if let Some(number) = self.added.take() {
            report(fs::write(format!("{CONTROL}/hot_remove"), &number), "remove the zram device");
        }
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        if self.swapping {
            report(swap::off(&self.node), &format!("stop swapping to {}", self.node.display()));
        }
        if self.sized {
            report(fs::write(self.device.join("reset"), "1"), "reset the zram device");
        }
        self.remove_device();
    }
}
