//! Every trap, plain and under the pager.

mod common;

use common::{Done, Run, Scratch, poll, traps};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The Clear of the protected runs; the traps work on six times as much.
const CLEAR: &str = "8M";
const MIB: &str = "48";

/// Traps that have to begin before the pager does, with this Clear and working set, and without a
/// ballast.
const BEFORE_ARMING: &[&str] = &[
    "deadline",
    "direction-flag",
    "few-processes",
    "filter-after-growth",
    "filter-and-forks",
    "filter-and-growth",
    "filter-before-growth",
    "filter-renderer",
    "filter-threads",
    "filter-while-asleep",
    "freed-and-closed-before-arming",
    "freed-before-arming",
    "gives-back-terabytes",
    "limit-raised-by-child",
    "little-address-space",
    "little-data",
    "locks-future-early",
    "no-descriptors",
    "nothing-locked",
    "older-dev-zero",
    "older-dev-zero-busy",
    "older-dev-zero-pinned",
    "older-dev-zero-shared",
    "older-static-data",
    "own-uffd-events",
    "own-uffd-first",
    "reserves-terabytes",
    "small-files",
    "strict-mode",
    "strict-mode-late",
    "takes-all-places",
    "threads-end-while-armed",
    "transfers-whole",
    "undumpable-early",
    "unlocked-then-locked",
    "user-dispatch",
    "user-dispatch-inclusive",
    "waits-uninterrupted",
];
const LATE_CLEAR: &str = "40M";
const LATE_MIB: &str = "160";

fn run(name: &str, scratch: &Scratch) -> Run {
    let traps = traps();
    // A soak goes round with other seeds.
    let seed = std::env::var_os("CASEMATE_SEED").unwrap_or_else(|| "1".into());
    let words = [
        traps.as_os_str(),
        name.as_ref(),
        "--seed".as_ref(),
        &seed,
        "--mib".as_ref(),
        if BEFORE_ARMING.contains(&name) { LATE_MIB } else { MIB }.as_ref(),
        "--file".as_ref(),
        scratch.path().as_os_str(),
    ];
    Run::plain(words).directory(scratch.path())
}

/// Does the trap say that this machine has not what it tries? Then so does the test.
fn skipped(name: &str, done: &Done) -> bool {
    let why = done.stderr.lines().find_map(|line| line.strip_prefix("skipped: "));
    why.inspect(|why| common::skip(name, why)).is_some()
}

/// `daemonize` leaves its verdict in a file, perhaps after its first process has ended.
fn check_daemon(name: &str, scratch: &Scratch) {
    if name != "daemonize" {
        return;
    }
    let file = scratch.join("daemon");
    let text = poll("the daemon's verdict", Duration::from_secs(60), || {
        std::fs::read_to_string(&file).ok()
    });
    assert_eq!(text, "ok daemon\n");
    std::fs::remove_file(&file).expect("the verdict can be removed");
}

/// What a trap did plain. It runs once for both of its tests; the second waits for it.
fn plain(name: &str) -> &'static Done {
    static RUNS: Mutex<BTreeMap<String, &'static OnceLock<Done>>> = Mutex::new(BTreeMap::new());
    let run: &OnceLock<Done> = {
        let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        runs.entry(name.to_owned()).or_insert_with(|| Box::leak(Box::default()))
    };
    run.get_or_init(|| run_plain(name, &Scratch::new(name)))
}

fn run_plain(name: &str, scratch: &Scratch) -> Done {
    let done = run(name, scratch).start().finish_and(|| check_daemon(name, scratch));
    done.good(name);
    assert!(String::from_utf8_lossy(&done.stdout).ends_with(&format!("ok {name}\n")));
    done
}

/// Traps whose program the keeper refuses to run unprotected, with code 123 and a sentence that
/// names what is in the way (SPEC.md, section 12), unless it has CAP_SYS_RESOURCE, without which
/// the kernel raises no hard limit.
const REFUSED: &[(&str, &str)] = &[
    ("deadline", "the kernel lets a process with a deadline begin no other"),
    ("exec-stalls", "the kernel refuses to trace a process while it executes"),
    (
        "few-descriptors",
        "a child's agent holds five descriptors, under the limit that it was born with",
    ),
    ("few-processes", "an agent is a process of the program's user, and clone(2) counts it"),
    ("little-address-space", "what an agent maps counts towards the address space that it shares"),
    (
        "little-address-space-in-a-child",
        "what an agent maps counts towards the address space that it shares",
    ),
    (
        "own-uffd-events",
        "who changes such memory waits for the reader, whose faults wait for the change",
    ),
    ("no-descriptors", "an agent holds five descriptors, under the limit that it was born with"),
    (
        "pid-namespace",
        "an agent is known by its number in the keeper's namespace, and becomes a child of the other's init",
    ),
    ("traced-while-growing", "an agent is made by a tracer, and a thread can have one only"),
    ("takes-all-places", "calls of agents pass unannounced from certain addresses only"),
];

