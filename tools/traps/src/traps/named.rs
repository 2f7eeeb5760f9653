//! What a program can see, and set, of its mappings and of its threads' places in memory.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::ffi::CStr;

const NAMES: [&CStr; 3] = [c"written", c"read only", c"nothing allowed"];

/// Named anonymous mappings keep their names while their pages go out, whatever their rights, and
/// in a child.
pub fn named_mappings(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let rights = [sys::RW, libc::PROT_READ, libc::PROT_NONE];
    let mut regions = Vec::new();
    for (name, prot) in NAMES.into_iter().zip(rights) {
        let region = Region::map(options.pages() / 12, options.seed)?;
        region.fill(1);
        // SAFETY: names memory of the trap's own.
        let got = unsafe {
            let (what, at) = (libc::PR_SET_VMA_ANON_NAME, region.base);
            libc::prctl(libc::PR_SET_VMA, what, at, region.bytes(), name.as_ptr())
        };
        if got != 0 && sys::errno() == libc::EINVAL {
            eprintln!("skipped: this kernel names no anonymous memory");
            return Ok(());
        }
        check("prctl(PR_SET_VMA)", got)?;
        sys::protect(region.base, region.bytes(), prot)?;
        regions.push(region);
    }
    for _ in 0..3 {
        ballast.squeeze()?;
        names_hold(&regions)?;
    }
    in_child(|| {
        names_hold(&regions)?;
        ballast.squeeze()?;
        names_hold(&regions)
    })?
    .wait()?;
    for region in &regions {
        sys::protect(region.base, region.bytes(), sys::RW)?;
        region.check(1)?;
    }
    Ok(())
}

fn names_hold(regions: &[Region]) -> Verdict {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|e| e.to_string())?;
    for (region, name) in regions.iter().zip(NAMES) {
        let name = format!("[anon:{}]", name.to_string_lossy());
        let named = maps.lines().filter(|line| line.ends_with(&name));
        let bytes: usize = named.filter_map(bytes_of).sum();
        sys::same(&format!("bytes named {name}"), region.bytes(), bytes)?;
    }
    Ok(())
}

fn bytes_of(line: &str) -> Option<usize> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(to)? - address(from)?)
}

/// The area of restartable sequences (rseq) lies in memory that is out: the kernel writes it
/// whenever the thread is scheduled anew.
pub fn rseq_area(options: &Options) -> Verdict {
    const CPU_IDS: usize = 8;
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(3, options.seed)?;
    region.fill(0);
    let own = Area { at: region.page(1).wrapping_add(PAGE / 2), bytes: 32 };
    let Some(of_libc) = Area::of_libc()? else {
        eprintln!("skipped: the C library has no rseq area");
        return Ok(());
    };
    if !of_libc.change(UNREGISTER) {
        eprintln!("skipped: rseq: {}", sys::errno_text());
        return Ok(());
    }
    // SAFETY: 32 bytes within the page.
    unsafe { own.at.write_bytes(0, CPU_IDS * 4) };
    if !own.change(0) {
        return Err(Trouble(format!("rseq: {}", sys::errno_text())));
    }
    for _ in 0..6 {
        ballast.squeeze()?;
        std::thread::yield_now();
        // SAFETY: the area's second word, which the kernel writes.
        let cpu = unsafe { own.at.cast::<u32>().add(1).read_volatile() };
        if cpu > 4096 {
            return Err(Trouble(format!("the area says processor {cpu}")));
        }
        region.part(0, 1).check(0)?;
        region.part(2, 1).check(0)?;
    }
    sys::same("rseq unregisters", true, own.change(UNREGISTER))?;
    sys::same("the C library's area is registered again", true, of_libc.change(0))
}

const UNREGISTER: i32 = 1;

struct Area {
    at: *mut u8,
    bytes: u32,
}

impl Area {
    /// Where glibc has put this thread's.
    fn of_libc() -> Result<Option<Self>, Trouble> {
        const ARCH_GET_FS: i32 = 0x1003;
        // SAFETY: asks the dynamic linker; the symbols are a signed and an unsigned number.
        let (offset, size) = unsafe {
            let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr());
            let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr());
            if offset.is_null() || size.is_null() {
                return Ok(None);
            }
            (*offset.cast::<isize>(), *size.cast::<u32>())
        };
        let mut thread = 0_usize;
        // SAFETY: the kernel writes one word.
        let got = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &mut thread) };
        check("arch_prctl", got)?;
        let at = thread.wrapping_add_signed(offset) as *mut u8;
        Ok((size > 0).then_some(Area { at, bytes: size.max(32) }))
    }

    fn change(&self, flags: i32) -> bool {
        const SIGNATURE: u32 = 0x5305_3053;
        // SAFETY: the area stays mapped as long as it is registered.
        unsafe { libc::syscall(libc::SYS_rseq, self.at, self.bytes, flags, SIGNATURE) == 0 }
    }
}
