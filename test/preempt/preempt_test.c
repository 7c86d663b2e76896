/*
 * preempt_test.c - goroutines that never call anything are stopped where they
 * stand, whatever they are in the middle of, and go on as if nothing had been.
 */
#include <goro.h>
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "platform/atomic.h"
#include "await.h"
#include "sched/runtime.h"
#include "test.h"

static bool stop;
static uint64_t rounds;		/* of everybody who counts here */

/* Work that the compiler leaves in. */
static void spin(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

static uint64_t preemptions(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return s.preemptions;
}

/* Something else than the hogs happens, on the only P, and goes on happening. */
static void echo(goro_chan *in, goro_chan *out)
{
	int n;

	while (goro_chan_recv(in, &n))
		goro_chan_send(out, &n);
}

static void others_go_on(void)
{
	goro_chan *in = goro_chan_of(int, 0), *out = goro_chan_of(int, 0);
	int n;

	go(echo, in, out);
	for (int i = 0; i < 20; i++) {
		goro_chan_send(in, &i);
		CHECK(goro_chan_recv(out, &n));
		CHECK_EQ(n, i);
		goro_sleep(GORO_MILLISECOND);
	}
	goro_chan_close(in);
}

/* -------------------------------------------------------- the endless loops */

static void loop(void)
{
	while (!load_relaxed(&stop))
		;
}

static void loop_forever(void)
{
	for (;;)
		__asm__ volatile("");
}

static void beside(void (*hog)(void), int n)
{
	goro_gomaxprocs(1);
	for (int i = 0; i < n; i++)
		go(hog);
	others_go_on();
	CHECK(preemptions() > 0);
	store_relaxed(&stop, true);
}

GO_TEST(an_endless_loop_does_not_hold_up_others)  { beside(loop_forever, 1); }
GO_TEST(endless_loops_do_not_hold_up_others)      { beside(loop_forever, 4); }

static void begin_loop(int *begun)
{
	fetch_add_relaxed(begun, 1);
	loop_forever();
}

/* Those who were just started run before those who were woken, but not each for a
 * slice. */
GO_TEST(who_wakes_does_not_wait_until_all_have_begun)
{
	enum { N = 60 };
	static int begun;

	goro_gomaxprocs(1);
	goro_preempt_disable();		/* or it waits its turn as one who computes */
	for (int i = 0; i < N; i++)
		go(begin_loop, &begun);
	goro_sleep(GORO_MILLISECOND);
	CHECK(load_relaxed(&begun) < N / 2);
	goro_preempt_enable();
}

static FILE *nowhere;

static void print_forever(void)
{
	for (int i = 0; !load_relaxed(&stop); i++)
		fprintf(nowhere, "%d %s %f\n", i, "bottles", i / 7.0);
}

GO_TEST(an_endless_loop_that_prints_does_not_hold_up_others)
{
	nowhere = fopen("/dev/null", "w");
	beside(print_forever, 2);
}

static void allocate_forever(void)
{
	for (size_t i = 0; !load_relaxed(&stop); i++) {
		char *p = malloc(i % 5000 + 1);

		p[i % 5000] = 1;
		free(p);
	}
}

GO_TEST(an_endless_loop_that_allocates_does_not_hold_up_others) { beside(allocate_forever, 2); }

static void copy_forever(void)
{
	static char from[1 << 20];
	char *to = malloc(sizeof from);

	while (!load_relaxed(&stop)) {
		memcpy(to, from, sizeof from);
		if (memcmp(to, from, sizeof from) != 0 || strlen(to) != 0)
			FAIL("a copy differs");
	}
	free(to);
}

/* TSan has these functions to itself, and is not to be stopped in them. */
static void not_in_tsan(void)
{
	if (TOOL_TSAN)
		SKIP("hardly ever outside the sanitizer");
}

GO_TEST(endless_string_functions_do_not_hold_up_others)
{
	not_in_tsan();
	beside(copy_forever, 2);
}

static void call_unsafe_forever(void)
{
	while (!load_relaxed(&stop)) {
		time_t t = 0;
		char text[64];
		struct tm tm;

		localtime_r(&t, &tm);
		strftime(text, sizeof text, "%c", &tm);
		setenv("GORO_PREEMPT_TEST", text, 1);
		CHECK(getenv("GORO_PREEMPT_TEST") != NULL);
		qsort(text, 16, 1, (int (*)(const void *, const void *))strcmp);
	}
}

GO_TEST(functions_that_no_handler_may_call_are_stopped_too)
{
	not_in_tsan();
	beside(call_unsafe_forever, 3);
}

/* ------------------------------------------- what belongs to the goroutine */

/* A kernel that has vector code, divisions, square roots and fused operations, and
 * whose last bits depend on the rounding mode. */
enum { LANES = 64, STEPS = 4000 };

static uint64_t kernel(int mode)
{
	double a[LANES], b[LANES], sum = 0;
	float c[LANES];
	uint64_t bits;

	fesetround(mode);
	for (int i = 0; i < LANES; i++) {
		a[i] = 1 + i / 3.0;
		b[i] = 0.1;
		c[i] = 1.0f / (float)(i + 1);
	}
	for (int step = 0; step < STEPS; step++)
		for (int i = 0; i < LANES; i++) {
			b[i] = fma(a[i], 0.3333, b[i]) / 1.7 + sqrt(a[i]);
			a[i] = a[i] * 0.9999 + b[i] * 0.0001;
			c[i] = c[i] * 1.0001f + (float)b[i] / 3.0f;
		}
	for (int i = 0; i < LANES; i++)
		sum += a[i] + b[i] + (double)c[i];
	memcpy(&bits, &sum, sizeof bits);
	return bits;
}

static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };

