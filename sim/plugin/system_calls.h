/*
 * System calls and their outputs. Numbers, arguments and structures are those of x86-64 Linux
 * (arch/x86/entry/syscalls/syscall_64.tbl; sizes are the kernel's, not the C library's).
 */
#ifndef CASEMATE_SYSTEM_CALLS_H
#define CASEMATE_SYSTEM_CALLS_H

#include <stdint.h>

/* How many bytes an argument points to. */
enum rule {
    NONE = 0,
    /* `amount`. */
    FIXED,
    /* The call's result, times `amount`. */
    RESULT,
    /* Argument number `other`, times `amount`. */
    COUNT,
    /* What argument number `other` points to: a length that the kernel has put there (socklen_t),
     * which changed too. */
    LENGTH_AT,
    /* A vector of buffers, as many as argument `other` says; the result is their bytes. */
    VECTOR,
    /* A struct msghdr; the result is the bytes of its vector. */
    MESSAGE,
    /* Descriptor sets of argument `other` bits. */
    BITS,
};

struct output {
    enum rule rule;
    uint8_t argument;
    uint8_t other;
    uint16_t amount;
};

struct known {
    uint16_t number;
    struct output outputs[4];
};

static const struct known KNOWN[] = {
    {0, {{RESULT, 1, 0, 1}}},                                      /* read */
    {4, {{FIXED, 1, 0, 144}}},                                     /* stat */
    {5, {{FIXED, 1, 0, 144}}},                                     /* fstat */
    {6, {{FIXED, 1, 0, 144}}},                                     /* lstat */
    {7, {{COUNT, 0, 1, 8}}},                                       /* poll */
    {13, {{FIXED, 2, 0, 32}}},                                     /* rt_sigaction */
    {14, {{COUNT, 2, 3, 1}}},                                      /* rt_sigprocmask */
    {17, {{RESULT, 1, 0, 1}}},                                     /* pread64 */
    {19, {{VECTOR, 1, 2, 0}}},                                     /* readv */
    {22, {{FIXED, 0, 0, 8}}},                                      /* pipe */
    {23, {{BITS, 1, 0, 0}, {BITS, 2, 0, 0}, {BITS, 3, 0, 0}, {FIXED, 4, 0, 16}}}, /* select */
    {27, {{COUNT, 2, 1, 1}}},                                      /* mincore */
    {31, {{FIXED, 2, 0, 128}}},                                    /* shmctl */
    {35, {{FIXED, 1, 0, 16}}},                                     /* nanosleep */
    {36, {{FIXED, 1, 0, 32}}},                                     /* getitimer */
    {38, {{FIXED, 2, 0, 32}}},                                     /* setitimer */
    {40, {{FIXED, 2, 0, 8}}},                                      /* sendfile */
    {43, {{LENGTH_AT, 1, 2, 128}}},                                /* accept */
    {45, {{RESULT, 1, 0, 1}, {LENGTH_AT, 4, 5, 128}}},             /* recvfrom */
    {47, {{MESSAGE, 1, 0, 0}}},                                    /* recvmsg */
    {51, {{LENGTH_AT, 1, 2, 128}}},                                /* getsockname */
    {52, {{LENGTH_AT, 1, 2, 128}}},                                /* getpeername */
    {53, {{FIXED, 3, 0, 8}}},                                      /* socketpair */
    {55, {{LENGTH_AT, 3, 4, UINT16_MAX}}},                         /* getsockopt */
    {56, {{FIXED, 2, 0, 4}, {FIXED, 3, 0, 4}}},                    /* clone */
    {61, {{FIXED, 1, 0, 4}, {FIXED, 3, 0, 144}}},                  /* wait4 */
    {63, {{FIXED, 0, 0, 390}}},                                    /* uname */
    {70, {{RESULT, 1, 0, 1}, {FIXED, 1, 0, 8}}},                   /* msgrcv: a long and the text */
    {78, {{RESULT, 1, 0, 1}}},                                     /* getdents */
    {79, {{RESULT, 0, 0, 1}}},                                     /* getcwd */
    {89, {{RESULT, 1, 0, 1}}},                                     /* readlink */
    {96, {{FIXED, 0, 0, 16}, {FIXED, 1, 0, 8}}},                   /* gettimeofday */
    {97, {{FIXED, 1, 0, 16}}},                                     /* getrlimit */
    {98, {{FIXED, 1, 0, 144}}},                                    /* getrusage */
    {99, {{FIXED, 0, 0, 112}}},                                    /* sysinfo */
    {100, {{FIXED, 0, 0, 32}}},                                    /* times */
    {103, {{RESULT, 1, 0, 1}}},                                    /* syslog */
    {115, {{RESULT, 1, 0, 4}}},                                    /* getgroups */
    {118, {{FIXED, 0, 0, 4}, {FIXED, 1, 0, 4}, {FIXED, 2, 0, 4}}}, /* getresuid */
    {120, {{FIXED, 0, 0, 4}, {FIXED, 1, 0, 4}, {FIXED, 2, 0, 4}}}, /* getresgid */
    {125, {{FIXED, 0, 0, 8}, {FIXED, 1, 0, 24}}},                  /* capget */
    {127, {{COUNT, 0, 1, 1}}},                                     /* rt_sigpending */
    {128, {{FIXED, 1, 0, 128}}},                                   /* rt_sigtimedwait */
    {131, {{FIXED, 1, 0, 24}}},                                    /* sigaltstack */
    {137, {{FIXED, 1, 0, 120}}},                                   /* statfs */
    {138, {{FIXED, 1, 0, 120}}},                                   /* fstatfs */
    {143, {{FIXED, 1, 0, 4}}},                                     /* sched_getparam */
    {148, {{FIXED, 1, 0, 16}}},                                    /* sched_rr_get_interval */
    {191, {{RESULT, 2, 0, 1}}},                                    /* getxattr */
    {192, {{RESULT, 2, 0, 1}}},                                    /* lgetxattr */
    {193, {{RESULT, 2, 0, 1}}},                                    /* fgetxattr */
    {194, {{RESULT, 1, 0, 1}}},                                    /* listxattr */
    {195, {{RESULT, 1, 0, 1}}},                                    /* llistxattr */
    {196, {{RESULT, 1, 0, 1}}},                                    /* flistxattr */
    {201, {{FIXED, 0, 0, 8}}},                                     /* time */
    {202, {{FIXED, 0, 0, 4}, {FIXED, 4, 0, 4}}},                   /* futex, by operation */
    {204, {{RESULT, 2, 0, 1}}},                                    /* sched_getaffinity */
    {217, {{RESULT, 1, 0, 1}}},                                    /* getdents64 */
    {222, {{FIXED, 2, 0, 4}}},                                     /* timer_create */
    {223, {{FIXED, 3, 0, 32}}},                                    /* timer_settime */
    {224, {{FIXED, 1, 0, 32}}},                                    /* timer_gettime */
    {228, {{FIXED, 1, 0, 16}}},                                    /* clock_gettime */
    {229, {{FIXED, 1, 0, 16}}},                                    /* clock_getres */
    {230, {{FIXED, 3, 0, 16}}},                                    /* clock_nanosleep */
    {232, {{RESULT, 1, 0, 12}}},                                   /* epoll_wait */
    {247, {{FIXED, 2, 0, 128}, {FIXED, 4, 0, 144}}},               /* waitid */
    {262, {{FIXED, 2, 0, 144}}},                                   /* newfstatat */
    {267, {{RESULT, 2, 0, 1}}},                                    /* readlinkat */
    {270, {{BITS, 1, 0, 0}, {BITS, 2, 0, 0}, {BITS, 3, 0, 0}, {FIXED, 4, 0, 16}}}, /* pselect6 */
    {271, {{COUNT, 0, 1, 8}, {FIXED, 2, 0, 16}}},                  /* ppoll */
    {274, {{FIXED, 1, 0, 8}, {FIXED, 2, 0, 8}}},                   /* get_robust_list */
    {275, {{FIXED, 1, 0, 8}, {FIXED, 3, 0, 8}}},                   /* splice */
    {281, {{RESULT, 1, 0, 12}}},                                   /* epoll_pwait */
    {286, {{FIXED, 3, 0, 32}}},                                    /* timerfd_settime */
    {287, {{FIXED, 1, 0, 32}}},                                    /* timerfd_gettime */
    {288, {{LENGTH_AT, 1, 2, 128}}},                               /* accept4 */
    {293, {{FIXED, 0, 0, 8}}},                                     /* pipe2 */
    {295, {{VECTOR, 1, 2, 0}}},                                    /* preadv */
    {302, {{FIXED, 3, 0, 16}}},                                    /* prlimit64 */
    {309, {{FIXED, 0, 0, 4}, {FIXED, 1, 0, 4}}},                   /* getcpu */
    {310, {{VECTOR, 1, 2, 0}}},                                    /* process_vm_readv */
    {315, {{COUNT, 1, 2, 1}}},                                     /* sched_getattr */
    {318, {{RESULT, 0, 0, 1}}},                                    /* getrandom */
    {326, {{FIXED, 1, 0, 8}, {FIXED, 3, 0, 8}}},                   /* copy_file_range */
    {327, {{VECTOR, 1, 2, 0}}},                                    /* preadv2 */
    {332, {{FIXED, 4, 0, 256}}},                                   /* statx */
    {441, {{RESULT, 1, 0, 12}}},                                   /* epoll_pwait2 */
};

