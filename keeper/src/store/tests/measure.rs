//! Times of the stores, for people:
//! `cargo test --release -p casemate-keeper --lib store::tests::measure -- --ignored --nocapture`

use std::time::Instant;

use super::faulty::mix;
use super::*;

const PAGES: usize = 65_536;

fn each(what: &str, pages: usize, f: impl FnOnce()) {
    let start = Instant::now();
    f();
    println!("{what:48} {:7.2} µs a page", start.elapsed().as_secs_f64() * 1e6 / pages as f64);
}

fn orders() -> [(&'static str, Vec<usize>); 2] {
    let mut random: Vec<usize> = (0..PAGES).collect();
    random.sort_by_key(|i| mix(*i as u64));
    [("in order", (0..PAGES).collect()), ("at random", random)]
}

#[test]
#[ignore = "prints times; needs a quiet machine and 512 MiB"]
fn measure() {
    let source = [7; 4096];
    let mut page = [0; 4096];
    for attackable in [false, true] {
        let config = StoreConfig { attackable, ..Default::default() };
        let store = PageStore::new(config).expect("a store");
        println!("RAM{}", if attackable { ", attackable" } else { "" });
        let mut places = Vec::with_capacity(PAGES);
        each("  put (a copy), new memory", PAGES, || {
            places.extend((0..PAGES).map(|_| store.put(|page| *page = source).expect("put").0));
        });
        for (order, indices) in orders() {
            each(&format!("  get {order}"), PAGES, || {
                indices.iter().for_each(|i| store.get(places[*i], &mut page).expect("get"));
            });
            each(&format!("  with (one copy by the user) {order}"), PAGES, || {
                for i in &indices {
                    store.with(places[*i], |cipher| page = *cipher).expect("with");
                }
            });
        }
        each("  release and put, warm", PAGES, || {
            for place in &mut places {
                store.release(*place);
                *place = store.put(|page| *page = source).expect("put").0;
            }
        });
        each("  release all, one by one", PAGES, || places.iter().for_each(|p| store.release(*p)));
    }
    for without_rings in [false, true] {
        let path = new_name();
        let disk = SwapDisk::create(&path).expect("a swap file");
        let disk = if without_rings { disk.without_rings() } else { disk };
        let config = StoreConfig { crypt_limit_bytes: Some(16 << 20), ..Default::default() };
        let store = Store::new(&config, Some(SwapFile::new(path, disk))).expect("a store");
        println!("swap, {}", if without_rings { "pread and pwrite" } else { "io_uring" });
        let mut places = Vec::with_capacity(PAGES);
        each("  put, the oldest go out", PAGES, || {
            places.extend((0..PAGES).map(|_| store.put(|page| *page = source).expect("put").0));
        });
        for cold in [false, true] {
            for (order, indices) in orders() {
                let name = if cold { "cold" } else { "cached by the kernel" };
                let pages = if cold { 8192 } else { PAGES };
                let indices = &indices[..pages];
                forget(&store, cold);
                each(&format!("  get {order}, {name}"), pages, || {
                    indices.iter().for_each(|i| store.get(places[*i], &mut page).expect("get"));
                });
                forget(&store, cold);
                let mut pages32 = vec![[0; 4096]; 32];
                each(&format!("  get_many of 32 {order}, {name}"), pages, || {
                    for some in indices.chunks(32) {
                        let some: Vec<_> = some.iter().map(|i| places[*i]).collect();
                        store.get_many(&some, &mut pages32).expect("get");
                    }
                });
            }
        }
        each("  release all", PAGES, || store.release_many(&places));
    }
}

/// Drops the swap file from the page cache.
fn forget(store: &Store<SwapDisk>, really: bool) {
    use std::os::fd::AsRawFd;
    if really && let Some(tiers) = &store.tiers {
        let fd = tiers.swap().disk().fd().as_raw_fd();
        // SAFETY: plain system calls on an open descriptor.
        unsafe {
            libc::fdatasync(fd);
            libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED);
        }
    }
}
