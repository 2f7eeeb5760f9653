//! Tests of secret memory. The scan reads all of a child's memory as a debugger would.

mod scan;

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[test]
fn secret_memory_is_zeroed_and_writable() {
    let memory = SecretMemory::new(5000).expect("memory");
    assert_eq!(memory.bytes(), 8192);
    // SAFETY: the memory is ours and initialised.
    let bytes = unsafe { std::slice::from_raw_parts_mut(memory.pointer().as_ptr(), 8192) };
    assert!(bytes.iter().all(|b| *b == 0));
    bytes.fill(7);
}

#[test]
fn wiping_clears_what_was_touched_and_touches_nothing_else() {
    let mut memory = SecretMemory::new(16 * 4096).expect("memory");
    if memory.kind() != MemoryKind::Secret {
        return eprintln!("skipped: this machine has no memfd_secret");
    }
    let third = memory.pointer().as_ptr().wrapping_add(8192);
    // SAFETY: the page is ours and initialised.
    unsafe { std::slice::from_raw_parts_mut(third, 4096) }.fill(7);
    let touched = |memory: &SecretMemory| memory.touched().iter().filter(|p| **p & 1 == 1).count();
    assert_eq!(touched(&memory), 1);
    memory.wipe();
    assert_eq!(touched(&memory), 1);
    // SAFETY: as above.
    let page = unsafe { std::slice::from_raw_parts(third, 4096) };
    assert!(page.iter().all(|byte| *byte == 0));
}

#[test]
fn sizes_that_no_machine_has_are_errors() {
    assert!(SecretMemory::new(usize::MAX).is_err());
    assert!(SecretMemory::new(usize::MAX - 8191).is_err());
}

#[test]
fn random_keys_differ() {
    let (a, b) = (random_key().expect("a key"), random_key().expect("a key"));
    assert!(*a != *b && *a != [0; 32]);
}

#[test]
fn a_box_drops_what_it_holds() {
    struct Noisy(u8);
    // SAFETY: a byte of zero is valid.
    unsafe impl ZeroIsValid for Noisy {}
    static DROPPED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);
    impl Drop for Noisy {
        fn drop(&mut self) {
            DROPPED.fetch_add(self.0, std::sync::atomic::Ordering::Relaxed);
        }
    }
    drop(SecretBox::<Noisy>::new_with(|noisy| noisy.0 = 3).expect("memory"));
    assert_eq!(DROPPED.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[test]
fn a_secret_stack_returns_values_and_panics_and_can_be_used_again() {
    let mut stack = SecretStack::new(64 * 1024).expect("memory");
    let there = stack.run(|| {
        let local = 0u8;
        std::ptr::from_ref(std::hint::black_box(&local)) as usize
    });
    let here = stack.memory.pointer().as_ptr() as usize;
    assert!((here..here + stack.memory.bytes()).contains(&there));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stack.run(|| {
            std::hint::black_box(std::backtrace::Backtrace::force_capture().to_string());
            panic!("on purpose")
        })
    }));
    let message = panicked.err().and_then(|p| p.downcast::<&str>().ok());
    assert_eq!(message.as_deref(), Some(&"on purpose"));
    let nested = stack.run(|| with_wiped_stack(|| "deep".to_owned()).expect("memory"));
    assert_eq!(nested, "deep");
}

#[test]
fn nothing_is_left_on_a_secret_stack() {
    let mut stack = SecretStack::new(64 * 1024).expect("memory");
    stack.run(|| {
        std::hint::black_box([0x5au8; 1000]);
    });
    let start = stack.memory.pointer().as_ptr();
    // SAFETY: the memory is ours and initialised.
    let bytes = unsafe { std::slice::from_raw_parts(start, stack.memory.bytes()) };
    assert!(bytes.iter().all(|b| *b == 0));
}

#[test]
fn a_child_does_not_inherit_secrets() {
    let key = random_key().expect("a key");
    let address = std::ptr::from_ref(&*key) as usize;
    // SAFETY: the child does nothing but one system call and _exit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut resident = 0u8;
        // SAFETY: mincore only asks whether the page is mapped; _exit runs no handlers.
        unsafe {
            let mapped = libc::mincore(address as *mut _, 4096, &mut resident) == 0;
            libc::_exit(i32::from(mapped));
        }
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
}