/// Traps that fail under the pager still (SPEC.md, section 12).
const NOT_MENDED: &[(&str, &str)] =
    &[("subreaper", "a subreaper that waits for any child is told of agents that ended")];

/// Traps that meet a limit of the kernel: `/proc/PID/mem` and `PTRACE_PEEKDATA` do not wait for a
/// userfaultfd and fail with EIO on pages that are out (SPEC.md, what is not covered). To hold a
/// process by a debugger at the wrong moments ends the run.
const MEET_EIO: &[&str] = &["proc-mem", "debugger", "attached-while-growing"];

/// Traps that may have done their work before the Clear runs short; `--mib` is as for the others.
const MAY_END_FIRST: &[&str] = &[
    "alternating-protections",
    "atomics",
    "bss",
    "bss-filled",
    "dontfork",
    "exec-chain",
    "exec-from-thread",
    "exec-stalls",
    "leader-exits",
    "reuse-moved",
    "reuse-unmapped",
    "thread-stacks",
];

/// This trap prints its arguments, which name its scratch folder: both of its runs have the same.
const PRINTS_ITS_FOLDER: &str = "introspect";

fn protected(name: &str) {
    let scratch = Scratch::new(name);
    let own;
    let plain = if name == PRINTS_ITS_FOLDER {
        own = run_plain(name, &scratch);
        &own
    } else {
        plain(name)
    };
    if skipped(name, plain) {
        return;
    }
    if let Some((_, why)) = NOT_MENDED.iter().find(|(other, _)| *other == name) {
        return common::skip(name, why);
    }
    let late = BEFORE_ARMING.contains(&name);
    let flags = ["--clear", if late { LATE_CLEAR } else { CLEAR }];
    let protected = run(name, &scratch).protected(&flags, scratch.path());
    let done = if late { protected.without_ballast() } else { protected }
        .start()
        .finish_and(|| check_daemon(name, &scratch));
    if let Some((_, why)) = REFUSED.iter().find(|(other, _)| *other == name)
        && done.code != 0
    {
        done.ended_with(123, &format!("{name} ({why})"));
        assert!(done.stderr.contains("cannot be protected"), "{name}: {}", done.stderr);
        return;
    }
    if MEET_EIO.contains(&name) && done.code != 0 {
        let text = &done.stderr;
        assert!(
            text.contains("Input/output error") || text.contains("traced by process"),
            "{name}: {text}"
        );
        return;
    }
    done.good(name);
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&plain.stdout),
        "{name}: standard output under the pager (left) and plain (right)"
    );
    if !MAY_END_FIRST.contains(&name) {
        done.really_paged(name);
    }
    if !late {
        let unheard = done.statistics(name).number("processes_unannounced");
        assert_eq!(unheard, 0, "{name}: processes whose calls are not announced");
    }
    if name == "own-uffd" {
        let refused = done.statistics(name).number("userfaults_refused");
        assert_eq!(refused, 1, "what the kernel refused is not told: {}", done.stderr);
    }
}

