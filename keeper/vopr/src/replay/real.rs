//! The real side: memory of this process, in a child of the test's, so that a fork has little to
//! copy.

use super::{MAPPINGS, Machine, PAGES, Step};
use casemate_keeper::sys::pagemap::Pagemap;
use casemate_keeper::sys::uffd::abi::{CopyArg, DONTWAKE, MOVE_ALLOW_SRC_HOLES, UFFDIO_MOVE};
use casemate_keeper::sys::uffd::{Message, Refusal, Userfault, feature};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const PAGE: u64 = casemate_core::PAGE_BYTES as u64;
/// What one page table of the lowest level maps.
const TABLE: u64 = 512 * PAGE;

pub struct Real {
    base: u64,
    /// Where ranges are moved away to.
    away: u64,
    uffd: Userfault,
    pagemap: Pagemap,
    entries: File,
}

fn check(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn new_userfaultfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed; the descriptor is new, so the OwnedFd is its only owner.
    unsafe {
        let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK);
        check(fd).map(|fd| OwnedFd::from_raw_fd(fd as i32))
    }
}

fn call(number: i64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: only called with ranges of the script's own memory, which holds no Rust values.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    match result {
        -1 => -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        result => result,
    }
}

const ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;

impl Real {
    pub fn new() -> io::Result<Real> {
        let unsupported = |error: io::Error| {
            io::Error::new(io::ErrorKind::Unsupported, format!("userfaultfd: {error}"))
        };
        let fd = new_userfaultfd().map_err(unsupported)?;
        let uffd = Userfault::enable(fd, feature::PROGRAM).map_err(unsupported)?;
        // What is reserved has no other mapping in it; only the gaps between the script's mappings
        // are not mapped.
        let reserve = |len: u64| {
            let arguments = [0, len, 0, ANONYMOUS, u64::MAX, 0];
            check(call(libc::SYS_mmap, arguments)).map(|at| at as u64)
        };
        // All in one page table, which a page behind it keeps: where a table is missing, the kernel
        // finds that the source of a move is before it looks for pages at the destination. The
        // simulation knows no tables.
        let base = reserve(2 * TABLE)?.next_multiple_of(TABLE);
        let away = reserve(PAGES * PAGE)?;
        let (pid, entries) = (std::process::id() as i32, File::open("/proc/self/pagemap")?);
        let this = Real { base, away, uffd, pagemap: Pagemap::open(pid)?, entries };
        let (behind, len) = this.bytes_of(PAGES, 1);
        this.map(behind, len, 3);
        // SAFETY: a page that was just mapped, which may be written.
        unsafe { (behind as *mut u8).write_volatile(1) };
        call(libc::SYS_munmap, [base, PAGES * PAGE, 0, 0, 0, 0]);
        for (start, end, registered, write) in MAPPINGS {
            let (at, len) = this.bytes_of(start, end - start);
            this.map(at, len, if write { 3 } else { 1 });
            if registered {
                this.uffd.register(at, len)?;
            }
        }
        Ok(this)
    }

    pub fn play(mut self, seed: u64, steps: u64, guards: bool) -> Vec<String> {
        super::play(&mut self, seed, steps, guards)
    }

    /// Whether this kernel has guards: it takes one from a page that has none.
    pub fn has_guards(&self) -> bool {
        let (at, len) = self.bytes_of(0, 1);
        call(libc::SYS_madvise, [at, len, super::MADV_GUARD_REMOVE, 0, 0, 0]) == 0
    }

    fn map(&self, at: u64, len: u64, prot: u64) -> i64 {
        let fixed = ANONYMOUS | libc::MAP_FIXED as u64;
        let result = call(libc::SYS_mmap, [at, len, prot, fixed, u64::MAX, 0]);
        call(libc::SYS_madvise, [at, len, libc::MADV_NOHUGEPAGE as u64, 0, 0, 0]);
        result
    }

    fn bytes_of(&self, at: u64, pages: u64) -> (u64, u64) {
        (self.base + at * PAGE, pages * PAGE)
    }

    /// Makes a call in another thread and reads its events.
    fn call_told(&self, make: impl FnOnce() -> i64 + Send, log: &mut String) -> i64 {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let result = make();
                is_done.store(true, SeqCst);
                result
            });
            while !is_done.load(SeqCst) {
                if self.uffd.has_message() {
                    let probed = self.uffd.zero(0x1000, PAGE).1;
                    assert_eq!(probed, Err(Refusal::EventPending), "an event is unread");
                    let mut messages = Vec::new();
                    self.uffd.read(&mut messages).expect("it can be read");
                    messages.iter().for_each(|message| *log += &self.name(message));
                }
            }
            caller.join().expect("the caller does not panic")
        })
    }

    fn name(&self, message: &Message) -> String {
        let at = |address: u64| match address {
            away if (self.away..self.away + PAGES * PAGE).contains(&away) => {
                format!("away {}", (away - self.away) / PAGE)
            }
            address => format!("{}", (address - self.base) / PAGE),
        };
        match message {
            Message::Fork(child) => {
                child.retire();
                "fork ".to_owned()
            }
            Message::Remap { from, to, len } => {
                format!("remap {} to {}, {len:#x} ", at(*from), at(*to))
            }
            Message::Remove { start, end } => {
                format!("remove {}, {:#x} ", at(*start), end - start)
            }
            Message::Unmap { start, end } => format!("unmap {}, {:#x} ", at(*start), end - start),
            other => format!("{other:?} "),
        }
    }
}

