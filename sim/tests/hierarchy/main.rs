//! Levels below the first: the write buffer, conservation laws, lines of metadata, prefetchers,
//! random traffic.

#[path = "../common/machine.rs"]
mod machine;

mod laws;
mod metadata;
mod prefetch;
mod requests;
mod write_buffer;
mod written;
