//! Plants a marker in every page and waits, so that a test can look for it from outside.

use crate::support::children::wait_all;
use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict, in_child};
use crate::traps::DataFile;
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// 32 hexadecimal digits.
pub fn parse_hex(text: &str) -> Result<[u8; 16], String> {
    let mut marker = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return Err("--marker needs 32 hexadecimal digits".into());
    }
    for (i, byte) in marker.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).map_err(|e| e.to_string())?;
    }
    Ok(marker)
}

/// Where in page `page` the marker stands.
fn place(page: usize) -> usize {
    page * 16 * 7 % PAGE
}

/// Gives back where the marked memory lies then.
type Change = fn(&Options, Region) -> Result<Region, Trouble>;

/// What becomes of the marked memory before it is looked for.
const MODES: &[(&str, Change)] = &[
    ("plain", |_, region| Ok(region)),
    ("moves", moves),
    ("threads", threads),
    ("exec", executes),
    ("filter", filters),
    ("pinned", pins),
    ("sharer", shares),
    ("data", into_data),
];

/// Fills, does what `--mode` says, prints `ready PID`, sleeps until standard input closes, and
/// verifies everything. With the mode `forks` three children do so as well, each with a copy of
/// which it has written a half anew.
pub fn marker(options: &Options) -> Verdict {
    if options.marker == [0; 16] {
        return Err("marker needs --marker".into());
    }
    let region = Region::map(options.pages(), options.seed)?;
    plant(options, &region.part(0, region.pages));
    let mut children = Vec::new();
    if options.mode == "forks" {
        let (told, tell) = sys::pipe()?;
        for _ in 0..3 {
            children.push(in_child(|| {
                plant(options, &region.part(0, region.pages / 2));
                sys::write_all(tell, b"r".as_ptr(), 1)?;
                wait_and_verify(options, &region)
            })?);
        }
        let mut bytes = [0_u8; 3];
        sys::read_all(told, bytes.as_mut_ptr(), bytes.len())?;
    }
    let mode = MODES.iter().find(|(name, _)| *name == options.mode);
    let region = match mode {
        Some((_, change)) => change(options, region)?,
        None if options.mode == "forks" => region,
        None => return Err(Trouble(format!("--mode {}: unknown", options.mode))),
    };
    println!("ready {}", std::process::id());
    std::io::stdout().flush().map_err(|e| e.to_string())?;
    wait_and_verify(options, &region)?;
    let sharer = SHARER.load(Relaxed);
    if sharer > 0 {
        // SAFETY: a child of ours that was not waited for.
        check("kill", unsafe { libc::kill(sharer, libc::SIGKILL) })?;
    }
    wait_all(children)
}

/// Fills pages, and puts the marker into each.
fn plant(options: &Options, region: &Region) {
    for page in 0..region.pages {
        region.fill_page(page, 1);
        let at = region.page(page).wrapping_add(place(region.first as usize + page));
        // SAFETY: 16 bytes within the page, since `place` is a multiple of 16.
        unsafe { std::ptr::copy_nonoverlapping(options.marker.as_ptr(), at, 16) };
    }
}

/// All of it lies elsewhere, in another order.
fn moves(_: &Options, region: Region) -> Result<Region, Trouble> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let target = sys::map_pages(region.pages)?;
    let part = region.pages / 16;
    for step in 0..16 {
        let (from, to) = (region.page(step * part), target.wrapping_add(step * part * PAGE));
        // SAFETY: both ranges are this program's own.
        let got = unsafe { libc::mremap(from.cast(), part * PAGE, part * PAGE, flags, to) };
        sys::same("mremap", to.cast(), got)?;
    }
    Ok(region.moved_to(target))
}

/// Four threads write all of it once more.
fn threads(options: &Options, region: Region) -> Result<Region, Trouble> {
    let quarter = region.pages / 4;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || plant(options, &region.part(thread * quarter, quarter)));
        }
    });
    Ok(region)
}

/// The program executes itself, and what it held before belongs to no process any more.
fn executes(_: &Options, region: Region) -> Result<Region, Trouble> {
    use std::os::unix::process::CommandExt;
    const DONE: &str = "CASEMATE_TRAPS_EXECUTED";
    if std::env::var_os(DONE).is_some() {
        return Ok(region);
    }
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let words = std::env::args_os().skip(1);
    let error = std::process::Command::new(own).args(words).env(DONE, "1").exec();
    Err(Trouble(format!("executing itself: {error}")))
}

