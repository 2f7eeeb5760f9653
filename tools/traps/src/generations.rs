//! A program that goes into the background again and again, as daemons do twice.

use crate::support::sys::check;
use crate::support::{Options, Verdict};

/// A name that is no text: the kernel cuts names after 15 bytes, be it within a letter.
pub fn take_odd_name() -> Verdict {
    // SAFETY: a string of less than 16 bytes.
    let taken = unsafe { libc::prctl(libc::PR_SET_NAME, c"caf\xe9".as_ptr()) };
    check("prctl", taken).map(drop)
}

/// `--depth` times the program forks, and the parent ends at once. The last one says so, waits
/// until its input ends, and says that it lives.
pub fn generations(options: &Options) -> Verdict {
    if options.mode == "odd-name" {
        take_odd_name()?;
    }
    for _ in 0..options.depth {
        // SAFETY: this program has one thread.
        if check("fork", i64::from(unsafe { libc::fork() }))? > 0 {
            // SAFETY: the parent has nothing to clean up.
            unsafe { libc::_exit(0) };
        }
    }
    println!("the last one waits");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| e.to_string())?;
    println!("the last one lives");
    Ok(())
}
