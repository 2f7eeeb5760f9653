//! A whole machine as one program: QEMU without hardware help boots Linux, works in its memory and
//! powers off. All of the guest's RAM, its kernel's included, is private memory of one process.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the guest's first process is, and all that it runs: a shell with its tools in one file
/// (Debian: `busybox-static`).
const BUSYBOX: &str = "/usr/bin/busybox";
/// Its file system in RAM, in the folder.
pub const FILE_SYSTEM: &str = "guest.initrd";

/// Sorts and copies files in RAM, and checks what comes back. What it prints is the same each time.
const FIRST_PROCESS: &str = "#!/bin/busybox sh
/bin/busybox mkdir /work
/bin/busybox mount -t tmpfs -o size=80% none /work
cd /work
/bin/busybox seq 1 900000 > numbers
for round in 1 2; do
  for part in 0 1 2 3 4 5; do
    /bin/busybox dd if=numbers of=part.$part bs=1M skip=$part count=1 2> /dev/null
  done
  /bin/busybox sha256sum part.*
  /bin/busybox cat part.* | /bin/busybox cmp - numbers && echo round $round is right
  /bin/busybox sort -r numbers | /bin/busybox head -n 3
done
/bin/busybox poweroff -f
";

/// Starts QEMU with 160 MiB for the guest.
pub fn command(folder: &Path) -> Vec<OsString> {
    let fixed = "qemu-system-x86_64 -accel tcg -m 160M -smp 1 -nodefaults -nographic -nic none \
                 -serial stdio -no-reboot -append";
    let mut words: Vec<OsString> = fixed.split_whitespace().map(OsString::from).collect();
    words.push("console=ttyS0 loglevel=0 panic=-1".into());
    words.extend(["-kernel".into(), kernel().unwrap_or_default().into()]);
    words.extend(["-initrd".into(), folder.join(FILE_SYSTEM).into()]);
    words
}

/// What must be there beside QEMU.
pub fn files() -> Vec<PathBuf> {
    vec![BUSYBOX.into(), kernel().unwrap_or_else(|| "/boot/vmlinuz".into())]
}

/// A kernel of the machine's own, the last by name.
fn kernel() -> Option<PathBuf> {
    let files = fs::read_dir("/boot").ok()?.flatten().map(|entry| entry.path());
    let is_kernel = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz"))
    };
    files.filter(is_kernel).max()
}

/// Writes the guest's file system.
pub fn file_system(to: &mut dyn Write) -> io::Result<()> {
    let (folder, program) = (0o040_755, 0o100_755);
    entry(to, "bin", folder, &[])?;
    entry(to, "bin/busybox", program, &fs::read(BUSYBOX)?)?;
    entry(to, "init", program, FIRST_PROCESS.as_bytes())?;
    entry(to, "TRAILER!!!", 0, &[])
}

/// One file of a cpio archive of the "newc" kind (Linux:
/// `driver-api/early-userspace/buffer-format`).
fn entry(to: &mut dyn Write, name: &str, mode: u32, data: &[u8]) -> io::Result<()> {
    let too_large = |_| io::Error::other("the file is too large for the archive");
    let length = u32::try_from(data.len()).map_err(too_large)?;
    let name_length = name.len() as u32 + 1;
    // Inode, mode, owner, group, links, time, length, device (4), length of the name, checksum.
    let fields = [0, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0];
    write!(to, "070701")?;
    fields.iter().try_for_each(|field| write!(to, "{field:08X}"))?;
    write!(to, "{name}\0")?;
    // The header has 110 bytes.
    padding(to, 110 + name.len() + 1)?;
    to.write_all(data)?;
    padding(to, data.len())
}

fn padding(to: &mut dyn Write, bytes: usize) -> io::Result<()> {
    to.write_all(&[0; 4][..bytes.next_multiple_of(4) - bytes])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every header, name and file begins at a multiple of four bytes, where the kernel looks.
    #[test]
    fn entries_of_the_archive_are_aligned() {
        let mut archive = Vec::new();
        entry(&mut archive, "init", 0o100_755, b"hello").expect("memory does not fail");
        assert_eq!(archive.len(), 116 + 8, "110 and 5 bytes, and 5 bytes, each filled up to four");
        assert_eq!(&archive[..22], b"07070100000000000081ED");
        assert_eq!(&archive[54..62], b"00000005");
        assert_eq!(&archive[110..121], b"init\0\0hello");
    }
}
