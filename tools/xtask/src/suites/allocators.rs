//! Debian's allocators, each with everything that they offer.

use super::{Compared, Places, Program};
use anyhow::Result;
use std::path::Path;

const MODES: &[&str] =
    &["mixed", "aligned", "growing", "threads", "crossing", "forks", "trimming", "refused"];

/// A name, the library that is loaded first, what is set.
type Allocator = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const ALLOCATORS: &[Allocator] = &[
    ("glibc", "", &[]),
    (
        "glibc-no-caches",
        "",
        &[("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0")],
    ),
    (
        "glibc-one-arena",
        "",
        &[("GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.malloc.perturb=85")],
    ),
    ("glibc-checks", "libc_malloc_debug.so.0", &[("GLIBC_TUNABLES", "glibc.malloc.check=3")]),
    ("glibc-huge", "", &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")]),
    ("jemalloc", "libjemalloc.so.2", &[]),
    (
        "jemalloc-muzzy",
        "libjemalloc.so.2",
        &[("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:50")],
    ),
    ("mimalloc", "libmimalloc.so.2", &[]),
    ("tcmalloc", "libtcmalloc_minimal.so.4", &[]),
];

/// The allocators that a test has time for, with these modes.
const SHORT: &[&str] = &["glibc", "jemalloc", "tcmalloc"];
const SHORT_MODES: &[&str] = &["growing", "trimming"];

/// Each allocator in each mode.
pub fn programs(places: &Places) -> Result<Vec<Program>> {
    let program = places.compile("allocations.c", "allocations", &["-Wall"])?;
    let mut all = Vec::new();
    for (name, library, settings) in ALLOCATORS {
        let path = Path::new("/usr/lib/x86_64-linux-gnu").join(library);
        let missing = (!path.exists()).then(|| format!("{} is not installed", path.display()));
        // Set by `env`, so that the keeper's own allocator stays what it is.
        let mut words = vec!["env".to_owned()];
        words.extend(settings.iter().map(|(name, value)| format!("{name}={value}")));
        if !library.is_empty() {
            words.push(format!("LD_PRELOAD={}", path.display()));
        }
        words.push(program.display().to_string());
        all.extend(MODES.iter().map(|mode| Program {
            name: format!("{name}-{mode}"),
            words: words.iter().cloned().chain([(*mode).to_owned(), "1".to_owned()]).collect(),
            compared: Compared::Output,
            clear: None,
            is_short: SHORT.contains(name) && SHORT_MODES.contains(mode),
            refused: None,
            missing: missing.clone(),
        }));
    }
    Ok(all)
}
