// The main thread waits in the call named by argv[1]; another thread computes; a third waits for a
// line on stdin and then ends the wait. The keeper may have stopped it meanwhile; the call must
// return as documented, and the program must look to itself as it did before.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *name;
static int pipes[2], pair[2], word, sem, queue;
static pthread_t main_thread;
static volatile int stop, handled;
static volatile uint64_t sum;

// More than a pipe holds.
#define LONG (1 << 20)
static char source[LONG], sink[LONG];

#define is(s) (strcmp(name, s) == 0)
#define want(x) do { if (!(x)) { printf("FAILED %s line %d: %s (errno %d)\n", name, __LINE__, #x, errno); exit(1); } } while (0)

static void handler(int s) { (void)s; handled++; }

// A restarted wait finds the word changed already if the wake-up came in between, as after any
// stop.
static int woken(long r) { return r == 0 || (r == -1 && errno == EAGAIN && word == 1); }

static void *compute(void *p) {
    (void)p;
    uint64_t x = 1; double d = 1;
    while (!stop) {
        x = 1; d = 1;
        for (int i = 0; i < 100000; i++) { x = x * 6364136223846793005ull + 1442695040888963407ull; d = d * 1.0000001 + 0.1; }
        if (sum == 0) sum = x ^ (uint64_t)d;
        want(sum == (x ^ (uint64_t)d));
    }
    return 0;
}

static void *wake(void *p) {
    (void)p;
    char line[8];
    want(fgets(line, sizeof line, stdin));
    if (is("pause") || is("sigsuspend") || is("ppoll-signal") || is("epoll_wait-signal")) pthread_kill(main_thread, SIGUSR1);
    else if (is("sigtimedwait")) pthread_kill(main_thread, SIGUSR2);
    else if (is("futex") || is("futex-timed")) { word = 1; syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0); }
    else if (is("semop")) { struct sembuf b = {0, 1, 0}; want(semop(sem, &b, 1) == 0); }
    else if (is("msgrcv")) { struct { long t; char c[8]; } m = {1, "x"}; want(msgsnd(queue, &m, 8, 0) == 0); }
    else if (is("writev")) for (ssize_t n, all = 0; all < LONG; all += n) want((n = read(pipes[0], sink, LONG)) > 0);
    else if (is("recv")) want(write(pair[1], "x", 1) == 1);
    else want(write(pipes[1], "x", 1) == 1);
    return 0;
}

static int count(const char *dir) {
    int n = 0; DIR *d = opendir(dir); want(d);
    while (readdir(d)) n++;
    closedir(d); return n;
}

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

int main(int argc, char **argv) {
    want(argc == 2);
    name = argv[1];
    main_thread = pthread_self();
    want(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct sigaction sa = {.sa_handler = handler};
    sigaction(SIGUSR1, &sa, 0);
    sigset_t blocked, none, before, after; sigemptyset(&blocked); sigemptyset(&none);
    sigaddset(&blocked, SIGUSR2);
    if (!is("pause") && !is("epoll_wait-signal")) sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, 0);
    sem = semget(IPC_PRIVATE, 1, 0600); queue = msgget(IPC_PRIVATE, 0600);
    pthread_t a, b;
    pthread_create(&a, 0, compute, 0); pthread_create(&b, 0, wake, 0);
    int ep = epoll_create1(0); struct epoll_event ev = {.events = EPOLLIN};
    epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &ev);
    sigprocmask(0, 0, &before);
    int fds = count("/proc/self/fd"), threads = count("/proc/self/task");
    struct pollfd pf = {.fd = pipes[0], .events = POLLIN};
    struct timespec minute = {60, 0};
    char c[64];
    printf("ready\n"); fflush(stdout);
    double start = now();
    if (is("nanosleep")) { struct timespec t = {1, 0}; want(nanosleep(&t, 0) == 0); double d = now() - start; want(d >= 1 && d < 60); }
    else if (is("epoll_wait")) want(epoll_wait(ep, &ev, 1, -1) == 1);
    else if (is("epoll_wait-signal")) want(epoll_wait(ep, &ev, 1, -1) == -1 && errno == EINTR && handled == 1);
    else if (is("epoll_pwait")) want(epoll_pwait(ep, &ev, 1, 60000, &none) == 1 && handled == 0);
    else if (is("read")) want(read(pipes[0], c, 1) == 1);
    else if (is("futex")) { while (!word) want(woken(syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0))); }
    else if (is("futex-timed")) want(woken(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &minute, 0, 0)));
    else if (is("poll")) want(poll(&pf, 1, 60000) == 1);
    else if (is("ppoll")) want(ppoll(&pf, 1, &minute, &none) == 1);
    else if (is("ppoll-signal")) want(ppoll(&pf, 1, &minute, &none) == -1 && errno == EINTR && handled == 1);
    else if (is("select")) { fd_set s; FD_ZERO(&s); FD_SET(pipes[0], &s); want(select(pipes[0] + 1, &s, 0, 0, 0) == 1); }
    else if (is("pause")) want(pause() == -1 && errno == EINTR && handled == 1);
    else if (is("sigsuspend")) want(sigsuspend(&none) == -1 && errno == EINTR && handled == 1);
    else if (is("sigtimedwait")) want(sigtimedwait(&blocked, 0, &minute) == SIGUSR2);
    else if (is("recv")) { struct timeval t = {60, 0}; setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t); want(recv(pair[0], c, 1, 0) == 1); }
    else if (is("writev")) { struct iovec v[2] = {{source, LONG / 2}, {source, LONG / 2}}; want(writev(pipes[1], v, 2) == LONG); }
    else if (is("semop")) { struct sembuf s = {0, -1, 0}; want(semop(sem, &s, 1) == 0); }
    else if (is("msgrcv")) want(msgrcv(queue, c, 8, 0, 0) == 8);
    else if (is("compute")) { uint64_t x = 0; while (poll(&pf, 1, 0) == 0) for (int i = 0; i < 1000; i++) { x ^= sum; want(sum || x == 0); } }
    else want(!"a known call");
    stop = 1; pthread_join(a, 0); pthread_join(b, 0);
    sigprocmask(0, 0, &after);
    want(memcmp(&before, &after, 8) == 0);
    want(count("/proc/self/fd") == fds);
    // The kernel ends a join before it takes the thread off the list: wait for two threads less,
    // and none else.
    for (double start = now(); count("/proc/self/task") != threads - 2; sched_yield()) want(now() - start < 5);
    want(waitpid(-1, 0, __WALL | WNOHANG) == -1 && errno == ECHILD);
    semctl(sem, 0, IPC_RMID); msgctl(queue, IPC_RMID, 0);
    printf("ok %s\n", name);
    return 0;
}
