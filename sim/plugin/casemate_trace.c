/*
 * Records a program that runs under QEMU's user mode: which translated blocks were executed, and
 * what they loaded and stored, as words of 64 bits on a pipe. SPEC.md, section "Recorder's wire",
 * says which word means what; sim/src/trace/live/wire.rs reads them.
 *
 * Everything that is not about QEMU is done by the reader. Compiled by sim/build.rs and carried
 * inside the binary. changes.c says what system calls do to the program's memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes.h"
#include "qemu_interface.h"
#include "wire.h"

EXPORT int qemu_plugin_version = API_VERSION;

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
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), memory_accessed,
                                         NO_REGISTERS, READS_AND_WRITES, (void *)(uintptr_t)i);
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

/* The call that is being made; only of programs with one thread. */
static struct call call;

/* A program that replaces itself (execve, execveat) takes the buffer with it. */
static void syscall_made(plugin_id id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b,
                         uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)vcpu, (void)g, (void)h;
    enter();
    call = (struct call){number, {a, b, c, d, e, f}};
    if (number == 59 || number == 322) {
        flush();
    }
    leave();
}

static void put_changed(unsigned vcpu, const struct extents *changed)
{
    if (!active || changed->count == 0) {
        return;
    }
    put_thread(vcpu);
    put_control(CHANGED, changed->count);
    for (size_t i = 0; i < changed->count; i++) {
        put(changed->list[i].address);
        put(changed->list[i].size_bytes);
    }
}

/* With several threads no values are recorded, so changes are not looked for. */
static void syscall_returned(plugin_id id, unsigned vcpu, int64_t number, int64_t result)
{
    static struct extents changed;

    (void)id;
    if (several || !with_values || !guest_base_known || number != call.number) {
        return;
    }
    changes_of(&call, result, guest_base, &changed);
    watch_break(&call, result, &changed);
    put_changed(vcpu, &changed);
    if (handler_of(&call, result, guest_base) != 0) {
        put_control(HANDLER, handler_of(&call, result, guest_base));
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
    qemu_plugin_register_vcpu_syscall_ret_cb(id, syscall_returned);
    qemu_plugin_register_atexit_cb(id, program_ended, NULL);
    return 0;
}
