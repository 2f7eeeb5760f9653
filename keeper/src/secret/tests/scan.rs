//! Does any key lie outside secret memory?
//!
//! The test starts this program again as a child that sets up keys as the keeper does, seals and
//! opens pages and changes metadata with them, and waits. Then it reads all of the child's memory
//! through `/proc/PID/mem` and looks for every 16-byte piece of the master key, of all derived
//! keys, and of the cipher's key schedule and GHASH table.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use casemate_core::key_derivation::derive;
use casemate_core::{GlobalPageCounter, Lpid};
use casemate_pages::page_protocol::{PagePort, page_in, page_out};
use casemate_pages::segment_keys::SEGMENT_CONTEXT;
use casemate_pages::{
    HeapMemory, KeySet, PAGE_BYTES, PageCipher, PageDirectory, SpaceId, StorePlace, Verification,
};

use super::super::*;

const ROLE: &str = "CASEMATE_SECRET_TEST_ROLE";
const READY: &str = "CASEMATE_SECRET_TEST_READY";

/// Two keys of the test's own. They are drawn when it runs: a constant would be in the child too.
struct Keys {
    master: [u8; 32],
    canary: [u8; 32],
}

impl Keys {
    fn draw() -> Self {
        let (master, canary) = (random_key().expect("a key"), random_key().expect("a key"));
        Self { master: *master, canary: *canary }
    }
}

/// Uses keys as handlers do.
fn work(cipher: &PageCipher, directory: &mut PageDirectory<HeapMemory>) {
    // The second time it exists already.
    let _ = directory.create_space(SpaceId(1));
    let (plain, mut sealed, mut opened) = ([1; PAGE_BYTES], [0; PAGE_BYTES], [0; PAGE_BYTES]);
    let counter = GlobalPageCounter::new();
    for number in 1..2000 {
        let (page, mut private) = ((SpaceId(1), number * 97 % 1000), plain);
        let to = (StorePlace(number), &mut sealed);
        page_out(directory, cipher, &counter, page, &mut private, to)
            .expect("no untrusted memory was changed");
        page_in(directory, cipher, page, |_| &sealed, &mut opened)
            .expect("no untrusted memory was changed");
        directory.lookup(SpaceId(1), page.1 / 2).expect("no untrusted memory was changed");
    }
}

/// Takes the master key, the first 32 bytes that the test sends.
fn key_set(keys: &mut KeySet) {
    let mut master = SecretBox::<[u8; 32]>::zeroed().expect("memory");
    // Straight from the pipe: the key is in no other memory of ours.
    // SAFETY: 32 writable bytes.
    let read = unsafe { libc::read(0, master.as_mut_ptr().cast(), 32) };
    assert_eq!(read, 32);
    keys.derive_into(&master);
}

/// What the child does. Not a test of its own: without a role it passes at once.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut keys = SecretBox::<KeySet>::zeroed().expect("memory");
    if role == "careful" {
        arena::install().expect("an arena");
        with_wiped_stack(|| key_set(&mut keys)).expect("memory");
        let keys = keys.leak();
        let worker = std::thread::spawn(|| {
            let mut stack = SecretStack::new(256 * 1024).expect("memory");
            stack.run(|| {
                let cipher = PageCipher::over(Box::new(&keys.page));
                let memory = HeapMemory::new();
                let mut directory = PageDirectory::new_in_place(
                    Verification::Tree,
                    memory,
                    &keys.directory,
                    64 * 1024,
                );
                work(&cipher, &mut directory);
                wait();
                work(&cipher, &mut directory);
            });
        });
        worker.join().expect("no panic");
    } else {
        // The canary: the scan must find what this leaves behind.
        key_set(&mut keys);
        let cipher = PageCipher::new(&keys.page);
        let mut directory = PageDirectory::new(HeapMemory::new(), &keys.directory, 64 * 1024);
        work(&cipher, &mut directory);
        wait();
        work(&cipher, &mut directory);
    }
}

/// Tells the test that all is set up, and waits until it has looked. Meanwhile the canary, the
/// other 32 bytes that the test sends, lies on the heap.
fn wait() {
    let mut canary = vec![0; 32];
    std::io::stdin().read_exact(&mut canary).expect("a pipe");
    fs::write(std::env::var(READY).expect("a name"), "").expect("a file");
    assert_eq!(std::io::stdin().read(&mut [0]).expect("a pipe"), 0);
    std::hint::black_box(canary);
}

struct Running {
    child: Child,
    ready: std::path::PathBuf,
}

