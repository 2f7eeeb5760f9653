//! The exit codes that are Casemate's own. Every other code is the protected program's.

use casemate_keeper::Ending;

/// Untrusted memory did not verify: the program was stopped before it could read it.
pub const VIOLATION: u8 = 120;
/// A store failed or ran full: the Crypt's limit, the swap file, memory.
pub const STORE_FAILED: u8 = 121;
/// The keeper died or failed; the program was stopped, or never started.
pub const KEEPER_FAILED: u8 = 122;
/// The program cannot be protected, or less of it than was required, or this machine cannot
/// protect.
pub const UNPROTECTABLE: u8 = 123;
/// A usage error, or another error of Casemate's own.
pub const OWN_ERROR: u8 = 125;
/// The command was found but cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;
/// Commands other than `run`: the answer is no (a check failed, no attackable run, ...).
pub const NO: u8 = 1;

/// The table as the help and the man page show it.
pub const HELP: &str = "\
Exit codes of `casemate run`:
  0-255  the program's own code, passed through
  128+N  the program was ended by signal N
  120    integrity violation: memory outside the Clear was changed
  121    a store failed or ran full: the Crypt's limit, the swap file, memory
  122    the keeper died or failed
  123    the program cannot be protected, or less of it than --require-protected, or this machine
         cannot protect (see `casemate doctor`)
  125    a usage error or another error of casemate's own
  126    the command was found but cannot be executed
  127    the command was not found
With 120 to 123 the program was stopped, or never started, and a sentence on stderr says why.
The other commands end with 0 for yes or done, 1 for no or failed, 125 for a usage error;
`audit`, `certify`, `lock` and `open-image` have tables of their own.";

/// The table of `open-image`.
pub const OPEN_IMAGE_HELP: &str = "\
Exit codes of `casemate open-image`:
  0-255  the program's own code, once it runs; 0 if it was written out
  120    the image was changed or cut short; nothing of it was used
  123    the image is sealed for another processor
  125    a usage error or another error of casemate's own
  126    the program cannot be executed
To have its memory encrypted as well: casemate run -- casemate open-image ...";

/// The table of `certify`.
pub const CERTIFY_HELP: &str = "\
Exit codes of `casemate certify`:
  0    the program ended, its result is printed and certified
  1    the program trapped, did not end, or did not fit
  120  its memory was tampered with; nothing was signed
  125  a usage error or another error of casemate's own";

/// The table of `audit`.
pub const AUDIT_HELP: &str = "\
Exit codes of `casemate audit`:
  0    no marker was found, and no AES key schedule in memory of casemate's own
  1    one was found; in an image a marker, since whose a key is cannot be told
  125  it could not look, or not say what it found: a usage error, no such run, no right to read
       its memory, or nothing can be written";

/// The table of `lock`.
pub const LOCK_HELP: &str = "\
Exit codes of `casemate lock`:
  0    all that was named is locked, and nothing of its private memory can be read
  1    a run is not locked, or some of its private memory can be read still
  125  a usage error, or no passphrase or key could be had
With --all every run is tried; one that was locked before is as it should be.";

/// The table of `unlock`.
pub const UNLOCK_HELP: &str = "\
Exit codes of `casemate unlock`:
  0    all that was named goes on
  1    a run stays locked (a wrong passphrase, for example), or was not locked
  125  a usage error, or no passphrase could be had
With --all every run is tried; one that is not locked is as it should be.";

/// The exit code that reports `ending`.
#[must_use]
pub fn of(ending: &Ending) -> u8 {
    match ending {
        // The kernel keeps eight bits of a code, so nothing is lost here.
        Ending::Exited { code } => (*code & 0xff) as u8,
        Ending::Signaled { signal } => (128 + (*signal & 0x7f)) as u8,
        Ending::NotExecuted { .. } => NOT_EXECUTABLE,
        Ending::Violation { .. } => VIOLATION,
        Ending::StoreFailed { .. } => STORE_FAILED,
        Ending::Unprotectable { .. } | Ending::TooLittleProtected { .. } => UNPROTECTABLE,
        Ending::KeeperFailed { .. } => KEEPER_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_keeps_its_code_and_a_signal_adds_128() {
        assert_eq!(of(&Ending::Exited { code: 0 }), 0);
        assert_eq!(of(&Ending::Exited { code: 255 }), 255);
        assert_eq!(of(&Ending::Signaled { signal: 9 }), 137);
        assert_eq!(of(&Ending::Violation { what: String::new() }), 120);
        let too_little = Ending::TooLittleProtected {
            what: String::new(),
            protected_bytes: 1,
            unprotected_bytes: 2,
        };
        assert_eq!(of(&too_little), 123);
        assert_eq!(of(&Ending::KeeperFailed { what: String::new() }), 122);
    }

    #[test]
    fn every_own_code_stands_in_the_help() {
        for code in [
            VIOLATION,
            STORE_FAILED,
            KEEPER_FAILED,
            UNPROTECTABLE,
            OWN_ERROR,
            NOT_EXECUTABLE,
            NOT_FOUND,
        ] {
            assert!(HELP.contains(&format!("\n  {code} ")), "{code} is missing");
        }
    }
}
