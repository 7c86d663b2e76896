/*
 * batch_ring_test.c - the ring that makes gathered writes, where it is made, is busy, is
 * forbidden or is missing.
 */
/* test: procs */
#include <goro.h>

#include <dirent.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "await.h"
#include "io/batch.h"
#include "io/fd.h"
#include "has_ring.h"
#include "in_runtime.h"
#include "net.h"
#include "sched/runtime.h"
#include "syscall_filter.h"

#define CONNS 48

static int near[CONNS], far[CONNS];	/* TCP; far ends are read from */
static int waiting;

static void connect_all(void)
{
	struct sockaddr_in a;
	int l = net_listen(&a);

	for (int i = 0; i < CONNS; i++) {
		near[i] = net_dial(&a);
		far[i] = goro_accept(l, NULL, NULL);
		CHECK(far[i] >= 0);
		CHECK_EQ(setsockopt(far[i], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	}
	goro_close(l);
}

static bool somebody_waits(int fd)
{
	return !fd_queue_empty(&fd_at(fd)->waiters[FD_READ]);
}

/* Until all readers wait, with nothing to read. */
static void await_all(void)
{
	for (int i = 0; i < CONNS; i++)
		AWAIT(somebody_waits(far[i]));
}

static uint64_t sent(void)
{
	return load_relaxed(&batch_counts.sent);
}

struct message {
	int conn, turn;
	char rest[56];
};

/* Answers with what it got, one more. */
static void serve(int i)
{
	struct message m;
	ssize_t n;

	while ((n = goro_read_full(far[i], &m, sizeof m)) == sizeof m) {
		CHECK_EQ(m.conn, i);
		m.turn++;
		CHECK_EQ(goro_write(far[i], &m, sizeof m), (ssize_t)sizeof m);
	}
	CHECK_EQ(n, 0);
	__atomic_fetch_add(&waiting, -1, __ATOMIC_RELAXED);
}

static void serve_all(void)
{
	waiting = CONNS;
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(serve, i), 0);
}

/* Sends one message to each server at once, in two parts if first_part is not all of it,
 * and reads the answers. */
static void one_turn(int turn, size_t first_part)
{
	struct message m = { 0 };

	for (int i = 0; i < CONNS; i++) {
		m.conn = i;
		m.turn = turn;
		CHECK_EQ(send(near[i], &m, first_part, 0), (ssize_t)first_part);
	}
	if (first_part < sizeof m)
		goro_gosched();
	for (int i = 0; i < CONNS && first_part < sizeof m; i++) {
		m.conn = i;
		m.turn = turn;
		CHECK_EQ(send(near[i], (char *)&m + first_part, sizeof m - first_part, 0),
		         (ssize_t)(sizeof m - first_part));
	}
	for (int i = 0; i < CONNS; i++) {
		CHECK_EQ(goro_read_full(near[i], &m, sizeof m), (ssize_t)sizeof m);
		CHECK_EQ(m.conn, i);
		CHECK_EQ(m.turn, turn + 1);
	}
}

static void end_all(void)
{
	for (int i = 0; i < CONNS; i++)
		goro_close(near[i]);
	AWAIT(__atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0);
	for (int i = 0; i < CONNS; i++)
		goro_close(far[i]);
}

static void talk(void)
{
	connect_all();
	serve_all();
	for (int turn = 0; turn < SCALED(2000) || (has_ring() && sent() == 0); turn++) {
		await_all();
		one_turn(turn, turn % 3 ? sizeof(struct message) : 5);
	}
	end_all();
}

TEST(each_gets_its_own) { in_runtime(talk, "batch=1"); }

/* ------------------------------------------------------------- without a ring
 *
 * The system refuses one step or the other of making it. Writes are then what they are
 * without, and nothing of it is left. */

/* No memory for that part of a ring (IORING_OFF_): only rings are mapped so. */
static void refuse_to_map(unsigned long part)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_SHARED | MAP_POPULATE, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)part, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (filter_install(code, sizeof code / sizeof *code, 0) < 0)
		SKIP("no seccomp here");
}

/* Open descriptors of rings. (The runtime opens others at any time.) */
static int rings_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	char to[256];
	int n = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d));) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, to, sizeof to - 1);

		to[len > 0 ? len : 0] = 0;
		n += strstr(to, "io_uring") != NULL;
	}
	closedir(d);
	return n;
}

static int rings_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, "io_uring") != NULL;
	fclose(f);
	return n;
}

/* The call that the filter waits for has not been made yet: see supervise. */
static bool call_is_to_come;

/* Enough turns until a ring is made: most turns have a batch. */
static int serve_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	connect_all();
	serve_all();
	for (int turn = 0; turn < 300 || __atomic_load_n(&call_is_to_come, __ATOMIC_RELAXED); turn++) {
		await_all();
		one_turn(turn, turn % 3 ? sizeof(struct message) : 5);
	}
	end_all();
	return 0;
}

static void serve_gathering(void)
{
	setenv("GORO_DEBUG", "batch=1", 1);
	CHECK_EQ(goro_run(serve_main, 0, NULL), 0);
}

