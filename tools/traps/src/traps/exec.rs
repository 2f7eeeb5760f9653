//! Programs that execute themselves anew.

use crate::support::sys::errno_text;
use crate::support::{Options, Region, Trouble, Verdict, in_child};
use std::ffi::CString;
use std::os::fd::AsRawFd;

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

/// While it has memory itself, its children execute a program with a large static array.
pub fn bss_executed(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 3 / 8, options.seed)?;
    region.fill(0);
    for _ in 0..3 {
        in_child(|| again(options, "bss-filled", 0, true))?.wait()?;
        region.check(0)?;
    }
    Ok(())
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

/// Executes a script whose interpreter is under a lease of its own, which the kernel waits for: the
/// `execve` takes as long as another thread likes, that takes memory meanwhile. (fcntl(2),
/// `F_SETLEASE`.)
pub fn exec_stalls(options: &Options) -> Verdict {
    let folder = options.file.clone().unwrap_or_else(std::env::temp_dir);
    let name = |what| folder.join(format!("casemate-trap-{}-{what}", std::process::id()));
    let (interpreter, script) = (name("interpreter"), name("script"));
    std::fs::copy("/bin/sh", &interpreter).map_err(|e| e.to_string())?;
    let shell = interpreter.display();
    let text = format!("#!{shell}\nrm -f $0 {shell}\necho ok exec-stalls\n");
    std::fs::write(&script, text).map_err(|e| e.to_string())?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, executable).map_err(|e| e.to_string())?;
    let leased = std::fs::File::open(&interpreter).map_err(|e| e.to_string())?;
    let lease = |kind: i32| {
        // SAFETY: takes plain numbers.
        match unsafe { libc::fcntl(leased.as_raw_fd(), libc::F_SETLEASE, kind) } {
            0 => Ok(()),
            _ => Err(Trouble(format!("F_SETLEASE: {}", errno_text()))),
        }
    };
    // SAFETY: the set is plain integers, filled before use.
    let asked_back = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGIO);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    lease(libc::F_WRLCK)?;
    let grow = || {
        let mut signal = 0;
        // SAFETY: both are live locals.
        unsafe { libc::sigwait(&raw const asked_back, &raw mut signal) };
        for round in 0..4 {
            let region = Region::map(2 * options.pages(), options.seed)?;
            region.fill(round);
            region.check(round)?;
        }
        lease(libc::F_UNLCK)
    };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            if let Err(trouble) = grow() {
                eprintln!("{trouble}");
                std::process::exit(1);
            }
        });
        let path =
            CString::new(script.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        let argv = [path.as_ptr(), std::ptr::null()];
        // SAFETY: argv ends with a null pointer and outlives the call.
        unsafe { libc::execv(path.as_ptr(), argv.as_ptr()) };
        Err(Trouble(format!("execv: {}", errno_text())))
    })
}