/// Forks a child that ends at once, and waits for it. Not by the library's `fork`, which holds the
/// allocator's locks meanwhile: the thread that reads the event allocates.
fn fork_and_wait() -> i64 {
    // SAFETY: the child makes one system call, which does not return, and touches nothing.
    unsafe {
        let child = libc::syscall(libc::SYS_fork);
        if child == 0 {
            libc::syscall(libc::SYS_exit_group, 0);
        }
        libc::waitpid(child as i32, std::ptr::null_mut(), 0);
    }
    0
}

impl Machine for Real {
    fn copy(&mut self, at: u64, pages: u64, fill: u8, protect: bool) -> String {
        let bytes = vec![fill; (pages * PAGE) as usize];
        format!("{:?}", self.uffd.copy(self.bytes_of(at, 1).0, &bytes, protect))
    }

    fn zeros(&mut self, at: u64, pages: u64) -> String {
        let (at, len) = self.bytes_of(at, pages);
        format!("{:?}", self.uffd.zero(at, len))
    }

    fn protect(&mut self, at: u64, pages: u64, protect: bool) -> String {
        let (at, len) = self.bytes_of(at, pages);
        format!("{:?}", self.uffd.protect(at, len, protect))
    }

    fn poison(&mut self, at: u64) -> String {
        let (at, len) = self.bytes_of(at, 1);
        format!("{:?}", self.uffd.poison(at, len))
    }

    fn move_pages(&mut self, from: u64, to: u64, pages: u64, holes: bool) -> String {
        let (from, len) = self.bytes_of(from, pages);
        let to = self.bytes_of(to, 1).0;
        let mode = DONTWAKE | if holes { MOVE_ALLOW_SRC_HOLES } else { 0 };
        let mut request = CopyArg { dst: to, src: from, len, mode, done: 0 };
        // SAFETY: the request is a live local of the ioctl's size, about the script's own memory.
        let result = unsafe { libc::ioctl(self.uffd.as_raw_fd(), UFFDIO_MOVE, &raw mut request) };
        let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let (moved, error) = (request.done, if result < 0 { error } else { 0 });
        match error {
            0 => format!("{:?}", (moved, 0)),
            error if moved > 0 => format!("{:?}", (moved, error)),
            error => format!("{:?}", (-i64::from(error), error)),
        }
    }

    fn store(&mut self, at: u64, value: u8) {
        let place = self.bytes_of(at, 1).0 as *mut u64;
        // SAFETY: a page of the script's own memory, which may be written and is there.
        unsafe { place.write_volatile(u64::from_le_bytes([value; 8])) };
    }

    fn change(&mut self, step: Step) -> String {
        let mut log = String::new();
        let result = match step {
            Step::Advise { at, pages, advice } => {
                let (at, len) = self.bytes_of(at, pages);
                let arguments = [at, len, advice, 0, 0, 0];
                self.call_told(|| call(libc::SYS_madvise, arguments), &mut log)
            }
            Step::Fork => self.call_told(fork_and_wait, &mut log),
            Step::MapOver { at, pages } => {
                let (at, len) = self.bytes_of(at, pages);
                self.call_told(|| self.map(at, len, 3), &mut log);
                self.uffd.register(at, len).map_or(-1, |()| 0)
            }
            Step::MoveAway { at, pages, stays } => {
                let (at, len) = self.bytes_of(at, pages);
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let there = if stays { flags | libc::MREMAP_DONTUNMAP } else { flags };
                let there = [at, len, len, there as u64, self.away, 0];
                let gone = self.call_told(|| call(libc::SYS_mremap, there), &mut log);
                let back = [self.away, len, len, flags as u64, at, 0];
                let result = match gone {
                    0.. => self.call_told(|| call(libc::SYS_mremap, back), &mut log).min(0),
                    error => error,
                };
                self.map(self.away, PAGES * PAGE, 0);
                result
            }
            _ => 0,
        };
        format!("{log}{result}")
    }

    fn state(&mut self, at: u64) -> char {
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        const PROTECTED: u64 = 1 << 57;
        // Of what is not present, the lowest five bits say the kind: 31 is a poison, a guard or a
        // protection of nothing, others are pages in the kernel's swap or being migrated. Without
        // CAP_SYS_ADMIN the bits are 0 and so is the number behind them.
        const KIND: u64 = 31;
        const NUMBER: u64 = (1 << 55) - 1;
        let address = self.base + at * PAGE;
        let mut entry = [0; 8];
        self.entries.read_exact_at(&mut entry, address / PAGE * 8).expect("our own page table");
        let entry = u64::from_ne_bytes(entry);
        let holds = self.pagemap.holds_page(address).expect("our own page table");
        assert_eq!(holds, entry & (PRESENT | SWAPPED) != 0);
        let is_elsewhere = entry & SWAPPED != 0 && entry & NUMBER != 0 && entry & KIND != KIND;
        let is_page = entry & PRESENT != 0 || is_elsewhere;
        match entry {
            entry if is_page && entry & PROTECTED != 0 => 'w',
            _ if is_page => 'p',
            entry if entry & SWAPPED != 0 => 's',
            _ => '-',
        }
    }

    fn first_byte(&mut self, at: u64) -> u8 {
        let place = self.bytes_of(at, 1).0 as *const u8;
        // SAFETY: a page of the script's own memory that is there and may be read.
        unsafe { place.read_volatile() }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        for at in [self.base, self.away] {
            // With its events unheard the call would wait for ever.
            let mut log = String::new();
            self.call_told(|| call(libc::SYS_munmap, [at, PAGES * PAGE, 0, 0, 0, 0]), &mut log);
        }
        call(libc::SYS_munmap, [self.base + PAGES * PAGE, PAGE, 0, 0, 0, 0]);
        self.uffd.retire();
    }
}
