//! A program that uses userfaultfd itself. The keeper may refuse it; it may not break other memory.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict};

const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_COPY: u64 = 0xc028_aa03;
const REGISTER_MODE_MISSING: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;

/// Serves its own faults for 256 pages if it may register them; all its other memory stays right.
pub fn own_uffd(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    region.fill(1);
    let flags = libc::O_CLOEXEC | 1; // UFFD_USER_MODE_ONLY
    // SAFETY: only makes a descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
    if descriptor < 0 {
        eprintln!("note: userfaultfd is not to be had: {}", sys::errno_text());
    } else if !serve(options, descriptor, &mut ballast)? {
        eprintln!("note: registration was refused");
    }
    ballast.squeeze()?;
    region.check(1)
}

fn serve(
    options: &Options,
    descriptor: i32,
    ballast: &mut Ballast,
) -> Result<bool, crate::support::Trouble> {
    let pages = 256;
    let mut api = [UFFD_API, 0, 0];
    // SAFETY: `api` is a struct uffdio_api.
    check("UFFDIO_API", unsafe { libc::ioctl(descriptor, UFFDIO_API, &mut api) })?;
    let own = sys::map_pages(pages)?;
    let mut register = [own as u64, (pages * PAGE) as u64, REGISTER_MODE_MISSING, 0];
    // SAFETY: `register` is a struct uffdio_register over the trap's own range.
    if unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &mut register) } < 0 {
        return Ok(false);
    }
    let target = Region::at(own, pages, options.seed ^ 0x0ffd);
    let served = std::thread::spawn(move || -> Verdict {
        let source = Region::map(1, target.seed)?;
        for _ in 0..pages {
            let mut message = [0_u8; 32];
            sys::read_all(descriptor, message.as_mut_ptr(), message.len())?;
            sys::same("the event's kind", EVENT_PAGEFAULT, message[0])?;
            let mut address = [0; 8];
            address.copy_from_slice(&message[16..24]);
            let page = (u64::from_le_bytes(address) as usize - target.base as usize) / PAGE;
            Region { first: page as u64, ..source }.fill_page(0, 6);
            let to = target.page(page) as u64;
            let mut copy = [to, source.base as u64, PAGE as u64, 0, 0];
            // SAFETY: `copy` is a struct uffdio_copy; the source is mapped.
            check("UFFDIO_COPY", unsafe { libc::ioctl(descriptor, UFFDIO_COPY, &mut copy) })?;
        }
        Ok(())
    });
    target.check(6)?;
    served.join().map_err(|_| "the serving thread panicked")??;
    sys::close(descriptor);
    ballast.squeeze()?;
    target.check(6)?;
    Ok(true)
}
