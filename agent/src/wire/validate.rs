//! Which ops an agent obeys.
use super::ops::{
    ADVISE, BREAK, CLAIM, COPY_OUT, DROP_STAGING, EXIT, LOCK, LOCK_ALL, MAKE_STAGING, MAP,
    MOVE_OUT, MOVE_OVER, NOP, PUT_BACK, REMAP, REPLACE, TAKE_ASIDE, UNMAP, UNMAP_STAGING,
};
use super::{
    ADVICE, Action, Errno, HELD_PAGES, Op, PAGE_BYTES, SLOTS, STAGING_PAGES, STAGINGS, StagingKind,
};

/// What the agent has: how many pages each staging holds, 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Pages by staging number.
    pub stagings: [u64; STAGINGS],
}

impl Limits {
    fn pages(&self, staging: u32) -> Result<u64, Errno> {
        match self.stagings.get(staging as usize) {
            None => Err(Errno::EINVAL),
            Some(0) => Err(Errno::ENXIO),
            Some(pages) => Ok(*pages),
        }
    }

    fn within(&self, staging: u32, index: u64, pages: u64) -> Result<(), Errno> {
        let have = self.pages(staging)?;
        if pages == 0 || !fits(index, pages, have) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

fn fits(first: u64, count: u64, all: u64) -> bool {
    first.checked_add(count).is_some_and(|end| end <= all)
}

/// Page-aligned, not empty, in the lower half of the address space.
fn user_range(addr: u64, len: u64) -> Result<(), Errno> {
    let aligned = (addr | len) & (PAGE_BYTES - 1) == 0;
    if aligned && len != 0 && fits(addr, len, 1 << 56) { Ok(()) } else { Err(Errno::EINVAL) }
}

fn all_zero(fields: &[u64]) -> Result<(), Errno> {
    if fields.iter().all(|f| *f == 0) { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Turns an op into what the agent may do, or into the error number that is its result. Fields that
/// a kind does not use must be 0 (`result` excepted). Calls that the program asked for take any
/// address and length: the kernel judges them as it would have judged the program's.
///
/// # Errors
/// `ENOSYS`: unknown kind. `EINVAL`: a field is out of range. `ENXIO`: no such staging. `EEXIST`:
/// the staging to be made exists.
pub fn validate(op: &Op, limits: &Limits) -> Result<Action, Errno> {
    let Op { kind, flags: staging, addr, len, arg, .. } = *op;
    match kind {
        NOP => {
            all_zero(&[staging.into(), addr, len, arg])?;
            Ok(Action::Nop)
        }
        MOVE_OUT => {
            user_range(addr, len)?;
            limits.within(staging, arg, len / PAGE_BYTES)?;
            Ok(Action::MoveOut { src: addr, len, staging, index: arg })
        }
        MOVE_OVER => {
            all_zero(&[staging.into()])?;
            user_range(addr, len)?;
            user_range(arg, len)?;
            Ok(Action::MoveOver { src: addr, len, dst: arg })
        }
        COPY_OUT => {
            limits.within(staging, addr, len)?;
            if !fits(arg, len, SLOTS) {
                return Err(Errno::EINVAL);
            }
            Ok(Action::CopyOut { staging, index: addr, pages: len, slot: arg })
        }
        DROP_STAGING => {
            limits.within(staging, addr, len)?;
            if arg > 1 {
                return Err(Errno::EINVAL);
            }
            Ok(Action::DropStaging { staging, index: addr, pages: len, all: arg == 1 })
        }
        CLAIM => {
            limits.within(staging, addr, len)?;
            all_zero(&[arg])?;
            Ok(Action::Claim { staging, index: addr, pages: len })
        }
        MAKE_STAGING => {
            all_zero(&[addr])?;
            let kind = StagingKind::from_code(arg).ok_or(Errno::EINVAL)?;
            if len == 0 || len > STAGING_PAGES {
                return Err(Errno::EINVAL);
            }
            match limits.pages(staging) {
                Err(Errno::ENXIO) => Ok(Action::MakeStaging { staging, pages: len, kind }),
                Err(e) => Err(e),
                Ok(_) => Err(Errno::EEXIST),
            }
        }
        ADVISE => {
            all_zero(&[staging.into()])?;
            user_range(addr, len)?;
            let advice = ADVICE.into_iter().find(|a| u64::from(*a) == arg).ok_or(Errno::EINVAL)?;
            Ok(Action::Advise { addr, len, advice })
        }
        MAP => {
            const ANONYMOUS: u32 = 0x20;
            let prot = u32::try_from(arg).map_err(|_| Errno::EINVAL)?;
            if staging & ANONYMOUS == 0 {
                return Err(Errno::EINVAL);
            }
            Ok(Action::Map { addr, len, prot, flags: staging })
        }
        UNMAP => {
            all_zero(&[staging.into(), arg])?;
            Ok(Action::Unmap { addr, len })
        }
        REMAP => {
            let new_addr = op.result as u64;
            Ok(Action::Remap { addr, old_len: len, new_len: arg, flags: staging, new_addr })
        }
        BREAK => {
            all_zero(&[staging.into(), len, arg])?;
            Ok(Action::Break { end: addr })
        }
        LOCK => {
            all_zero(&[staging.into(), arg & !1])?;
            user_range(addr, len)?;
            Ok(Action::Lock { addr, len, locked: arg == 1 })
        }
        LOCK_ALL => {
            const ON_FAULT: u32 = 4;
            all_zero(&[addr, len, arg])?;
            if staging & ON_FAULT == 0 {
                return Err(Errno::EINVAL);
            }
            Ok(Action::LockAll { flags: staging })
        }
        UNMAP_STAGING => {
            all_zero(&[addr, len, arg])?;
            limits.pages(staging)?;
            Ok(Action::UnmapStaging { staging })
        }
        EXIT => {
            all_zero(&[staging.into(), addr, len, arg])?;
            Ok(Action::Exit)
        }
        TAKE_ASIDE => {
            user_range(addr, len)?;
            let pages = len / PAGE_BYTES;
            if !fits(arg, pages, SLOTS) || !fits(0, pages, limits.pages(staging)?) {
                return Err(Errno::EINVAL);
            }
            Ok(Action::TakeAside { src: addr, len, slot: arg, staging })
        }
        PUT_BACK => {
            const ALL_RIGHTS: u32 = 7;
            user_range(addr, len)?;
            user_range(arg, len)?;
            if staging & !ALL_RIGHTS != 0 {
                return Err(Errno::EINVAL);
            }
            Ok(Action::PutBack { aside: addr, len, dst: arg, prot: staging })
        }
        REPLACE => {
            all_zero(&[staging.into()])?;
            user_range(addr, len)?;
            user_range(arg, len)?;
            if len > HELD_PAGES * PAGE_BYTES {
                return Err(Errno::EINVAL);
            }
            Ok(Action::Replace { addr, len, with: arg })
        }
        _ => Err(Errno::ENOSYS),
    }
}
