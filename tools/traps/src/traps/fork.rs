//! Fork while pages are evicted: parent, children and grandchildren each keep their own contents.

use crate::support::children::wait_all;
use crate::support::sys;
use crate::support::{Ballast, Options, Region, Verdict, in_child};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Parent and child both check what they share, both write, both check again; grandchildren too.
pub fn fork(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    region.fill(0);
    for round in 0..4 {
        let generation = round * 10;
        ballast.squeeze()?;
        let child = in_child(|| {
            region.check(generation)?;
            region.fill(generation + 1);
            let grandchild = in_child(|| {
                region.check(generation + 1)?;
                (0..region.pages).step_by(2).for_each(|p| region.fill_page(p, generation + 2));
                ballast.squeeze()?;
                (0..region.pages)
                    .try_for_each(|p| region.check_page(p, generation + 1 + u64::from(p % 2 == 0)))
            })?;
            region.check(generation + 1)?;
            region.fill(generation + 3);
            region.check(generation + 3)?;
            grandchild.wait()
        })?;
        region.check(generation)?;
        region.fill(generation + 10);
        region.check(generation + 10)?;
        child.wait()?;
        region.check(generation + 10)?;
    }
    Ok(())
}

/// A child reads a snapshot at leisure while the parent overwrites it, like a database's background
/// save.
pub fn fork_server(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    for round in 0..4 {
        let saver = in_child(|| {
            region.check(round)?;
            (0..region.pages).rev().try_for_each(|page| region.check_page(page, round))
        })?;
        for page in 0..region.pages {
            region.check_page(page, round)?;
            region.fill_page(page, round + 1);
        }
        region.check(round + 1)?;
        saver.wait()?;
    }
    Ok(())
}

/// Many short-lived children, four at a time; each checks a part, writes it, and is gone.
pub fn many_children(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(7);
    let share = region.pages / 16;
    for round in 0..25 {
        let children = (0..4).map(|i| {
            let part = region.part((round * 4 + i) % 16 * share, share);
            in_child(move || {
                part.check(7)?;
                part.fill(8);
                part.check(8)
            })
        });
        wait_all(children.collect::<Result<_, _>>()?)?;
    }
    region.check(7)
}

/// Each process forks the next, 24 deep; every one checks its ancestors' pages and changes its own.
pub fn deep_tree(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 2, options.seed)?;
    region.fill(0);
    descend(&region, 0, 24)?;
    region.check(0)
}

fn descend(region: &Region, level: usize, depth: usize) -> Verdict {
    if level == depth {
        return Ok(());
    }
    let share = region.pages / depth;
    in_child(|| {
        for page in 0..region.pages {
            let owner = page / share;
            region.check_page(page, if owner < level { owner as u64 + 1 } else { 0 })?;
        }
        (level * share..(level + 1) * share)
            .for_each(|page| region.fill_page(page, level as u64 + 1));
        descend(region, level + 1, depth)
    })?
    .wait()
}

/// A chain of forty forks: each child maps memory of its own, fills it and forks at once, while its
/// agent is being made. All check all that they inherited, the last one first. Three chains, for it
/// is a race.
pub fn fork_chain(options: &Options) -> Verdict {
    (0..3).try_for_each(|_| lengthen(options, &mut Vec::new()))
}

fn lengthen(options: &Options, chain: &mut Vec<Region>) -> Verdict {
    const LENGTH: usize = 40;
    let check = |chain: &[Region]| (0..).zip(chain).try_for_each(|(level, r)| r.check(level));
    if chain.len() == LENGTH {
        return check(chain);
    }
    let level = chain.len() as u64;
    let region = Region::map(options.pages() / 240, options.seed + level)?;
    region.fill(level);
    chain.push(region);
    let child = in_child(|| lengthen(options, chain))?;
    child.wait()?;
    check(&chain[..=level as usize])?;
    chain.truncate(level as usize);
    region.unmap()
}

/// A chain of thirty forks: each child reads zeros where its parent had memory wiped, fills that,
/// and forks at once, while its agent is being made. Three chains, for it is a race.
pub fn wiped_chain(options: &Options) -> Verdict {
    (0..3).try_for_each(|_| wipe(options, 0))
}

fn wipe(options: &Options, level: u64) -> Verdict {
    const LENGTH: u64 = 30;
    const CHILDS: u64 = 1000;
    if level == LENGTH {
        return Ok(());
    }
    let region = Region::map(options.pages() / 240, options.seed + level)?;
    region.fill(level);
    sys::advise(region.base, region.bytes(), libc::MADV_WIPEONFORK)?;
    let child = in_child(|| {
        region.check_zero()?;
        region.fill(CHILDS + level);
        wipe(options, level + 1)?;
        region.check(CHILDS + level)
    })?;
    child.wait()?;
    region.check(level)?;
    region.unmap()
}

/// Several threads write and check while one of them forks; every child finds pages whole.
pub fn fork_with_threads(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    let half = region.pages / 2;
    let fixed = region.part(0, half);
    let moving = region.part(half, region.pages - half);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let stop = &stop;
    std::thread::scope(|scope| {
        let hammers: Vec<_> = (0..2)
            .map(|thread| {
                let share = moving.pages / 2;
                let part = moving.part(thread * share, share);
                scope.spawn(move || -> Verdict {
                    let mut generation = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        for page in 0..part.pages {
                            part.check_page(page, generation)?;
                            part.fill_page(page, generation + 1);
                        }
                        generation += 1;
                    }
                    part.check(generation)
                })
            })
            .collect();
        let forks = (0..12).try_for_each(|_| in_child(|| fixed.check(0))?.wait());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for hammer in hammers {
            hammer.join().map_err(|_| "a hammering thread panicked")??;
        }
        forks
    })?;
    fixed.check(0)
}

/// Children end by `_exit` as soon as they are begun, while threads come and go and one pages.
pub fn children_end_at_once(options: &Options) -> Verdict {
    const CHILDREN: usize = 150;
    const THREADS: usize = 30;
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let forker = scope.spawn(|| {
            let ended = (0..CHILDREN).try_for_each(|_| -> Verdict {
                let child = in_child(|| Ok(()))?;
                child.wait()?;
                std::thread::sleep(Duration::from_millis(3));
                Ok(())
            });
            stop.store(true, Ordering::Relaxed);
            ended
        });
        let checker = scope.spawn(|| {
            let mut checked = Ok(());
            while checked.is_ok() && !stop.load(Ordering::Relaxed) {
                checked = region.check(0);
            }
            checked
        });
        while !stop.load(Ordering::Relaxed) {
            let begin = |_| std::thread::spawn(|| std::hint::black_box([1_u8; 9000])[0]);
            let threads: Vec<_> = (0..THREADS).map(begin).collect();
            for thread in threads {
                thread.join().map_err(|_| "a short thread panicked")?;
            }
        }
        forker.join().map_err(|_| "the forking thread panicked")??;
        checker.join().map_err(|_| "the checking thread panicked")?
    })
}
