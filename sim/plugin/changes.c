/*
 * What the kernel writes into a program's memory.
 *
 * Bytes that are reported though the kernel did not write them cost a comparison. Bytes that are
 * not reported though it did look like a defect. So sizes are the largest that can be, and a call
 * that is in none of the tables changes everything.
 */
#include "changes.h"
#include "system_calls.h"

#include <string.h>

enum { PAGE = 4096, EINTR_RESULT = -4 };

static void add(struct extents *changed, uint64_t address, uint64_t size_bytes)
{
    if (address == 0 || size_bytes == 0) {
        return;
    }
    if (changed->count == MAX_EXTENTS) {
        changed->count = 0;
        size_bytes = UINT64_MAX;
        address = 0;
    }
    changed->list[changed->count++] = (struct extent){address, size_bytes};
}

static void add_everything(struct extents *changed)
{
    changed->list[0] = (struct extent){0, UINT64_MAX};
    changed->count = 1;
}

/* Buffers that were filled one after the other with so many bytes. */
static void add_vector(struct extents *changed, uint64_t vector, uint64_t count, uint64_t bytes,
                       uint64_t guest_base)
{
    for (uint64_t i = 0; i < count && bytes > 0; i++) {
        uint64_t buffer[2];

        memcpy(buffer, (const void *)(uintptr_t)(vector + 16 * i + guest_base), sizeof buffer);
        buffer[1] = buffer[1] < bytes ? buffer[1] : bytes;
        add(changed, buffer[0], buffer[1]);
        bytes -= buffer[1];
    }
}

/* struct msghdr: name, its length, vector, its count, control data, their length, flags. */
static void add_message(struct extents *changed, uint64_t message, uint64_t bytes,
                        uint64_t guest_base)
{
    uint64_t header[7];

    memcpy(header, (const void *)(uintptr_t)(message + guest_base), sizeof header);
    add(changed, message, sizeof header);
    add(changed, header[0], 128);
    add_vector(changed, header[2], header[3], bytes, guest_base);
    /* The kernel has shortened the length to what it wrote, which ends with padding. */
    add(changed, header[4], header[5] + 16);
}

static void add_output(struct extents *changed, const struct output *output,
                       const struct call *call, uint64_t result, uint64_t guest_base)
{
    uint64_t address = call->arguments[output->argument], other = call->arguments[output->other];
    uint32_t length;

    if (address == 0) {
        return;
    }
    switch (output->rule) {
    case NONE:
        break;
    case FIXED:
        add(changed, address, output->amount);
        break;
    case RESULT:
        add(changed, address, result * output->amount);
        break;
    case COUNT:
        /* Of mincore it is bytes, which are more than its pages. */
        add(changed, address, other * output->amount);
        break;
    case LENGTH_AT:
        if (other != 0) {
            memcpy(&length, (const void *)(uintptr_t)(other + guest_base), sizeof length);
            add(changed, other, sizeof length);
            add(changed, address, length < output->amount ? length : output->amount);
        }
        break;
    case VECTOR:
        add_vector(changed, address, other, result, guest_base);
        break;
    case MESSAGE:
        add_message(changed, address, result, guest_base);
        break;
    case BITS:
        add(changed, address, (other + 63) / 64 * 8);
        break;
    }
}

/* Calls whose other arguments say what they change; whether this is one. */
static bool add_special(struct extents *changed, const struct call *call, uint64_t result)
{
    const uint64_t *a = call->arguments;

    switch (call->number) {
    case 9: /* mmap */
        add(changed, result, (a[1] + PAGE - 1) / PAGE * PAGE);
        return true;
    case 11: /* munmap */
        add(changed, a[0], (a[1] + PAGE - 1) / PAGE * PAGE);
        return true;
    case 12: /* brk: see watch_break */
        return true;
    case 25: /* mremap */
        add(changed, a[0], (a[1] + PAGE - 1) / PAGE * PAGE);
        add(changed, result, (a[2] + PAGE - 1) / PAGE * PAGE);
        return true;
    case 28: /* madvise: DONTNEED (two of them), FREE, REMOVE and poison take contents away */
        if (a[2] == 4 || a[2] == 8 || a[2] == 9 || a[2] == 24 || a[2] >= 100) {
            add(changed, a[0], (a[1] + PAGE - 1) / PAGE * PAGE);
        }
        return true;
    case 16: /* ioctl */
        if ((a[1] >> 8 & 0xff) == 'T') {
            add(changed, a[2], 128);
        } else if (a[1] >> 31 & 1) {
            add(changed, a[2], a[1] >> 16 & 0x3fff);
        } else if (a[1] >> 16 == 0 && a[2] != 0) {
            return false;
        }
        return true;
    case 72: /* fcntl: locks, owners, hints */
        if (a[1] == 5 || a[1] == 36 || a[1] == 16 || a[1] >= 1024) {
            add(changed, a[2], 32);
        }
        return true;
    case 157: /* prctl: no option writes more than a name */
        add(changed, a[1], 16);
        return true;
    case 158: /* arch_prctl: ARCH_GET_FS, ARCH_GET_GS */
        if (a[0] == 0x1003 || a[0] == 0x1004) {
            add(changed, a[1], 8);
        }
        return true;
    default:
        return false;
    }
}

void changes_of(const struct call *call, int64_t result, uint64_t guest_base,
                struct extents *changed)
{
    bool failed = result < 0 && result > -PAGE;

    changed->count = 0;
    /* A call that fails writes nothing, but for sleep that was interrupted: what is left of it. */
    if (failed && result != EINTR_RESULT) {
        return;
    }
    if (failed) {
        if (call->number == 35 || call->number == 230) {
            add(changed, call->arguments[call->number == 35 ? 1 : 3], 16);
        }
        return;
    }
    if (add_special(changed, call, (uint64_t)result)) {
        return;
    }
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        if (KNOWN[i].number == call->number) {
            for (size_t j = 0; j < 4; j++) {
                add_output(changed, &KNOWN[i].outputs[j], call, (uint64_t)result, guest_base);
            }
            return;
        }
    }
    for (size_t i = 0; i < sizeof HARMLESS / sizeof HARMLESS[0]; i++) {
        if (HARMLESS[i][0] <= call->number && call->number <= HARMLESS[i][1]) {
            return;
        }
    }
    add_everything(changed);
}

uint64_t handler_of(const struct call *call, int64_t result, uint64_t guest_base)
{
    uint64_t handler;

    if (call->number != 13 || result != 0 || call->arguments[1] == 0) {
        return 0;
    }
    memcpy(&handler, (const void *)(uintptr_t)(call->arguments[1] + guest_base), sizeof handler);
    /* SIG_DFL and SIG_IGN. */
    return handler > 1 ? handler : 0;
}

void watch_break(const struct call *call, int64_t result, struct extents *changed)
{
    static uint64_t last;
    uint64_t now = (uint64_t)result;

    if (call->number != 12) {
        return;
    }
    /* The rest of the last page is cleared, too. */
    if (last != 0 && now > last) {
        add(changed, last, (now + PAGE - 1) / PAGE * PAGE - last);
    } else if (last != 0 && now < last) {
        add(changed, now, (last + PAGE - 1) / PAGE * PAGE - now);
    }
    last = now;
}