static void compute_on(int mode, uint64_t expected)
{
	while (!load_relaxed(&stop)) {
		uint64_t got = kernel(mode);

		if (got != expected)
			FAIL("rounding mode %d: %llx, not %llx", mode, (unsigned long long)got,
			     (unsigned long long)expected);
		fetch_add_relaxed(&rounds, 1);
	}
}

static int run_kernels(int argc, char **argv)
{
	uint64_t expected[4];

	(void)argc, (void)argv;
	goro_preempt_disable();
	for (int i = 0; i < 4; i++)
		expected[i] = kernel(modes[i]);
	fesetround(FE_TONEAREST);
	goro_preempt_enable();
	CHECK(expected[1] != expected[2]);
	for (int i = 0; i < 8; i++)
		go(compute_on, modes[i % 4], expected[i % 4]);
	goro_sleep(seconds(1));
	AWAIT(load_relaxed(&rounds) > 8);
	store_relaxed(&stop, true);
	CHECK(preemptions() > 20);
	return 0;
}

static void kernels_on(const char *procs)
{
	setenv("GORO_MAXPROCS", procs, 1);
	setenv("GORO_DEBUG", "slice=1000", 1);
	goro_run(run_kernels, 0, NULL);
}

TEST(vector_code_with_its_own_rounding_mode_on_1) { kernels_on("1"); }
TEST(vector_code_with_its_own_rounding_mode_on_2) { kernels_on("2"); }

static __thread int my_thread_local;

/* Both stay what they were between two instructions of ours, since a goroutine is
 * stopped on its thread. No call in the loop, so it never moves. */
static void errno_keeper(int value)
{
	int *at;

	goro_lock_os_thread();	/* the addresses below are one thread's */
	errno = value;
	my_thread_local = value;
	at = &my_thread_local;
	while (!load_relaxed(&stop)) {
		spin(100);
		if (errno != value || *at != value || &my_thread_local != at)
			FAIL("errno or a thread-local variable is another goroutine's");
		fetch_add_relaxed(&rounds, 1);
	}
}

