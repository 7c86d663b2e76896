/*
 * batch_read_test.c - reads that are done for those who wait, together.
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
static int waiting, failed;

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

static uint64_t reads(void)
{
	return load_relaxed(&batch_counts.read);
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

GO_TEST(each_gets_its_own)
{
	connect_all();
	serve_all();
	for (int turn = 0; turn < SCALED(2000) || (has_ring() && reads() == 0); turn++)
		one_turn(turn, turn % 3 ? sizeof(struct message) : 5);
	end_all();
}

/* Until a ring has read for goroutines; false: there is no ring. */
static bool batches(void)
{
	for (int turn = 0; turn < 2000 && has_ring(); turn++) {
		uint64_t before = reads();

		await_all();
		one_turn(turn, sizeof(struct message));
		if (reads() >= before + CONNS / 2)
			return true;
	}
	return false;
}

/* The end of the file comes to all readers at once. */
GO_TEST(the_end_is_a_result)
{
	connect_all();
	serve_all();
	if (!batches())
		SKIP("no io_uring");
	await_all();
	end_all();	/* serve checks that it got 0 */
}

static void read_reset(int i)
{
	char c;
	ssize_t n = goro_read(far[i], &c, 1);

	if (n != -ECONNRESET)
		__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waiting, -1, __ATOMIC_RELAXED);
}

/* The waiting reader gets an error, once: it is gone after that. */
GO_TEST(an_error_is_a_result)
{
	connect_all();
	serve_all();
	if (!batches())
		SKIP("no io_uring");
	end_all();
	connect_all();
	waiting = CONNS;
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(read_reset, i), 0);
	await_all();
	for (int i = 0; i < CONNS; i++) {
		struct linger none = { .l_onoff = 1, .l_linger = 0 };

		CHECK_EQ(setsockopt(near[i], SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
		goro_close(near[i]);
	}
	AWAIT(__atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0);
	CHECK_EQ(__atomic_load_n(&failed, __ATOMIC_RELAXED), 0);
	for (int i = 0; i < CONNS; i++)
		goro_close(far[i]);
}

/* Where this test reads first, the data of an event is gone when the P reads it: the
 * reader goes on waiting. */
GO_TEST(nothing_left_is_no_result)
{
	struct message m = { 0 };

	connect_all();
	serve_all();
	if (!batches())
		SKIP("no io_uring");
	for (int turn = 0; turn < 100; turn++) {
		await_all();
		for (int i = 0; i < CONNS; i++) {
			m.conn = i;
			CHECK_EQ(send(near[i], &m, sizeof m, 0), (ssize_t)sizeof m);
		}
		for (int i = 0; i < CONNS; i++)
			if (recv(far[i], &m, sizeof m, MSG_DONTWAIT) != sizeof m)
				CHECK_EQ(goro_read_full(near[i], &m, sizeof m), (ssize_t)sizeof m);
		one_turn(turn, sizeof m);
	}
	end_all();
}

/* Much at once is read all the same, and in order. */
#define MUCH 30000

static void read_much(int i)
{
	unsigned char buf[8192];
	int at = 0;
	ssize_t n;

	while ((n = goro_read(far[i], buf, sizeof buf)) > 0)
		for (ssize_t k = 0; k < n; k++, at++)
			CHECK_EQ(buf[k], at % 251);
	CHECK_EQ(n, 0);
	CHECK_EQ(at, MUCH);
	__atomic_fetch_add(&waiting, -1, __ATOMIC_RELAXED);
}

GO_TEST(much_comes_in_order)
{
	static unsigned char data[MUCH];

	for (int i = 0; i < MUCH; i++)
		data[i] = (unsigned char)(i % 251);
	connect_all();
	serve_all();
	batches();
	end_all();
	connect_all();
	waiting = CONNS;
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(read_much, i), 0);
	await_all();
	for (int at = 0; at < MUCH; at += 1000)
		for (int i = 0; i < CONNS; i++)
			CHECK_EQ(goro_write(near[i], data + at, 1000), 1000);
	end_all();
}

/* ------------------------------------------------------------- without a ring
 *
 * The system refuses one step or the other of making it. Reads are then what they are
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

static void serve_without_ring(void)
{
	CHECK_EQ(goro_run(serve_main, 0, NULL), 0);
	CHECK_EQ(reads(), 0);
	CHECK_EQ(load_relaxed(&batch_counts.sent), 0);
	CHECK_EQ(rings_open(), 0);
	CHECK_EQ(rings_mapped(), 0);
}

/* Without a refusal there is a ring after this many turns: so the tests below test what
 * they say. */
TEST(a_ring_is_made_in_that_time)
{
	CHECK_EQ(goro_run(serve_main, 0, NULL), 0);
	if (rings_open() == 0)
		SKIP("no io_uring");
	CHECK(rings_mapped() >= 2);
	CHECK(reads() > 0);
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

TEST(reads_may_wait)
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
	CHECK_EQ(goro_run(serve_main, 0, NULL), 0);
	CHECK_EQ(reads(), 0);
	CHECK_EQ(load_relaxed(&batch_counts.sent), 0);
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
	CHECK_EQ(goro_run(serve_main, 0, NULL), 0);
	CHECK(filter_calls() > 2 && reads() > 0);
}

static int forbidden_with;	/* errno */

/* The program forbids the ring in mid-run: from then on reads are system calls. */
static void forbid_in_mid_run(void)
{
	uint64_t before, posted_before;
	int turn = 0;

	needs_ring();
	connect_all();
	serve_all();
	for (; turn < 300 || (turn < 10000 && reads() == 0); turn++) {
		await_all();
		one_turn(turn, sizeof(struct message));
	}
	if (reads() == 0)
		SKIP("no io_uring");
	await_all();
	filter_everywhere(SYS_io_uring_enter, -forbidden_with);
	before = reads();
	posted_before = load_relaxed(&batch_counts.sent);
	for (int end = turn + 300; turn < end; turn++) {
		await_all();
		one_turn(turn, turn % 3 ? sizeof(struct message) : 5);
	}
	end_all();
	CHECK_EQ(reads(), before);
	CHECK_EQ(load_relaxed(&batch_counts.sent), posted_before);
}

TEST(a_ring_may_be_forbidden_in_mid_run)
{
	forbidden_with = EPERM;
	in_runtime(forbid_in_mid_run, "");
}

TEST(a_ring_may_be_gone_in_mid_run)
{
	forbidden_with = ENOSYS;
	in_runtime(forbid_in_mid_run, "batch=1");
}
