/*
 * batch_send_test.c - writes that are gathered, and sent together.
 *
 * GORO_DEBUG=batch=1 gathers every write that may be, whatever is expected of other
 * goroutines, so the tests often come to it.
 */
/* test: procs */
#include <goro.h>

#include <pthread.h>
#include <sys/socket.h>

#include "await.h"
#include "io/batch.h"
#include "io/fd.h"
#include "has_ring.h"
#include "in_runtime.h"
#include "sched/linger.h"
#include "net.h"
#include "platform/os.h"
#include "sched/runtime.h"

#define CONNS 24

/* Whether most goroutines that come through a gate together are in the P's own queue.
 * Where that holds four, the first may find too few others there to gather. */
#define QUEUE_HOLDS_ALL (GORO_RUNQ_CAP >= CONNS)

static int near[CONNS], far[CONNS];
static int busy;		/* goroutines of the test's that have not ended */

static uint64_t posted(void)
{
	return load_relaxed(&batch_counts.sent);
}

static uint64_t late(void)
{
	return load_relaxed(&batch_counts.late);
}

static void connect_one(int i)
{
	int fd[2];

	net_pair(fd);
	near[i] = fd[0];
	far[i] = fd[1];
}

static void connect_all(void)
{
	for (int i = 0; i < CONNS; i++)
		connect_one(i);
}

static void close_all(void)
{
	for (int i = 0; i < CONNS; i++) {
		CHECK_EQ(goro_close(near[i]), 0);
		CHECK_EQ(goro_close(far[i]), 0);
	}
}

static void ended(void)
{
	__atomic_fetch_add(&busy, -1, __ATOMIC_RELEASE);
}

static void await_all(void)
{
	AWAIT(__atomic_load_n(&busy, __ATOMIC_ACQUIRE) == 0);
}

/* All goroutines at the gate come through it together, and run one after the other. */
static goro_mutex gate_lock;
static goro_cond gate;
static int at_gate, gate_turn;

static void pass_gate(void)
{
	int turn;

	goro_mutex_lock(&gate_lock);
	turn = gate_turn;
	at_gate++;
	while (gate_turn == turn)
		goro_cond_wait(&gate, &gate_lock);
	goro_mutex_unlock(&gate_lock);
}

static int waiting_there(void)
{
	int n;

	goro_mutex_lock(&gate_lock);
	n = at_gate;
	goro_mutex_unlock(&gate_lock);
	return n;
}

static void open_gate(int n)
{
	AWAIT(waiting_there() == n);
	goro_mutex_lock(&gate_lock);
	at_gate = 0;
	gate_turn++;
	goro_cond_broadcast(&gate);
	goro_mutex_unlock(&gate_lock);
}

static void start_all(void (*f)(int), int n)
{
	__atomic_store_n(&busy, n, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_go(f, i), 0);
}

/* ------------------------------------------------------------- what is sent */

struct message {
	int conn, turn;
	char rest[56];
};

/* Sends in three ways, or in one. */
static int only_way = -1;

static ssize_t send_to(int fd, const void *buf, size_t n, int way)
{
	way = only_way >= 0 ? only_way : way;
	return way % 3 == 0 ? goro_write(fd, buf, n) :
	       way % 3 == 1 ? goro_send(fd, buf, n, MSG_NOSIGNAL) : goro_write_full(fd, buf, n);
}

static void serve(int i)
{
	struct message m;
	ssize_t n;

	while ((n = goro_read_full(far[i], &m, sizeof m)) == sizeof m) {
		CHECK_EQ(m.conn, i);
		m.turn++;
		CHECK_EQ(send_to(far[i], &m, sizeof m, i), (ssize_t)sizeof m);
	}
	CHECK_EQ(n, 0);
	ended();
}

static int turns;

