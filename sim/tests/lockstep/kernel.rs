//! A C program that lets the kernel write wherever it can, under QEMU.

use crate::common::tracers::{Program, there};
use crate::made_up::config;
use casemate_schemes::catalogue::by_name;
use casemate_sim::lockstep::{Compared, Lockstep, LockstepConfig, LockstepError};
use casemate_sim::trace::live::{Live, Options, Which};
use casemate_sim::trace::{Extent, Instruction, Source};

/// Every buffer is filled by the program, then by the kernel, then read. Many of them lie at the
/// same places.
const KERNEL: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <dirent.h>
#include <time.h>
#include <unistd.h>

static unsigned char buffer[1 << 13];
static volatile unsigned long sum;
static volatile int signals;

static void fill(void) { for (size_t i = 0; i < sizeof buffer; i++) buffer[i] = (unsigned char)(i * 7 + sum); }
static void add(const void *from, size_t bytes)
{
    const volatile unsigned char *at = from;
    for (size_t i = 0; i < bytes; i++) sum += at[i];
}
/* What the kernel did not write must be as it was, and is read as well. */
static void look(void) { add(buffer, 4096); }
static void on_signal(int number) { signals += number; }

static void files(const char *own)
{
    int file = open(own, O_RDONLY);
    struct iovec parts[3] = {{buffer + 5, 100}, {buffer + 1000, 1}, {buffer + 2000, 1500}};
    fill(); if (read(file, buffer + 3, 2000) < 1) abort(); look();
    fill(); if (pread(file, buffer + 64, 100, 5) < 1) abort(); look();
    fill(); if (readv(file, parts, 3) < 1) abort(); look();
    fill(); if (preadv(file, parts, 2, 77) < 1) abort(); look();
    fill(); if (fstat(file, (void *)(buffer + 8)) || stat(own, (void *)(buffer + 1000))) abort(); look();
    fill(); if (statx(AT_FDCWD, own, 0, STATX_ALL, (void *)(buffer + 16))) abort(); look();
    fill(); if (fstatfs(file, (void *)(buffer + 24))) abort(); look();
    close(file);
    fill(); if (readlink("/proc/self/exe", (char *)buffer + 1, 500) < 1) abort(); look();
    fill(); if (getcwd((char *)buffer + 1, 1000) == NULL) abort(); look();
    DIR *folder = opendir("/");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) add(entry->d_name, strlen(entry->d_name));
    closedir(folder);
}

static void calls(void)
{
    int pipes[2], pair[2], status;
    fill(); if (getrandom(buffer + 9, 300, 0) != 300) abort(); look();
    fill(); if (uname((void *)(buffer + 1))) abort(); look();
    fill(); if (sysinfo((void *)(buffer + 8))) abort(); look();
    fill(); if (getrusage(RUSAGE_SELF, (void *)(buffer + 8))) abort(); look();
    fill(); if (getrlimit(RLIMIT_STACK, (void *)(buffer + 8))) abort(); look();
    fill(); if (clock_gettime(CLOCK_REALTIME, (void *)(buffer + 8))) abort(); look();
    fill(); times((void *)(buffer + 8)); look();
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
    fill(); if (write(pipes[1], "0123456789", 10) != 10 || ioctl(pipes[0], 0x541b, buffer + 4)) abort(); look();
    struct pollfd polled = {pipes[0], POLLIN, 0};
    if (poll(&polled, 1, 0) != 1) abort();
    add(&polled, sizeof polled);
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u64 = 42}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
    fill(); if (epoll_wait(epoll, (void *)buffer, 5, 0) != 1) abort(); look();
    fill(); if (read(pipes[0], buffer + 60, 10) != 10) abort(); look();
    struct iovec part = {buffer + 70, 50};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    fill(); if (send(pair[0], "hello there", 11, 0) != 11 || recvmsg(pair[1], &message, 0) != 11) abort(); look();
    add(&message, sizeof message);
    socklen_t length = 4;
    fill(); if (getsockopt(pair[0], SOL_SOCKET, SO_TYPE, buffer + 12, &length)) abort(); look(); add(&length, 4);
    fill();
    pid_t child = fork();
    if (child == 0) _exit(3);
    if (wait4(child, (int *)(buffer + 4), 0, (void *)(buffer + 80)) != child) abort();
    look();
    memcpy(&status, buffer + 4, 4);
    if (WEXITSTATUS(status) != 3) abort();
}

