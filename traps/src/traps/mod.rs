//! The traps, by family, and the table of their names.

mod advice;
mod direct;
mod dying;
mod exec;
mod files;
mod fork;
mod fork_flags;
mod guards;
mod introspect;
mod lock;
mod maps;
mod odd;
mod own_uffd;
mod places;
mod protect;
mod remap;
mod signals;
mod spawn;
mod syscalls;
mod threads;
mod unmap;
mod vmrw;

use crate::support::{Options, Verdict};

/// A self-checking program.
pub type Trap = fn(&Options) -> Verdict;

/// Every trap, by the name that the command line knows.
pub const ALL: &[(&str, Trap)] = &[
    ("alternating-protections", maps::alternating),
    ("atomics", threads::atomics),
    ("blocked-signals", odd::blocked_signals),
    ("brk", places::brk),
    ("bss", places::bss),
    ("close-all", odd::close_all),
    ("daemonize", dying::daemonize),
    ("debugger", vmrw::debugger),
    ("deep-tree", fork::deep_tree),
    ("die-in-fault", dying::die_in_fault),
    ("dontfork", advice::dontfork),
    ("dontfork-after-fork", fork_flags::dontfork_after_fork),
    ("dontfork-beside-fork", fork_flags::dontfork_beside_fork),
    ("dontneed", unmap::dontneed),
    ("drop-privileges", odd::drop_privileges),
    ("exec-chain", exec::exec_chain),
    ("exec-from-thread", exec::exec_from_thread),
    ("few-descriptors", odd::few_descriptors),
    ("file-private", advice::file_private),
    ("fork", fork::fork),
    ("fork-server", fork::fork_server),
    ("fork-with-threads", fork::fork_with_threads),
    ("futexes", syscalls::futexes),
    ("growsdown", unmap::growsdown),
    ("guard-install", guards::guard_install),
    ("guard-pages", protect::guard_pages),
    ("guards-forked", guards::guards_forked),
    ("guards-read-ahead", guards::guards_read_ahead),
    ("halves", threads::halves),
    ("hints", advice::hints),
    ("huge-pages", advice::huge_pages),
    ("interleaved", threads::interleaved),
    ("introspect", introspect::introspect),
    ("jit", protect::jit),
    ("leader-exits", odd::leader_exits),
    ("madv-free", unmap::madv_free),
    ("main-stack", places::main_stack),
    ("many-children", fork::many_children),
    ("map-fixed", unmap::map_fixed),
    ("marked-while-forking", fork_flags::marked_while_forking),
    ("mlock", lock::mlock),
    ("mlockall", lock::mlockall),
    ("mprotect-none", protect::mprotect_none),
    ("mprotect-ro", protect::mprotect_ro),
    ("mremap-dontunmap", remap::mremap_dontunmap),
    ("mremap-fixed", remap::mremap_fixed),
    ("mremap-grow", remap::mremap_grow),
    ("mremap-move", remap::mremap_move),
    ("mremap-shrink", remap::mremap_shrink),
    ("munmap-reuse", unmap::munmap_reuse),
    ("o-direct", direct::o_direct),
    ("own-seccomp", odd::own_seccomp),
    ("own-uffd", own_uffd::own_uffd),
    ("pipes", syscalls::pipes),
    ("populate", advice::populate),
    ("posix-spawn", spawn::posix_spawn),
    ("proc-mem", vmrw::proc_mem),
    ("raw-mmap", places::raw_mmap),
    ("realloc", unmap::realloc),
    ("reuse-moved", threads::reuse_moved),
    ("reuse-unmapped", threads::reuse_unmapped),
    ("rlimit-as", advice::rlimit_as),
    ("shared-anonymous", advice::shared_anonymous),
    ("shared-vm", odd::shared_vm),
    ("short-lived-threads", threads::short_lived),
    ("signal-storm", signals::signal_storm),
    ("signals-in-calls", signals::signals_in_calls),
    ("sockets", syscalls::sockets),
    ("stack-guard", protect::stack_guard),
    ("stop-continue", dying::stop_continue),
    ("thousand-maps", maps::thousand_maps),
    ("thread-stacks", places::thread_stacks),
    ("undumpable", odd::undumpable),
    ("uring-fixed", direct::uring_fixed),
    ("vectored", syscalls::vectored),
    ("vfork", spawn::vfork),
    ("vfork-long", spawn::vfork_long),
    ("vm-readv", vmrw::vm_readv),
    ("vmsplice", syscalls::vmsplice),
    ("wipeonfork", advice::wipeonfork),
    ("wipeonfork-after-fork", fork_flags::wipeonfork_after_fork),
    ("wipeonfork-beside-fork", fork_flags::wipeonfork_beside_fork),
    ("write-barrier", protect::write_barrier),
];