static void serve_without_ring(void)
{
	serve_gathering();
	CHECK_EQ(sent(), 0);
	CHECK_EQ(rings_open(), 0);
	CHECK_EQ(rings_mapped(), 0);
}

/* Without a refusal there is a ring after this many turns: so the tests below test what
 * they say. */
TEST(a_ring_is_made_in_that_time)
{
	serve_gathering();
	if (rings_open() == 0)
		SKIP("no io_uring");
	CHECK(rings_mapped() >= 2);
	CHECK(sent() > 0);
}

TEST(a_ring_may_be_forbidden)
{
	filter_answer(SYS_io_uring_setup, -EPERM);
	serve_without_ring();
}

TEST(a_kernel_may_have_no_rings)
{
	filter_answer(SYS_io_uring_setup, -ENOSYS);
	serve_without_ring();
}

TEST(there_may_be_no_memory_for_the_requests)
{
	refuse_to_map(IORING_OFF_SQ_RING);
	serve_without_ring();
}

TEST(there_may_be_no_memory_for_the_answers)
{
	refuse_to_map(IORING_OFF_CQ_RING);
	serve_without_ring();
}

TEST(there_may_be_no_memory_for_the_entries)
{
	refuse_to_map(IORING_OFF_SQES);
	serve_without_ring();
}

/* ------------------------------------------------- with a ring that is not all right */

/* decide answers this call from now on. */
static void supervise(int call, filter_decide *decide)
{
	needs_ring();
	call_is_to_come = true;
	filter_supervise(call, decide);
}

static void call_has_come(void)
{
	__atomic_store_n(&call_is_to_come, false, __ATOMIC_RELAXED);
}

static uint32_t lacking;	/* IORING_FEAT_ */

/* TOOL_UNORDERED: the caller waits for the answer, which TSan does not see. */
TOOL_UNORDERED static void make_less(const struct seccomp_notif *n, struct seccomp_notif_resp *r)
{
	struct io_uring_params *p = (struct io_uring_params *)(uintptr_t)n->data.args[1];

	call_has_come();
	r->val = syscall(SYS_io_uring_setup, n->data.args[0], p);
	if (r->val < 0)
		SKIP("no io_uring");
	p->features &= ~lacking;
}

TEST(completions_may_be_dropped)
{
	lacking = IORING_FEAT_NODROP;
	supervise(SYS_io_uring_setup, make_less);
	serve_without_ring();
	CHECK(filter_calls() >= 1 && filter_calls() <= load_relaxed(&sched.gomaxprocs));
}

TEST(calls_may_wait)
{
	lacking = IORING_FEAT_NATIVE_WORKERS;
	supervise(SYS_io_uring_setup, make_less);
	serve_without_ring();
	CHECK(filter_calls() >= 1 && filter_calls() <= load_relaxed(&sched.gomaxprocs));
}

static void refuse(const struct seccomp_notif *n, struct seccomp_notif_resp *r)
{
	(void)n;
	call_has_come();
	r->error = -EACCES;
}

/* The kernel takes nothing from the ring. The ring is not used again, nor is another
 * made, except by Ps that try at the same time. */
TEST(a_ring_may_be_of_no_use)
{
	supervise(SYS_io_uring_enter, refuse);
	serve_gathering();
	CHECK_EQ(sent(), 0);
	CHECK(filter_calls() >= 1 && filter_calls() <= load_relaxed(&sched.gomaxprocs));
}

/* The kernel is busy or interrupted every other time. What it did not take it must not
 * take the next time: each client is answered as often as it asks (one_turn), by its own
 * answer. */
static void refuse_half(const struct seccomp_notif *n, struct seccomp_notif_resp *r)
{
	static const int errors[] = { EBUSY, EINTR, EAGAIN };
	int calls = filter_calls();

	call_has_come();
	if (n->data.args[3] & IORING_ENTER_GETEVENTS || calls % 2)
		r->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		r->error = -errors[calls / 2 % 3];
}

TEST(a_ring_may_be_busy)
{
	supervise(SYS_io_uring_enter, refuse_half);
	serve_gathering();
	CHECK(filter_calls() > 2 && sent() > 0);
}

static int forbidden_with;	/* errno */

/* The program forbids the ring in mid-run: from then on writes are system calls. */
static void forbid_in_mid_run(void)
{
	uint64_t before;
	int turn = 0;

	needs_ring();
	connect_all();
	serve_all();
	for (; turn < 300 || (turn < 10000 && sent() == 0); turn++) {
		await_all();
		one_turn(turn, sizeof(struct message));
	}
	if (sent() == 0)
		SKIP("no io_uring");
	await_all();
	filter_everywhere(SYS_io_uring_enter, -forbidden_with);
	before = sent();
	for (int end = turn + 300; turn < end; turn++) {
		await_all();
		one_turn(turn, turn % 3 ? sizeof(struct message) : 5);
	}
	end_all();
	CHECK_EQ(sent(), before);
}

TEST(a_ring_may_be_forbidden_in_mid_run)
{
	forbidden_with = EPERM;
	in_runtime(forbid_in_mid_run, "batch=1");
}

TEST(a_ring_may_be_gone_in_mid_run)
{
	forbidden_with = ENOSYS;
	in_runtime(forbid_in_mid_run, "batch=1");
}
