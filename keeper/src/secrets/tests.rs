//! Keys are sealed in a process of their own: other tests' ciphers are in the same arena.

use super::*;
use crate::hiding::ExposureResilient;
use casemate_core::{Lpid, PAGE_BYTES};
use casemate_pages::page_protocol::PagePort;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const ALONE: &str = "CASEMATE_TEST_ALONE";
const PASSED: &str = "passed alone";

/// Whether this is the process that is to run the test; otherwise it is run in one.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let exe = std::env::current_exe().expect("this test");
    let name = format!("secrets::tests::{test}");
    let done = Command::new(exe).args(["--exact", "--nocapture", &name]).env(ALONE, "1").output();
    let done = done.expect("it starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains(PASSED), "{said}");
    false
}

/// Ends the process of a test without what runs at an exit: it may wait for the arena.
fn passed() -> ! {
    println!("{PASSED}");
    // SAFETY: takes a number, and does not return.
    unsafe { libc::_exit(0) }
}

fn keys_now() -> Vec<u8> {
    // SAFETY: nothing else has these bytes in this process.
    unsafe { KEYS.get().expect("they were made").bytes() }.to_vec()
}

/// Of the first epoch. The state is held by who sealed it, so it is read past that.
fn root_now() -> Vec<u8> {
    let roots = ROOTS.get().expect("they were drawn");
    // SAFETY: this is the only thread of this process that uses it.
    let state = unsafe { roots.peek() };
    state.memory()[0][..32].to_vec()
}

fn arena_now() -> Vec<u8> {
    arena::hold().expect("it is installed").contents().to_vec()
}

#[test]
fn sealed_keys_are_nowhere_and_come_back_by_their_key_alone() {
    if !is_alone("sealed_keys_are_nowhere_and_come_back_by_their_key_alone") {
        return;
    }
    let secrets = make(None).expect("keys");
    let (cipher, _) = secrets.into_cipher();
    let mut page = [7; PAGE_BYTES];
    let tag = cipher.seal_in_place(Lpid(1), &mut page).expect("there is a root");
    let (keys, root, arena) = (keys_now(), root_now(), arena_now());
    let (key, other) = (SealingKey::new([1; 32]), SealingKey::new([2; 32]));
    let mut more = *b"registers";
    let Some(sealed) = seal(points::close().expect("rest"), &key, &mut more) else {
        panic!("nothing works with keys")
    };
    for word in root.chunks(16) {
        assert!(!root_now().windows(16).any(|found| found == word), "a root is there");
    }
    for word in keys.chunks(16) {
        assert!(!keys_now().windows(16).any(|found| found == word), "a key is there");
    }
    assert_ne!(&more, b"registers");
    let Err(NotOpened::WrongKey(sealed)) = sealed.open(&other, &mut more) else {
        panic!("another key opened it, or lost it")
    };
    assert_ne!(keys_now(), keys);
    assert!(sealed.open(&key, &mut more).is_ok());
    assert!((keys_now(), root_now(), arena_now()) == (keys, root, arena));
    assert_eq!(&more, b"registers");
    cipher.open_in_place(Lpid(1), &tag, &mut page).expect("the cipher works as before");
    assert_eq!(page, [7; PAGE_BYTES]);
    passed();
}

/// Roots are sealed where they are hidden: who finds that could derive every key.
#[test]
fn what_roots_are_hidden_in_is_sealed_with_them() {
    if !is_alone("what_roots_are_hidden_in_is_sealed_with_them") {
        return;
    }
    let place = ExposureResilient::new(4096).expect("memory that can be locked");
    let (cipher, _) = make(Some(Box::new(place))).expect("keys").into_cipher();
    // SAFETY: this is the only thread of this process that uses it.
    let hidden = || unsafe { ROOTS.get().expect("drawn").peek() }.memory()[1].to_vec();
    let before = hidden();
    let key = SealingKey::new([1; 32]);
    let Some(sealed) = seal(points::close().expect("rest"), &key, &mut []) else {
        panic!("nothing works with keys")
    };
    let same = hidden().chunks(16).zip(before.chunks(16)).filter(|(a, b)| a == b).count();
    assert_eq!((before.len(), same), (4096, 0));
    assert!(sealed.open(&key, &mut []).is_ok());
    let mut page = [7; PAGE_BYTES];
    let tag = cipher.seal_in_place(Lpid(1), &mut page).expect("the root comes out");
    cipher.open_in_place(Lpid(1), &tag, &mut page).expect("the cipher works as before");
    passed();
}

