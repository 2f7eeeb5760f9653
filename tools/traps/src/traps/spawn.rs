//! `vfork` and `posix_spawn` of a small program while the parent's memory is evicted.

use crate::support::children::{Child, describe};
use crate::support::sys::check;
use crate::support::{Ballast, Options, Region, Trouble, Verdict};
use std::ffi::CString;
use std::ptr;

/// A program that ends at once with this code.
fn exit_program(code: i32) -> Result<Vec<CString>, Trouble> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let words = [own.to_string_lossy().into_owned(), "exit".into(), code.to_string()];
    words.into_iter().map(|w| CString::new(w).map_err(|e| Trouble(e.to_string()))).collect()
}

/// `posix_spawn`, 60 times; the child's exit code comes back, the parent's memory stays right.
pub fn posix_spawn(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    region.fill(1);
    for round in 0..60 {
        if round % 10 == 0 {
            ballast.squeeze()?;
        }
        let words = exit_program(round % 3)?;
        let mut argv: Vec<*mut libc::c_char> =
            words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        argv.push(ptr::null_mut());
        let environment = [ptr::null_mut::<libc::c_char>()];
        let mut pid = 0;
        // SAFETY: argv and environment end with null pointers and outlive the call.
        let error = unsafe {
            libc::posix_spawn(
                &mut pid,
                argv[0],
                ptr::null(),
                ptr::null(),
                argv.as_ptr(),
                environment.as_ptr(),
            )
        };
        if error != 0 {
            return Err(Trouble(format!("posix_spawn: error {error}")));
        }
        expect_code(pid, round % 3)?;
        let share = region.pages / 60;
        region.part(round as usize * share, share).check(1)?;
    }
    region.check(1)
}

/// `vfork` with an `exec`; the child writes to the parent's memory before it, as vfork allows.
pub fn vfork(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    region.fill(1);
    for round in 0..60 {
        if round % 10 == 0 {
            ballast.squeeze()?;
        }
        let words = exit_program(round % 3)?;
        let page = round as usize * (region.pages / 60);
        let pid = vfork_exec(&words, region.page(page), 0x5eed + round as u64)?;
        expect_code(pid, round % 3)?;
        // SAFETY: within the region.
        let got = unsafe { region.page(page).cast::<u64>().read_volatile() };
        if got != 0x5eed + round as u64 {
            return Err(Trouble(format!("the word that the vfork child wrote reads {got:#x}")));
        }
        region.fill_page(page, 1);
    }
    region.check(1)
}

#[inline(never)]
fn vfork_exec(words: &[CString], place: *mut u8, value: u64) -> Result<i32, Trouble> {
    let mut argv: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(ptr::null());
    let environment = [ptr::null::<libc::c_char>()];
    // SAFETY: the child only writes one word of memory that is mapped, and execs or exits.
    let pid = unsafe {
        #[allow(deprecated)]
        let pid = libc::vfork();
        if pid == 0 {
            place.cast::<u64>().write_volatile(value);
            libc::execve(argv[0], argv.as_ptr(), environment.as_ptr());
            libc::_exit(127);
        }
        pid
    };
    check("vfork", pid).map(|pid| pid as i32)
}

fn expect_code(pid: i32, code: i32) -> Verdict {
    let status = Child { pid }.status()?;
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == code {
        return Ok(());
    }
    describe("spawned program", pid, status)?;
    Err(Trouble(format!("spawned program {pid}: expected code {code}, got 0")))
}

/// The child of a `vfork` works on memory for a long time while its parent can do nothing but wait.
pub fn vfork_long(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    for round in 0..3 {
        // SAFETY: the child uses the parent's memory in ways that its parent expects, and exits.
        let pid = unsafe {
            #[allow(deprecated)]
            let pid = libc::vfork();
            if pid == 0 {
                let right = (0..region.pages).all(|page| {
                    let right = region.check_page(page, round).is_ok();
                    region.fill_page(page, round + 1);
                    right
                });
                libc::_exit(i32::from(!right));
            }
            pid
        };
        Child { pid: check("vfork", pid)? as i32 }.wait()?;
        region.check(round + 1)?;
    }
    Ok(())
}
