//! Plants a marker in every page and waits, so that a test can look for it from outside.

use crate::support::sys::check;
use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use std::io::Write;

/// 32 hexadecimal digits.
pub fn parse_hex(text: &str) -> Result<[u8; 16], String> {
    let mut marker = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return Err("--marker needs 32 hexadecimal digits".into());
    }
    for (i, byte) in marker.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).map_err(|e| e.to_string())?;
    }
    Ok(marker)
}

/// Where in page `page` the marker stands.
fn place(page: usize) -> usize {
    page * 16 * 7 % PAGE
}

/// Fills, prints `ready PID`, sleeps until standard input closes, and verifies everything.
pub fn marker(options: &Options) -> Verdict {
    if options.marker == [0; 16] {
        return Err("marker needs --marker".into());
    }
    let region = Region::map(options.pages(), options.seed)?;
    for page in 0..region.pages {
        region.fill_page(page, 1);
        let at = region.page(page).wrapping_add(place(page));
        // SAFETY: 16 bytes within the page, since `place` is a multiple of 16.
        unsafe { std::ptr::copy_nonoverlapping(options.marker.as_ptr(), at, 16) };
    }
    println!("ready {}", std::process::id());
    std::io::stdout().flush().map_err(|e| e.to_string())?;
    let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN | libc::POLLHUP, revents: 0 };
    // SAFETY: one valid pollfd.
    let woken = check("poll", unsafe { libc::poll(&mut poll, 1, options.seconds as i32 * 1000) })?;
    if woken == 0 {
        return Err(Trouble(format!("standard input was not closed in {} s", options.seconds)));
    }
    for page in 0..region.pages {
        let at = region.page(page).wrapping_add(place(page));
        // SAFETY: as above; nobody writes it now.
        let found = unsafe { std::slice::from_raw_parts(at, 16) };
        if found != options.marker {
            return Err(Trouble(format!("page {page}: the marker reads {found:02x?}")));
        }
        let first = place(page) / 8;
        for word in (0..PAGE / 8).filter(|word| *word != first && *word != first + 1) {
            // SAFETY: within the page.
            let got = unsafe { region.page(page).cast::<u64>().add(word).read_volatile() };
            let right = crate::support::word(options.seed, page as u64, 1, word);
            if got != right {
                return Err(Trouble(format!("page {page} word {word}: {right:#x}, got {got:#x}")));
            }
        }
    }
    Ok(())
}