GO_TEST(errno_and_thread_local_variables_survive)
{
	goro_gomaxprocs(2);
	for (int i = 1; i <= 6; i++)
		go(errno_keeper, i);
	goro_sleep(seconds(1) / 2);
	store_relaxed(&stop, true);
	CHECK(preemptions() > 5);
}

static pthread_mutex_t recursive;

/* A thread that entered it twice by accident would find the depth wrong. */
static void lock_recursively(int *inside)
{
	while (!load_relaxed(&stop)) {
		pthread_mutex_lock(&recursive);
		CHECK_EQ(++*inside, 1);
		pthread_mutex_lock(&recursive);
		CHECK_EQ(++*inside, 2);
		spin(1000);
		*inside -= 2;
		pthread_mutex_unlock(&recursive);
		pthread_mutex_unlock(&recursive);
		fetch_add_relaxed(&rounds, 1);
	}
}

GO_TEST(a_recursive_mutex_is_held_by_one_goroutine)
{
	pthread_mutexattr_t attr;
	int inside = 0;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attr);
	goro_gomaxprocs(1);
	for (int i = 0; i < 6; i++)
		go(lock_recursively, &inside);
	goro_sleep(seconds(1) / 2);
	store_relaxed(&stop, true);
	CHECK(load_relaxed(&rounds) > 0);
	CHECK(preemptions() > 0);
	AWAIT(goro_num_goroutine() == 1);
}

/* -------------------------------------------------------------- opting out */

static int ran;

static void run_once(void)
{
	fetch_add_relaxed(&ran, 1);
}

static int64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

/* CPU time, so that a busy machine does not make it shorter. */
static void compute_for(int64_t ns)
{
	int64_t end = cpu_now() + ns;

	while (cpu_now() < end)
		;
}

GO_TEST(preemption_is_off_between_disable_and_enable)
{
	goro_gomaxprocs(1);
	for (int i = 0; i < 3; i++)
		go(loop);
	AWAIT(preemptions() > 0);
	goro_preempt_disable();
	go(run_once);
	compute_for(50 * GORO_MILLISECOND);
	goro_preempt_disable();
	compute_for(50 * GORO_MILLISECOND);
	goro_preempt_enable();
	compute_for(50 * GORO_MILLISECOND);
	CHECK_EQ(load_relaxed(&ran), 0);
	goro_preempt_enable();
	AWAIT(load_relaxed(&ran) == 1);
	store_relaxed(&stop, true);
}

/* At the end of the stretch, whoever waited need not wait for another slice; unless it
 * was just the turn of the global queue, where we are the first. */
GO_TEST(enable_gives_way_to_those_who_wait)
{
	goro_gomaxprocs(1);
	for (int i = 0; i < 3; i++) {
		store_relaxed(&ran, 0);
		goro_preempt_disable();
		go(run_once);
		compute_for(50 * GORO_MILLISECOND);
		CHECK_EQ(load_relaxed(&ran), 0);
		goro_preempt_enable();
		if (load_relaxed(&ran) == 1)
			return;
		goro_gosched();
	}
	FAIL("not once in three times");
}

GO_TEST(one_enable_too_many_is_nothing)
{
	goro_gomaxprocs(1);
	goro_preempt_enable();
	goro_preempt_disable();
	goro_preempt_enable();
	goro_preempt_enable();
	go(loop);
	others_go_on();
	compute_for(20 * GORO_MILLISECOND);
	store_relaxed(&stop, true);
}

static bool stretch_over, was_stopped;

static void *watch_stopped(void *arg)
{
	struct m *mp = arg;

	while (!load_relaxed(&stretch_over))
		if (load_relaxed(&mp->stopped_at))
			store_relaxed(&was_stopped, true);
	return NULL;
}

