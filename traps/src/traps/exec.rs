//! Programs that execute themselves anew.

use crate::support::sys::errno_text;
use crate::support::{Options, Region, Trouble, Verdict};
use std::ffi::CString;

/// Executes this program's trap `name` again with so much depth left; the environment may be empty.
pub fn again(options: &Options, name: &str, depth: usize, environment: bool) -> Verdict {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let words = [
        own.to_string_lossy().into_owned(),
        name.into(),
        "--mib".into(),
        options.mib.to_string(),
        "--seed".into(),
        options.seed.to_string(),
        "--depth".into(),
        depth.to_string(),
    ];
    let words: Vec<CString> = words
        .into_iter()
        .map(|w| CString::new(w).map_err(|e| Trouble(e.to_string())))
        .collect::<Result<_, _>>()?;
    let mut argv: Vec<*const libc::c_char> = words.iter().map(|w| w.as_ptr()).collect();
    argv.push(std::ptr::null());
    let none = [std::ptr::null::<libc::c_char>()];
    // SAFETY: argv and the environment end with null pointers and outlive the call.
    unsafe {
        if environment {
            libc::execv(argv[0], argv.as_ptr());
        } else {
            libc::execve(argv[0], argv.as_ptr(), none.as_ptr());
        }
    }
    Err(Trouble(format!("execve: {}", errno_text())))
}

/// Fills memory, executes itself with an empty environment, so many times.
pub fn exec_chain(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.check_zero()?;
    region.fill(options.depth as u64);
    region.check(options.depth as u64)?;
    if options.depth == 0 {
        return Ok(());
    }
    again(options, "exec-chain", options.depth - 1, false)
}

/// Executes itself from a thread that is not the first, while others still fault.
pub fn exec_from_thread(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    region.check(0)?;
    if options.depth == 0 {
        return Ok(());
    }
    let depth = options.depth.min(3) - 1;
    for thread in 0..3 {
        let part = region.part(thread * (region.pages / 3), region.pages / 3);
        // Ends with the exec below, in the middle of a fault as like as not.
        std::thread::spawn(move || {
            while part.check(0).is_ok() {
                part.fill(0);
            }
        });
    }
    let options = options.clone();
    std::thread::spawn(move || again(&options, "exec-from-thread", depth, true))
        .join()
        .map_err(|_| Trouble::from("the executing thread panicked"))?
}
