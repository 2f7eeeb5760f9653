// Programs with several threads, to be held while an agent is put into them.
//   threads three threads count; SIGUSR1 is counted, too; on "go" all end exec of three threads one
//   calls execve after ARGV[2] microseconds; then as "after" told as exec, when it is told to
//   sleeper as threads, and one more waits for epoll with SIGUSR1 blocked, and counts how often it
//             was woken for nothing; the first thread takes the signals
//   after     says ok
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static volatile long counts[3], signals;
static volatile int stop;
static char **words;

static void count_signal(int s) { (void)s; signals++; }

static void *count(void *number) {
    while (!stop) counts[(long)number]++;
    return 0;
}

static volatile long woken;
static int bell;

static void *sleep_on(void *epoll) {
    struct epoll_event event;
    while (epoll_wait((int)(long)epoll, &event, 1, -1) != 1) {
        if (errno != EINTR) abort();
        woken++;
    }
    return 0;
}

static void *leave(void *wait) {
    if (wait) usleep((long)wait);
    else getchar();
    execl("/proc/self/exe", words[0], "after", (char *)0);
    abort();
}

int main(int argc, char **argv) {
    words = argv;
    if (argc > 1 && !strcmp(argv[1], "after")) { puts("ok after"); return 0; }
    signal(SIGUSR1, count_signal);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, count, (void *)i);
    pthread_t one;
    if (argc > 1 && !strcmp(argv[1], "sleeper")) {
        struct epoll_event event = {.events = EPOLLIN};
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        bell = eventfd(0, 0);
        int epoll = epoll_create1(0);
        epoll_ctl(epoll, EPOLL_CTL_ADD, bell, &event);
        pthread_sigmask(SIG_BLOCK, &set, 0);
        pthread_create(&one, 0, sleep_on, (void *)(long)epoll);
        pthread_sigmask(SIG_UNBLOCK, &set, 0);
    }
    puts("ready"); fflush(stdout);
    if (argc > 1 && (!strcmp(argv[1], "exec") || !strcmp(argv[1], "told"))) {
        long wait = argc > 2 ? atol(argv[2]) + 1 : 0;
        pthread_create(&one, 0, leave, (void *)wait);
        pause();
    }
    int sleeper = argc > 1 && !strcmp(argv[1], "sleeper");
    getchar();
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    if (sleeper) {
        if (write(bell, "\1\0\0\0\0\0\0", 8) != 8) abort();
        pthread_join(one, 0);
        printf("ok %ld %ld\n", (long)woken, (long)signals);
        return 0;
    }
    printf("ok %ld\n", (long)signals);
    return 0;
}
