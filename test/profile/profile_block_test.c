/* The block and mutex profiles. */
/* test: procs */
#include "test.h"

#include <goro.h>
#include <pthread.h>

#include "await.h"
#include "pprof.h"

#define MS GORO_MILLISECOND

static int64_t delay_in(const char *name, const char *function)
{
	struct pprof_file *p = pprof_take(name);
	int64_t ns = pprof_sum(p, pprof_type(p, "delay"), function);

	pprof_free(p);
	return ns;
}

static int64_t contentions_in(const char *name, const char *function)
{
	struct pprof_file *p = pprof_take(name);
	int64_t n = pprof_sum(p, pprof_type(p, "contentions"), function);

	pprof_free(p);
	return n;
}

/* --------------------------------------------------------------- waiters */

static goro_chan *c;
static goro_mutex mutex;
static goro_rwmutex rwmutex;
static goro_waitgroup group;
static goro_cond cond;
static goro_sema sema;

#define WAITER(name, call)                                      \
	__attribute__((noinline)) static void name(void)        \
	{                                                       \
		call;                                           \
		__asm__ volatile("" ::: "memory");              \
	}

WAITER(receives, goro_chan_recv(c, NULL))
WAITER(sends, goro_chan_send(c, NULL))
WAITER(selects, goro_select(GORO_RECV(c, NULL), GORO_RECV(NULL, NULL)))
WAITER(locks, goro_mutex_lock(&mutex); goro_mutex_unlock(&mutex))
WAITER(rlocks, goro_rwmutex_rlock(&rwmutex); goro_rwmutex_runlock(&rwmutex))
WAITER(wlocks, goro_rwmutex_lock(&rwmutex); goro_rwmutex_unlock(&rwmutex))
WAITER(joins, goro_waitgroup_wait(&group))
WAITER(condwaits, goro_mutex_lock(&mutex); goro_cond_wait(&cond, &mutex); goro_mutex_unlock(&mutex))
WAITER(acquires, goro_sema_acquire(&sema, 1, GORO_FOREVER))

static void nothing(void) {}
static void lock_it(void) { goro_mutex_lock(&mutex); }
static void unlock_it(void) { goro_mutex_unlock(&mutex); }
static void rlock_it(void) { goro_rwmutex_rlock(&rwmutex); }
static void runlock_it(void) { goro_rwmutex_runlock(&rwmutex); }
static void wlock_it(void) { goro_rwmutex_lock(&rwmutex); }
static void wunlock_it(void) { goro_rwmutex_unlock(&rwmutex); }
static void send_it(void) { goro_chan_send(c, NULL); }
static void receive_it(void) { goro_chan_recv(c, NULL); }
static void add_it(void) { goro_waitgroup_add(&group, 1); }
static void done_it(void) { goro_waitgroup_done(&group); }
static void signal_it(void) { goro_cond_signal(&cond); }
static void release_it(void) { goro_sema_release(&sema, 1); }

static const struct kind {
	const char *name, *leaf;
	void (*prepare)(void), (*wait)(void), (*end)(void);
} kinds[] = {
	{ "receives", "goro_chan_recv", nothing, receives, send_it },
	{ "sends", "goro_chan_send", nothing, sends, receive_it },
	{ "selects", "goro_select_n", nothing, selects, send_it },
	{ "locks", "goro_mutex_lock", lock_it, locks, unlock_it },
	{ "rlocks", "goro_rwmutex_rlock", wlock_it, rlocks, wunlock_it },
	{ "wlocks", "goro_rwmutex_lock", rlock_it, wlocks, runlock_it },
	{ "joins", "goro_waitgroup_wait", add_it, joins, done_it },
	{ "condwaits", "goro_cond_wait", nothing, condwaits, signal_it },
	{ "acquires", "goro_sema_acquire", nothing, acquires, release_it },
};
#define KINDS (int)(sizeof(kinds) / sizeof(*kinds))

static int64_t waited;		/* as the waiter saw it */
static int begun;

