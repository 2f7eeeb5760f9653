//! Reads as much of an ELF header as tells whether the keeper supports the program.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// `e_machine` of x86-64.
const EM_X86_64: u16 = 62;

/// Why the program in `path` cannot be protected; none if it may be, or if it cannot be read.
pub fn refusal(path: &Path) -> Option<String> {
    let mut head = Vec::with_capacity(64);
    File::open(path).ok()?.take(64).read_to_end(&mut head).ok()?;
    judge(&head)
}

fn judge(head: &[u8]) -> Option<String> {
    // What is not ELF goes to the kernel, which may know it (binfmt_misc).
    let rest = head.strip_prefix(b"\x7fELF")?;
    let class = *rest.first()?;
    let machine = u16::from_le_bytes([*head.get(18)?, *head.get(19)?]);
    match (class, machine) {
        (2, EM_X86_64) => None,
        (1, _) => Some("it is a 32-bit program, and the keeper knows 64-bit ones only".to_owned()),
        _ => Some("it is built for another processor than x86-64".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, machine: u16) -> Vec<u8> {
        let mut head = b"\x7fELF".to_vec();
        head.push(class);
        head.resize(64, 0);
        head[18..20].copy_from_slice(&machine.to_le_bytes());
        head
    }

    #[test]
    fn only_64_bit_x86_programs_are_taken() {
        assert_eq!(judge(&header(2, EM_X86_64)), None);
        assert!(judge(&header(1, 3)).is_some_and(|why| why.contains("32-bit")));
        assert!(judge(&header(1, EM_X86_64)).is_some_and(|why| why.contains("32-bit")));
        assert!(judge(&header(2, 183)).is_some_and(|why| why.contains("another processor")));
    }

    #[test]
    fn what_is_no_elf_or_too_short_is_left_to_the_kernel() {
        assert_eq!(judge(b""), None);
        assert_eq!(judge(b"\x7fELF"), None);
        assert_eq!(judge(b"\x7fELF\x01"), None);
        assert_eq!(judge(b"#!/bin/sh\n"), None);
    }
}
