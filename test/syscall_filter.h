/*
 * syscall_filter.h - system calls that are denied, as in a container, or answered by the
 * test in the place of the kernel.
 *
 * A filter holds for the thread that installs it and for the threads that it starts; with
 * filter_everywhere it holds for all threads of the process, as one that a program
 * installs in the middle of its run.
 */
#ifndef GORO_TEST_SYSCALL_FILTER_H
#define GORO_TEST_SYSCALL_FILTER_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "test.h"

/* -1: not here. Or what seccomp(2) said. */
static int filter_install(struct sock_filter *code, size_t n, unsigned flags)
{
	struct sock_fprog program = { (unsigned short)n, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void filter_call(int call, unsigned action, unsigned flags, int *listener)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	int r = filter_install(code, sizeof code / sizeof *code, flags);

	if (r < 0)
		SKIP("no seccomp here");
	if (listener)
		*listener = r;
}

/* This call has this result from now on, -errno or 0: of this thread and those to come
 * .. */
__attribute__((unused))
static void filter_answer(int call, int result)
{
	filter_call(call, SECCOMP_RET_ERRNO | (unsigned)-result, 0, NULL);
}

/* .. of all threads. */
__attribute__((unused))
static void filter_everywhere(int call, int result)
{
	filter_call(call, SECCOMP_RET_ERRNO | (unsigned)-result, SECCOMP_FILTER_FLAG_TSYNC, NULL);
}

/* ------------------------------------------------- answered by another thread
 *
 * It does not need what it answers itself: its own calls are not caught. */

typedef void filter_decide(const struct seccomp_notif *n, struct seccomp_notif_resp *r);

static struct {
	int listener;
	filter_decide *decide;
	int calls;
} filter_court = { .listener = -1 };

/* Calls that were answered so far. */
__attribute__((unused))
static int filter_calls(void)
{
	return __atomic_load_n(&filter_court.calls, __ATOMIC_RELAXED);
}

static void *filter_serve(void *arg)
{
	struct seccomp_notif n;

	(void)arg;
	while (__atomic_load_n(&filter_court.listener, __ATOMIC_ACQUIRE) < 0)
		usleep(100);
	for (;;) {
		struct seccomp_notif_resp r = { 0 };

		memset(&n, 0, sizeof n);
		if (ioctl(filter_court.listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0) {
			/* A signal came to the caller, which will call again; or to
			 * us. */
			if (errno == ENOENT || errno == EINTR)
				continue;
			return NULL;
		}
		r.id = n.id;
		filter_court.decide(&n, &r);
		/* else as above */
		if (ioctl(filter_court.listener, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0)
			__atomic_fetch_add(&filter_court.calls, 1, __ATOMIC_RELAXED);
	}
}

/* decide answers this call from now on, of this thread and those that it starts. */
__attribute__((unused))
static void filter_supervise(int call, filter_decide *decide)
{
	pthread_t t;
	int fd;

	filter_court.decide = decide;
	CHECK_EQ(pthread_create(&t, NULL, filter_serve, NULL), 0);
	filter_call(call, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER, &fd);
	__atomic_store_n(&filter_court.listener, fd, __ATOMIC_RELEASE);
}

#endif
