/*
 * Records a program that runs under QEMU's user mode: which translated blocks were executed, and what they
 * loaded and stored, as words of 64 bits on a pipe. SPEC.md, section "Recorder's wire", says which word
 * means what; sim/src/trace/live/wire.rs reads them.
 *
 * Everything that is not about QEMU is done by the reader. Compiled by sim/build.rs and carried inside the
 * binary. Of QEMU's plugin interface only the few functions that are used are declared here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- QEMU's plugin interface, the part that is the same in all versions from 1 on --- */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0, READS_AND_WRITES = 3 };

typedef void (*on_vcpu)(plugin_id, unsigned vcpu);
typedef void (*on_translation)(plugin_id, struct qemu_plugin_tb *);
typedef void (*on_block)(unsigned vcpu, void *);
typedef void (*on_access)(unsigned vcpu, uint32_t info, uint64_t address, void *);
typedef void (*on_syscall)(plugin_id, unsigned vcpu, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t, uint64_t, uint64_t);
typedef void (*on_exit_)(plugin_id, void *);

void qemu_plugin_register_vcpu_init_cb(plugin_id, on_vcpu);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_translation);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_block, int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_access, int, int, void *);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, on_syscall);
void qemu_plugin_register_atexit_cb(plugin_id, on_exit_, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_mem_is_store(uint32_t info);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = API_VERSION;

/* --- the wire --- */

enum kind { ACCESS = 0, BLOCK = 1, CONTROL = 2 };
enum control { HELLO = 0, DEFINE = 1, THREAD = 2, END = 3, START = 4 };
enum { WIRE_VERSION = 1, BUFFER_WORDS = 32 * 1024, HIGH_DESCRIPTOR = 1000 };

static uint64_t buffer[BUFFER_WORDS];
static size_t filled;
static int pipe_end = -1;
/* A forked child inherits this plugin; only its parent is recorded. */
static pid_t owner;
static bool with_values = true;

/* More than one thread: events take turns, and values may be changed before they are read. */
static bool several;
static int turn;
static unsigned running;

/* Instructions of the program so far, and how many of them are not wanted. */
static uint64_t executed, skipped;
static bool active;
/* What is added to an address of the program to find the byte in this process. */
static uint64_t guest_base;
static bool guest_base_known;

static void enter(void)
{
    if (several) {
        while (__atomic_exchange_n(&turn, 1, __ATOMIC_ACQUIRE)) {
        }
    }
}

static void leave(void)
{
    if (several) {
        __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
    }
}

static void flush(void)
{
    const char *at = (const char *)buffer;
    size_t left = filled * sizeof buffer[0];

    filled = 0;
    if (pipe_end >= 0 && getpid() != owner) {
        close(pipe_end);
        pipe_end = -1;
    }
    while (pipe_end >= 0 && left > 0) {
        ssize_t written = write(pipe_end, at, left);

        if (written > 0) {
            at += written;
            left -= (size_t)written;
        } else if (errno != EINTR) {
            pipe_end = -1;
        }
    }
}

static inline void put(uint64_t word)
{
    if (filled == BUFFER_WORDS) {
        flush();
    }
    buffer[filled++] = word;
}

static inline void put_control(enum control what, uint64_t payload)
{
    put(payload << 16 | (uint64_t)what << 2 | CONTROL);
}

static inline void put_thread(unsigned vcpu)
{
    if (vcpu != running) {
        running = vcpu;
        put_control(THREAD, vcpu);
    }
}

/* --- events --- */

struct block {
    uint64_t number;
    uint64_t instructions;
};

static void block_executed(unsigned vcpu, void *data)
{
    const struct block *block = data;

    enter();
    if (!active && executed + block->instructions > skipped) {
        active = true;
        put_control(START, executed);
    }
    executed += block->instructions;
    if (active) {
        put_thread(vcpu);
        put(block->number << 16 | BLOCK);
    }
    leave();
}

static inline void put_access(uint64_t address, unsigned shift, bool store, uint64_t instruction)
{
    bool has_value = with_values && !several && guest_base_known && shift <= 3;

    put(address << 16 | instruction << 7 | (uint64_t)has_value << 6 | (uint64_t)shift << 3 |
        (uint64_t)store << 2 | ACCESS);
    if (has_value) {
        uint64_t value = 0;

        memcpy(&value, (const void *)(uintptr_t)(address + guest_base), (size_t)1 << shift);
        put(value);
    }
}

static void memory_accessed(unsigned vcpu, uint32_t info, uint64_t address, void *data)
{
    unsigned shift = qemu_plugin_mem_size_shift(info);
    bool store = qemu_plugin_mem_is_store(info);
    uint64_t end = address + ((uint64_t)1 << shift);

    if (!active) {
        return;
    }
    enter();
    put_thread(vcpu);
    /* Values have eight bytes: what is larger is given in parts. */
    do {
        put_access(address, shift > 3 ? 3 : shift, store, (uintptr_t)data);
        address += 8;
    } while (address < end);
    leave();
}

static void put_definition(const struct qemu_plugin_tb *tb, const struct block *block)
{
    put_control(DEFINE, block->number);
    put(block->instructions);
    for (size_t i = 0; i < block->instructions; i++) {
        const struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
        uint64_t code[2] = {0, 0};
        size_t size = qemu_plugin_insn_size(instruction);
        const void *host = qemu_plugin_insn_haddr(instruction);
        uint64_t address = qemu_plugin_insn_vaddr(instruction);

        if (host != NULL) {
            guest_base = (uint64_t)(uintptr_t)host - address;
            guest_base_known = true;
            memcpy(code, host, size < sizeof code ? size : sizeof code);
        }
        put(address);
        put(size);
        put(code[0]);
        put(code[1]);
    }
}

static void block_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    static uint64_t blocks;
    /* Never freed: QEMU does not say when it drops a block. */
    struct block *block = malloc(sizeof *block);

    (void)id;
    if (block == NULL) {
        abort();
    }
    enter();
    block->number = blocks++;
    block->instructions = qemu_plugin_tb_n_insns(tb);
    put_definition(tb, block);
    leave();
    for (size_t i = 0; i < block->instructions; i++) {
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), memory_accessed, NO_REGISTERS,
                                         READS_AND_WRITES, (void *)(uintptr_t)i);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_executed, NO_REGISTERS, block);
}

