/*
 * Which bytes of a program the kernel changes in a system call, by the call's number and arguments.
 */
#ifndef CASEMATE_CHANGES_H
#define CASEMATE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call of x86-64 Linux that was made. */
struct call {
    int64_t number;
    uint64_t arguments[6];
};

struct extent {
    uint64_t address;
    uint64_t size_bytes;
};

/* Vectors of a call: the kernel's UIO_MAXIOV, and room for what lies around them. */
enum { MAX_EXTENTS = 1024 + 8 };

struct extents {
    size_t count;
    struct extent list[MAX_EXTENTS];
};

/*
 * What `call` changed, given what it returned (an error below 0), into `changed`. What is not known
 * is one extent of everything. `guest_base` is added to an address of the program to find the byte
 * in this process.
 */
void changes_of(const struct call *call, int64_t result, uint64_t guest_base,
                struct extents *changed);

/* The address of the handler that a signal got in `call`; 0 if the call was another or gave
 * none. */
uint64_t handler_of(const struct call *call, int64_t result, uint64_t guest_base);

/* To be told of every call from the first one on: where the heap ended before. */
void watch_break(const struct call *call, int64_t result, struct extents *changed);

#endif