static void wait_once(const struct kind *k)
{
	int64_t began = goro_now();

	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	k->wait();
	waited = goro_now() - began;
	__atomic_store_n(&begun, 0, __ATOMIC_SEQ_CST);
}

static bool is_waiting(void)
{
	struct goro_stats s;

	goro_stats_read(&s);
	return __atomic_load_n(&begun, __ATOMIC_SEQ_CST) && s.waiting >= 1;
}

/* One wait of about ns. */
static void wait_for(const struct kind *k, int64_t ns)
{
	k->prepare();
	go(wait_once, k);
	AWAIT(is_waiting());
	goro_sleep(ns);
	k->end();
	AWAIT(!__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
}

static void set_up(void)
{
	c = goro_chan_make(0, 0);
	goro_sema_init(&sema, 1);
	goro_sema_acquire(&sema, 1, GORO_FOREVER);
}

GO_TEST(each_wait_is_charged_to_who_waited_for_as_long_as_it_took)
{
	set_up();
	goro_profile_block_rate(1);
	for (int i = 0; i < KINDS; i++) {
		wait_for(&kinds[i], 20 * MS);
		struct pprof_file *p = pprof_take("block");
		CHECK_EQ(p->types, 2);
		CHECK_STR(pprof_string(p, p->type[0].what), "contentions");
		CHECK_STR(pprof_string(p, p->type[1].what), "delay");
		CHECK_STR(pprof_string(p, p->type[1].unit), "nanoseconds");
		int64_t ns = pprof_sum(p, 1, kinds[i].name);
		int64_t leaf = pprof_sum_leaf(p, 1, kinds[i].leaf);
		if (pprof_sum(p, 0, kinds[i].name) < 1 || leaf < ns)
			pprof_print(p);
		CHECK(pprof_sum(p, 0, kinds[i].name) >= 1);
		CHECK(ns <= waited);
		CHECK(ns >= 20 * MS);
		CHECK(leaf >= ns);
		pprof_free(p);
	}
}

GO_TEST(nothing_is_counted_unless_asked_for)
{
	set_up();
	wait_for(&kinds[0], 2 * MS);
	goro_profile_block_rate(0);
	wait_for(&kinds[0], 2 * MS);
	goro_profile_block_rate(-5);
	wait_for(&kinds[0], 2 * MS);
	CHECK_EQ(contentions_in("block", NULL), 0);
	goro_profile_block_rate(1);
	wait_for(&kinds[0], 2 * MS);
	CHECK_EQ(contentions_in("block", "receives"), 1);
	goro_profile_block_rate(0);
	wait_for(&kinds[0], 2 * MS);
	/* what was counted stays */
	CHECK_EQ(contentions_in("block", "receives"), 1);
	CHECK_EQ(contentions_in("mutex", NULL), 0);
}

GO_TEST(sleeps_and_what_did_not_wait_are_no_waits)
{
	goro_chan *full = goro_chan_make(0, 1);

	set_up();
	goro_profile_block_rate(1);
	goro_sleep(5 * MS);
	goro_chan_send(full, NULL);
	goro_chan_recv(full, NULL);
	goro_mutex_lock(&mutex);
	goro_mutex_unlock(&mutex);
	goro_chan_try_recv(full, NULL);
	goro_waitgroup_wait(&group);
	CHECK_EQ(contentions_in("block", NULL), 0);
}

static void *plain_thread(void *arg)
{
	(void)arg;
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	receives();
	return NULL;
}

GO_TEST(plain_threads_wait_too)
{
	pthread_t t;

	set_up();
	goro_profile_block_rate(1);
	CHECK_EQ(pthread_create(&t, NULL, plain_thread, NULL), 0);
	AWAIT(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
	goro_sleep(20 * MS);
	goro_chan_send(c, NULL);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(delay_in("block", "plain_thread") >= 10 * MS);
}

/* ----------------------------------------------------------------- sampling */

static void ticks(int n)
{
	for (int i = 0; i < n; i++) {
		goro_sleep(30 * GORO_MICROSECOND + i % 8 * 20 * GORO_MICROSECOND);
		goro_chan_send(c, NULL);
	}
}

GO_TEST(sampled_the_sum_is_right_on_average)
{
	const int n = 4000;
	const int64_t rate = 1 * MS;
	int64_t total = 0;

	set_up();
	go(ticks, n);
	goro_profile_block_rate(rate);
	for (int i = 0; i < n; i++) {
		int64_t began = goro_now();
		receives();
		total += goro_now() - began;
	}
	goro_profile_block_rate(0);
	struct pprof_file *p = pprof_take("block");
	int64_t ns = pprof_sum(p, 1, "receives"), count = pprof_sum(p, 0, "receives");
	dprintf(1, "%d waits, %lld ms: counted as %lld, %lld ms\n", n, (long long)(total / MS),
	        (long long)count, (long long)(ns / MS));
	/* About 400 samples or more: five in a hundred off is usual. */
	CHECK(ns > total * 6 / 10 && ns < total * 14 / 10);
	CHECK(count > n / 3 && count < n * 3);
	pprof_free(p);
}

/* -------------------------------------------------------------------- mutex */

enum { WAITERS = 5 };

static goro_waitgroup all;
static int64_t waited_in_all, released_at;

static int waiting_in(const char *state)
{
	size_t bytes;
	char *text;
	FILE *f = open_memstream(&text, &bytes);
	int n = 0;

	goro_dump(f);
	fclose(f);
	for (const char *at = text; (at = strstr(at, state)); at++)
		n++;
	free(text);
	return n;
}

/* Holds the mutex until all wait, and then at least as long as that took: the test
 * estimates the sum of the waits from the first and the last. */
__attribute__((noinline)) static void holds_long(int64_t ns)
{
	int64_t began = goro_now();

	goro_mutex_lock(&mutex);
	AWAIT(waiting_in("[sync.Mutex.Lock]") == WAITERS);
	began = goro_now() - began;
	goro_sleep(ns > began ? ns : began);
	released_at = goro_now();
	goro_mutex_unlock(&mutex);
	__asm__ volatile("");
}

__attribute__((noinline)) static void holds_briefly(void)
{
	int64_t began = goro_now();

	goro_mutex_lock(&mutex);
	__atomic_fetch_add(&waited_in_all, goro_now() - began, __ATOMIC_SEQ_CST);
	goro_mutex_unlock(&mutex);
	goro_waitgroup_done(&all);
}

static void long_holder(void)
{
	holds_long(50 * MS);
	goro_waitgroup_done(&all);
}

GO_TEST(who_holds_the_lock_is_charged)
{
	int64_t after;

	CHECK_EQ(goro_profile_mutex_fraction(1), 0);
	goro_waitgroup_add(&all, 1 + WAITERS);
	go(long_holder);
	AWAIT(!goro_mutex_try_lock(&mutex) || (goro_mutex_unlock(&mutex), false));
	for (int i = 0; i < WAITERS; i++)
		go(holds_briefly);
	goro_waitgroup_wait(&all);
	after = goro_now() - released_at;
	struct pprof_file *p = pprof_take("mutex");
	int64_t ns = pprof_sum(p, pprof_type(p, "delay"), "holds_long");
	int64_t sum = pprof_sum(p, pprof_type(p, "delay"), NULL);
	dprintf(1, "waited %lld us, charged %lld us, to the holder %lld us\n",
	        (long long)waited_in_all / 1000, (long long)sum / 1000, (long long)ns / 1000);
	CHECK_STR(pprof_string(p, p->type[0].what), "contentions");
	CHECK_STR(pprof_string(p, p->type[1].what), "delay");
	CHECK(pprof_sum_leaf(p, 1, "goro_mutex_unlock") == sum);
	CHECK(pprof_sum(p, 0, "holds_long") >= 1);
	CHECK(ns >= WAITERS * 50 * MS && sum <= waited_in_all * 3 / 2);
	CHECK(sum - ns <= WAITERS * after + MS);	/* charged its own time only */
	pprof_free(p);
	CHECK_EQ(contentions_in("block", NULL), 0);
}

static void writer_holds(void)
{
	goro_rwmutex_lock(&rwmutex);
	AWAIT(waiting_in("[sync.RWMutex.RLock]") == WAITERS);
	goro_sleep(20 * MS);
	goro_rwmutex_unlock(&rwmutex);
	goro_waitgroup_done(&all);
}

static void reads(void)
{
	rlocks();
	goro_waitgroup_done(&all);
}

GO_TEST(a_writer_is_charged_for_all_readers)
{
	goro_profile_mutex_fraction(1);
	goro_waitgroup_add(&all, 1 + WAITERS);
	go(writer_holds);
	AWAIT(!goro_rwmutex_try_lock(&rwmutex) || (goro_rwmutex_unlock(&rwmutex), false));
	for (int i = 0; i < WAITERS; i++)
		go(reads);
	goro_waitgroup_wait(&all);
	CHECK_EQ(contentions_in("mutex", "writer_holds"), WAITERS);
	CHECK(delay_in("mutex", "writer_holds") >= WAITERS * 20 * MS);
}

GO_TEST(the_fraction_is_set_and_asked_for)
{
	CHECK_EQ(goro_profile_mutex_fraction(-1), 0);
	CHECK_EQ(goro_profile_mutex_fraction(5), 0);
	CHECK_EQ(goro_profile_mutex_fraction(-1), 5);
	CHECK_EQ(goro_profile_mutex_fraction(-7), 5);
	CHECK_EQ(goro_profile_mutex_fraction(0), 5);
	CHECK_EQ(goro_profile_mutex_fraction(1), 0);
	CHECK_EQ(goro_profile_mutex_fraction(0), 1);
}

static void fights(int n)
{
	for (int i = 0; i < n; i++) {
		goro_mutex_lock(&mutex);
		goro_sleep(10 * GORO_MICROSECOND);
		goro_mutex_unlock(&mutex);
	}
	goro_waitgroup_done(&all);
}

/* Each sleep for the lock is one contention of the block profile, and one unlock that is
 * counted with probability 1/8: on average the numbers are equal. */
GO_TEST(sampled_the_number_is_right_on_average)
{
	goro_profile_block_rate(1);
	goro_profile_mutex_fraction(8);
	goro_waitgroup_add(&all, 4);
	for (int i = 0; i < 4; i++)
		go(fights, 1500);
	goro_waitgroup_wait(&all);
	goro_profile_block_rate(0);
	goro_profile_mutex_fraction(0);
	int64_t sleeps = contentions_in("block", "fights"), charged = contentions_in("mutex", "fights");
	dprintf(1, "%lld sleeps, counted as %lld\n", (long long)sleeps, (long long)charged);
	CHECK(sleeps > 400);
	CHECK(charged % 8 == 0);
	CHECK(charged > sleeps / 2 && charged < sleeps * 2);
}

/* --------------------------------------------------------------- under load */

static bool stop;

static void churn(int i)
{
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		goro_mutex_lock(&mutex);
		goro_mutex_unlock(&mutex);
		if (i % 2)
			goro_chan_send(c, NULL);
		else
			goro_chan_recv(c, NULL);
		goro_gosched();
	}
}

static void toggles(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		goro_profile_block_rate(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 10000);
		goro_profile_mutex_fraction(i % 4);
		goro_gosched();
		if (i % 5 == 0)
			pprof_free(pprof_take(i % 2 ? "mutex" : "block"));
	}
	goro_waitgroup_done(&all);
}

GO_TEST(switched_on_and_off_and_written_under_load)
{
	set_up();
	for (int i = 0; i < 6; i++)
		go(churn, i);
	goro_waitgroup_add(&all, 3);
	for (int i = 0; i < 3; i++)
		go(toggles, SCALED(400));
	goro_waitgroup_wait(&all);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
}
