/*
 * GORO_DEBUG=schedtrace: the lines have Go's format, and come in time.
 */
#include <goro.h>
#include <pthread.h>
#include <regex.h>

#include "await.h"
#include "test.h"

#define N "[0-9]+"
#define ID "(nil|" N ")"
#define BOOL "(true|false)"

#define COUNTS                                                                        \
	"^SCHED " N "ms: gomaxprocs=" N " idleprocs=" N " threads=" N                 \
	" spinningthreads=" N " needspinning=[01] idlethreads=" N " runqueue=" N

static const char short_line[] = COUNTS " \\[ (" N " )+\\] schedticks=\\[ (" N " )+\\]$";
static const char short_line_of_2[] =
	COUNTS " \\[ " N " " N " \\] schedticks=\\[ " N " " N " \\]$";
static const char detail_line[] =
	COUNTS " gcwaiting=" BOOL " nmidlelocked=-?" N " stopwait=" N " sysmonwait=" BOOL "$";
static const char p_line[] = "^  P" N ": status=[0-4] schedtick=" N " syscalltick=" N " m=" ID
	" runqsize=" N " gfreecnt=" N " timerslen=" N "$";
static const char m_line[] = "^  M" N ": p=" ID " curg=" ID
	" mallocing=0 throwing=0 preemptoff= locks=" N " dying=0 spinning=" BOOL
	" blocked=" BOOL " lockedg=" ID "$";
static const char g_line[] =
	"^  G" N ": status=[12346]\\([^()]*(\\(nil chan\\)|\\(no cases\\))?\\) m=" ID
	" lockedm=" ID "$";

