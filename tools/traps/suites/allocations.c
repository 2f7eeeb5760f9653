/*
 * Every call of the C library's allocator, at random; every block's contents are checked before it
 * is changed or freed. Ends with 0 and "ok MODE", or says what was wrong and ends with 1.
 *
 *   allocations MODE SEED     MODE: mixed aligned growing threads crossing forks trimming refused
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 1000, THREADS = 4 };

struct block {
    unsigned char *at;
    size_t bytes;
    uint64_t key;
};

struct part {
    struct block blocks[BLOCKS];
    uint64_t random;
};

static void fail(const char *what, const void *at, size_t bytes) {
    fprintf(stderr, "wrong: %s at %p, %zu bytes, process %d\n", what, at, bytes, (int)getpid());
    exit(1);
}

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Mostly small, some of pages, few that the allocator maps one by one. */
static size_t size(uint64_t *random) {
    uint64_t draw = next(random), kind = draw % 100;
    draw >>= 8;
    if (kind < 60) return 1 + draw % 512;
    if (kind < 90) return 1 + draw % 16384;
    if (kind < 99) return 1 + draw % (128 << 10);
    return 1 + draw % (1 << 20);
}

static unsigned char right(const struct block *block, size_t i) {
    return (unsigned char)((block->key + i * 0x9d + (i >> 8) * 0x3b) | 1);
}

static void fill(struct block *block, uint64_t key) {
    block->key = key;
    for (size_t i = 0; i < block->bytes; i++) block->at[i] = right(block, i);
}

static void check(const struct block *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (block->at[i] != right(block, i)) fail("a byte of a block", block->at + i, i);
}

static void check_zero(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (at[i]) fail("calloc gave a byte that is not zero", at + i, i);
}

static void *aligned(uint64_t *random, size_t bytes) {
    size_t align = (size_t)16 << next(random) % 12;
    void *at = NULL;
    switch (next(random) % 3) {
    case 0: at = memalign(align, bytes); break;
    case 1: if (posix_memalign(&at, align, bytes)) at = NULL; break;
    default: at = aligned_alloc(align, (bytes + align - 1) / align * align); break;
    }
    if (!at || (uintptr_t)at % align) fail("an aligned block", at, align);
    return at;
}

static void allocate(struct block *block, uint64_t *random, int is_aligned) {
    block->bytes = size(random);
    if (is_aligned && next(random) % 2) {
        block->at = aligned(random, block->bytes);
    } else if (next(random) % 4 == 0) {
        block->at = calloc(1, block->bytes);
        if (block->at) check_zero(block->at, block->bytes);
    } else {
        block->at = malloc(block->bytes);
    }
    if (!block->at) fail("no memory", NULL, block->bytes);
    if (malloc_usable_size(block->at) < block->bytes) fail("usable size", block->at, block->bytes);
    fill(block, next(random));
}

static void release(struct block *block) {
    check(block, block->bytes);
    free(block->at);
    block->at = NULL;
}

static void resize(struct block *block, uint64_t *random) {
    size_t old = block->bytes, new = size(random);
    check(block, old);
    unsigned char *at = next(random) % 2 ? realloc(block->at, new)
                                           : reallocarray(block->at, new, 1);
    if (!at) fail("no memory for realloc", block->at, new);
    block->at = at;
    block->bytes = new;
    check(block, old < new ? old : new);
    fill(block, next(random));
}

static void use(struct part *part, int steps, int is_aligned) {
    for (int step = 0; step < steps; step++) {
        struct block *block = &part->blocks[next(&part->random) % BLOCKS];
        if (!block->at) allocate(block, &part->random, is_aligned);
        else if (next(&part->random) % 3 == 0) resize(block, &part->random);
        else release(block);
    }
}

static void check_all(const struct part *part) {
    for (int i = 0; i < BLOCKS; i++)
        if (part->blocks[i].at) check(&part->blocks[i], part->blocks[i].bytes);
}

static void end(struct part *part) {
    for (int i = 0; i < BLOCKS; i++)
        if (part->blocks[i].at) release(&part->blocks[i]);
}

