/*
 * restart_test.c - a system call that the preemption signal interrupts is made again only
 * if its number is known, and for the time that is left; code that cannot be read is left
 * alone.
 */
#include <goro.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

#if !defined(__x86_64__)

TEST(such_a_call_fails_with_EINTR_on_this_processor) { SKIP("nothing to test"); }

#else

#include "in_runtime.h"
#include "preempt/restart.h"

/* ---------------------------------------------------- is the number known? */

/* Code that is never run, with an unwind record. after_NAME is where its call returns
 * to. */
#define CODE(name, code)                                        \
	__asm__(".pushsection .text\n"                          \
		"code_" #name ":\n\t.cfi_startproc\n\t" code    \
		"\n\t.cfi_endproc\n.popsection");               \
	extern const char after_##name[]
#define CALL(name) "syscall\n.globl after_" #name "\nafter_" #name ":\n\tret"

#define NUMBER(name) restart_number((uintptr_t)after_##name, 0)

CODE(mov, "mov $7, %eax\n\t" CALL(mov));
CODE(mov_wide, "mov $7, %rax\n\t" CALL(mov_wide));
CODE(xor, "xor %eax, %eax\n\t" CALL(xor));
CODE(arguments_between, "mov $281, %eax\n\txor %r8d, %r8d\n\tmov %rbx, %rdi\n\tlea 8(%rsp), %rsi\n\t"
     CALL(arguments_between));
CODE(push_between, "mov $281, %eax\n\tpush %rbx\n\tpush $0\n\tpush $0x1000\n\t" CALL(push_between));
CODE(conditional_jump_between, "mov $281, %eax\n\ttest %edi, %edi\n\tje 1f\n\t"
     CALL(conditional_jump_between) "\n1:\tret");

TEST(a_number_that_is_loaded_before_the_call_is_known)
{
	CHECK_EQ(NUMBER(mov), 7);
	CHECK_EQ(NUMBER(mov_wide), 7);
	CHECK_EQ(NUMBER(xor), 0);
	CHECK_EQ(NUMBER(arguments_between), 281);
	CHECK_EQ(NUMBER(push_between), 281);
	CHECK_EQ(NUMBER(conditional_jump_between), 281);
}

CODE(from_memory, "mov (%rdi), %eax\n\txor %r8d, %r8d\n\t" CALL(from_memory));
CODE(other_register, "mov (%rdi), %eax\n\tmov $7, %r8d\n\t" CALL(other_register));
CODE(in_constant, "mov (%rdi), %eax\n\tmovabs $0x00000007b8, %rcx\n\t" CALL(in_constant));
CODE(in_displacement, "mov (%rdi), %eax\n\tmov %rcx, 0x07b8(%rsi)\n\tmovl $0, 0xc031(%rsi)\n\t"
     CALL(in_displacement));
CODE(changed, "mov $7, %eax\n\tadd $1, %eax\n\t" CALL(changed));
CODE(changed_in_part, "mov $7, %eax\n\tmov $1, %ah\n\t" CALL(changed_in_part));
CODE(function_between, "mov $7, %eax\n\tcall code_mov\n\t" CALL(function_between));
CODE(multiplied, "mov $7, %eax\n\tmul %ecx\n\t" CALL(multiplied));

TEST(a_number_that_stands_in_another_instruction_is_not_known)
{
	CHECK_EQ(NUMBER(from_memory), -1);
	CHECK_EQ(NUMBER(other_register), -1);
	CHECK_EQ(NUMBER(in_constant), -1);
	CHECK_EQ(NUMBER(in_displacement), -1);
}

TEST(a_number_that_is_changed_before_the_call_is_not_known)
{
	CHECK_EQ(NUMBER(changed), -1);
	CHECK_EQ(NUMBER(changed_in_part), -1);
	CHECK_EQ(NUMBER(function_between), -1);
	CHECK_EQ(NUMBER(multiplied), -1);
}

CODE(jump_to_the_call, "mov $1, %eax\n\tjmp 1f\n\tmov $7, %eax\n1:\t" CALL(jump_to_the_call));
CODE(jump_from_behind, "mov $7, %eax\n1:\txor %r8d, %r8d\n\t" CALL(jump_from_behind) "\n\tjne 1b");
CODE(jump_anywhere, "mov $7, %eax\n\t" CALL(jump_anywhere) "\n\tjmp *%rcx");
CODE(jump_to_the_load, "test %edi, %edi\n\tje 1f\n\tmov $1, %eax\n1:\tmov $7, %eax\n\t"
     CALL(jump_to_the_load));

