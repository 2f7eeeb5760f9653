//! Pages that an agent moves out of a program, and what requests to it cost.
use super::support::{Program, compiled, inject};
use casemate_keeper::hand::{Action, Hand, Op, StagingKind};
use casemate_keeper::sys::uffd::abi::{
    API, REGISTER_MISSING, UFFDIO_API, UFFDIO_COPY, UFFDIO_REGISTER, feature,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Instant;

fn ioctl<const N: usize>(uffd: &OwnedFd, request: u64, mut words: [u64; N]) {
    // SAFETY: `words` is the request's struct, all of whose fields are 64 bits wide.
    let result = unsafe { libc::ioctl(uffd.as_raw_fd(), request, words.as_mut_ptr()) };
    assert_eq!(result, 0, "ioctl {request:x}: {}", std::io::Error::last_os_error());
}

fn registered(hand: &mut Hand, at: u64, pages: u64) -> OwnedFd {
    let uffd = hand.take_program_uffd().unwrap();
    ioctl(&uffd, UFFDIO_API, [API, feature::MOVE, 0]);
    ioctl(&uffd, UFFDIO_REGISTER, [at, pages * 4096, REGISTER_MISSING, 0]);
    uffd
}

/// A staging whose first half is under `uffd`, or else under the program's own.
fn make_staging_under(hand: &mut Hand, kind: StagingKind, uffd: &OwnedFd) {
    let mut register = |start: u64, len: u64| {
        ioctl(uffd, UFFDIO_REGISTER, [start, len, REGISTER_MISSING, 0]);
        Ok(())
    };
    hand.make_staging(kind, &mut register, &mut || ()).unwrap();
}

pub fn make_staging(hand: &mut Hand, kind: StagingKind) -> OwnedFd {
    let uffd = hand.take_program_uffd().unwrap();
    ioctl(&uffd, UFFDIO_API, [API, feature::MOVE, 0]);
    make_staging_under(hand, kind, &uffd);
    uffd
}

fn value(page: u64, i: u64) -> u64 {
    (page * 512 + i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn expected_page(page: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    for i in 0..512 {
        bytes[i as usize * 8..][..8].copy_from_slice(&value(page, i).to_le_bytes());
    }
    bytes
}

fn pages_go_out_and_come_back(how: &str, kind: StagingKind) {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &[how]);
    let at: u64 = program.line().parse().unwrap();
    let mut hand = inject(program.pid());
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, kind, &uffd);
    let staging = kind.id();
    let ops: Vec<Op> = [
        Action::MoveOut { src: at, len: 128 * 4096, staging, index: 0 },
        Action::CopyOut { staging, index: 0, pages: 128, slot: 0 },
        Action::DropStaging { staging, index: 0, pages: 128, all: false },
        Action::CopyOut { staging, index: 0, pages: 128, slot: 0 },
    ]
    .map(Op::from)
    .to_vec();
    for round in 0..3 {
        let results = hand.run(&ops, &mut || ()).unwrap();
        let numbers: Vec<i64> = results.iter().map(|r| r.result).collect();
        assert_eq!(numbers, [128 * 4096, 128, 0, 0], "round {round}: {results:?}");
        for page in 0..128 {
            let mut copy = [0; 4096];
            hand.copy_data(page, &mut copy);
            assert!(copy == expected_page(page as u64), "page {page}");
            ioctl(&uffd, UFFDIO_COPY, [at + page as u64 * 4096, copy.as_ptr() as u64, 4096, 0, 0]);
        }
    }
    program.tell();
    assert_eq!(program.finish(), "same");
}

#[test]
fn no_plaintext_stays_in_the_mailbox() {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &["plain"]);
    let at: u64 = program.line().parse().unwrap();
    let mut hand = inject(program.pid());
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, StagingKind::Rw, &uffd);
    let slots = hand.owned_ranges()[1].end - 128 * 4096;
    let memory = std::fs::File::open(format!("/proc/{}/mem", program.pid())).unwrap();
    let is_zero = |slot: u64| {
        let mut bytes = [1; 4096];
        memory.read_exact_at(&mut bytes, slots + slot * 4096).unwrap();
        bytes.iter().all(|byte| *byte == 0)
    };
    let ops: Vec<Op> = [
        Action::MoveOut { src: at, len: 8 * 4096, staging: 0, index: 0 },
        Action::CopyOut { staging: 0, index: 0, pages: 8, slot: 3 },
        Action::DropStaging { staging: 0, index: 0, pages: 8, all: false },
    ]
    .map(Op::from)
    .to_vec();
    for last in [false, true] {
        hand.run(&ops, &mut || ()).unwrap();
        let mut copies = [[0; 4096]; 8];
        for (slot, copy) in (3..).zip(&mut copies[..4]) {
            hand.copy_data(slot, copy);
        }
        for slot in 0..128 {
            assert_eq!(is_zero(slot), !(7..11).contains(&slot), "slot {slot}");
        }
        for (page, copy) in copies.iter_mut().enumerate() {
            assert!(page >= 4 || *copy == expected_page(page as u64), "page {page}");
            *copy = expected_page(page as u64);
        }
        ioctl(&uffd, UFFDIO_COPY, [at, copies.as_ptr() as u64, 8 * 4096, 0, 0]);
        if !last {
            hand.run(&[Action::Nop.into()], &mut || ()).unwrap();
            assert!((0..128).all(is_zero), "the next request begins with an empty mailbox");
        }
    }
    hand.kill();
    assert!((0..128).all(is_zero), "a hand leaves nothing behind");
    program.tell();
    assert_eq!(program.finish(), "same");
}

