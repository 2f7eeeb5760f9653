// Programs with several threads, to be held while an agent is put into them.
//   threads   three threads count; SIGUSR1 is counted, too; on "go" all end
//   exec      of three threads one calls execve after ARGV[2] microseconds; then as "after"
//   after     says ok
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile long counts[3], signals;
static volatile int stop;
static char **words;

static void count_signal(int s) { (void)s; signals++; }

static void *count(void *number) {
    while (!stop) counts[(long)number]++;
    return 0;
}

static void *leave(void *wait) {
    usleep((long)wait);
    execl("/proc/self/exe", words[0], "after", (char *)0);
    abort();
}

int main(int argc, char **argv) {
    words = argv;
    if (argc > 1 && !strcmp(argv[1], "after")) { puts("ok after"); return 0; }
    signal(SIGUSR1, count_signal);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, count, (void *)i);
    puts("ready"); fflush(stdout);
    if (argc > 2 && !strcmp(argv[1], "exec")) {
        pthread_t one;
        pthread_create(&one, 0, leave, (void *)atol(argv[2]));
        pause();
    }
    getchar();
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("ok %ld\n", (long)signals);
    return 0;
}
