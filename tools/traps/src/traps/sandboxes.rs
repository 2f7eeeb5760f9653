//! Children in places where no agent can follow.

use crate::support::sys::check;
use crate::support::{Options, Region, Verdict, in_child};

/// A child in a pid namespace of its own needs twice the memory that its parent has.
pub fn pid_namespace(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    // SAFETY: the call changes only which namespace children are born in.
    check("unshare", unsafe { libc::unshare(libc::CLONE_NEWPID) })?;
    in_child(|| {
        region.check(0)?;
        let own = Region::map(options.pages() * 2 / 3, options.seed ^ 1)?;
        own.fill(1);
        own.check(1)
    })?
    .wait()?;
    region.check(0)
}