/// All of it is a fixed buffer of io_uring's, which the kernel pins.
fn pins(_: &Options, region: Region) -> Result<Region, Trouble> {
    let ring = io_uring::IoUring::new(8).map_err(|e| format!("io_uring_setup: {e}"))?;
    let buffer = libc::iovec { iov_base: region.base.cast(), iov_len: region.bytes() };
    // SAFETY: the memory stays mapped until this process ends.
    unsafe { ring.submitter().register_buffers(&[buffer]) }
        .map_err(|e| format!("register_buffers: {e}"))?;
    // It stays, and with it what it pins.
    std::mem::forget(ring);
    Ok(region)
}

/// A filter of the program's own, that allows everything.
fn filters(_: &Options, region: Region) -> Result<Region, Trouble> {
    const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;
    let mut allow = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: SECCOMP_RET_ALLOW,
    };
    let program = libc::sock_fprog { len: 1, filter: &mut allow };
    // SAFETY: the program is one instruction, which is there during the call.
    unsafe {
        check("no_new_privs", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let mode = libc::SECCOMP_MODE_FILTER;
        check("seccomp", libc::prctl(libc::PR_SET_SECCOMP, mode, &program))?;
    }
    Ok(region)
}

/// Private mappings of a file, 2 MiB each, have all of it.
fn into_data(options: &Options, region: Region) -> Result<Region, Trouble> {
    const PIECE: usize = 512;
    let file = DataFile::new(options, PIECE)?;
    for first in (0..region.pages).step_by(PIECE) {
        file.map_at(region.page(first))?;
        plant(options, &region.part(first, PIECE));
    }
    Ok(region)
}

/// A process that shares this one's memory maps all of it once more, plants it there, and lives on.
fn shares(options: &Options, region: Region) -> Result<Region, Trouble> {
    struct Sharer<'a>(&'a Options, i32, Option<Region>);
    extern "C" fn life(sharer: *mut libc::c_void) -> i32 {
        // SAFETY: it lies on the stack of `shares`, which waits until it is told.
        let sharer = unsafe { &mut *sharer.cast::<Sharer>() };
        sharer.2 = Region::map(sharer.0.pages(), sharer.0.seed).ok();
        if let Some(region) = &sharer.2 {
            plant(sharer.0, region);
        }
        let told = sys::write_all(sharer.1, b"s".as_ptr(), 1);
        while told.is_ok() {
            // SAFETY: waits for a signal that ends it.
            unsafe { libc::pause() };
        }
        1
    }
    const STACK_PAGES: usize = 64;
    region.unmap()?;
    let (told, tell) = sys::pipe()?;
    let mut sharer = Sharer(options, tell, None);
    let stack = sys::map_pages(STACK_PAGES)?;
    // SAFETY: it has a stack of its own, and this process waits while it uses the C library.
    let pid = unsafe {
        let top = stack.add(STACK_PAGES * PAGE).cast();
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        libc::clone(life, top, flags, (&raw mut sharer).cast())
    };
    check("clone", pid)?;
    let mut byte = 0;
    sys::read_all(told, &mut byte, 1)?;
    SHARER.store(pid, Relaxed);
    sharer.2.ok_or_else(|| Trouble("the sharer mapped nothing".to_owned()))
}

/// The process of `shares`, which ends with this one.
static SHARER: AtomicI32 = AtomicI32::new(0);

fn wait_and_verify(options: &Options, region: &Region) -> Verdict {
    let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN | libc::POLLHUP, revents: 0 };
    // SAFETY: one valid pollfd.
    let woken = check("poll", unsafe { libc::poll(&mut poll, 1, options.seconds as i32 * 1000) })?;
    if woken == 0 {
        return Err(Trouble(format!("standard input was not closed in {} s", options.seconds)));
    }
    for page in 0..region.pages {
        let at = region.page(page).wrapping_add(place(page));
        // SAFETY: within the page, as in `plant`; no thread of this process writes it any more.
        let found = unsafe { std::slice::from_raw_parts(at, 16) };
        if found != options.marker {
            return Err(Trouble(format!("page {page}: the marker reads {found:02x?}")));
        }
        let first = place(page) / 8;
        for word in (0..PAGE / 8).filter(|word| *word != first && *word != first + 1) {
            // SAFETY: within the page.
            let got = unsafe { region.page(page).cast::<u64>().add(word).read_volatile() };
            let right = crate::support::word(options.seed, page as u64, 1, word);
            if got != right {
                return Err(Trouble(format!("page {page} word {word}: {right:#x}, got {got:#x}")));
            }
        }
    }
    Ok(())
}