#[test]
fn what_was_changed_while_it_was_sealed_is_not_opened() {
    if !is_alone("what_was_changed_while_it_was_sealed_is_not_opened") {
        return;
    }
    let _secrets = make(None).expect("keys");
    let key = SealingKey::new([1; 32]);
    let mut more = *b"registers";
    let Some(sealed) = seal(points::close().expect("rest"), &key, &mut more) else {
        panic!("nothing works with keys")
    };
    more[3] ^= 1;
    assert!(matches!(sealed.open(&key, &mut more), Err(NotOpened::Changed)));
    passed();
}

/// Threads work, or sleep for long, between their points; each leaves a key on its stack.
#[test]
fn threads_wait_with_nothing_on_their_stacks_and_go_on() {
    if !is_alone("threads_wait_with_nothing_on_their_stacks_and_go_on") {
        return;
    }
    let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (told, tell) = mpsc::channel();
    let mut threads = Vec::new();
    for sleeps in [false, true] {
        let (stop, rounds, told) = (Arc::clone(&stop), Arc::clone(&rounds), told.clone());
        let work = move || {
            let _ = told.send(leave_key());
            while !stop.load(Relaxed) {
                pass();
                leave_key();
                rounds.fetch_add(1, Relaxed);
                pass();
                if sleeps && !stop.load(Relaxed) {
                    let bell = crate::sys::poll::Bell::new().expect("an eventfd");
                    crate::sys::poll::readable(&bell, Some(Duration::from_secs(60)));
                }
            }
        };
        threads.push(spawn("worker", work).expect("a thread"));
    }
    let left: Vec<usize> = (0..2).map(|_| tell.recv().expect("both work")).collect();
    let has_key = |at: usize| {
        // SAFETY: memory of a stack that lives as long as its thread.
        let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, KEY.len()) };
        bytes == KEY
    };
    let closed = points::close().expect("they come to rest");
    assert!(left.iter().all(|&at| !has_key(at)), "a key is on a stack");
    let before = rounds.load(Relaxed);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(rounds.load(Relaxed), before, "one works though the points are closed");
    stop.store(true, Relaxed);
    drop(closed);
    for thread in threads {
        thread.join().expect("it goes on");
    }
    passed();
}

/// A thread that reads a program's memory waits for a page, which another serves: that one may not
/// be at its point already.
#[test]
fn those_that_serve_come_to_rest_last() {
    if !is_alone("those_that_serve_come_to_rest_last") {
        return;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (ask, asked) = mpsc::channel::<mpsc::Sender<()>>();
    let (works, both_work) = mpsc::channel();
    let (is_over, tell) = (Arc::clone(&stop), works.clone());
    let serve = move || {
        tell.send(()).expect("the test goes on");
        while !is_over.load(Relaxed) {
            pass();
            if let Ok(answer) = asked.recv_timeout(Duration::from_millis(1)) {
                let _: Result<(), _> = answer.send(());
            }
        }
    };
    let is_over = Arc::clone(&stop);
    let read = move || {
        works.send(()).expect("the test goes on");
        // The points are closed while it works: the server comes by one before it is asked.
        std::thread::sleep(Duration::from_millis(50));
        let (answer, answered) = mpsc::channel();
        ask.send(answer).expect("the server lives");
        answered.recv().expect("it is served");
        while !is_over.load(Relaxed) {
            pass();
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let threads = [spawn_server("server", serve), spawn("reader", read)];
    both_work.iter().take(2).for_each(drop);
    let closed = points::close().expect("both come to rest");
    stop.store(true, Relaxed);
    drop(closed);
    for thread in threads {
        thread.expect("a thread").join().expect("it goes on");
    }
    passed();
}

const KEY: [u8; 32] = *b"what cryptography leaves behind.";

/// Leaves a key on the stack, and tells where.
#[inline(never)]
fn leave_key() -> usize {
    let key = std::hint::black_box(KEY);
    std::ptr::from_ref(std::hint::black_box(&key)) as usize
}