/* The P is lost in the sleep, but the goroutine goes on after it. */
GO_TEST(a_stretch_without_preemption_may_sleep)
{
	struct timespec nap = { 0, 20000000 };
	pthread_t thread;

	goro_gomaxprocs(1);
	for (int i = 0; i < 2; i++)
		go(loop);
	AWAIT(preemptions() > 0);
	goro_preempt_disable();
	CHECK(pthread_create(&thread, NULL, watch_stopped, m_self()) == 0);
	do
		nanosleep(&nap, NULL);
	while (!(load_acquire(&m_self()->attn) & ATTN_TAKEN));
	compute_for(30 * GORO_MILLISECOND);
	store_relaxed(&stretch_over, true);
	pthread_join(thread, NULL);
	CHECK(!was_stopped);
	goro_preempt_enable();
	store_relaxed(&stop, true);
}

/* ------------------------------------------------------- whose slice is over */

/* As sysmon asks; and a call on whose way out it is looked at. */
static void ask_for_the_end_of(uint64_t slice)
{
	goro_chan *c = goro_chan_of(int, 1);

	store_relaxed(&m_self()->over_tick, slice);
	fetch_or_acqrel(&m_self()->attn, ATTN_SLICE);
	CHECK(goro_chan_try_send(c, &(int){ 1 }));
	CHECK(!(load_relaxed(&m_self()->attn) & ATTN_SLICE));
	goro_chan_unref(c);
}

/* Who has just come would have to wait for all who compute. */
GO_TEST(who_begins_does_not_give_way_for_another)
{
	uint64_t before;

	goro_gomaxprocs(1);
	before = preemptions();
	ask_for_the_end_of(p_slices(m_self()->p) - 1);
	CHECK_EQ(preemptions(), before);
	ask_for_the_end_of(p_slices(m_self()->p));
	CHECK_EQ(preemptions(), before + 1);
}

/* --------------------------------------------------------- stop the world */

static int64_t process_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

/* Not only the Ps of those who never call are taken: they stop. */
GO_TEST(fewer_ps_stop_those_who_never_call)
{
	int64_t cpu, start;
	double used;

	if (TOOL_TSAN)
		SKIP("who is in the sanitizer's code is not stopped there, and goes on for a while");
	goro_gomaxprocs(4);
	for (int i = 0; i < 6; i++)
		go(loop);
	AWAIT(preemptions() > 4);
	goro_gomaxprocs(1);
	goro_sleep(50 * GORO_MILLISECOND);
	start = goro_now();
	cpu = process_cpu();
	goro_sleep(400 * GORO_MILLISECOND);
	used = (double)(process_cpu() - cpu) / (double)(goro_now() - start);
	if (used > 1.25)
		FAIL("on 1 P goroutines keep %.2f CPUs busy", used);
	store_relaxed(&stop, true);
}

static void change_procs(void)
{
	for (int n = 1; n <= 8; n++)
		goro_gomaxprocs(n);
}

GO_TEST(a_stop_does_not_wait_for_those_who_never_call)
{
	int64_t start;

	goro_gomaxprocs(2);
	for (int i = 0; i < 4; i++)
		go(loop_forever);
	AWAIT(preemptions() > 0);
	start = goro_now();
	change_procs();
	if (goro_now() - start > seconds(5))
		FAIL("8 stops took %lld ms", (long long)((goro_now() - start) / 1000000));
}

/* --------------------------------------------------- the program's signals */

static int urgent;		/* how many came, how .. */
static int urgent_code, urgent_value;

static void on_urgent(int sig, siginfo_t *info, void *uc)
{
	(void)sig, (void)uc;
	urgent_code = info->si_code;
	urgent_value = info->si_value.sival_int;
	fetch_add_relaxed(&urgent, 1);
}

static void on_urgent_plain(int sig)
{
	(void)sig;
	fetch_add_relaxed(&urgent, 1);
}

