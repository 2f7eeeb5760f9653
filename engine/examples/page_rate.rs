//! What a page costs through the engine, beside the library's own AES-256-GCM in the same run.
//!
//! `cargo run --release -p casemate-engine --example page_rate`

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use casemate_engine::{
    GlobalPageCounter, HeapMemory, KeySet, Lpid, PAGE_BYTES, PageCipher, PageDirectory, PageRecord,
    Place, SpaceId, Tag,
};

const SAMPLES: usize = 101;
const CALLS: u64 = 1_000;

type Page = [u8; PAGE_BYTES];

/// What is measured: a name, and a call that is told its number.
type Thing<'a> = (&'static str, Box<dyn FnMut(u64) + 'a>);

/// Nanoseconds per call: least, median, most of the samples.
#[derive(Clone, Copy)]
struct Rate {
    least: f64,
    median: f64,
    most: f64,
}

/// Measures several things in turn, sample by sample, so that a slow spell meets them all.
fn measure(things: &mut [Thing<'_>]) -> Vec<Vec<f64>> {
    let mut samples = vec![Vec::new(); things.len()];
    let mut call = 0;
    for _ in 0..SAMPLES + 1 {
        for ((_, thing), samples) in things.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            for _ in 0..CALLS {
                thing(call);
                call += 1;
            }
            samples.push(start.elapsed().as_nanos() as f64 / CALLS as f64);
        }
    }
    for samples in &mut samples {
        samples.remove(0); // warming up
    }
    samples
}

impl Rate {
    fn of(mut samples: Vec<f64>) -> Rate {
        samples.sort_by(f64::total_cmp);
        let last = samples.len() - 1;
        Rate { least: samples[0], median: samples[last / 2], most: samples[last] }
    }
}

