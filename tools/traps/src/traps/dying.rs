//! Processes that end, stop or leave in the middle of faults.

use crate::support::children::{Child, describe};
use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, Region, Trouble, Verdict, in_child};
use std::time::{Duration, Instant};

/// Starts threads that write and check their part of the region until the process ends.
fn hammer(region: &Region, threads: usize) {
    let share = region.pages / threads;
    for thread in 0..threads {
        let part = region.part(thread * share, share);
        std::thread::spawn(move || {
            let mut generation = 0;
            loop {
                for page in 0..part.pages {
                    if let Err(trouble) = part.check_page(page, generation) {
                        eprintln!("hammering thread: {trouble}");
                        std::process::exit(7);
                    }
                    part.fill_page(page, generation + 1);
                }
                generation += 1;
            }
        });
    }
}

/// Lets time pass by work on memory of its own, not by hoping.
fn work_for(region: &Region, time: Duration) -> Verdict {
    let end = Instant::now() + time;
    while Instant::now() < end {
        (0..64).try_for_each(|_| region.check_page(0, 0))?;
    }
    Ok(())
}

/// Children kill themselves with SIGKILL while four threads fault; the parent's memory stays right.
pub fn die_in_fault(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    for round in 0..12 {
        let child = in_child(|| {
            hammer(&region, 4);
            work_for(
                &Region::map(1, 0).inspect(|own| own.fill(0))?,
                Duration::from_millis(20 * round),
            )?;
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            Err("SIGKILL did not end the process".into())
        })?;
        let status = child.status()?;
        if !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != libc::SIGKILL {
            return Err(Trouble(format!("expected death by SIGKILL, got status {status:#x}")));
        }
        let share = region.pages / 12;
        region.part(round as usize * share, share).check(0)?;
    }
    region.check(0)
}

/// Stops and continues a faulting child again and again; its own checks go on.
pub fn stop_continue(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    let child = in_child(|| {
        for generation in 0..12 {
            for page in 0..region.pages {
                region.check_page(page, generation)?;
                region.fill_page(page, generation + 1);
            }
        }
        Ok(())
    })?;
    let pause = Region::map(1, 0)?;
    pause.fill(0);
    loop {
        work_for(&pause, Duration::from_millis(5))?;
        child.signal(libc::SIGSTOP)?;
        match wait_flags(&child, libc::WUNTRACED)? {
            Some(status) if libc::WIFSTOPPED(status) => {}
            Some(status) => {
                describe("stopped child", child.pid, status)?;
                break;
            }
            None => return Err("waitpid came back with nothing".into()),
        }
        let share = region.pages / 8;
        region.part(0, share).check(0)?;
        child.signal(libc::SIGCONT)?;
    }
    region.check(0)
}

fn wait_flags(child: &Child, flags: i32) -> Result<Option<i32>, Trouble> {
    let mut status = 0;
    // SAFETY: `status` is a valid place; the child is ours.
    let got = check("waitpid", unsafe { libc::waitpid(child.pid, &mut status, flags) })?;
    Ok((got != 0).then_some(status))
}

/// The parent ends, a grandchild in a session of its own goes on and writes its verdict to a file.
pub fn daemonize(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let file = options.file.clone().ok_or("daemonize needs --file DIRECTORY")?.join("daemon");
    in_child(|| {
        // SAFETY: a new session for this process.
        check("setsid", unsafe { libc::setsid() })?;
        in_child(|| {
            let verdict = (0..4).try_for_each(|generation| {
                region.check(generation)?;
                region.fill(generation + 1);
                ballast.squeeze()
            });
            let verdict = verdict.and_then(|()| region.check(4));
            let text = match verdict {
                Ok(()) => "ok daemon\n".into(),
                Err(trouble) => format!("{trouble}\n"),
            };
            let unfinished = file.with_extension("part");
            std::fs::write(&unfinished, text).map_err(|e| e.to_string())?;
            std::fs::rename(&unfinished, &file).map_err(|e| Trouble(e.to_string()))
        })
        .map(drop)
    })?
    .wait()?;
    sys::same("what is in the parent's memory", true, region.check(0).is_ok())
}
