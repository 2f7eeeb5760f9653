//! The agent: a process that shares the memory of a protected program, and nothing else with it. It
//! makes the calls that only the program itself may make, holds the userfaultfds open, and kills
//! the program if the keeper dies.
//!
//! Freestanding, position-independent, without relocations, writable statics, heap or TLS: it is
//! copied into an unknown address space and starts with a stack and a pointer to
//! [`wire::Bootstrap`].
#![no_std]
#![no_main]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the agent exists for x86-64 only; add an architecture beside blob/x86_64.rs");

#[path = "x86_64.rs"]
mod arch;
mod calls;
mod confine;
mod serve;
mod start;
#[path = "../src/wire/mod.rs"]
#[allow(dead_code)]
mod wire;

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    calls::exit(101)
}

/// Called by the entry code with the address of the bootstrap block.
#[unsafe(no_mangle)]
extern "C" fn agent_main(bootstrap: *const wire::Bootstrap) -> ! {
    // SAFETY: the injector writes the block before it starts the agent and never unmaps it.
    let bootstrap = unsafe { &*bootstrap };
    match start::start(bootstrap) {
        Ok(post) => serve::serve(&post),
        Err(error) => {
            bootstrap.status.store(-error.0, core::sync::atomic::Ordering::Release);
            calls::exit(1)
        }
    }
}