static void ask(int i)
{
	struct message m = { .conn = i };

	for (int turn = 0; turn < turns; turn++) {
		m.turn = turn;
		CHECK_EQ(send_to(near[i], &m, sizeof m, i + turn), (ssize_t)sizeof m);
		memset(&m, 0xff, sizeof m);
		CHECK_EQ(goro_read_full(near[i], &m, sizeof m), (ssize_t)sizeof m);
		CHECK_EQ(m.conn, i);
		CHECK_EQ(m.turn, turn + 1);
	}
	CHECK_EQ(shutdown(near[i], SHUT_WR), 0);
	ended();
}

/* n questions and answers on each connection. */
static void converse(int n)
{
	connect_all();
	turns = n;
	start_all(serve, CONNS);
	__atomic_fetch_add(&busy, CONNS, __ATOMIC_RELAXED);
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(ask, i), 0);
}

static void talk_for(int n)
{
	converse(n);
	await_all();
	close_all();
}

static void talk(void)
{
	talk_for(SCALED(1000));
}

/* Talks until some writes have been gathered: from here on they are. */
static void warm_up(void)
{
	uint64_t before = posted();

	needs_ring();
	for (int i = 0; i < 200 && posted() == before; i++)
		talk_for(SCALED(200));
	if (posted() == before)
		SKIP("no io_uring");
}

static void by_send(void)
{
	uint64_t before = posted();

	needs_ring();
	only_way = 1;
	for (int i = 0; i < 200 && posted() == before; i++)
		talk_for(SCALED(200));
	CHECK(posted() > before || !QUEUE_HOLDS_ALL);
}

TEST(send_is_gathered_as_write_is) { in_runtime(by_send, "batch=1"); }
TEST(each_is_sent_as_it_was_written) { in_runtime(warm_up, "batch=1"); }
TEST(without_a_ring) { in_runtime(talk, "batch=1,nouring=1"); CHECK_EQ(posted(), 0); }
TEST(it_can_be_switched_off) { in_runtime(talk, "batch=-1"); CHECK_EQ(posted(), 0); }
TEST(on_another_p_each_time) { in_runtime(talk, "batch=1,migrate=1"); }
TEST(by_itself) { in_runtime(talk, ""); }

/* On one P, in the order in which they wrote; unless one is preempted. */
enum { IN_ORDER = 16 };
static int wrote[IN_ORDER], wrote_n, went_on[IN_ORDER], went_on_n;

static void write_in_turn(int i)
{
	pass_gate();
	wrote[wrote_n++] = i;
	CHECK_EQ(goro_write(near[i], "x", 1), 1);
	went_on[went_on_n++] = i;
	ended();
}

static bool go_on_in_order(void)
{
	uint64_t before = posted();

	wrote_n = went_on_n = 0;
	start_all(write_in_turn, IN_ORDER);
	open_gate(IN_ORDER);
	await_all();
	return posted() >= before + IN_ORDER / 2 && memcmp(wrote, went_on, sizeof wrote) == 0;
}

static void in_order(void)
{
	if (!QUEUE_HOLDS_ALL)
		SKIP("the queue is too short for that");
	warm_up();
	goro_gomaxprocs(1);
	connect_all();
	for (int tries = 200; !go_on_in_order();)
		CHECK(--tries > 0);
	close_all();
}

TEST(writers_go_on_in_the_order_in_which_they_wrote) { in_runtime(in_order, "batch=1"); }

/* No other goroutine is about to run: the write is made at once. */
static void one_alone(void)
{
	uint64_t before;

	warm_up();
	before = posted();
	connect_one(0);
	for (int i = 0; i < 1000; i++) {
		char c = (char)i;

		CHECK_EQ(goro_write(near[0], &c, 1), 1);
		CHECK_EQ(goro_read(far[0], &c, 1), 1);
	}
	CHECK_EQ(posted(), before);
}

TEST(one_alone_waits_for_nobody) { in_runtime(one_alone, "batch=1"); }

/* The world is stopped now and then, and Ps go out of use. */
static void with_stops(void)
{
	struct goro_stats stats;

	converse(SCALED(1500));
	for (int i = 0; __atomic_load_n(&busy, __ATOMIC_ACQUIRE) != 0; i++) {
		goro_gomaxprocs(1 + i % 5);
		goro_stats_read(&stats);
		goro_sleep(i % 7 * 100 * GORO_MICROSECOND);
	}
	close_all();
}

