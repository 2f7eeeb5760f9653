//! Programs that are executed with so large an environment that it needs room: the kernel copies it before the first
//! instruction. How much of it lies in RAM meanwhile is judged from outside (`tests/clear_bound.rs`).

use crate::support::children::{Child, wait_all};
use crate::support::sys::{self, check, errno_text};
use crate::support::{Options, Region, Trouble, Verdict, in_child};
use std::ffi::CString;

const CHILDREN: usize = 12;
/// Of a program's environment: 1.6 MB in all.
const LETTERS: [u8; 13] = *b"abcdefghijklm";
const VARIABLE_BYTES: usize = 120_000;
/// A small program of the system's (ours copies a hundred pages of its file when it starts): says that it is there,
/// waits, and checks each variable, which is its letter again and again.
const SCRIPT: &str = "echo r >&8; read line <&9
for letter in a b c d e f g h i j k l m; do
    eval value=\\$PAD$letter
    [ ${#value} -eq 120000 ] || exit 3
    case $value in *[!$letter]*) exit 4;; esac
done";
const READY: i32 = 8;
const GO_ON: i32 = 9;

/// Twelve children at once execute a program with a large environment, and live together for a while.
pub fn large_environments(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 4, options.seed)?;
    region.fill(0);
    let ((ready, tell), (wait, release)) = (sys::pipe()?, sys::pipe()?);
    let variables: Vec<CString> =
        LETTERS.iter().map(|&letter| variable(letter)).collect::<Result<_, _>>()?;
    let words = ["/bin/sh", "-c", SCRIPT].map(|word| CString::new(word).unwrap_or_default());
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
    };
    let (words, variables) = (pointers(&words), pointers(&variables));
    let execute = || {
        for (from, to) in [(tell, READY), (wait, GO_ON)] {
            // SAFETY: both numbers are only passed on.
            check("dup2", unsafe { libc::dup2(from, to) })?;
        }
        // SAFETY: both lists end with null pointers and outlive the call.
        unsafe { libc::execve(words[0], words.as_ptr(), variables.as_ptr()) };
        Err(Trouble(format!("execve: {}", errno_text())))
    };
    let children: Vec<Child> =
        (0..CHILDREN).map(|_| in_child(execute)).collect::<Result<_, _>>()?;
    let mut bytes = [0; 2 * CHILDREN];
    sys::read_all(ready, bytes.as_mut_ptr(), bytes.len())?;
    sys::write_all(release, [b'\n'; CHILDREN].as_ptr(), CHILDREN)?;
    wait_all(children)?;
    region.check(0)
}

fn variable(letter: u8) -> Result<CString, Trouble> {
    let value = std::iter::repeat_n(letter, VARIABLE_BYTES);
    let text = [b"PAD", &[letter][..], b"="].concat().into_iter().chain(value);
    CString::new(text.collect::<Vec<u8>>()).map_err(|e| Trouble(e.to_string()))
}
