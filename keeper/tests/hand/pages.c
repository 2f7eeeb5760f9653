// Fills 128 pages, says where they are, waits for a line, and says whether they are still what they
// were. argv[1]: "plain", "exec", "locked", or "pinned" (page 3 is an io_uring fixed buffer).
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES 128
static uint64_t value(uint64_t page, uint64_t i) { return (page * 512 + i + 1) * 0x9e3779b97f4a7c15ull; }

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "plain";
    int prot = PROT_READ | PROT_WRITE | (strcmp(how, "exec") == 0 ? PROT_EXEC : 0);
    uint64_t *p = mmap(0, PAGES * 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, PAGES * 4096, MADV_NOHUGEPAGE);
    if (strcmp(how, "locked") == 0) mlock(p, PAGES * 4096);
    for (uint64_t page = 0; page < PAGES; page++)
        for (uint64_t i = 0; i < 512; i++) p[page * 512 + i] = value(page, i);
    if (strcmp(how, "pinned") == 0) {
        struct io_uring_params params = {0};
        int ring = syscall(SYS_io_uring_setup, 4, &params);
        struct iovec v = {(char *)p + 3 * 4096, 4096};
        if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &v, 1) < 0) {
            printf("no io_uring\n");
            return 0;
        }
    }
    printf("%lu\n", (unsigned long)p); fflush(stdout);
    char line[8];
    if (!fgets(line, sizeof line, stdin)) return 1;
    for (uint64_t page = 0; page < PAGES; page++)
        for (uint64_t i = 0; i < 512; i++)
            if (p[page * 512 + i] != value(page, i)) { printf("wrong in page %lu\n", (unsigned long)page); return 1; }
    printf("same\n");
    return 0;
}