static void send_all_ways(void)
{
	int before = load_relaxed(&urgent);

	CHECK_EQ(raise(SIGURG), 0);
	AWAIT(load_relaxed(&urgent) == before + 1);
	CHECK_EQ(kill(getpid(), SIGURG), 0);
	AWAIT(load_relaxed(&urgent) == before + 2);
	CHECK_EQ(pthread_kill(pthread_self(), SIGURG), 0);
	AWAIT(load_relaxed(&urgent) == before + 3);
	CHECK_EQ(sigqueue(getpid(), SIGURG, (union sigval){ .sival_int = 42 }), 0);
	AWAIT(load_relaxed(&urgent) == before + 4);
}

/* Exactly those that the program sent, among many that we send. */
static int use_sigurg(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_gomaxprocs(1);
	for (int i = 0; i < 2; i++)
		go(loop);
	AWAIT(preemptions() > 5);
	send_all_ways();
	others_go_on();
	CHECK_EQ(load_relaxed(&urgent), 4);
	store_relaxed(&stop, true);
	return 0;
}

static void not_with_tsan(void)
{
	if (TOOL_TSAN)
		SKIP("the sanitizer holds signals back");
}

TEST(a_sigurg_handler_from_before_sees_its_own)
{
	not_with_tsan();
	signal(SIGURG, on_urgent_plain);
	goro_run(use_sigurg, 0, NULL);
}

TEST(a_sigurg_handler_from_before_sees_the_information)
{
	struct sigaction sa = { .sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO };

	not_with_tsan();
	sigaction(SIGURG, &sa, NULL);
	goro_run(use_sigurg, 0, NULL);
	CHECK_EQ(urgent_code, SI_QUEUE);
	CHECK_EQ(urgent_value, 42);
}

static sigjmp_buf out;

static void leave_by_jump(int sig)
{
	(void)sig;
	fetch_add_relaxed(&urgent, 1);
	siglongjmp(out, 1);
}

static int jump_out(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (volatile int i = 0; i < 10; i++) {
		if (sigsetjmp(out, 1) == 0)
			raise(SIGURG);
		CHECK_EQ(load_relaxed(&urgent), i + 1);
	}
	return 0;
}

TEST(a_sigurg_handler_that_leaves_by_siglongjmp_is_called_again)
{
	not_with_tsan();
	signal(SIGURG, leave_by_jump);
	goro_run(jump_out, 0, NULL);
}

static struct sigaction found;	/* where the program put its own */

static void on_urgent_chained(int sig, siginfo_t *info, void *uc)
{
	fetch_add_relaxed(&urgent, 1);
	if (found.sa_flags & SA_SIGINFO)
		found.sa_sigaction(sig, info, uc);
	else if (found.sa_handler != SIG_DFL && found.sa_handler != SIG_IGN)
		found.sa_handler(sig);
}

/* Until we see that the handler is not ours, ours go there too: from then on it
 * sees its own only, and preemption goes on. */
static void install_late(struct sigaction *sa)
{
	uint64_t before;
	int seen;

	not_with_tsan();
	goro_gomaxprocs(1);
	for (int i = 0; i < 2; i++)
		go(loop);
	AWAIT(preemptions() > 5);
	sigaction(SIGURG, sa, &found);
	before = preemptions();
	AWAIT(preemptions() > before + 5);
	seen = load_relaxed(&urgent);
	send_all_ways();
	others_go_on();
	CHECK_EQ(load_relaxed(&urgent), seen + 4);
	store_relaxed(&stop, true);
}

GO_TEST(a_sigurg_handler_installed_later_sees_its_own)
{
	install_late(&(struct sigaction){ .sa_handler = on_urgent_plain });
}

GO_TEST(a_sigurg_handler_may_call_the_one_it_replaced)
{
	install_late(&(struct sigaction){ .sa_sigaction = on_urgent_chained,
	                                  .sa_flags = SA_SIGINFO });
}

GO_TEST(preemption_survives_a_program_that_ignores_sigurg)
{
	not_with_tsan();
	goro_gomaxprocs(1);
	signal(SIGURG, SIG_IGN);
	go(loop_forever);
	others_go_on();
}

