// Programs in unusual states; each says "ready", waits for a line ("vfork" in its child) and says
// "ok".
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_over(void) { char line[8]; return fgets(line, sizeof line, stdin) == 0; }
static void say(const char *s) { puts(s); fflush(stdout); }
static void *second(void *p) { usleep(20000); say("ready"); is_over(); say("ok"); exit(0); return p; }

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    char buffer[64]; setvbuf(stdin, 0, _IONBF, 0); (void)buffer;
    if (strcmp(how, "leaderless") == 0) {
        pthread_t t; pthread_create(&t, 0, second, 0); pthread_exit(0);
    } else if (strcmp(how, "vfork") == 0) {
        say("ready");
        pid_t child = vfork();
        if (child == 0) { char c; _exit(read(0, &c, 1) == 1 ? 7 : 1); }
        int status; if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 1;
        say("ok");
    } else if (strcmp(how, "mlockall") == 0) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 1;
        say("ready"); is_over(); say("ok");
    } else if (strcmp(how, "no-exec") == 0) {
        prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0);
        say("ready"); is_over(); say("ok");
    } else if (strcmp(how, "filtered") == 0) {
        say("warm");
        // A call that an injection makes would kill the program.
        struct sock_filter f[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 5, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 4, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 3, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 2, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_wait4, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS) };
        struct sock_fprog p = {sizeof f / sizeof *f, f};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 1;
        say("ready"); is_over(); say("ok");
    } else if (strcmp(how, "strict") == 0) {
        say("warm");
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1;
        char c;
        write(1, "ready\n", 6); read(0, &c, 1); write(1, "ok\n", 3);
        syscall(SYS_exit, 0);
    }
    return 0;
}
