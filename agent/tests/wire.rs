//! Decoding is total, and what it lets through is within bounds.
use casemate_agent::{
    ADVICE, Action, Errno, HELD_PAGES, Limits, OP_BYTES, Op, PAGE_BYTES, SLOTS, STAGING_PAGES,
    STAGINGS, StagingKind, validate,
};
use casemate_core::random::Random;

/// Ops and what they are about, the same in every run.
struct Ops(Random);

impl Ops {
    fn next(&mut self) -> u64 {
        self.0.next()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// Small, page-aligned, huge, or anything: near the bounds more often than chance would be.
    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => self.below(140),
            2 => self.below(200) * PAGE_BYTES,
            3 => u64::MAX - self.below(3) * PAGE_BYTES - self.below(2),
            4 => (1 << 56) - self.below(4) * PAGE_BYTES,
            _ => self.next(),
        }
    }

    fn limits(&mut self) -> Limits {
        let mut limits = Limits::default();
        for pages in &mut limits.stagings {
            *pages = if self.below(3) == 0 { 0 } else { 1 + self.below(STAGING_PAGES) };
        }
        limits
    }

    fn op(&mut self) -> Op {
        Op {
            kind: self.below(20) as u32,
            flags: if self.below(8) == 0 { self.next() as u32 } else { self.below(10) as u32 },
            addr: self.number(),
            len: self.number(),
            arg: self.number(),
            result: self.next() as i64,
        }
    }
}

fn assert_within(action: Action, limits: &Limits) {
    let have = |staging: u32| limits.stagings[staging as usize];
    let user = |addr: u64, len: u64| {
        assert!(addr.is_multiple_of(PAGE_BYTES) && len.is_multiple_of(PAGE_BYTES) && len > 0);
        assert!(u128::from(addr) + u128::from(len) <= 1 << 56);
    };
    let inside = |first: u64, count: u64, all: u64| {
        assert!(count > 0 && u128::from(first) + u128::from(count) <= u128::from(all));
    };
    match action {
        Action::Nop | Action::Exit => {}
        Action::MoveOut { src, len, staging, index } => {
            user(src, len);
            inside(index, len / PAGE_BYTES, have(staging));
        }
        Action::MoveOver { src, len, dst } => {
            user(src, len);
            user(dst, len);
        }
        Action::CopyOut { staging, index, pages, slot } => {
            inside(index, pages, have(staging));
            inside(slot, pages, SLOTS);
        }
        Action::DropStaging { staging, index, pages, .. }
        | Action::Claim { staging, index, pages } => {
            inside(index, pages, have(staging));
        }
        Action::MakeStaging { staging, pages, .. } => {
            assert_eq!(have(staging), 0);
            inside(0, pages, STAGING_PAGES);
        }
        Action::Advise { addr, len, advice } => {
            user(addr, len);
            assert!(ADVICE.contains(&advice));
        }
        Action::UnmapStaging { staging } => assert_ne!(have(staging), 0),
        // The kernel judges what the program asked for.
        Action::Unmap { .. } | Action::Remap { .. } | Action::Break { .. } => {}
        Action::Lock { addr, len, .. } => user(addr, len),
        Action::LockAll { flags } => assert_ne!(flags & 4, 0, "never filled at once"),
        Action::Map { flags, .. } => assert_ne!(flags & 0x20, 0, "of files by the program only"),
        Action::TakeAside { src, len, slot, staging } => {
            user(src, len);
            inside(slot, len / PAGE_BYTES, SLOTS);
            inside(0, len / PAGE_BYTES, have(staging));
        }
        Action::PutBack { aside, len, dst, prot } => {
            user(aside, len);
            user(dst, len);
            assert!(prot < 8);
        }
        Action::Replace { addr, len, with } => {
            user(addr, len);
            user(with, len);
            assert!(len <= HELD_PAGES * PAGE_BYTES);
        }
    }
}