TEST(a_number_that_a_jump_may_pass_by_is_not_known)
{
	CHECK_EQ(NUMBER(jump_to_the_call), -1);
	CHECK_EQ(NUMBER(jump_from_behind), -1);
	CHECK_EQ(NUMBER(jump_anywhere), -1);
	CHECK_EQ(NUMBER(jump_to_the_load), 7);
}

CODE(no_call, "mov $7, %eax\n\tnop\n\tnop\n.globl after_no_call\nafter_no_call:\n\tret");
__asm__(".pushsection .text\n"
	"mov $7, %eax\n\tsyscall\n.globl after_without_record\nafter_without_record:\n\tret\n.popsection");
extern const char after_without_record[];

TEST(where_there_is_no_call_or_no_unwind_record_nothing_is_known)
{
	CHECK_EQ(NUMBER(no_call), -1);
	CHECK_EQ(NUMBER(without_record), -1);
	CHECK_EQ(restart_number(16, 0), -1);
}

/* ------------------------------------------------------------ interrupted calls */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

/* Interrupts a thread every 10 ms with a signal that a program may leave unhandled, for a
 * second or until it is told to stop. */
static int victim;
static bool enough;

static void *poke(void *arg)
{
	struct timespec pause = { 0, 10000000 };

	(void)arg;
	for (int i = 0; i < 100 && !load_relaxed(&enough); i++) {
		nanosleep(&pause, NULL);
		syscall(SYS_tgkill, getpid(), load_relaxed(&victim), SIGURG);
	}
	return NULL;
}

static void poked(void (*call)(void))
{
	pthread_t thread;

	if (TOOL_TSAN)
		SKIP("ThreadSanitizer holds signals back until the call returns");
	store_relaxed(&victim, (int)syscall(SYS_gettid));
	store_relaxed(&enough, false);
	CHECK_EQ(pthread_create(&thread, NULL, poke, NULL), 0);
	call();
	store_relaxed(&enough, true);
	pthread_join(thread, NULL);
}

/* A compiler may put the load of a constant anywhere before the call: here it is right
 * before a zero fifth argument. */
static void inlined_epoll_pwait(void)
{
	struct epoll_event event;
	long result;

	__asm__ volatile("mov %1, %%edi\n\tmov $1, %%edx\n\tmov $50, %%r10d\n\tmov $281, %%eax\n\t"
			 "xor %%r8d, %%r8d\n\tsyscall"
			 : "=&a"(result)
			 : "r"(epoll_create1(0)), "S"(&event)
			 : "rdi", "rdx", "r10", "r8", "rcx", "r11", "memory");
	if (result != 0 && result != -EINTR)
		FAIL("epoll_pwait: %ld", result);
}

GO_TEST(a_call_with_a_zero_fifth_argument_is_not_made_as_read) { poked(inlined_epoll_pwait); }

/* The number is not in the code: the call fails as for any signal. */
static void unknown_number(void)
{
	struct timespec t = { 0, 50000000 };
	volatile long number = SYS_nanosleep;
	long result = number;

	__asm__ volatile("xor %%r8d, %%r8d\n\tsyscall"
			 : "+a"(result) : "D"(&t), "S"(NULL) : "r8", "rcx", "r11", "memory");
	if (result != -EINTR && result != 0)	/* 0: no signal came in time */
		FAIL("nanosleep: %ld", result);
}

GO_TEST(a_call_whose_number_is_not_known_fails_with_EINTR) { poked(unknown_number); }

/* ---------------------------------------------------------- time that is left */

enum { MS = 50, LATE_MS = 500 };	/* signals come for a second */
static const struct timespec span = { 0, MS * 1000000 };

static void takes_its_time(void (*call)(void))
{
	int64_t start = now(), took;

	poked(call);
	took = (now() - start) / 1000000;
	if (took < MS || took > LATE_MS)
		FAIL("took %lld ms, not %d", (long long)took, MS);
}

