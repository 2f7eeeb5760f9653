//! What a page of a run is.

use casemate_keeper::hand::is_place_of_agents;
use casemate_keeper::sys::procfs::{Described, Mapping};
use serde::Serialize;

use super::family::Role;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The program's private memory under the pager: it is in the Clear.
    Protected,
    /// The program's private memory that is not under the pager, or not yet.
    Unprotected,
    /// Private copies of pages of files.
    FileCopies,
    /// Memory that processes share: anonymous, memfd, System V, of `/dev/shm`.
    Shared,
    /// Pages of files that are mapped. They hold what the files do.
    Files,
    /// Pages of the program on their way: on the grace list, in mailboxes and stagings.
    InFlight,
    /// Memory of the front, the keeper or an agent. The keeper's is mostly ciphertext.
    Ours,
    /// Secret memory (`memfd_secret`), which cannot be read.
    Secret,
    /// The run's swap file.
    SwapFile,
}

impl Class {
    /// Those that hold the program's plaintext, but for what is on its way.
    pub const EXPOSED: [Class; 4] =
        [Class::Protected, Class::Unprotected, Class::FileCopies, Class::Shared];

    /// As people read it.
    pub fn shown(self) -> &'static str {
        match self {
            Class::Protected => "protected memory",
            Class::Unprotected => "unprotected memory",
            Class::FileCopies => "copies of file pages",
            Class::Shared => "shared memory",
            Class::Files => "mapped files",
            Class::InFlight => "pages on their way",
            Class::Ours => "own memory",
            Class::Secret => "secret memory",
            Class::SwapFile => "the swap file",
        }
    }
}

/// How pages of a mapping are judged.
pub struct Judge {
    /// Without secret memory the keeper's keys are in locked memory, as the grace list is.
    pub has_secret_memory: bool,
}

impl Judge {
    /// What a page is, by its mapping and by whether it is of a file or shared. None for the
    /// kernel's own.
    pub fn class(&self, role: Role, described: &Described, is_of_file: bool) -> Option<Class> {
        let mapping = &described.mapping;
        let name = mapping.name.as_str();
        if name.starts_with("[v") || name == "[uprobes]" {
            return None;
        }
        if is_secret(mapping) {
            return Some(Class::Secret);
        }
        let is_memory = !is_of_file || is_shared_memory(mapping);
        Some(match role {
            Role::Program if is_agents(described) => {
                // Stagings are the program's to fill; code and stack are ours.
                if mapping.exec || mapping.range.end - mapping.range.start < LEAST_STAGING_BYTES {
                    Class::Ours
                } else {
                    Class::InFlight
                }
            }
            Role::Program if !is_memory => Class::Files,
            Role::Program if !mapping.private || is_of_file => Class::Shared,
            Role::Program if mapping.inode != 0 && !mapping.is_zero_device() => Class::FileCopies,
            Role::Program if described.has_userfault => Class::Protected,
            Role::Program => Class::Unprotected,
            Role::Keeper | Role::Front if !is_memory => Class::Files,
            Role::Keeper if is_mailbox(mapping) => Class::InFlight,
            Role::Keeper if described.is_locked && self.has_secret_memory => Class::InFlight,
            Role::Keeper | Role::Front => Class::Ours,
        })
    }
}

/// An agent's stack and bootstrap page are far smaller, its stagings and mailbox far larger.
const LEAST_STAGING_BYTES: u64 = 128 << 10;

fn is_agents(described: &Described) -> bool {
    is_place_of_agents(described.mapping.range.start)
        && (is_mailbox(&described.mapping) || described.is_unforked_and_undumped)
}

fn is_mailbox(mapping: &Mapping) -> bool {
    mapping.inode != 0 && mapping.name.starts_with("/memfd:casemate-mailbox")
}

/// Whether it is `memfd_secret`.
pub fn is_secret(mapping: &Mapping) -> bool {
    mapping.inode != 0 && mapping.name.starts_with("/secretmem")
}