/* The second thread's is made by the first, which is in no other event then. */
static void vcpu_made(plugin_id id, unsigned vcpu)
{
    (void)id;
    if (vcpu > 0) {
        several = true;
    }
}

/* A program that replaces itself (execve, execveat) takes the buffer with it. */
static void syscall_made(plugin_id id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                         uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)vcpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == 59 || number == 322) {
        enter();
        flush();
        leave();
    }
}

static void program_ended(plugin_id id, void *data)
{
    (void)id, (void)data;
    enter();
    put_control(END, executed);
    flush();
    leave();
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    int given = -1, image = -1;

    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "pipe=", 5) == 0) {
            given = atoi(argv[i] + 5);
        } else if (strncmp(argv[i], "image=", 6) == 0) {
            image = atoi(argv[i] + 6);
        } else if (strncmp(argv[i], "skip=", 5) == 0) {
            skipped = strtoull(argv[i] + 5, NULL, 10);
        } else if (strncmp(argv[i], "values=", 7) == 0) {
            with_values = strcmp(argv[i] + 7, "off") != 0;
        }
    }
    if (given < 0) {
        return 1;
    }
    /* The program shares our descriptors: out of the way of those that it opens. */
    pipe_end = fcntl(given, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (pipe_end < 0) {
        pipe_end = fcntl(given, F_DUPFD_CLOEXEC, 100);
    }
    if (pipe_end < 0) {
        return 1;
    }
    close(given);
    if (image >= 0) {
        close(image);
    }
    owner = getpid();
    put_control(HELLO, WIRE_VERSION);
    flush();
    qemu_plugin_register_vcpu_init_cb(id, vcpu_made);
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    qemu_plugin_register_vcpu_syscall_cb(id, syscall_made);
    qemu_plugin_register_atexit_cb(id, program_ended, NULL);
    return 0;
}