static void call_usleep(void)          { CHECK_EQ(usleep(MS * 1000), 0); }
static void call_nanosleep(void)
{
	struct timespec left;

	CHECK_EQ(nanosleep(&span, &left), 0);
}
static void call_clock_nanosleep(void) { CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL), 0); }
static void call_poll(void)            { CHECK_EQ(poll(NULL, 0, MS), 0); }
static void call_ppoll(void)           { CHECK_EQ(ppoll(NULL, 0, &span, NULL), 0); }
static void call_epoll_wait(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0);

	CHECK_EQ(epoll_wait(fd, &event, 1, MS), 0);
	close(fd);
}
static void call_futex(void)
{
	uint32_t word = 0;

	CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0), -1);
	CHECK_EQ(errno, ETIMEDOUT);
}
static void call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigtimedwait(&set, NULL, &span), -1);
	CHECK_EQ(errno, EAGAIN);
}
static void call_semtimedop(void)
{
	struct sembuf down = { 0, -1, 0 };
	int s = semget(IPC_PRIVATE, 1, 0600);

	CHECK_EQ(semtimedop(s, &down, 1, &span), -1);
	CHECK_EQ(errno, EAGAIN);
	semctl(s, 0, IPC_RMID);
}

GO_TEST(an_interrupted_sleep_gets_the_time_that_is_left)
{
	GLIBC_ONLY("the number of a call of musl's is not known: it fails with EINTR");
	takes_its_time(call_usleep);
	takes_its_time(call_nanosleep);
	takes_its_time(call_clock_nanosleep);
}

GO_TEST(an_interrupted_poll_gets_the_time_that_is_left)
{
	GLIBC_ONLY("the number of a call of musl's is not known: it fails with EINTR");
	takes_its_time(call_poll);
	takes_its_time(call_ppoll);
	takes_its_time(call_epoll_wait);
}

GO_TEST(an_interrupted_wait_gets_the_time_that_is_left)
{
	GLIBC_ONLY("the number of a call of musl's is not known: it fails with EINTR");
	takes_its_time(call_futex);
	takes_its_time(call_sigtimedwait);
	takes_its_time(call_semtimedop);
}

/* ------------------------------------------------------- code that cannot be read */

/* An endless loop, jmp to itself, at the very start of a mapping. Nothing before it can
 * be read. */
static const uint8_t hot_code[] = { 0xeb, 0xfe };

static void *make_hot_code(int access)
{
	char *at = mmap(NULL, 3 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	at += 1 << 16;
	CHECK_EQ(mprotect(at, 1 << 16, PROT_READ | PROT_WRITE), 0);
	memcpy(at, hot_code, sizeof hot_code);
	CHECK_EQ(mprotect(at, 1 << 16, access), 0);
	return at;
}

static int hot_thread;

/* Runs it with what looks like the result of an interrupted call. */
static void run_hot(void *code)
{
	store_relaxed(&hot_thread, (int)syscall(SYS_gettid));
	__asm__ volatile("mov %0, %%rax\n\tjmp *%1" : : "i"(-EINTR), "r"(code) : "rax");
}

static void beside(void *code)
{
	struct goro_stats s;

	goro_gomaxprocs(1);
	go(run_hot, code);
	do {
		goro_sleep(GORO_MILLISECOND);
		goro_stats_read(&s);
	} while (s.preemptions < 10);
}

GO_TEST(code_at_the_start_of_a_mapping_is_stopped_like_all)
{
	beside(make_hot_code(PROT_READ | PROT_EXEC));
}

/* Where the processor has keys for memory, no one may read it. */
GO_TEST(code_that_can_only_be_executed_is_stopped_like_all)
{
	beside(make_hot_code(PROT_EXEC));
}

static void send_urgent(void)
{
	goro_gomaxprocs(2);
	go(run_hot, make_hot_code(PROT_EXEC));
	AWAIT(load_relaxed(&hot_thread) != 0);
	for (int i = 0; i < 20; i++) {
		usleep(1000);
		CHECK_EQ(syscall(SYS_tgkill, getpid(), load_relaxed(&hot_thread), SIGURG), 0);
	}
}

TEST(a_signal_of_another_kind_leaves_such_code_alone)
{
	in_runtime(send_urgent, "asyncpreemptoff=1");
}

#endif