impl Running {
    fn start(role: &str, keys: &Keys) -> Self {
        let name = format!("casemate-secret-{}-{role}", std::process::id());
        let ready = std::env::temp_dir().join(name);
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "--test-threads=1", "--nocapture"])
            .arg(module_path!().split_once("::").expect("a crate").1.to_owned() + "::child")
            .env(ROLE, role)
            .env(READY, &ready)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a child");
        let pipe = child.stdin.as_mut().expect("a pipe");
        pipe.write_all(&keys.master).and_then(|()| pipe.write_all(&keys.canary)).expect("written");
        for _ in 0..3000 {
            if ready.exists() {
                return Self { child, ready };
            }
            assert!(child.try_wait().expect("a child").is_none(), "the child ended early");
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the child was not ready after 30 s");
    }

    /// Which of the needles lie in the child's memory, and in which mapping.
    fn scan(&self, needles: &HashSet<[u8; 16]>) -> Vec<(String, [u8; 16])> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id())).expect("maps");
        let memory = File::open(format!("/proc/{}/mem", self.child.id())).expect("memory");
        let (mut found, mut scanned) = (Vec::new(), 0);
        for line in maps.lines() {
            let (range, _) = line.split_once(' ').expect("a range");
            let (start, end) = range.split_once('-').expect("a range");
            let parse = |text| u64::from_str_radix(text, 16).expect("an address");
            let (start, end) = (parse(start), parse(end));
            let mut page = vec![0; 1 << 20];
            let mut kept = Vec::new();
            for at in (start..end).step_by(1 << 20) {
                let want = (end - at).min(1 << 20) as usize;
                // Secret and inaccessible memory cannot be read; so much the better.
                let Ok(n) = memory.read_at(&mut page[..want], at) else { continue };
                scanned += n;
                kept.extend_from_slice(&page[..n]);
                let hits = needles.iter().filter(|needle| contains(&kept, needle));
                found.extend(hits.map(|needle| (line.to_owned(), *needle)));
                kept.drain(..kept.len().saturating_sub(15));
            }
        }
        assert!(scanned > 1 << 20, "only {scanned} bytes could be read");
        found
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let ended = self.child.wait();
        let _ = fs::remove_file(&self.ready);
        if !std::thread::panicking() {
            assert!(ended.expect("a child").success());
        }
    }
}

/// Fast also in a build for tests.
fn contains(hay: &[u8], needle: &[u8; 16]) -> bool {
    // SAFETY: both ranges are valid for reading.
    let at = unsafe { libc::memmem(hay.as_ptr().cast(), hay.len(), needle.as_ptr().cast(), 16) };
    !at.is_null()
}

/// Pieces of 16 bytes that look like keys: no run of equal bytes, as pointers and sizes have.
fn pieces(bytes: &[u8], needles: &mut HashSet<[u8; 16]>) {
    for piece in bytes.as_chunks::<16>().0 {
        let different: HashSet<u8> = piece.iter().copied().collect();
        if different.len() >= 11 {
            needles.insert(*piece);
        }
    }
}

/// Everything that is made of this key and must not be found.
fn needles(master: &[u8; 32]) -> HashSet<[u8; 16]> {
    arena::install().expect("an arena");
    let mut needles = HashSet::new();
    pieces(master, &mut needles);
    let keys = KeySet::from_master(master);
    // SAFETY: a KeySet consists of arrays of bytes.
    let raw = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(&keys).cast::<u8>(), size_of::<KeySet>())
    };
    pieces(raw, &mut needles);
    assert_eq!(needles.len(), 2 + raw.len() / 16);
    // The child seals pages of the first segment only.
    let cipher = PageCipher::new(&keys.page);
    cipher.seal_in_place(Lpid(1), &mut [0; PAGE_BYTES]).expect("there is a root");
    let mut segment = [0; 32];
    derive(SEGMENT_CONTEXT, &[&raw[..32], &[0; 16]], &mut segment);
    let contents = arena::contents();
    // A schedule of 15 round keys, which begins with the key itself, and a table of H's multiples.
    let at = contents.windows(32).position(|w| w == segment).expect("a schedule in the arena");
    pieces(&contents[at..at + 480], &mut needles);
    assert!(needles.len() > 2 + raw.len() / 16 + 20, "only {} pieces", needles.len());
    drop(cipher);
    needles
}

#[test]
fn no_key_lies_outside_secret_memory() {
    if SecretMemory::new(1).expect("memory").kind() != MemoryKind::Secret {
        println!("not tested: this machine has no memfd_secret, so all memory can be scanned");
        return;
    }
    let keys = Keys::draw();
    let careful = Running::start("careful", &keys);
    let found = careful.scan(&needles(&keys.master));
    assert!(found.is_empty(), "{found:x?}");
    let mut canary = HashSet::new();
    pieces(&keys.canary, &mut canary);
    assert!(!careful.scan(&canary).is_empty(), "the scan is blind");
}

#[test]
fn the_scan_finds_what_careless_use_leaves() {
    let keys = Keys::draw();
    let careless = Running::start("careless", &keys);
    let found = careless.scan(&needles(&keys.master));
    let found: HashSet<_> = found.into_iter().map(|(_, needle)| needle).collect();
    assert!(found.len() >= 20, "only {} pieces", found.len());
}