TEST(ps_come_and_go) { in_runtime(with_stops, "batch=1"); }

/* Plain signals, and calls that block, announced or not, in between. */
static int stop;

static void block_now_and_then(int i)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (i % 2)
			goro_syscall_enter();
		usleep(300);
		if (i % 2)
			goro_syscall_exit();
		goro_sleep(GORO_MILLISECOND);
	}
}

static void beside_blockers(void)
{
	for (int i = 0; i < 4; i++)
		CHECK_EQ(goro_go(block_now_and_then, i), 0);
	talk();
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

TEST(others_block) { in_runtime(beside_blockers, "batch=1"); }

/* ------------------------------------------------------ what cannot be sent */

#define PIECE  1500
#define PIECES 40

/* Much more than fits: it waits, and comes whole and in order. */
static void write_much(int i)
{
	unsigned char piece[PIECE];

	pass_gate();
	for (int k = 0; k < PIECES; k++) {
		for (int at = 0; at < PIECE; at++)
			piece[at] = (unsigned char)((k * PIECE + at) % 251);
		CHECK_EQ(send_to(near[i], piece, PIECE, i), PIECE);
	}
	CHECK_EQ(shutdown(near[i], SHUT_WR), 0);
	ended();
}

static void read_slowly(int i)
{
	unsigned char buf[1000];
	int at = 0;
	ssize_t n;

	while ((n = goro_read(far[i], buf, sizeof buf)) > 0) {
		for (ssize_t k = 0; k < n; k++, at++)
			CHECK_EQ(buf[k], at % 251);
		if (at % 7 == 0)
			goro_sleep(100 * GORO_MICROSECOND);
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(at, PIECE * PIECES);
	ended();
}

static void fill_up(void)
{
	warm_up();
	connect_all();
	for (int i = 0; i < CONNS; i++) {
		CHECK_EQ(setsockopt(near[i], SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int)), 0);
		CHECK_EQ(setsockopt(far[i], SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)), 0);
	}
	start_all(write_much, CONNS);
	open_gate(CONNS);
	__atomic_fetch_add(&busy, CONNS, __ATOMIC_RELAXED);
	for (int i = 0; i < CONNS; i++)
		CHECK_EQ(goro_go(read_slowly, i), 0);
	await_all();
	close_all();
}

TEST(more_than_fits_comes_in_order) { in_runtime(fill_up, "batch=1"); }

/* No goroutine reads, and the deadline comes. */
static void write_until_late(int i)
{
	static char piece[PIECE];
	ssize_t r;

	pass_gate();
	CHECK_EQ(goro_set_deadline(near[i], GORO_FOREVER, goro_now() + 20 * GORO_MILLISECOND), 0);
	do
		r = goro_write(near[i], piece, sizeof piece);
	while (r == PIECE);
	if (r > 0)
		r = goro_write(near[i], piece, sizeof piece);
	CHECK_EQ(r, -ETIMEDOUT);
	CHECK_EQ(goro_write(near[i], piece, 1), -ETIMEDOUT);
	ended();
}

static void deadlines(void)
{
	warm_up();
	connect_all();
	start_all(write_until_late, CONNS);
	open_gate(CONNS);
	await_all();
	close_all();
}

TEST(the_deadline_comes) { in_runtime(deadlines, "batch=1"); }

/* The other end is closed: an error, and no signal. */
static void write_to_nobody(int i)
{
	char buf[64] = "";
	ssize_t r;

	pass_gate();
	r = goro_write(near[i], buf, sizeof buf);
	CHECK(r == -ECONNRESET || r == -EPIPE);
	CHECK_EQ(goro_write(near[i], buf, sizeof buf), -EPIPE);
	ended();
}

