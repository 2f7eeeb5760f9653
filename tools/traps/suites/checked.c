/*
 * A program for valgrind and the sanitizers: threads work on 24 MiB, and check it. Told so, it then
 * makes one mistake that the tool must find.
 *
 *   checked none | overflow | after-free | leak | race | undefined | uninitialised
 */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, WORDS = (12 << 20) / 8 };

static uint64_t *memory[THREADS];
static int shared;

static uint64_t right(uint64_t thread, uint64_t word) {
    return (word * 0x9e3779b97f4a7c15u) ^ (thread << 56) ^ 0x5bd1e995;
}

static void *work(void *number) {
    uint64_t thread = (uint64_t)(uintptr_t)number, wrong = 0;
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < WORDS; i++) memory[thread][i] = right(thread, i + (uint64_t)round);
        for (uint64_t i = 0; i < WORDS; i++) {
            wrong += memory[thread][i] != right(thread, i + (uint64_t)round);
        }
    }
    return (void *)(uintptr_t)wrong;
}

static void *increment(void *place) {
    for (int i = 0; i < 1000; i++) ++*(int *)place;
    return NULL;
}

static void both(void *(*what)(void *), void *given[THREADS], uint64_t *wrong) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, what, given[i])) exit(2);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        *wrong += (uint64_t)(uintptr_t)result;
    }
}

static void mistake(const char *what) {
    volatile char *block = malloc(100);
    uint64_t none = 0;
    void *places[THREADS] = {&shared, &shared};
    if (!block) exit(2);
    block[0] = 1;
    if (!strcmp(what, "overflow")) block[100] = 1;
    if (!strcmp(what, "uninitialised") && block[50]) puts("set");
    if (!strcmp(what, "race")) both(increment, places, &none);
    if (!strcmp(what, "undefined")) {
        volatile int most = INT_MAX;
        most += block[0];
    }
    if (!strcmp(what, "leak")) block = NULL;
    free((void *)block);
    if (!strcmp(what, "after-free")) block[0] = 2;
}

int main(int argc, char **argv) {
    uint64_t wrong = 0;
    void *numbers[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        memory[i] = malloc(WORDS * 8);
        if (!memory[i]) return 2;
        numbers[i] = (void *)i;
    }
    both(work, numbers, &wrong);
    for (int i = 0; i < THREADS; i++) free(memory[i]);
    mistake(argc > 1 ? argv[1] : "none");
    printf("%s: %lu words wrong\n", argc > 1 ? argv[1] : "none", (unsigned long)wrong);
    return wrong != 0;
}