static void mappings(void)
{
    for (int i = 0; i < 20; i++) {
        size_t bytes = 4096 * (1 + i % 5);
        unsigned char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        add(at, 300);
        memset(at, i + 1, bytes);
        if (i % 3 == 0) { madvise(at, bytes, MADV_DONTNEED); add(at, bytes); }
        if (i % 3 == 1) { at = mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE); bytes *= 2; add(at, bytes); }
        munmap(at, bytes);
    }
    for (int i = 0; i < 10; i++) {
        unsigned char *at = sbrk(10000);
        add(at, 10000);
        memset(at, 0x77, 10000);
        sbrk(-9000);
        at = sbrk(9000);
        add(at - 500, 9000);
        sbrk(-10000);
    }
}

/* The stack below the caller: only the first call and the kernel have written to what the second
   one uses of it. */
__attribute__((noinline)) static void write_below(void)
{
    volatile unsigned char below[16000];
    for (size_t i = 0; i < sizeof below; i++) below[i] = (unsigned char)i;
}
__attribute__((noinline)) static void read_below(void)
{
    volatile unsigned char below[16000];
    for (size_t i = 0; i < sizeof below; i++) sum += below[i];
}

static void delivered(void)
{
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigset_t set;
    signals = 0;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, &action, &old);
    add(&old, sizeof old);
    for (int i = 0; i < 5; i++) {
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        sigprocmask(SIG_BLOCK, &set, &set);
        add(&set, 8);
        write_below();
        raise(SIGUSR1);
        read_below();
    }
    if (signals != 5 * SIGUSR1) abort();
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    for (int i = 0; i < rounds; i++) { files(arguments[0]); calls(); mappings(); delivered(); }
    printf("%lu\n", sum);
    return 0;
}
"#;

/// Runs until so many loads were compared. What was compared, and the extents that everything was.
fn run(
    scheme: &str,
    options: &Options,
    loads: u64,
    change: impl Fn(&mut Instruction),
) -> Result<Compared, LockstepError> {
    let named = by_name(scheme).expect("it has this name");
    let config = LockstepConfig { frames: 4096, ..config() };
    let mut machine = Lockstep::new(&named.scheme, &config)?;
    let mut live = Live::start(options).expect("the program starts");
    let mut record = Instruction::default();
    while machine.compared().loads < loads && live.next(&mut record).expect("it is recorded") {
        change(&mut record);
        machine.step(&record)?;
    }
    machine.check()?;
    Ok(*machine.compared())
}

fn options(program: &Program) -> Options {
    let mut command = vec![program.0.clone().into_os_string()];
    command.push("2".into());
    Options { command, skip: 0, length: None, values: true, with: Some(Which::Qemu) }
}

#[test]
fn a_program_finds_what_it_and_the_kernel_wrote() {
    if !there(Which::Qemu) {
        return;
    }
    let program = Program::new("kernel", KERNEL);
    for scheme in ["none", "aise+bmt", "lhash", "otp-lru", "delta+ecc"] {
        let compared = run(scheme, &options(&program), u64::MAX, |_| {});
        let compared = compared.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert!(compared.loads > 1_000_000, "{scheme}: {compared:?}");
        assert!(compared.kernel_extents > 150 && compared.unknown_loads == 0, "{compared:?}");
        // Ten signals; nothing else calls the handler.
        assert_eq!(compared.forgotten_all, 10, "{scheme}");
        assert!(compared.adopted_bytes < compared.bytes / 5, "{scheme}: {compared:?}");
    }
}

#[test]
fn without_what_the_kernel_wrote_the_same_program_differs() {
    if !there(Which::Qemu) {
        return;
    }
    let program = Program::new("silent-kernel", KERNEL);
    let silent = run("none", &options(&program), u64::MAX, |record| record.changed.clear());
    assert!(matches!(silent, Err(LockstepError::Mismatch { .. })), "{silent:?}");
    // The frames of signals alone are noticed, too.
    let no_signals = run("none", &options(&program), u64::MAX, |record| {
        record.changed.retain(|extent| *extent != Extent::EVERYTHING);
    });
    assert!(matches!(no_signals, Err(LockstepError::Mismatch { .. })), "{no_signals:?}");
}
