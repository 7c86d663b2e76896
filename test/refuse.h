/*
 * refuse.h - system calls that the kernel refuses from now on, to all threads of the
 * process, by seccomp.
 */
#ifndef GORO_TEST_REFUSE_H
#define GORO_TEST_REFUSE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "test.h"

#define REFUSE_LOAD(field)    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE_LOAD_UPPER(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field) + 4)
/* Skips so many instructions unless what was loaded is this. */
#define REFUSE_UNLESS(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), 0, skip)
#define REFUSE_WITH(error)    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define REFUSE_ALLOW          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static inline void refuse(struct sock_filter *code, size_t n)
{
	struct sock_fprog program = { (unsigned short)n, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		SKIP("no seccomp here");
}

#endif
