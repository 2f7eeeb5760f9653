/*
 * Words of 64 bits on a pipe (SPEC.md, section "Recorder's wire").
 */
#ifndef CASEMATE_WIRE_H
#define CASEMATE_WIRE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum kind { ACCESS = 0, BLOCK = 1, CONTROL = 2 };
enum control { HELLO = 0, DEFINE = 1, THREAD = 2, END = 3, START = 4, CHANGED = 5, HANDLER = 6 };
enum { WIRE_VERSION = 2, BUFFER_WORDS = 32 * 1024, HIGH_DESCRIPTOR = 1000 };

static uint64_t buffer[BUFFER_WORDS];
static size_t filled;
static int pipe_end = -1;
/* A forked child inherits this plugin; only its parent is recorded. */
static pid_t owner;

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

#endif