fn is_shared_memory(mapping: &Mapping) -> bool {
    let begins = |with: &str| mapping.inode != 0 && mapping.name.starts_with(with);
    let is_anonymous = !mapping.private && mapping.name.starts_with("/dev/zero");
    is_anonymous || ["/memfd:", "/SYSV", "/dev/shm/"].into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(rights: &str, inode: u64, name: &str, marks: &str) -> Described {
        let at = if marks.contains("agent") { 0x2000_0000_0000 } else { 0x7f00_0000_0000 };
        let bytes = if marks.contains("large") { 128 << 10 } else { 20 << 10 };
        Described {
            mapping: Mapping {
                range: at..at + bytes,
                read: true,
                write: rights.contains('w'),
                exec: rights.contains('x'),
                private: rights.ends_with('p'),
                offset: 0,
                device: (0, 1),
                inode,
                name: name.to_owned(),
            },
            has_userfault: marks.contains("um"),
            is_unforked_and_undumped: marks.contains("dc dd"),
            is_locked: marks.contains("lo"),
            swapped_bytes: 0,
        }
    }

    #[test]
    fn every_page_has_its_class() {
        use Class::*;
        use Role::*;
        let judge = Judge { has_secret_memory: true };
        for (role, rights, inode, name, marks, is_of_file, expected) in [
            (Program, "rw-p", 0, "[heap]", "um", false, Some(Protected)),
            (Program, "rw-p", 0, "[heap]", "", false, Some(Unprotected)),
            (Program, "rw-p", 5, "/dev/zero", "um", false, Some(Protected)),
            (Program, "rw-p", 0, "", "dc dd large um", false, Some(Protected)),
            (Program, "rw-p", 0, "", "agent um", false, Some(Protected)),
            (Program, "rw-p", 7, "/lib/libc.so.6", "", false, Some(FileCopies)),
            (Program, "r--p", 7, "/lib/libc.so.6", "", true, Some(Files)),
            (Program, "rw-s", 7, "/tmp/data", "", true, Some(Files)),
            (Program, "rw-s", 7, "/dev/zero (deleted)", "", true, Some(Shared)),
            (Program, "rw-s", 7, "/memfd:a (deleted)", "", true, Some(Shared)),
            (Program, "rw-p", 7, "/memfd:a (deleted)", "", true, Some(Shared)),
            (Program, "rw-p", 7, "/memfd:a (deleted)", "", false, Some(FileCopies)),
            (Program, "rw-s", 7, "/secretmem (deleted)", "", true, Some(Secret)),
            (Program, "rw-p", 0, "", "agent dc dd", false, Some(Ours)),
            (Program, "rw-p", 0, "", "agent dc dd large", false, Some(InFlight)),
            (Program, "rw-s", 7, "/memfd:casemate-mailbox", "agent large", true, Some(InFlight)),
            (Program, "r--p", 0, "[vvar]", "", true, None),
            (Keeper, "rw-p", 0, "", "", false, Some(Ours)),
            (Keeper, "rw-p", 0, "", "lo", false, Some(InFlight)),
            (Keeper, "rw-s", 7, "/memfd:casemate-mailbox", "lo", true, Some(InFlight)),
            (Keeper, "rw-s", 7, "/secretmem (deleted)", "lo", true, Some(Secret)),
            (Keeper, "r-xp", 7, "/usr/bin/casemate", "", true, Some(Files)),
            (Front, "rw-p", 7, "/usr/bin/casemate", "", false, Some(Ours)),
        ] {
            let described = described(rights, inode, name, marks);
            assert_eq!(judge.class(role, &described, is_of_file), expected, "{name} {marks}");
        }
        let without = Judge { has_secret_memory: false };
        let locked = described("rw-p", 0, "", "lo");
        assert_eq!(without.class(Keeper, &locked, false), Some(Ours));
    }
}
