// The main thread forks under a filter that announces it; another thread, which is not under it,
// receives the announcement when a line comes on stdin. A signal handler without SA_RESTART may run
// in between: a fork that no filter announces ends in no error because of that.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define want(x) do { if (!(x)) { printf("FAILED line %d: %s (errno %d)\n", __LINE__, #x, errno); exit(1); } } while (0)

static volatile sig_atomic_t handled;
static int listener;

static void handler(int s) { (void)s; handled++; }

static void *hear(void *p) {
    (void)p;
    char line[8];
    want(fgets(line, sizeof line, stdin));
    struct seccomp_notif call;
    struct seccomp_notif_resp answer;
    do {
        do {
            memset(&call, 0, sizeof call);
        } while (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0);
        memset(&answer, 0, sizeof answer);
        answer.id = call.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        // The call may have ended meanwhile, and be made again.
    } while (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0);
    return 0;
}

int main(void) {
    struct sigaction sa = {.sa_handler = handler};
    sigaction(SIGUSR1, &sa, 0);
    sigset_t usr1;
    sigemptyset(&usr1); sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, 0);
    pthread_t thread;
    want(pthread_create(&thread, 0, hear, 0) == 0);
    sigprocmask(SIG_UNBLOCK, &usr1, 0);
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    want(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    want(listener >= 0);
    printf("ready\n"); fflush(stdout);
    long child = syscall(SYS_fork);
    if (child == 0) _exit(7);
    want(child > 0);
    int status;
    while (waitpid(child, &status, 0) != child) want(errno == EINTR);
    want(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    pthread_join(thread, 0);
    printf("ok %d\n", handled);
    return 0;
}
