//! Children that are stopped and told to continue while a pager takes them over.

use crate::support::children::{Child, wait_all};
use crate::support::{Ballast, Options, Region, Verdict, in_child};
use std::time::Duration;

/// A tracer may do anything meanwhile; the last signal is SIGCONT: all go on, and end.
pub fn stopped_and_continued(options: &Options) -> Verdict {
    const CHILDREN: usize = 8;
    let region = Region::map(options.pages() / 16, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    for round in 0..6 {
        ballast.squeeze()?;
        let live = || {
            region.check(0)?;
            region.fill(round + 1);
            region.check(round + 1)
        };
        let children: Vec<Child> =
            (0..CHILDREN).map(|_| in_child(live)).collect::<Result<_, _>>()?;
        for pause in 0..10 {
            children.iter().try_for_each(|child| child.signal(libc::SIGSTOP))?;
            std::thread::sleep(Duration::from_micros(300 * pause));
            children.iter().try_for_each(|child| child.signal(libc::SIGCONT))?;
            std::thread::sleep(Duration::from_micros(200 * pause));
        }
        wait_all(children)?;
        region.check(0)?;
    }
    Ok(())
}