macro_rules! traps {
    ($($name:ident)*) => {
        mod plain {
            $(#[test]
            fn $name() {
                let name = stringify!($name).replace('_', "-");
                super::skipped(&name, super::plain(&name));
            })*
        }

        mod protected {
            $(#[test]
            fn $name() {
                super::protected(&stringify!($name).replace('_', "-"));
            })*
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

traps! {
    alternating_protections
    atomics
    attached_while_growing
    barrier_sweep
    blocked_signals
    brk
    bss
    bursts
    children_end_at_once
    children_grow
    grows_beside_many
    grows_with_odd_name
    children_grow_together
    children_grow_without_leader
    children_read
    children_write
    close_all
    compat_calls
    daemonize
    deadline
    dead_owner
    debugger
    deep_tree
    dev_zero
    die_in_fault
    dontfork
    dontfork_after_fork
    dontfork_beside_fork
    dontneed
    dontunmap_keeps_advice
    drop_privileges
    droppable
    bss_executed
    bss_filled
    exec_chain
    exec_from_thread
    exec_stalls
    few_descriptors
    few_processes
    file_over_tracked
    file_private
    filter_after_growth
    filter_and_forks
    filter_and_growth
    filter_before_growth
    filter_renderer
    filter_threads
    filter_while_asleep
    fork
    fork_chain
    fork_server
    forks_under_a_fast_timer
    forks_under_a_timer
    fork_with_threads
    forked_threads
    free_across_file
    free_again
    freed_and_closed_before_arming
    freed_before_arming
    freed_before_file
    freed_in_child
    futex_storm
    futex_stores
    futexes
    gives_back_terabytes
    grows_without_leader
    growsdown
    guard_install
    guard_pages
    guards_forked
    guards_read_ahead
    grows_in_steps
    halves
    hints
    huge_pages
    interleaved
    introspect
    jit
    kernel_writes
    ksm_advice
    ksm_process
    leader_exits
    limit_raised_by_child
    little_address_space
    little_address_space_in_a_child
    little_data
    lock_future
    madv_free
    main_stack
    many_children
    many_raw_threads_end
    many_small
    map_fixed
    map_fixed_file
    map_fixed_refused
    map_fixed_refused_in_child
    map_populate
    marked_while_forking
    mlock
    mlock_much
    locked_beside_unlocked
    locked_grows
    locked_in_turns
    locked_often
    locked_map_limited
    locked_read_only
    locked_to_the_limit
    locks_future_early
    unlocked_all_then_read_only
    unlocked_then_locked
    unlocks_all_the_time
    mlockall
    moves_while_armed
    mlockall_limited
    mprotect_none
    mprotect_ro
    mremap_dontunmap
    mremap_dontunmap_busy
    mremap_fixed
    mremap_grow
    mremap_inherited
    mremap_merged
    mremap_move
    mremap_refused
    mremap_several
    mremap_shrink
    munmap_reuse
    named_mappings
    no_descriptors
    nothing_locked
    o_direct
    older_dev_zero
    older_dev_zero_busy
    older_dev_zero_pinned
    older_dev_zero_shared
    older_static_data
    static_data
    static_data_advised
    static_data_busy
    static_data_cut_short
    static_data_direct
    orphans_grow
    owner_beside_shared_ends
    owner_of_many_ends
    owners_process_ends
    owners_process_executes
    own_seccomp
    own_uffd
    own_uffd_clone3
    own_uffd_events
    own_uffd_first
    own_uffd_futex
    own_uffd_on_old_memory
    pid_namespace
    pinned_copies
    pinned_without_rights
    pins_come_and_go
    pinned_nearly_all
    pipes
    populate
    posix_spawn
    proc_cmdline
    proc_mem
    process_madvise_free
    process_madvise_guards
    process_madvise_wipeonfork
    random_maps
    random_maps_in_threads
    raw_threads_end
    raw_mmap
    read_at_once
    read_implies_exec
    read_only_beside_protecting
    read_only_beside_unlocking
    read_only_forks
    realloc
    reserves_terabytes
    reuse_moved
    reuse_unmapped
    rlimit_as
    rseq_area
    sealed_read_only
    shared_anonymous
    shared_without_room
    shared_vm
    shared_vm_grows
    shared_vm_maps
    shared_vm_ends
    sharers_outlive
    vfork_outlives
    sharer_without_leader
    sharers_end_in_turn
    sharer_born_before
    shm_remap
    short_lived_threads
    signal_storm
    signals_in_calls
    small_files
    sockets
    split_mappings
    stack_guard
    stop_continue
    stopped_young
    strict_mode
    strict_mode_late
    strangers_mappings
    adopts_before
    subreaper
    takes_all_places
    thousand_maps
    thread_stacks
    threads_end_beside_forks
    threads_end_while_armed
    time_left
    traced_while_growing
    transfers_whole
    two_fork_flags
    undumpable
    undumpable_early
    uring_buffers
    uring_dontneed
    uring_fixed
    user_dispatch
    user_dispatch_inclusive
    direction_flag
    vectored
    vfork
    vfork_grows
    vfork_grows_in_a_child
    vfork_long
    vfork_maps
    vm_readv
    vmsplice
    waits_uninterrupted
    wiped_chain
    wipeonfork
    wipeonfork_after_fork
    wipeonfork_beside_fork
    wipeonfork_remapped
    write_barrier
    write_only
    zero_pages_written
}

#[test]
fn every_trap_has_its_tests() {
    let list = Run::plain([traps().as_os_str(), "list".as_ref()]).finish();
    list.good("list");
    let known = String::from_utf8(list.stdout).expect("names are text");
    let known: Vec<String> = known.lines().map(|name| name.replace('-', "_")).collect();
    assert_eq!(known, NAMES);
}

#[test]
fn a_trap_that_does_not_exist_is_an_error() {
    let scratch = Scratch::new("unknown");
    run("no-such-trap", &scratch).finish().ended_with(2, "an unknown trap");
}