static bool matches(const char *line, const char *pattern)
{
	regex_t re;
	bool found;

	CHECK_EQ(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	found = regexec(&re, line, 0, NULL, 0) == 0;
	regfree(&re);
	return found;
}

/* The number after the first occurrence of field in line. */
static long value(const char *line, const char *field)
{
	const char *at = strstr(line, field);

	if (!at)
		FAIL("no %s in %s", field, line);
	return strtol(at + strlen(field), NULL, 10);
}

/* Runs for each line of text, without its end, and writes into text. */
#define EACH_LINE(line, text)                                        \
	char *rest_ = NULL, *line = strtok_r((text), "\n", &rest_);  \
	line;                                                        \
	line = strtok_r(NULL, "\n", &rest_)

/* ---------------------------------------------------------- what is watched */

static const char *switches;
static int (*program)(int, char **);

static void run_program(void)
{
	setenv("GORO_DEBUG", switches, 1);
	exit(goro_run(program, 0, NULL));
}

static void trace(const char *debug, int (*main_fn)(int, char **), struct test_output *o)
{
	switches = debug;
	program = main_fn;
	test_run_child(run_program, o);
	CHECK_EQ(o->status, 0);
	/* The program may end while the last report is being written. */
	if (strrchr(o->err, '\n'))
		strrchr(o->err, '\n')[1] = '\0';
}

/* Holds its P for a while. */
static useconds_t busy_us = 100000;

static int busy_main(int argc, char **argv)
{
	(void)argc; (void)argv;
	goro_gomaxprocs(2);
	usleep(busy_us);
	return 0;
}

/* A plain thread ends the program, after sysmon has gone to sleep. */
static void *waker(void *c)
{
	usleep(1600000);
	goro_chan_send(c, NULL);
	return NULL;
}

static int idle_main(int argc, char **argv)
{
	goro_chan *c = goro_chan_make(0, 0);
	pthread_t t;

	(void)argc; (void)argv;
	goro_gomaxprocs(2);
	CHECK_EQ(pthread_create(&t, NULL, waker, c), 0);
	pthread_detach(t);
	goro_chan_recv(c, NULL);
	return 0;
}

static bool may_end;

static void receiver(goro_chan *c)
{
	goro_chan_recv(c, NULL);
}

static void locked_receiver(goro_chan *c)
{
	goro_lock_os_thread();
	goro_chan_recv(c, NULL);
}

static void ender(void) {}

static void *allow_end(void *arg)
{
	(void)arg;
	usleep(200000);
	__atomic_store_n(&may_end, true, __ATOMIC_RELAXED);
	return NULL;
}

/* Main holds a P; the others wait. */
static int states_main(int argc, char **argv)
{
	goro_chan *c = goro_chan_make(0, 0);
	pthread_t t;

	(void)argc; (void)argv;
	goro_gomaxprocs(2);
	go(receiver, c);
	go(locked_receiver, c);
	go(receiver, (goro_chan *)NULL);
	go(ender);
	CHECK_EQ(pthread_create(&t, NULL, allow_end, NULL), 0);
	pthread_detach(t);
	SPIN_UNTIL(__atomic_load_n(&may_end, __ATOMIC_RELAXED));
	return 0;
}

static void churn(goro_chan *c, int depth)
{
	if (depth > 0) {
		go(churn, c, depth - 1);
		goro_gosched();
	} else {
		goro_chan_send(c, NULL);
	}
}

/* Everything that is printed changes while it is printed. */
static int churn_main(int argc, char **argv)
{
	int64_t end = goro_now() + 300 * GORO_MILLISECOND;
	goro_chan *c = goro_chan_make(0, 1);

	(void)argc; (void)argv;
	for (int round = 0; goro_now() < end; round++) {
		goro_gomaxprocs(round % 4 + 1);
		for (int i = 0; i < 20; i++)
			go(churn, c, 3);
		for (int i = 0; i < 20; i++)
			goro_chan_recv(c, NULL);
	}
	return 0;
}

/* -------------------------------------------------------------------- tests */

TEST(nothing_is_printed_unasked)
{
	struct test_output o;

	trace("scheddetail=1", busy_main, &o);
	CHECK_STR(o.err, "");
}

static int lines_in(const char *text)
{
	int n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* At least `lines` lines of a busy program, which runs for longer until they are there:
 * on a busy machine sysmon may get no CPU in a short run. */
static int trace_busy(const char *debug, int lines, struct test_output *o)
{
	for (;; busy_us *= 2) {
		trace(debug, busy_main, o);
		if (lines_in(o->err) >= lines)
			return lines_in(o->err);
	}
}

TEST(short_lines_are_gos)
{
	struct test_output o;
	int of_2 = 0, lines = trace_busy("schedtrace=10", 3, &o);

	CHECK(matches(strtok(strdup(o.err), "\n"), "^SCHED 0ms: "));
	for (EACH_LINE(line, o.err)) {
		if (!matches(line, short_line))
			FAIL("not as Go prints it: %s", line);
		of_2 += value(line, "gomaxprocs=") == 2 && matches(line, short_line_of_2);
	}
	CHECK(of_2 >= lines - 1);
}

TEST(lines_keep_their_distance)
{
	struct test_output o;
	long last = -30;

	trace_busy("schedtrace=30", 2, &o);
	for (EACH_LINE(line, o.err)) {
		long at = value(line, "SCHED ");

		CHECK(at - last >= 30 - 1);	/* whole milliseconds */
		last = at;
	}
	CHECK(last >= 30);
}

TEST(lines_go_on_while_nothing_runs)
{
	struct test_output o;
	int idle = 0;
	long last = 0;

	trace("schedtrace=100", idle_main, &o);
	for (EACH_LINE(line, o.err)) {
		if (!matches(line, short_line))
			FAIL("not as Go prints it: %s", line);
		last = value(line, "SCHED ");
		idle += value(line, "idleprocs=") == 2;
	}
	CHECK(last >= 1200);
	CHECK(idle >= 5);
}

/* First the counts, then all Ps, Ms and Gs. */
TEST(detail_lines_are_gos)
{
	struct test_output o;
	int blocks = 0, ps = 0, ms = 0, gs = 0;
	long procs = 0;

	trace("schedtrace=10,scheddetail=1", states_main, &o);
	for (EACH_LINE(line, o.err)) {
		if (matches(line, detail_line)) {
			CHECK_EQ(ps, procs);
			CHECK(blocks == 0 || ms > 0);
			procs = value(line, "gomaxprocs=");
			ps = ms = gs = 0;
			blocks++;
		} else if (matches(line, p_line)) {
			CHECK(ms == 0 && gs == 0);
			CHECK_EQ(value(line, "  P"), ps++);
		} else if (matches(line, m_line)) {
			CHECK(gs == 0);
			ms++;
		} else if (matches(line, g_line)) {
			gs++;
		} else {
			FAIL("not as Go prints it: %s", line);
		}
	}
	CHECK(blocks >= 3);
}

/* The last block that was printed whole while main ran. */
static char *last_block(char *text)
{
	char *found = NULL;

	for (char *at = strstr(text, "SCHED "), *next; at; at = next) {
		next = strstr(at + 1, "SCHED ");
		if (next)
			next[-1] = '\0';
		if (next && strstr(at, "\n  G1: status=2"))
			found = at;
	}
	CHECK(found);
	return found;
}

/* Ids come in batches, one a P: what main starts after it moved has other numbers. */
TEST(detail_shows_states)
{
	struct test_output o;
	bool runs = false, locked = false, receives = false, nil = false, dead = false;
	long locked_id = 0, locked_to = 0;
	char *block;

	trace("schedtrace=10,scheddetail=1", states_main, &o);
	block = last_block(o.err);
	CHECK_CONTAINS(block, " nmidlelocked=1 ");
	for (EACH_LINE(line, block)) {
		runs |= matches(line, "^  M" N ": p=[01] curg=1 .* spinning=false blocked=false lockedg=nil$");
		receives |= matches(line, "^  G" N ": status=4\\(chan receive\\) m=nil lockedm=nil$");
		nil |= matches(line, "^  G" N ": status=4\\(chan receive \\(nil chan\\)\\) m=nil lockedm=nil$");
		dead |= matches(line, "^  G" N ": status=6\\(\\) m=nil lockedm=nil$");
		if (matches(line, "^  M" N ": p=nil curg=nil .* blocked=true lockedg=" N "$"))
			locked_to = value(line, "lockedg=");
		if (matches(line, "^  G" N ": status=4\\(chan receive\\) m=nil lockedm=" N "$")) {
			locked_id = value(line, "  G");
			locked = true;
		}
		if (!strncmp(line, "  G1:", 5))
			CHECK(matches(line, "^  G1: status=2\\(\\) m=" N " lockedm=nil$"));
	}
	CHECK(runs);
	CHECK(receives);
	CHECK(nil);
	CHECK(dead);
	CHECK(locked);
	CHECK_EQ(locked_to, locked_id);
}

TEST(detail_of_what_changes_is_whole)
{
	struct test_output o;
	int lines = 0;

	trace("schedtrace=1,scheddetail=1", churn_main, &o);
	for (EACH_LINE(line, o.err)) {
		if (!matches(line, detail_line) && !matches(line, p_line) && !matches(line, m_line) &&
		    !matches(line, g_line))
			FAIL("not as Go prints it: %s", line);
		if (strstr(line, " runqsize="))
			CHECK(value(line, " runqsize=") <= 2 * 65536);
		if (++lines == 20000)	/* matching is slow */
			break;
	}
	CHECK(lines > 20);
}
