//! A program in a sandbox that writes its own code over its agent's: what it may not call, the
//! agent may not call for it.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use crate::traps::allow_only;
use std::ops::Range;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;

/// Where agents lie (SPEC.md, section 8).
const PLACES: Range<usize> = 0x2000_0000_0000..0x2a00_0000_0000;
const NO_OPERATION: u8 = 0x90;

/// In a sandbox, it grows until it has an agent, has that make the file `--file`, and goes on as
/// before.
pub fn takeover(options: &Options) -> Verdict {
    let program = Program::new(options)?;
    enter_sandbox()?;
    program.take_over(options)
}

/// It enters its sandbox when it has an agent, which was born outside.
pub fn takeover_in_sandbox(options: &Options) -> Verdict {
    let mut program = Program::new(options)?;
    program.grow_until_armed(options)?;
    enter_sandbox()?;
    program.take_over(options)
}

fn enter_sandbox() -> Verdict {
    allow_only(&[
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_mprotect,
        libc::SYS_munmap,
        libc::SYS_sigaltstack,
        libc::SYS_exit_group,
    ])
}

struct Program {
    payload: Vec<u8>,
    maps: i32,
    region: Region,
    text: Vec<u8>,
}

impl Program {
    fn new(options: &Options) -> Result<Self, Trouble> {
        let file = options.file.as_ref().ok_or_else(|| Trouble::from("which --file?"))?;
        let payload = payload(file.as_os_str().as_bytes());
        let maps = std::fs::File::open("/proc/self/maps").map_err(|e| e.to_string())?;
        let region = Region::map(options.pages(), options.seed)?;
        Ok(Program { payload, maps: maps.into_raw_fd(), region, text: vec![0; 256 * 1024] })
    }

    /// Writes all of its memory again and again until there is an agent, and returns its code.
    fn grow_until_armed(&mut self, options: &Options) -> Result<Range<usize>, Trouble> {
        for generation in 0..options.accesses {
            self.region.fill(generation);
            self.region.check(generation)?;
            if let Some(code) = agent_code(self.maps, &mut self.text)? {
                return Ok(code);
            }
        }
        Err(Trouble::from("there is no agent"))
    }

    fn take_over(mut self, options: &Options) -> Verdict {
        let code = self.grow_until_armed(options)?;
        overwrite(&code, &self.payload)?;
        for generation in 0..options.accesses {
            self.region.fill(generation);
            self.region.check(generation)?;
        }
        Ok(())
    }
}

/// `open(path, O_CREAT | O_WRONLY, 0644)`, and then nothing more.
fn payload(path: &[u8]) -> Vec<u8> {
    let mut code = vec![
        0xb8, 0x01, 0x01, 0x00, 0x00, // mov eax, openat
        0xbf, 0x9c, 0xff, 0xff, 0xff, // mov edi, AT_FDCWD
        0x48, 0x8d, 0x35, 0x11, 0x00, 0x00, 0x00, // lea rsi, [rip + 17]
        0xba, 0x41, 0x00, 0x00, 0x00, // mov edx, O_CREAT | O_WRONLY
        0x41, 0xba, 0xa4, 0x01, 0x00, 0x00, // mov r10d, 0644
        0x0f, 0x05, // syscall
        0xf3, 0x90, // pause
        0xeb, 0xfc, // jmp -4
    ];
    code.extend(path);
    code.push(0);
    code
}

/// The mapping with the agent's code, if there is one.
fn agent_code(maps: i32, text: &mut [u8]) -> Result<Option<Range<usize>>, Trouble> {
    let mut len = 0;
    loop {
        let rest = &mut text[len..];
        // SAFETY: reads into a live buffer of that length.
        let got = unsafe { libc::pread(maps, rest.as_mut_ptr().cast(), rest.len(), len as i64) };
        match check("pread", got as i64)? {
            0 => break,
            got => len += got as usize,
        }
    }
    let text = std::str::from_utf8(&text[..len]).map_err(|_| Trouble::from("maps is not text"))?;
    let number = |hex| usize::from_str_radix(hex, 16).ok();
    Ok(text.lines().filter(|line| line.contains(" r-xp ")).find_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let range = number(start)?..number(end)?;
        PLACES.contains(&range.start).then_some(range)
    }))
}

/// Every instruction that the agent can come to next leads to the payload.
fn overwrite(code: &Range<usize>, payload: &[u8]) -> Verdict {
    let (at, len) = (code.start as *mut u8, code.len());
    sys::protect(
        at,
        len.next_multiple_of(PAGE),
        libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
    )?;
    let steps = len - payload.len();
    for i in 0..len {
        let byte = if i < steps { NO_OPERATION } else { payload[i - steps] };
        // SAFETY: the mapping was just made writable, and only the agent, another process, executes
        // what is there.
        unsafe { at.add(i).write_volatile(byte) };
    }
    Ok(())
}
