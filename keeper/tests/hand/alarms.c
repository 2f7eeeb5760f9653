// Computes under a timer signal every half millisecond; handlers use floating point too. Prints a
// checksum that depends on every step. With an argument it forks first, and the child does the
// work, and waits for the end of its input before it ends.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned ticks;
static volatile double noise;
static void tick(int s) { (void)s; ticks++; for (int i = 0; i < 50; i++) noise = noise * 1.01 + i; noise = 0; }

int main(int argc, char **argv) {
    (void)argv;
    printf("ready\n"); fflush(stdout);
    if (argc > 1) {
        pid_t child = fork();
        if (child) {
            printf("%d\n", child); fflush(stdout);
            int status; while (waitpid(child, &status, 0) < 0) {}
            return status;
        }
    }
    signal(SIGALRM, tick);
    struct itimerval t = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &t, 0);
    uint64_t x = 1; double d = 0.5; uint64_t *heap = calloc(1 << 16, 8);
    for (long i = 0; i < 150000000; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        d = d * 0.999 + (double)(x >> 60);
        heap[x >> 48] += x;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
    for (long i = 0; i < 1 << 16; i++) x ^= heap[i] * (i + 1);
    if (ticks == 0) return 1;
    if (argc > 1) while (getchar() != EOF) {}
    printf("%016lx %.17g\n", x, d);
    return 0;
}
