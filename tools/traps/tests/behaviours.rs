//! What processes do to their memory, as CRIU's tests (zdtm) and LTP's (`mm`, `fork`) list it, and
//! the traps that try it.

mod common;

use common::{Run, traps};
use std::collections::BTreeSet;

/// A behaviour, and what tries it. The lists were read; no test was copied.
const TRIED: &[(&str, &[&str])] = &[
    (
        "private mappings of all kinds, at fixed places, by the thousand",
        &["raw-mmap", "map-fixed", "thousand-maps", "split-mappings", "read-at-once"],
    ),
    (
        "mappings made, moved and given back at random (zdtm maps007, LTP mmapstress)",
        &["random-maps", "random-maps-in-threads"],
    ),
    (
        "private mappings of files, before and after fork",
        &["file-private", "file-over-tracked", "map-fixed-file", "map-fixed-refused-in-child"],
    ),
    ("shared memory, anonymous and System V", &["shared-anonymous", "shm-remap"]),
    ("/dev/zero, droppable memory", &["dev-zero", "droppable"]),
    ("the heap by brk, .bss, the main stack", &["brk", "bss", "main-stack"]),
    (
        "MAP_GROWSDOWN, stack guards, guard pages",
        &["growsdown", "stack-guard", "guard-pages", "guard-install", "guards-forked"],
    ),
    ("MAP_POPULATE, MADV_POPULATE", &["map-populate", "populate"]),
    (
        "madvise: what drops, hints, merging, huge pages",
        &[
            "dontneed",
            "madv-free",
            "free-again",
            "free-across-file",
            "freed-and-closed-before-arming",
            "freed-before-arming",
            "freed-before-file",
            "freed-in-child",
            "hints",
            "ksm-advice",
            "ksm-process",
            "huge-pages",
        ],
    ),
    (
        "madvise: what children get",
        &[
            "dontfork",
            "wipeonfork",
            "dontfork-beside-fork",
            "wipeonfork-after-fork",
            "dontunmap-keeps-advice",
        ],
    ),
    (
        "process_madvise",
        &["process-madvise-free", "process-madvise-guards", "process-madvise-wipeonfork"],
    ),
    (
        "mprotect in all directions, write only, code that is generated",
        &[
            "mprotect-ro",
            "mprotect-none",
            "write-only",
            "jit",
            "write-barrier",
            "alternating-protections",
        ],
    ),
    (
        "mremap: grow, shrink, move, several, DONTUNMAP",
        &[
            "mremap-grow",
            "mremap-shrink",
            "mremap-move",
            "mremap-fixed",
            "mremap-refused",
            "mremap-several",
            "mremap-inherited",
            "mremap-merged",
            "mremap-dontunmap",
            "mremap-dontunmap-busy",
        ],
    ),
    ("mseal", &["sealed-read-only"]),
    (
        "mlock, mlock2, mlockall, limits on them",
        &[
            "mlock",
            "mlock-much",
            "mlockall",
            "lock-future",
            "locked-beside-unlocked",
            "locked-grows",
            "locked-in-turns",
            "locked-often",
            "unlocked-all-then-read-only",
            "read-only-beside-protecting",
            "read-only-beside-unlocking",
            "unlocks-all-the-time",
            "locked-map-limited",
            "locked-read-only",
            "locks-future-early",
            "unlocked-then-locked",
            "nothing-locked",
            "mlockall-limited",
        ],
    ),
    (
        "munmap and use again, by threads too",
        &["munmap-reuse", "reuse-unmapped", "reuse-moved", "realloc"],
    ),
    (
        "all of the address space reserved, mapped, given back",
        &["gives-back-terabytes", "reserves-terabytes", "strangers-mappings", "takes-all-places"],
    ),
    (
        "fork: copies on write, trees, servers, threads (zdtm cow00, cow01, LTP fork)",
        &[
            "fork",
            "shared-without-room",
            "deep-tree",
            "fork-chain",
            "wiped-chain",
            "many-children",
            "children-end-at-once",
            "many-small",
            "children-grow",
            "grows-beside-many",
            "grows-with-odd-name",
            "children-grow-together",
            "children-read",
            "children-write",
            "fork-server",
            "fork-with-threads",
            "forked-threads",
            "read-only-forks",
            "marked-while-forking",
            "forks-under-a-fast-timer",
            "forks-under-a-timer",
        ],
    ),
    (
        "vfork, posix_spawn, clone with shared memory",
        &[
            "vfork",
            "vfork-long",
            "vfork-maps",
            "posix-spawn",
            "shared-vm",
            "shared-vm-maps",
            "shared-vm-grows",
            "vfork-grows",
            "vfork-grows-in-a-child",
            "sharers-outlive",
            "vfork-outlives",
            "sharer-without-leader",
            "sharers-end-in-turn",
            "sharer-born-before",
        ],
    ),
    (
        "exec, from a thread, in a chain, that stalls",
        &["exec-chain", "exec-from-thread", "exec-stalls", "bss-executed", "bss-filled"],
    ),
    (
        "threads that come, end, and are many; the leader first",
        &[
            "short-lived-threads",
            "thread-stacks",
            "interleaved",
            "leader-exits",
            "children-grow-without-leader",
            "halves",
            "threads-end-beside-forks",
            "threads-end-while-armed",
        ],
    ),
    (
        "futexes, robust ones too",
        &[
            "futexes",
            "futex-stores",
            "futex-storm",
            "atomics",
            "dead-owner",
            "owners-process-ends",
            "owners-process-executes",
            "owner-of-many-ends",
            "owner-beside-shared-ends",
            "raw-threads-end",
            "many-raw-threads-end",
            "shared-vm-ends",
        ],
    ),
    ("restartable sequences", &["rseq-area"]),
    (
        "timers and signals, on stacks that are out, in calls",
        &[
            "signal-storm",
            "stopped-young",
            "signals-in-calls",
            "blocked-signals",
            "waits-uninterrupted",
            "time-left",
        ],
    ),
    (
        "system calls whose results and arguments are out",
        &["kernel-writes", "vectored", "pipes", "sockets", "transfers-whole"],
    ),
    ("vmsplice", &["vmsplice"]),
    (
        "O_DIRECT, io_uring with and without registered buffers",
        &[
            "o-direct",
            "uring-fixed",
            "uring-buffers",
            "uring-dontneed",
            "pinned-without-rights",
            "pins-come-and-go",
            "pinned-nearly-all",
        ],
    ),
    (
        "process_vm_readv, /proc/PID/mem, a debugger",
        &["vm-readv", "pinned-copies", "proc-mem", "debugger", "attached-while-growing"],
    ),
    (
        "what a process sees of itself; names of mappings",
        &["introspect", "proc-cmdline", "named-mappings"],
    ),
    (
        "userfaultfd of its own",
        &[
            "own-uffd",
            "own-uffd-clone3",
            "own-uffd-events",
            "own-uffd-first",
            "own-uffd-futex",
            "own-uffd-on-old-memory",
        ],
    ),
    (
        "seccomp filters of its own, the strict mode",
        &["own-seccomp", "filter-after-growth", "filter-while-asleep", "strict-mode"],
    ),
    ("personality", &["read-implies-exec"]),
    (
        "Syscall User Dispatch, the processor's flags",
        &["user-dispatch", "user-dispatch-inclusive", "direction-flag"],
    ),
    (
        "limits",
        &[
            "rlimit-as",
            "little-data",
            "few-processes",
            "deadline",
            "few-descriptors",
            "no-descriptors",
            "small-files",
        ],
    ),
    (
        "daemons, subreapers, job control, other users",
        &[
            "daemonize",
            "orphans-grow",
            "adopts-before",
            "subreaper",
            "stop-continue",
            "drop-privileges",
            "undumpable",
            "undumpable-early",
            "close-all",
        ],
    ),
];