/* A page that its handler makes writable at the first touch, as collectors and
 * emulators do: again and again, in goroutines that are preempted. */
static struct { char *page; uint64_t faults; } barrier[4];
static char *outside;		/* an address that a handler saw of its own stack */

static void on_barrier(int sig, siginfo_t *info, void *uc)
{
	char here;

	(void)sig, (void)uc;
	store_relaxed(&outside, &here);
	for (int i = 0; i < 4; i++)
		if ((char *)info->si_addr == barrier[i].page) {
			barrier[i].faults++;
			mprotect(barrier[i].page, 4096, PROT_READ | PROT_WRITE);
			spin(100000);	/* and is preempted here, too */
			return;
		}
	_exit(3);
}

static void touch_on(int i, uint64_t *touches)
{
	while (!load_relaxed(&stop)) {
		mprotect(barrier[i].page, 4096, PROT_NONE);
		*(volatile char *)barrier[i].page = 1;
		spin(100000);
		++*touches;
	}
}

static void touch_barriers(struct sigaction *sa)
{
	uint64_t touches[4] = { 0 };

	sigaction(SIGSEGV, sa, NULL);
	for (int i = 0; i < 4; i++) {
		barrier[i].page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(barrier[i].page != MAP_FAILED);
	}
	goro_gomaxprocs(1);
	for (int i = 0; i < 4; i++)
		go(touch_on, i, &touches[i]);
	goro_sleep(seconds(1) / 2);
	AWAIT(preemptions() > 5);
	store_relaxed(&stop, true);
	AWAIT(goro_num_goroutine() == 1);
	for (int i = 0; i < 4; i++) {
		CHECK(touches[i] > 0);
		CHECK_EQ(barrier[i].faults, touches[i]);
	}
}

GO_TEST(a_sigsegv_handler_that_repairs_is_preempted_like_all)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer has this signal");
	touch_barriers(&(struct sigaction){ .sa_sigaction = on_barrier, .sa_flags = SA_SIGINFO });
}

GO_TEST(a_sigsegv_handler_may_use_our_signal_stack)
{
	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer has this signal");
	touch_barriers(&(struct sigaction){ .sa_sigaction = on_barrier,
	                                    .sa_flags = SA_SIGINFO | SA_ONSTACK });
}

/* A goroutine locked to its thread may have a signal stack of its own there: its
 * handler runs on it, and so does preemption. */
static char own_stack[32 << 10];

static void with_own_stack(goro_waitgroup *wg)
{
	stack_t ss = { .ss_sp = own_stack, .ss_size = sizeof own_stack }, old;
	uint64_t touches = 0;
	int64_t end = goro_now() + seconds(1) / 2;

	goro_lock_os_thread();
	CHECK_EQ(sigaltstack(&ss, &old), 0);
	while (goro_now() < end) {
		mprotect(barrier[0].page, 4096, PROT_NONE);
		*(volatile char *)barrier[0].page = 1;
		CHECK(outside >= own_stack && outside < own_stack + sizeof own_stack);
		spin(100000);
		touches++;
	}
	CHECK_EQ(barrier[0].faults, touches);
	CHECK_EQ(sigaltstack(&old, NULL), 0);
	goro_unlock_os_thread();
	goro_waitgroup_done(wg);
}

GO_TEST(a_locked_goroutine_may_have_a_signal_stack_of_its_own)
{
	struct sigaction sa = { .sa_sigaction = on_barrier, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	goro_waitgroup wg = { 0 };

	if (TOOL_ASAN || TOOL_TSAN)
		SKIP("the sanitizer has this signal");
	sigaction(SIGSEGV, &sa, NULL);
	barrier[0].page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	goro_gomaxprocs(1);
	for (int i = 0; i < 2; i++)
		go(loop);
	goro_waitgroup_add(&wg, 1);
	go(with_own_stack, &wg);
	goro_waitgroup_wait(&wg);
	CHECK(preemptions() > 5);
	store_relaxed(&stop, true);
}
