//! swapon(2) and swapoff(2), and the header that makes a device a swap area.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use casemate_core::PAGE_BYTES;

/// Before everything that is in use already.
const PRIORITY: i32 = 32767;
const PREFER: i32 = 0x8000;

/// Writes the header (version 1, 4 KiB pages) that mkswap(8) would.
pub fn write_header(device: &Path, bytes: u64) -> io::Result<()> {
    let mut page = vec![0_u8; PAGE_BYTES];
    page[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    let last =
        u32::try_from(bytes / PAGE_BYTES as u64 - 1).map_err(|_| io::ErrorKind::InvalidInput)?;
    page[1028..1032].copy_from_slice(&last.to_le_bytes());
    page[PAGE_BYTES - 10..].copy_from_slice(b"SWAPSPACE2");
    let mut device = OpenOptions::new().write(true).open(device)?;
    device.seek(SeekFrom::Start(0))?;
    device.write_all(&page)?;
    device.sync_all()
}

/// Starts swapping to the device.
pub fn on(device: &Path) -> io::Result<()> {
    let path = CString::new(device.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that lives through the call.
    let code = unsafe { libc::swapon(path.as_ptr(), PREFER | PRIORITY) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Stops swapping to the device.
pub fn off(device: &Path) -> io::Result<()> {
    let path = CString::new(device.as_os_str().as_bytes())?;
    // SAFETY: as above.
    let code = unsafe { libc::swapoff(path.as_ptr()) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
