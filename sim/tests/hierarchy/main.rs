//! Levels below the first: the write buffer, conservation laws, lines of metadata, random traffic.

#[path = "../common/machine.rs"]
mod machine;

mod laws;
mod metadata;
mod requests;
mod write_buffer;
mod written;