#[test]
fn pages_moved_out_are_copied_out_and_can_be_brought_back() {
    pages_go_out_and_come_back("plain", StagingKind::Rw);
}

#[test]
fn executable_pages_go_through_an_executable_staging() {
    pages_go_out_and_come_back("exec", StagingKind::Rwx);
}

#[test]
fn locked_pages_go_through_a_locked_staging() {
    pages_go_out_and_come_back("locked", StagingKind::RwLocked);
}

#[test]
fn a_pinned_page_stays_where_it_is() {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &["pinned"]);
    let Ok(at) = program.line().parse::<u64>() else {
        eprintln!("skipped: no io_uring");
        return;
    };
    let mut hand = inject(program.pid());
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, StagingKind::Rw, &uffd);
    let out = |page: u64, pages: u64| {
        Op::from(Action::MoveOut {
            src: at + page * 4096,
            len: pages * 4096,
            staging: 0,
            index: page,
        })
    };
    let results = hand.run(&[out(3, 1), out(0, 8)], &mut || ()).unwrap().to_vec();
    assert_eq!((results[0].result, results[0].error), (-16, 16), "EBUSY");
    // The run stops before the pinned page and says how far it came.
    assert_eq!((results[1].result, results[1].error), (3 * 4096, libc::EAGAIN));
    let copy = Action::CopyOut { staging: 0, index: 0, pages: 8, slot: 0 };
    assert_eq!(hand.run(&[copy.into()], &mut || ()).unwrap()[0].result, 3);
    for page in 0..3 {
        let from = hand.data(page as usize) as u64;
        ioctl(&uffd, UFFDIO_COPY, [at + page * 4096, from, 4096, 0, 0]);
    }
    program.tell();
    assert_eq!(program.finish(), "same");
}

/// Linux 6.18 may move pages and not count them. Here a page is put into the staging on purpose,
/// which leaves everything as that does: it must outlive every drop until it is claimed, and then
/// be taken like any other.
#[test]
fn a_page_that_was_not_counted_stays_in_the_staging_until_it_is_claimed() {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &["plain"]);
    let at: u64 = program.line().parse().unwrap();
    let mut hand = inject(program.pid());
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, StagingKind::Rw, &uffd);
    let staging = hand.staging_page(StagingKind::Rw, 0).unwrap();
    let pagemap = std::fs::File::open(format!("/proc/{}/pagemap", program.pid())).unwrap();
    let there = || -> Vec<bool> {
        let mut entries = [0; 8 * 8];
        pagemap.read_exact_at(&mut entries, staging / 4096 * 8).unwrap();
        entries.chunks_exact(8).map(|entry| entry[7] & 0x80 != 0).collect()
    };
    let contents = [0xa5_u8; 4096];
    ioctl(&uffd, UFFDIO_COPY, [staging + 5 * 4096, contents.as_ptr() as u64, 4096, 0, 0]);
    let out = Action::MoveOut { src: at, len: 4 * 4096, staging: 0, index: 0 };
    let copy = |index, pages| Op::from(Action::CopyOut { staging: 0, index, pages, slot: index });
    let drop = Op::from(Action::DropStaging { staging: 0, index: 0, pages: 8, all: false });
    let results = hand.run(&[out.into(), copy(0, 8), drop], &mut || ()).unwrap().to_vec();
    assert_eq!(results[1].result, 4, "what was not counted is not copied");
    assert_eq!(there(), [false, false, false, false, false, true, false, false]);
    for page in 0..4 {
        let from = hand.data(page as usize) as u64;
        ioctl(&uffd, UFFDIO_COPY, [at + page * 4096, from, 4096, 0, 0]);
    }
    let claim = Action::Claim { staging: 0, index: 5, pages: 1 };
    let results = hand.run(&[claim.into(), copy(5, 1), drop], &mut || ()).unwrap().to_vec();
    assert_eq!(results[1].result, 1);
    let mut taken = [0; 4096];
    hand.copy_data(5, &mut taken);
    assert_eq!(taken, contents);
    assert_eq!(there(), [false; 8]);
    program.tell();
    assert_eq!(program.finish(), "same");
}

