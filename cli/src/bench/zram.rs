//! Linux swapping to zram under a memory cgroup: set up for the benchmark, and always taken down.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::sys::swap;

const CONTROL: &str = "/sys/class/zram-control";
const DISK_BYTES: u64 = 2 << 30;

/// A zram device in use as swap, and a cgroup with a limit. Dropping it undoes everything.
#[derive(Default)]
pub struct Zram {
    /// The device's folder in /sys/block.
    pub device: PathBuf,
    /// The cgroup's folder.
    pub cgroup: PathBuf,
    /// What compresses.
    pub algorithm: String,
    node: PathBuf,
    added: Option<String>,
    sized: bool,
    swapping: bool,
    grouped: bool,
    subtree: Option<PathBuf>,
}

impl Zram {
    /// Sets it up.
    ///
    /// # Errors
    /// One sentence that says why this machine or user cannot; nothing is left behind.
    pub fn start(limit: u64, need: u64) -> Result<Self> {
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
        zram.make_cgroup(limit)?;
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

    fn make_cgroup(&mut self, limit: u64) -> Result<()> {
        let name = format!("casemate-bench-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory");
        let second = Path::new("/sys/fs/cgroup");
        if first.join("memory.limit_in_bytes").exists() {
            self.create_group(first.join(name))?;
            write(&self.cgroup.join("memory.limit_in_bytes"), &limit.to_string())
        } else if second.join("cgroup.controllers").exists() {
            let subtree = second.join("cgroup.subtree_control");
            if fs::read_to_string(&subtree).is_ok_and(|text| !text.contains("memory")) {
                write(&subtree, "+memory")?;
                self.subtree = Some(subtree);
            }
            self.create_group(second.join(name))?;
            write(&self.cgroup.join("memory.max"), &limit.to_string())
        } else {
            bail!("not measured: no memory cgroup is mounted at /sys/fs/cgroup");
        }
    }

    fn create_group(&mut self, path: PathBuf) -> Result<()> {
        fs::create_dir(&path).with_context(|| {
            format!("not measured: cannot create the cgroup {}", path.display())
        })?;
        self.cgroup = path;
        self.grouped = true;
        Ok(())
    }

    fn remove_device(&mut self) {
        if let Some(number) = self.added.take() {
            report(fs::write(format!("{CONTROL}/hot_remove"), &number), "remove the zram device");
        }
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)
        .with_context(|| format!("not measured: cannot write {text} to {}", path.display()))
}

/// What cannot be undone must at least be known.
fn report(result: std::io::Result<()>, what: &str) {
    if let Err(error) = result {
        crate::output::stderr(&format!("casemate: cannot {what} again: {error}\n"));
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        if self.grouped {
            // The last process has ended, but the kernel may need a moment to let go of it.
            let mut removed = fs::remove_dir(&self.cgroup);
            for _ in 0..50 {
                if removed.is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
                removed = fs::remove_dir(&self.cgroup);
            }
            report(removed, &format!("remove the cgroup {}", self.cgroup.display()));
        }
        if let Some(subtree) = &self.subtree {
            report(fs::write(subtree, "-memory"), "take the memory controller out");
        }
        if self.swapping {
            report(swap::off(&self.node), &format!("stop swapping to {}", self.node.display()));
        }
        if self.sized {
            report(fs::write(self.device.join("reset"), "1"), "reset the zram device");
        }
        self.remove_device();
    }
}