/* Calls that change nothing that the program can read, from the first to the last of each pair. */
static const uint16_t HARMLESS[][2] = {
    {1, 3},     {8, 8},     {10, 10},   {15, 15},   {18, 18},   {20, 21},   {24, 24},   {26, 26},
    {29, 29},   {32, 34},   {37, 37},   {39, 39},   {41, 42},   {44, 44},   {46, 46},   {48, 50},
    {54, 54},   {57, 60},   {62, 62},   {64, 65},   {68, 69},   {73, 77},   {80, 88},   {90, 95},
    {102, 102}, {104, 114}, {116, 117}, {119, 119}, {121, 124}, {126, 126}, {129, 130}, {132, 133},
    {135, 135}, {140, 142}, {144, 147}, {149, 153}, {155, 155}, {160, 171}, {186, 190}, {197, 200},
    {203, 203}, {213, 213}, {218, 218}, {221, 221}, {225, 227}, {231, 231}, {233, 235}, {237, 238},
    {241, 242}, {251, 255}, {257, 261}, {263, 266}, {268, 269}, {272, 273}, {276, 278}, {280, 280},
    {282, 285}, {289, 292}, {294, 294}, {296, 297}, {300, 301}, {304, 304}, {306, 306}, {308, 308},
    {314, 314}, {316, 317}, {319, 319}, {322, 322}, {324, 325}, {328, 331}, {424, 424}, {434, 434},
    {436, 439},
};

#endif