#[test]
fn malformed_ops_are_answered_with_errors() {
    let program = Program::start("sleep", &["30"]);
    program.becomes('S');
    let mut hand = inject(program.pid());
    let odd = [
        (Op { kind: 99, ..Op::default() }, -libc::ENOSYS),
        (Action::CopyOut { staging: 0, index: 0, pages: 1, slot: 0 }.into(), -libc::ENXIO),
        (Action::CopyOut { staging: 77, index: 0, pages: 1, slot: 0 }.into(), -libc::EINVAL),
        (Action::Advise { addr: 4096, len: 1, advice: 4 }.into(), -libc::EINVAL),
        (Action::Advise { addr: 4096, len: 4096, advice: 9 }.into(), -libc::EINVAL),
    ];
    let ops: Vec<Op> = odd.iter().map(|(op, _)| *op).collect();
    for (result, (op, expected)) in hand.run(&ops, &mut || ()).unwrap().iter().zip(odd) {
        assert_eq!(result.result, i64::from(expected), "{op:?}");
    }
    let _uffd = make_staging(&mut hand, StagingKind::Rw);
    let beyond = Action::CopyOut { staging: 0, index: 127, pages: 2, slot: 0 };
    assert_eq!(hand.run(&[beyond.into()], &mut || ()).unwrap()[0].error, libc::EINVAL);
    let agent = hand.agent_pid();
    hand.kill();
    assert!(!std::path::Path::new(&format!("/proc/{agent}")).exists(), "reaped");
    program.becomes('S');
}

/// Prints what requests cost:
/// `cargo test --release -p casemate-keeper --test hand cost -- --ignored --nocapture`.
#[test]
#[ignore = "prints times; a page that the kernel migrates meanwhile cannot be moved"]
fn cost_of_requests() {
    let Some(path) = compiled("pages", &[]) else { return };
    let mut program = Program::start(&path, &["plain"]);
    let at: u64 = program.line().parse().unwrap();
    // SAFETY: binds this thread to the CPU that it is on; an all-zero cpu_set_t is the empty set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
    let begun = Instant::now();
    let mut hand = inject(program.pid());
    println!("injection: {:.0} us", begun.elapsed().as_secs_f64() * 1e6);
    let uffd = registered(&mut hand, at, 128);
    make_staging_under(&mut hand, StagingKind::Rw, &uffd);
    let move_out = |page: u64, pages: u64| {
        Op::from(Action::MoveOut {
            src: at + page * 4096,
            len: pages * 4096,
            staging: 0,
            index: page,
        })
    };
    let copy = |pages| Op::from(Action::CopyOut { staging: 0, index: 0, pages, slot: 0 });
    let empty = |pages| Op::from(Action::DropStaging { staging: 0, index: 0, pages, all: false });
    let scattered: Vec<Op> = (0..64).map(|i| move_out(i, 1)).collect();
    let mut whole = scattered.clone();
    whole.extend([copy(64), empty(64)]);
    let requests: [(&str, u64, Vec<Op>); 4] = [
        ("round trip, nothing to do", 0, vec![Action::Nop.into()]),
        ("one page: move, copy, drop", 1, vec![move_out(0, 1), copy(1), empty(1)]),
        ("64 single pages: move, copy, drop", 64, whole),
        ("a run of 64: move, copy, drop", 64, vec![move_out(0, 64), copy(64), empty(64)]),
    ];
    for (what, pages, ops) in requests {
        let mut times: Vec<f64> = (0..2000)
            .map(|_| {
                let begun = Instant::now();
                let results = hand.run(&ops, &mut || ()).unwrap();
                let time = begun.elapsed().as_secs_f64() * 1e6;
                assert!(results.iter().all(|r| r.result >= 0));
                for page in 0..pages {
                    let from = hand.data(page as usize) as u64;
                    ioctl(&uffd, UFFDIO_COPY, [at + page * 4096, from, 4096, 0, 0]);
                }
                time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let each = median / pages.max(1) as f64;
        println!("{what}: {median:.1} us, {each:.2} us each");
    }
    program.tell();
    assert_eq!(program.finish(), "same");
}