#[test]
fn every_op_is_decoded_or_refused_and_nothing_reaches_out_of_bounds() {
    let mut random = Ops(Random::new(1));
    let mut accepted = [0_u32; 19];
    for round in 0..2_000_000 {
        let limits = random.limits();
        let op = if round % 4 == 0 {
            let mut bytes = [0; OP_BYTES];
            bytes.fill_with(|| random.next() as u8);
            Op::decode(&bytes)
        } else {
            random.op()
        };
        assert_eq!(Op::decode(&op.encode()), op);
        if let Ok(action) = validate(&op, &limits) {
            assert_within(action, &limits);
            let is_remap = matches!(action, Action::Remap { .. });
            let result = if is_remap { op.result } else { 0 };
            assert_eq!(Op::from(action), Op { result, ..op }, "one op, one meaning");
            accepted[op.kind as usize] += 1;
        }
    }
    assert!(accepted.iter().all(|n| *n > 0), "every kind was let through: {accepted:?}");
}

#[test]
fn what_the_keeper_says_is_what_the_agent_hears() {
    let mut random = Ops(Random::new(2));
    for _ in 0..100_000 {
        let limits = random.limits();
        let staging = random.below(STAGINGS as u64) as u32;
        let have = limits.stagings[staging as usize];
        let addr = random.below(1 << 40) * PAGE_BYTES;
        let action = if have == 0 {
            let kind = StagingKind::ALL[random.below(4) as usize];
            Action::MakeStaging { staging, pages: 1 + random.below(STAGING_PAGES), kind }
        } else {
            let index = random.below(have);
            let pages = 1 + random.below(have - index);
            match random.below(13) {
                0 => Action::MoveOut { src: addr, len: pages * PAGE_BYTES, staging, index },
                1 => {
                    let slot = random.below(SLOTS - pages + 1);
                    Action::CopyOut { staging, index, pages, slot }
                }
                2 => Action::DropStaging { staging, index, pages, all: pages.is_multiple_of(2) },
                3 => {
                    let advice = ADVICE[random.below(ADVICE.len() as u64) as usize];
                    Action::Advise { addr, len: pages * PAGE_BYTES, advice }
                }
                4 => Action::UnmapStaging { staging },
                6 => Action::Claim { staging, index, pages },
                7 => Action::Unmap { addr, len: pages },
                8 => Action::Break { end: addr },
                9 => Action::Remap {
                    addr,
                    old_len: pages,
                    new_len: random.next(),
                    flags: 3,
                    new_addr: random.next(),
                },
                5 => {
                    let slot = random.below(SLOTS - pages + 1);
                    Action::TakeAside { src: addr, len: pages * PAGE_BYTES, slot, staging }
                }
                10 => {
                    let dst = random.below(1 << 40) * PAGE_BYTES;
                    let prot = random.below(8) as u32;
                    Action::PutBack { aside: addr, len: pages * PAGE_BYTES, dst, prot }
                }
                11 => {
                    let with = random.below(1 << 40) * PAGE_BYTES;
                    let len = (1 + random.below(HELD_PAGES)) * PAGE_BYTES;
                    Action::Replace { addr, len, with }
                }
                _ => Action::Exit,
            }
        };
        let heard = Op::decode(&Op::from(action).encode());
        assert_eq!(validate(&heard, &limits), Ok(action));
    }
}

#[test]
fn refusals_say_why() {
    let mut limits = Limits::default();
    limits.stagings[0] = 10;
    let cases = [
        (Op { kind: 1000, ..Op::default() }, Errno::ENOSYS),
        (Action::UnmapStaging { staging: 1 }.into(), Errno::ENXIO),
        (Action::UnmapStaging { staging: 8 }.into(), Errno::EINVAL),
        (Action::MakeStaging { staging: 0, pages: 1, kind: StagingKind::Rw }.into(), Errno::EEXIST),
        (Action::DropStaging { staging: 0, index: 10, pages: 1, all: true }.into(), Errno::EINVAL),
        (Action::Claim { staging: 0, index: u64::MAX, pages: 1 }.into(), Errno::EINVAL),
        (Action::Claim { staging: 0, index: 0, pages: 0 }.into(), Errno::EINVAL),
        (Action::CopyOut { staging: 0, index: 0, pages: 2, slot: SLOTS - 1 }.into(), Errno::EINVAL),
        (Action::Advise { addr: 1, len: PAGE_BYTES, advice: 4 }.into(), Errno::EINVAL),
        (Action::Advise { addr: 0, len: PAGE_BYTES, advice: 9 }.into(), Errno::EINVAL),
    ];
    for (op, errno) in cases {
        assert_eq!(validate(&op, &limits), Err(errno), "{op:?}");
    }
}