fn main() {
    let keys = KeySet::from_master(&[1; 32]);
    let cipher = PageCipher::new(&keys.page);
    let key = UnboundKey::new(&AES_256_GCM, &[2; 32]).expect("32 bytes");
    let library = LessSafeKey::new(key);
    let gpc = GlobalPageCounter::new();
    let space = SpaceId(1);
    let nonce = |call: u64| {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&call.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    };

    // A working set whose nodes are all warm: 4,096 pages (16 MiB), 128 KiB of records.
    const PAGES: u64 = 4_096;
    let directory = || {
        let mut directory = PageDirectory::new(HeapMemory::new(), &keys.directory, 512 << 10);
        directory.create_space(space).expect("nobody attacks");
        directory
    };
    let mut source: Box<Page> = Box::new([7; PAGE_BYTES]);
    let mut sealed: Box<Page> = Box::new([0; PAGE_BYTES]);
    let lpid = gpc.next().expect("first");
    let tag = cipher.seal(lpid, &source, &mut sealed);
    let (mut for_lookup, mut for_replace) = (directory(), directory());
    for vpn in 0..PAGES {
        let record = Some(PageRecord { lpid, tag, place: Place(1) });
        for_lookup.replace(space, vpn, record).expect("nobody attacks");
        for_replace.replace(space, vpn, record).expect("nobody attacks");
    }
    // A working set whose nodes are mostly cold: 2^20 pages (4 GiB) under a 256 KiB cache.
    const MANY: u64 = 1 << 20;
    let mut cold = PageDirectory::new(HeapMemory::new(), &keys.directory, 256 << 10);
    cold.create_space(space).expect("nobody attacks");
    for vpn in 0..MANY {
        let record = Some(PageRecord { lpid: Lpid(vpn + 1), tag, place: Place(1) });
        cold.replace(space, vpn, record).expect("nobody attacks");
    }
    let scattered =
        |call: u64, pages: u64| call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & (pages - 1);

    let mut outs: [Box<Page>; 4] = std::array::from_fn(|_| Box::new([0; PAGE_BYTES]));
    let [library_sealed, library_opened, engine_sealed, engine_opened] = &mut outs;
    let library_tag = {
        let mut tag = [0; 16];
        library
            .seal_out_of_place_scatter(
                nonce(u64::MAX),
                Aad::from([0; 12]),
                &source[..],
                &mut library_sealed[..],
                &[],
                &mut tag,
            )
            .expect("fits");
        tag
    };
    let library_cipher = library_sealed.clone();
    source[0] ^= 1;
    let mut cold_writes = 0;
    let cold = std::cell::RefCell::new(cold);
    let mut things: Vec<Thing<'_>> = vec![
        (
            "library: seal 4 KiB",
            Box::new(|call| {
                let mut tag = [0; 16];
                library
                    .seal_out_of_place_scatter(
                        nonce(call),
                        Aad::from([0; 12]),
                        &source[..],
                        &mut library_sealed[..],
                        &[],
                        &mut tag,
                    )
                    .expect("fits");
                black_box(tag);
            }),
        ),
        (
            "engine: seal + replace, warm",
            Box::new(|call| {
                let lpid = gpc.next().expect("far from the end");
                let tag = cipher.seal(lpid, &source, engine_sealed);
                let record = Some(PageRecord { lpid, tag, place: Place(1) });
                black_box(
                    for_replace.replace(space, scattered(call, PAGES), record).expect("sound"),
                );
            }),
        ),
        (
            "library: open 4 KiB",
            Box::new(|_| {
                library
                    .open_separate_gather(
                        nonce(u64::MAX),
                        Aad::from([0; 12]),
                        &library_cipher[..],
                        &library_tag,
                        &mut library_opened[..],
                    )
                    .expect("authentic");
            }),
        ),
        (
            "engine: lookup + open, warm",
            Box::new(|call| {
                let record = for_lookup.lookup(space, scattered(call, PAGES)).expect("sound");
                let Some(PageRecord { lpid, tag, .. }) = record else { return };
                cipher.open(lpid, &tag, &sealed, engine_opened).expect("authentic");
            }),
        ),
        (
            "lookup alone, next page",
            Box::new({
                let mut directory = directory();
                for vpn in 0..PAGES {
                    let record = PageRecord { lpid: Lpid(1), tag: Tag([1; 16]), place: Place(1) };
                    directory.replace(space, vpn, Some(record)).expect("sound");
                }
                move |call| {
                    black_box(directory.lookup(space, call % PAGES).expect("sound"));
                }
            }),
        ),
        (
            "lookup alone, random among 2^20 pages",
            Box::new(|call| {
                black_box(cold.borrow_mut().lookup(space, scattered(call, MANY)).expect("sound"));
            }),
        ),
        (
            "replace alone, random among 2^20 pages",
            Box::new(|call| {
                cold_writes += 1;
                let record =
                    PageRecord { lpid: Lpid(cold_writes), tag: Tag([3; 16]), place: Place(1) };
                let vpn = scattered(call, MANY);
                black_box(cold.borrow_mut().replace(space, vpn, Some(record)).expect("sound"));
            }),
        ),
    ];
    let samples = measure(&mut things);
    println!("{:<40} {:>9} {:>9} {:>9}", "ns per call", "min", "median", "max");
    for ((name, _), rate) in things.iter().zip(&samples) {
        let rate = Rate::of(rate.clone());
        println!("{name:<40} {:>9.1} {:>9.1} {:>9.1}", rate.least, rate.median, rate.most);
    }
    for (what, library, engine) in [("seal", 0, 1), ("open", 2, 3)] {
        // Ratios of neighbouring samples, so that a slow spell of the machine meets both.
        let (library, engine) = (&samples[library], &samples[engine]);
        let ratios = library.iter().zip(engine).map(|(library, engine)| library / engine);
        let Rate { least, median, most } = Rate::of(ratios.collect());
        println!(
            "{what}: engine rate / library rate: median {median:.2} (min {least:.2}, max \
             {most:.2}); target >= 0.70"
        );
    }
}