static void errors(void)
{
	struct linger none = { .l_onoff = 1, .l_linger = 0 };
	uint64_t before;

	warm_up();
	before = posted();
	for (int k = 0; k < 20 || (posted() == before && QUEUE_HOLDS_ALL && k < 2000); k++) {
		connect_all();
		for (int i = 0; i < CONNS; i++) {
			CHECK_EQ(setsockopt(far[i], SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
			CHECK_EQ(goro_close(far[i]), 0);
		}
		start_all(write_to_nobody, CONNS);
		open_gate(CONNS);
		await_all();
		for (int i = 0; i < CONNS; i++)
			CHECK_EQ(goro_close(near[i]), 0);
	}
	CHECK(posted() > before || !QUEUE_HOLDS_ALL);
}

TEST(an_error_is_told_to_who_wrote) { in_runtime(errors, "batch=1"); }

/* ------------------------------------------------------------------ closing */

static int written[CONNS];	/* 1: it has returned */

static void write_once(int i)
{
	char buf[64] = "of the old file";
	int fd = near[i];
	ssize_t r;

	pass_gate();
	r = goro_write(fd, buf, sizeof buf);
	CHECK(r == sizeof buf || r == -ECANCELED);
	__atomic_store_n(&written[i], 1, __ATOMIC_RELAXED);
	ended();
}

static bool is_used(int fd)
{
	return load_relaxed(&fd_known(fd)->word) & REFS;
}

/* Closed while it is being written to; the number is another file's at once. */
static void close_and_open(int i)
{
	char c;

	while (!is_used(near[i]) && !__atomic_load_n(&written[i], __ATOMIC_RELAXED))
		goro_gosched();
	CHECK_EQ(goro_close(near[i]), 0);
	CHECK_EQ(goro_close(far[i]), 0);
	connect_one(i);
	for (int k = 0; k < 3; k++) {
		CHECK_EQ(recv(far[i], &c, 1, MSG_DONTWAIT), -1);
		goro_gosched();
	}
	ended();
}

static void close_race(void)
{
	warm_up();
	connect_all();
	for (int k = 0; k < SCALED(250); k++) {
		linger_round(k);
		memset(written, 0, sizeof written);
		start_all(write_once, CONNS);
		open_gate(CONNS);
		__atomic_fetch_add(&busy, CONNS, __ATOMIC_RELAXED);
		for (int i = 0; i < CONNS; i++)
			CHECK_EQ(goro_go(close_and_open, i), 0);
		await_all();
	}
	close_all();
}

TEST_TIMEOUT(the_next_file_gets_nothing_of_it, 120) { in_runtime(close_race, "batch=1"); }

/* ------------------------------------------------------------- not too late */

#define ROUNDS  16
#define OTHERS  8
#define BUSY_NS (10 * GORO_MILLISECOND)

enum keeps_busy { COMPUTES, COMPUTES_ON, BLOCKS, BLOCKS_ANNOUNCED };

static enum keeps_busy how;
static int order;		/* goroutines through the gate, in this round */
static int64_t sent_at, took[ROUNDS];
static bool was_late[ROUNDS];
static uint64_t late_before;

/* The first writes, the others keep its P busy. */
static void first_writes(int i)
{
	int64_t end;
	char c = 0;

	(void)i;
	pass_gate();
	if (__atomic_fetch_add(&order, 1, __ATOMIC_RELAXED) == 0) {
		__atomic_store_n(&sent_at, os_now(), __ATOMIC_RELAXED);
		CHECK_EQ(goro_write(near[0], &c, 1), 1);
	} else if (how == COMPUTES || how == COMPUTES_ON) {
		if (how == COMPUTES_ON)
			goro_preempt_disable();
		for (end = os_now() + BUSY_NS; os_now() < end;)
			;
		if (how == COMPUTES_ON)
			goro_preempt_enable();
	} else {
		if (how == BLOCKS_ANNOUNCED)
			goro_syscall_enter();
		usleep(BUSY_NS / 1000);
		if (how == BLOCKS_ANNOUNCED)
			goro_syscall_exit();
	}
	ended();
}

/* A plain thread, of which the runtime knows nothing. */
static void *receive(void *arg)
{
	char c;

	for (int k = 0; k < ROUNDS; k++) {
		CHECK_EQ(read(*(int *)arg, &c, 1), 1);
		took[k] = os_now() - __atomic_load_n(&sent_at, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void rounds(void)
{
	pthread_t t;
	int fd[2];

	warm_up();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	near[0] = fd[0];
	fd_made(fd[0], FD_SOCKET);
	CHECK_EQ(pthread_create(&t, NULL, receive, &fd[1]), 0);
	late_before = late();
	for (int k = 0; k < ROUNDS; k++) {
		uint64_t before = late();

		__atomic_store_n(&order, 0, __ATOMIC_RELAXED);
		start_all(first_writes, 1 + OTHERS);
		open_gate(1 + OTHERS);
		await_all();
		was_late[k] = late() > before;
	}
	pthread_join(t, NULL);
}

/* On a busy machine a thread may have to wait for a CPU now and then, but not each time.
 * All others together take eight times BUSY_NS. */
static void writes_go_out(enum keeps_busy others)
{
	int slow = 0;

	how = others;
	in_runtime(rounds, "batch=1");
	for (int k = 0; k < ROUNDS; k++)
		slow += took[k] > BUSY_NS;
	CHECK(slow <= ROUNDS / 2);
	if (getenv("GORO_MAXPROCS") && atoi(getenv("GORO_MAXPROCS")) == 1 && others == COMPUTES)
		CHECK(late() > late_before || !QUEUE_HOLDS_ALL);
}

TEST(others_who_compute_are_not_waited_for) { writes_go_out(COMPUTES); }
TEST(others_who_block_are_not_waited_for) { writes_go_out(BLOCKS); }
TEST(others_in_announced_calls_are_not_waited_for) { writes_go_out(BLOCKS_ANNOUNCED); }

/* On one P, beside a goroutine that cannot be preempted, a gathered write waits for that
 * to end: sysmon makes no call itself. (If the M gets no CPU before that goroutine
 * begins, the write is late and is sent first.) */
static void on_one_p(void)
{
	goro_gomaxprocs(1);
	rounds();
}

TEST(sysmon_makes_no_call)
{
	int waited = 0, early = 0;

	how = COMPUTES_ON;
	in_runtime(on_one_p, "batch=1");
	for (int k = 0; k < ROUNDS; k++) {
		waited += was_late[k] && took[k] >= BUSY_NS;
		early += was_late[k] && took[k] < BUSY_NS;
	}
	CHECK(waited > early || !QUEUE_HOLDS_ALL);
}

/* Where goroutines always compute writes are not gathered: hardly any is late. */
TEST(a_p_of_long_turns_puts_nothing_off)
{
	how = COMPUTES;
	in_runtime(rounds, "");
	CHECK(late() - late_before <= ROUNDS / 4);
}

/* Nor where they compute now and then: after a late batch there is a pause. */
static int64_t paused_ns;
static unsigned procs;

static void compute_now_and_then(int i)
{
	(void)i;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int64_t end = os_now() + GORO_MILLISECOND;

		while (os_now() < end)
			;
		goro_sleep(100 * GORO_MICROSECOND);
	}
	ended();
}

static void beside_those_who_compute(void)
{
	int n = goro_gomaxprocs(0);

	procs = (unsigned)n;
	warm_up();
	late_before = late();
	paused_ns = os_now();
	converse(SCALED(1000));
	for (int i = 0; i < n; i++)
		CHECK_EQ(goro_go(compute_now_and_then, i), 0);
	await_all();
	paused_ns = os_now() - paused_ns;
	__atomic_store_n(&busy, n, __ATOMIC_RELAXED);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	await_all();
	close_all();
}

TEST(few_are_late_beside_those_who_compute)
{
	in_runtime(beside_those_who_compute, "");
	/* The pauses of a P double from 1 ms to 1 s: ten late batches. A pause is short
	 * again after 16 ms without a late batch, which makes one in 8 ms at most.
	 * Without pauses a single P has 300 a second. Where there are fewer CPUs than Ps
	 * a batch is late on each P whose thread waits for a CPU, so each P may have as
	 * many as a single one. */
	CHECK(late() - late_before <= procs * (10 + (uint64_t)paused_ns / (8 * GORO_MILLISECOND)));
}
