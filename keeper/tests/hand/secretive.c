// Holds a marker in registers alone and in its .data, until SIGUSR1; then both must be as before.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t stop;
// Written at the start: a private copy of a page of the file.
static volatile uint64_t data[512] = {1};

static void handler(int s) { (void)s; stop = 1; }

// The marker is made of two halves, so that no instruction holds it.
static uint64_t half(uint64_t x) { return x * 0x9e3779b97f4a7c15ull; }

int main(void) {
    signal(SIGUSR1, handler);
    const uint64_t marker = half(0x5ec2e7) ^ half(77);
    for (int i = 0; i < 512; i++) data[i] = ~marker;
    printf("ready\n");
    fflush(stdout);
    uint64_t general = marker, low, high;
    // The red zone and the frame hold none of it: general is in r12, the copy in xmm9.
    __asm__ volatile(
        "mov %[in], %%r12\n\t"
        "movq %%r12, %%xmm9\n\t"
        "1: pause\n\t"
        "cmpl $0, %[stop]\n\t"
        "je 1b\n\t"
        "movq %%xmm9, %[low]\n\t"
        "mov %%r12, %[high]\n\t"
        : [low] "=r"(low), [high] "=r"(high)
        : [in] "r"(general), [stop] "m"(stop)
        : "r12", "xmm9", "memory", "cc");
    int same = low == marker && high == marker;
    for (int i = 0; i < 512; i++) same &= data[i] == (uint64_t)~marker;
    printf(same ? "ok\n" : "FAILED\n");
    return !same;
}
