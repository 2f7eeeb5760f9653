//! Where the secret is in the process that has it hidden and revealed.

use super::open;
use super::swtpm::{self, Swtpm};
use casemate_keeper::hiding::{Hideaway, SECRET_BYTES};
use casemate_keeper::secret::{MemoryKind, SecretBox};
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Enough to tell a part of the secret from anything else.
const PART_BYTES: usize = 12;

/// A byte of the secret, which is nowhere as a whole.
fn byte(at: usize) -> u8 {
    (at as u8).wrapping_mul(black_box(109)) ^ black_box(0xc3)
}

/// How many parts of the secret are in what this process can write to.
fn copies() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let memory = File::open("/proc/self/mem").expect("memory");
    let ranges = maps.lines().filter(|line| line.contains(" rw")).filter_map(|line| {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        let number = |hex| u64::from_str_radix(hex, 16).ok();
        Some((number(from)?, number(to)?))
    });
    let mut copies = 0;
    for (from, to) in ranges {
        let mut bytes = vec![0; usize::try_from(to - from).expect("64 bits")];
        // Secret memory, for example, cannot be read.
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            copies += bytes.windows(PART_BYTES).filter(|window| is_part(window)).count();
        }
    }
    copies
}

fn is_part(window: &[u8]) -> bool {
    (0..SECRET_BYTES)
        .step_by(PART_BYTES)
        .take(5)
        .any(|first| window.iter().zip(first..).all(|(found, at)| *found == byte(at)))
}

#[test]
fn the_secret_is_never_in_ordinary_memory() {
    let Some(swtpm) = Swtpm::new("the_secret_is_never_in_ordinary_memory") else { return };
    let mut tpm = open(&swtpm);
    let mut secret = SecretBox::<[u8; SECRET_BYTES]>::zeroed().expect("secret memory");
    if secret.kind() != MemoryKind::Secret {
        let why = "memfd_secret(2) does not work here, so that secret memory can be read";
        return swtpm::skip("the_secret_is_never_in_ordinary_memory", why);
    }
    for (at, place) in secret.iter_mut().enumerate() {
        *place = byte(at);
    }
    let is_enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // Who finds a copy must not wait for the thread.
        let stop = Stop(&is_enough);
        scope.spawn(|| {
            while !is_enough.load(Relaxed) {
                tpm.hide(&secret).expect("a TPM hides");
                secret.fill(0);
                tpm.reveal(&mut secret).expect("a TPM reveals");
            }
        });
        for _ in 0..10 {
            assert_eq!(copies(), 0);
        }
        drop(stop);
    });
    assert!(secret.iter().enumerate().all(|(at, found)| *found == byte(at)));
    // It would have been found.
    let copy: Vec<u8> = (0..SECRET_BYTES).map(byte).collect();
    black_box(&copy);
    assert!(copies() > 0);
    drop(black_box(copy));
}

/// Says that it is enough when it is dropped, also by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