static struct part parts[THREADS];
static pthread_mutex_t locks[THREADS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                         PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int crossing;

/* Each thread works on its own blocks, or on those of all: then it frees what others allocated. */
static void *work(void *number) {
    size_t own = (size_t)number;
    for (int round = 0; round < 12; round++) {
        size_t at = crossing ? (own + (size_t)round) % THREADS : own;
        pthread_mutex_lock(&locks[at]);
        use(&parts[at], 800, 1);
        pthread_mutex_unlock(&locks[at]);
    }
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    /* Two generations: the caches of threads that have ended are used again. */
    for (int generation = 0; generation < 2; generation++) {
        for (size_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)i)) fail("pthread_create", NULL, i);
        for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (size_t i = 0; i < THREADS; i++) check_all(&parts[i]);
    }
}

static void child(int number) {
    check_all(&parts[0]);
    parts[0].random ^= (uint64_t)number * 77;
    use(&parts[0], 1500, 1);
    check_all(&parts[0]);
    end(&parts[0]);
    _exit(0);
}

/* Children use what they inherited while other threads of the parent allocate. */
static void run_forks(void) {
    pthread_t threads[THREADS];
    use(&parts[0], 3000, 1);
    for (size_t i = 1; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) fail("pthread_create", NULL, i);
    for (int number = 0; number < 8; number++) {
        pid_t pid = fork();
        int status = 0;
        if (pid == 0) child(number);
        use(&parts[0], 500, 1);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
            fail("a child", NULL, (size_t)status);
        }
        check_all(&parts[0]);
    }
    for (size_t i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Blocks that grow and shrink by the kernel's moving of pages. */
static void run_growing(uint64_t seed) {
    struct block blocks[4] = {0};
    for (int round = 0; round < 16; round++) {
        struct block *block = &blocks[round % 4];
        size_t old = block->bytes, new = (1 + next(&seed) % 10) << 20;
        unsigned char *at = realloc(block->at, new);
        if (!at) fail("no memory for realloc", block->at, new);
        block->at = at;
        if (old) check(block, old < new ? old : new);
        block->bytes = new;
        fill(block, next(&seed));
    }
    for (int i = 0; i < 4; i++) release(&blocks[i]);
}

static void run_trimming(void) {
    for (int round = 0; round < 6; round++) {
        use(&parts[0], 2500, 1);
        if (round % 2) end(&parts[0]);
        malloc_trim(0);
        mallopt(M_MMAP_THRESHOLD, round % 2 ? 64 << 10 : 4 << 20);
        mallopt(M_TRIM_THRESHOLD, round % 3 ? 128 << 10 : 16 << 20);
        check_all(&parts[0]);
    }
}

/* What cannot be had is refused, and what there is stays. */
static void run_refused(void) {
    use(&parts[0], 4000, 0);
    volatile size_t most = PTRDIFF_MAX, half = SIZE_MAX / 2;
    errno = 0;
    if (malloc(most) || errno != ENOMEM) fail("malloc of everything", NULL, most);
    if (calloc(half, 4)) fail("calloc that overflows", NULL, half);
    if (reallocarray(NULL, half, 4)) fail("reallocarray that overflows", NULL, half);
    struct block *block = &parts[0].blocks[0];
    if (!block->at) allocate(block, &parts[0].random, 0);
    if (realloc(block->at, most)) fail("realloc to everything", block->at, most);
    check_all(&parts[0]);
    free(NULL);
    void *none = malloc(0);
    free(none);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: allocations MODE SEED\n");
        return 2;
    }
    const char *mode = argv[1];
    uint64_t seed = strtoull(argv[2], NULL, 10);
    for (size_t i = 0; i < THREADS; i++) parts[i].random = seed * 1000 + i;
    crossing = !strcmp(mode, "crossing");
    if (!strcmp(mode, "mixed")) use(&parts[0], 12000, 0);
    else if (!strcmp(mode, "aligned")) use(&parts[0], 12000, 1);
    else if (!strcmp(mode, "growing")) run_growing(seed);
    else if (!strcmp(mode, "threads") || crossing) run_threads();
    else if (!strcmp(mode, "forks")) run_forks();
    else if (!strcmp(mode, "trimming")) run_trimming();
    else if (!strcmp(mode, "refused")) run_refused();
    else {
        fprintf(stderr, "there is no mode %s\n", mode);
        return 2;
    }
    for (size_t i = 0; i < THREADS; i++) check_all(&parts[i]), end(&parts[i]);
    printf("ok %s\n", mode);
    return 0;
}
