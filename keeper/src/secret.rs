//! Memory for keys: outside the kernel's direct map, core files, swap and `/proc/PID/mem`.
//!
//! Four pieces, to be used in this order at the start of a run:
//! 1. [`arena::install`] makes aws-lc keep its key schedules in secret memory;
//! 2. [`random_key`] draws the master key straight into a [`SecretBox`];
//! 3. keys are derived and ciphers built inside [`with_wiped_stack`], since both leave copies on
//!    the stack;
//! 4. threads that seal and open run on a [`SecretStack`], since AES-GCM copies its GHASH key, and
//!    BLAKE3 the key of a MAC, to the stack at every call.
//!
//! A run that is locked has no key in memory: threads wait at [`points`], and what is in secret
//! memory is sealed where it lies.
//!
//! All of it falls back where `memfd_secret(2)` is missing or the limit on locked memory
//! (`RLIMIT_MEMLOCK`) is too low; [`MemoryKind`] tells. While secret memory is mapped, the machine
//! cannot hibernate.

pub mod arena;
mod boxed;
mod memory;
pub mod points;
mod stack;
#[cfg(test)]
mod tests;

pub use boxed::{SecretBox, ZeroIsValid, fill_random, random_key};
pub use memory::{MemoryKind, SecretMemory};
pub use stack::{SecretStack, StackRange, with_wiped_stack};