/// What no trap tries, and why.
const NOT_TRIED: &[(&str, &str)] = &[
    (
        "protection keys, five-level page tables",
        "the machines that run the tests have neither; the keeper knows keys (SPEC.md, section 6)",
    ),
    ("prctl(PR_SET_MM)", "needs CAP_SYS_RESOURCE"),
    ("soft-dirty bits, /proc/PID/clear_refs", "pages that are out bear none (SPEC.md, section 12)"),
    (
        "cgroups, sessions and terminals, namespaces, file locks, sockets of all families",
        "they touch no memory but by calls whose buffers others try; stress-ng's stressors run them (cargo xtask suites)",
    ),
    ("core files", "they hold what the Clear holds (SPEC.md, section 3)"),
];

#[test]
fn every_behaviour_has_a_trap_that_exists() {
    let list = Run::plain([traps().as_os_str(), "list".as_ref()]).finish();
    list.good("list");
    let known = String::from_utf8(list.stdout).expect("names are text");
    let known: BTreeSet<&str> = known.lines().collect();
    for (behaviour, names) in TRIED {
        assert!(!names.is_empty(), "nothing tries this: {behaviour}");
        for name in *names {
            assert!(known.contains(name), "{behaviour}: there is no trap {name}");
        }
    }
    assert!(NOT_TRIED.iter().all(|(_, why)| !why.is_empty()));
}
