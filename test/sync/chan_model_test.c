/*
 * chan_model_test.c - channels checked against what a sequential channel could
 * have done.
 *
 * Goroutines and threads do random operations on a few channels: send, receive,
 * tries, selects, closes. Each operation is logged with a stamp taken before and
 * one taken after it. Every value is sent at most once, so a round's log says of
 * each value when it was sent, on which channel, and when it was received. Then
 * it is checked that some order of the operations, each at a moment between its
 * two stamps, is one that a first-in-first-out queue of that capacity could have
 * had. For a queue of distinct values that comes down to a few conditions:
 *
 *	fresh	what is received was sent, on that channel, and its receive
 *		does not end before its send starts
 *	once	no value is received twice; none is lost
 *	order	if a was sent before b, b was not received before a
 *	room	at no time have more sends ended than receives started, plus
 *		the capacity; so an unbuffered send meets its receive
 *	empty	"nothing there" is not said while a value certainly was
 *	full	"no room" is not said while there certainly was some
 *	closed	no send that starts after the close succeeds; none panics, and
 *		no receive ends for a close, that is over before the close starts;
 *		a receive that says "closed" leaves no value certainly behind
 *
 * "Before" means: one's last stamp is smaller than the other's first.
 */
/* test: procs */
#include "sync/chan.h"

#include <pthread.h>

#include "await.h"
#include "test.h"

enum {
	CHANNELS = 5,
	GOROUTINES = 12,
	THREADS = 3,
	WORKERS = GOROUTINES + THREADS,
	PLAYERS = WORKERS + 1,	/* the last one helps when all others wait */
	OPS = 4000,		/* per worker and round, at most */
};

static const size_t capacities[CHANNELS] = { 0, 0, 1, 3, 16 };

/* --------------------------------------------------------------------- log */

enum what { SENT, NO_ROOM, SEND_PANIC, RECEIVED, NOTHING, SAW_CLOSE };

struct entry {
	uint64_t start, end;
	uint32_t value;		/* of SENT, RECEIVED */
	uint8_t what, chan;
};

struct worker {
	struct entry *log;
	int n, room;
	uint32_t next_value;
	uint64_t rng;
};

static struct {
	goro_chan *chan[CHANNELS];
	uint32_t closing[CHANNELS];	/* a goroutine has set out to close it */
	uint64_t close_start[CHANNELS], close_end[CHANNELS];
	struct worker worker[PLAYERS];
	uint32_t ops_done;
	goro_waitgroup finished;
	bool may_close_early;
} model;

/* Under ThreadSanitizer an ordering stamp would order everything else, too, and
 * hide what it looks for. */
static uint64_t stamp(void)
{
	static uint64_t now;

	return __atomic_add_fetch(&now, 1, TOOL_TSAN ? __ATOMIC_RELAXED : __ATOMIC_SEQ_CST);
}

static void log_add(struct worker *me, enum what what, int chan, uint32_t value, uint64_t start,
                    uint64_t end)
{
	CHECK(me->n < me->room);
	me->log[me->n++] = (struct entry){ start, end, value, (uint8_t)what, (uint8_t)chan };
}

static uint32_t draw(struct worker *me, uint32_t n)
{
	me->rng ^= me->rng << 13;
	me->rng ^= me->rng >> 7;
	me->rng ^= me->rng << 17;
	return (uint32_t)((me->rng >> 32) * n >> 32);
}

/* -------------------------------------------------------------- operations */

struct op {
	struct goro_case cases[6];
	uint32_t values[6];
	bool ok[6];
	int n;
	int64_t deadline;
	int result;
};

static void do_send(void *arg)
{
	struct op *op = arg;

	goro_chan_send(op->cases[0].chan, &op->values[0]);
}

static void do_try_send(void *arg)
{
	struct op *op = arg;

	op->result = goro_chan_try_send(op->cases[0].chan, &op->values[0]);
}

static void do_select(void *arg)
{
	struct op *op = arg;

	op->result = goro_select_n(op->cases, (size_t)op->n, op->deadline);
}

/* False: the channel is closed. */
static bool send_one(struct worker *me, int chan, bool try)
{
	struct op op = { .cases[0].chan = model.chan[chan], .values[0] = me->next_value++,
	                 .result = true };
	uint64_t start = stamp();
	const char *panic = goro_try(try ? do_try_send : do_send, &op);

	log_add(me, panic ? SEND_PANIC : op.result ? SENT : NO_ROOM, chan, op.values[0], start,
	        stamp());
	return !panic;
}

static bool receive_one(struct worker *me, int chan, bool try)
{
	uint32_t value = UINT32_MAX;
	uint64_t start = stamp(), end;
	enum goro_recv got = try ? goro_chan_try_recv(model.chan[chan], &value)
	                         : (enum goro_recv)goro_chan_recv(model.chan[chan], &value);

	end = stamp();
	log_add(me, got == GORO_RECV_OK ? RECEIVED : got == GORO_RECV_EMPTY ? NOTHING : SAW_CLOSE,
	        chan, value, start, end);
	CHECK_EQ(value == 0, got == GORO_RECV_CLOSED);
	return got != GORO_RECV_CLOSED;
}

/* Which channel a panic is about is not told: one that was being closed. */
static void check_select_panic(const struct op *op, const int *chan)
{
	for (int i = 0; i < op->n; i++)
		if (op->cases[i].is_send && __atomic_load_n(&model.closing[chan[i]], __ATOMIC_RELAXED))
			return;
	FAIL("a select panicked without a closed channel to send on");
}

static bool do_random_select(struct worker *me, bool now)
{
	struct op op = { .n = 1 + (int)draw(me, 6), .deadline = now ? GORO_NOW : GORO_FOREVER };
	int chan[6], i;
	uint64_t start, end;

	for (i = 0; i < op.n; i++) {
		chan[i] = (int)draw(me, CHANNELS);
		if (draw(me, 2)) {
			op.values[i] = me->next_value++;
			op.cases[i] = GORO_SEND(model.chan[chan[i]], &op.values[i]);
		} else {
			op.cases[i] = GORO_RECV_OKP(model.chan[chan[i]], &op.values[i], &op.ok[i]);
		}
	}
	start = stamp();
	if (goro_try(do_select, &op)) {
		check_select_panic(&op, chan);
		return false;
	}
	end = stamp();
	if ((i = op.result) < 0) {
		CHECK(now);
		for (i = 0; i < op.n; i++)
			log_add(me, op.cases[i].is_send ? NO_ROOM : NOTHING, chan[i], 0, start, end);
		return true;
	}
	if (op.cases[i].is_send) {
		log_add(me, SENT, chan[i], op.values[i], start, end);
		return true;
	}
	log_add(me, op.ok[i] ? RECEIVED : SAW_CLOSE, chan[i], op.values[i], start, end);
	return op.ok[i];
}

static void close_chan(int chan)
{
	if (__atomic_exchange_n(&model.closing[chan], 1, __ATOMIC_RELAXED))
		return;
	model.close_start[chan] = stamp();
	goro_chan_close(model.chan[chan]);
	model.close_end[chan] = stamp();
}

/* False: it met a closed channel. */
static bool step(struct worker *me)
{
	int chan = (int)draw(me, CHANNELS);

	if (model.may_close_early && draw(me, 10 * OPS) == 0)
		close_chan(chan);
	switch (draw(me, 10)) {
	case 0: case 1: return send_one(me, chan, false);
	case 2: case 3: return receive_one(me, chan, false);
	case 4: return send_one(me, chan, true);
	case 5: return receive_one(me, chan, true);
	case 6: return do_random_select(me, true);
	default: return do_random_select(me, false);
	}
}

static void work(int id)
{
	struct worker *me = &model.worker[id];
	int met_closed = 0;

	/* Once all is closed there is little left to see. */
	for (int i = 0; i < SCALED(OPS) && met_closed < 300; i++) {
		met_closed += !step(me);
		__atomic_fetch_add(&model.ops_done, 1, __ATOMIC_RELAXED);
		if (draw(me, 16) == 0)
			goro_gosched();
	}
	goro_waitgroup_done(&model.finished);
}

static void *work_in_thread(void *arg)
{
	work((int)(intptr_t)arg);
	return NULL;
}

/* ------------------------------------------------------------------- check */

struct life {
	uint64_t send_start, send_end, recv_start, recv_end;
	uint8_t chan;
	bool sent, received;
};

static struct life *lives;
static uint32_t lives_n;

/* The lives of one channel's values, and its negative answers. */
struct history {
	int chan;
	struct life **by;
	uint32_t n;
	struct entry *none;
	uint32_t none_n;
};

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int by_send_start(const void *a, const void *b)
{
	return compare_u64(&(*(struct life *const *)a)->send_start, &(*(struct life *const *)b)->send_start);
}

static uint64_t *stamps_of(const struct history *h, size_t offset)
{
	uint64_t *s = malloc((h->n + 1) * sizeof *s);

	for (uint32_t i = 0; i < h->n; i++)
		s[i] = *(uint64_t *)((char *)h->by[i] + offset);
	qsort(s, h->n, sizeof *s, compare_u64);
	return s;
}
#define STAMPS(h, field) stamps_of(h, offsetof(struct life, field))

/* How many of the n stamps are smaller than t. */
static uint32_t count_before(const uint64_t *stamps, uint32_t n, uint64_t t)
{
	uint32_t lo = 0;

	while (lo < n) {
		uint32_t mid = lo + (n - lo) / 2;

		if (stamps[mid] < t)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

struct end_and_recv {
	uint64_t send_end, recv_start;
};

/*
 * Values in order of send_end, with the latest recv_start of all up to each: the
 * values sent before t are a prefix, and the last of them to be received was not
 * received before that.
 */
static struct end_and_recv *latest_receives(const struct history *h)
{
	struct end_and_recv *e = malloc((h->n + 1) * sizeof *e);
	uint64_t latest = 0;

	for (uint32_t i = 0; i < h->n; i++)
		e[i] = (struct end_and_recv){ h->by[i]->send_end, h->by[i]->recv_start };
	qsort(e, h->n, sizeof *e, compare_u64);
	for (uint32_t i = 0; i < h->n; i++) {
		if (e[i].recv_start > latest)
			latest = e[i].recv_start;
		e[i].recv_start = latest;
	}
	return e;
}

/* The latest start of a receive of all values sent before t; 0: there are none. */
static uint64_t latest_before(const struct end_and_recv *e, uint32_t n, uint64_t t)
{
	uint32_t lo = 0;

	while (lo < n) {
		uint32_t mid = lo + (n - lo) / 2;

		if (e[mid].send_end < t)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo ? e[lo - 1].recv_start : 0;
}

static void check_order(const struct history *h, const struct end_and_recv *latest)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (h->by[i]->recv_end < latest_before(latest, h->n, h->by[i]->send_start))
			FAIL("channel %d: a value was received before one sent before it", h->chan);
}

static void check_room(const struct history *h)
{
	uint64_t *ends = STAMPS(h, send_end), *starts = STAMPS(h, recv_start);

	for (uint32_t i = 0; i < h->n; i++)
		if (i + 1 > count_before(starts, h->n, ends[i]) + capacities[h->chan])
			FAIL("channel %d: a send ended without room or receiver", h->chan);
	free(ends);
	free(starts);
}

/* There certainly was a value if one was sent before and received after. Whether an
 * unbuffered channel had a sender waiting cannot be told from outside. */
static void check_empty(const struct history *h, const struct end_and_recv *latest,
                        const struct entry *e)
{
	if (capacities[h->chan] > 0 && latest_before(latest, h->n, e->start) > e->end)
		FAIL("channel %d: empty or closed, with a value in it", h->chan);
}

static void check_answers(const struct history *h, const struct end_and_recv *latest)
{
	uint64_t *send_starts = STAMPS(h, send_start), *recv_ends = STAMPS(h, recv_end);
	size_t capacity = capacities[h->chan];

	for (uint32_t i = 0; i < h->none_n; i++) {
		const struct entry *e = &h->none[i];

		if (e->what == NO_ROOM) {
			/* At no moment from start to end were there more than: */
			size_t most = count_before(send_starts, h->n, e->end)
			              - count_before(recv_ends, h->n, e->start);

			if (capacity > 0 && most < capacity)
				FAIL("channel %d: full, with room in it", h->chan);
		} else if (e->what != SEND_PANIC) {
			check_empty(h, latest, e);
		}
		if (e->what == SAW_CLOSE || e->what == SEND_PANIC)
			CHECK(e->end > model.close_start[h->chan]);
		else if (model.close_end[h->chan])
			CHECK(e->start < model.close_end[h->chan]);
	}
	free(send_starts);
	free(recv_ends);
}

static void check_channel(struct history *h)
{
	struct end_and_recv *latest;

	for (uint32_t i = 0; i < h->n; i++) {
		struct life *l = h->by[i];

		if (!l->sent)
			FAIL("channel %d: a value that was not sent was received", h->chan);
		if (!l->received)
			FAIL("channel %d: a value was lost", h->chan);
		CHECK(l->send_start < l->recv_end);
		if (model.close_end[h->chan])
			CHECK(l->send_start < model.close_end[h->chan]);
	}
	qsort(h->by, h->n, sizeof(struct life *), by_send_start);
	latest = latest_receives(h);
	check_order(h, latest);
	check_room(h);
	check_answers(h, latest);
	free(latest);
}

static void gather(const struct entry *e)
{
	struct life *l = &lives[e->value];

	if (e->what == SENT) {
		CHECK(!l->sent);
		CHECK(!l->received || l->chan == e->chan);
		l->sent = true;
		l->send_start = e->start;
		l->send_end = e->end;
	} else {
		CHECK(e->value > 0 && e->value < lives_n);
		if (l->received)
			FAIL("channel %d: a value was received twice", e->chan);
		CHECK(!l->sent || l->chan == e->chan);
		l->received = true;
		l->recv_start = e->start;
		l->recv_end = e->end;
	}
	l->chan = e->chan;
}

static void check_round(void)
{
	struct history h;

	for (int w = 0; w < PLAYERS; w++)
		for (int i = 0; i < model.worker[w].n; i++)
			if (model.worker[w].log[i].what == SENT || model.worker[w].log[i].what == RECEIVED)
				gather(&model.worker[w].log[i]);
	for (int c = 0; c < CHANNELS; c++) {
		h = (struct history){ .chan = c, .by = malloc(lives_n * sizeof(struct life *)),
		                      .none = malloc((size_t)PLAYERS * (size_t)model.worker[0].room * sizeof *h.none) };
		for (uint32_t v = 0; v < lives_n; v++)
			if (lives[v].chan == c && (lives[v].sent || lives[v].received))
				h.by[h.n++] = &lives[v];
		for (int w = 0; w < PLAYERS; w++)
			for (int i = 0; i < model.worker[w].n; i++) {
				struct entry *e = &model.worker[w].log[i];

				if (e->chan == c && e->what != SENT && e->what != RECEIVED)
					h.none[h.none_n++] = *e;
			}
		check_channel(&h);
		free(h.by);
		free(h.none);
	}
}

/* ------------------------------------------------------------------- round */

/* What is left in the closed channels, as one more receiver. */
static void drain(struct worker *me)
{
	for (int c = 0; c < CHANNELS; c++)
		while (receive_one(me, c, true))
			;
}

/*
 * Until most is done. Workers that all wait for each other are helped by one
 * operation, and at the end, when too few are left to be helped, by closing.
 */
static void help_along(struct worker *me)
{
	uint32_t seen = 0, idle = 0, helped = 0;

	while (seen < SCALED(OPS) * WORKERS * 9 / 10 && helped < OPS) {
		uint32_t now = __atomic_load_n(&model.ops_done, __ATOMIC_RELAXED);

		idle = now == seen ? idle + 1 : 0;
		seen = now;
		if (idle > 20) {
			int chan = (int)draw(me, CHANNELS);

			helped++;
			if (!(draw(me, 2) ? send_one(me, chan, true) : receive_one(me, chan, true)))
				break;
		}
		goro_gosched();
	}
}

static void play_round(uint64_t seed)
{
	uint32_t per_worker = 6 * OPS + 1;
	pthread_t threads[THREADS];

	memset(model.closing, 0, sizeof model.closing);
	memset(model.close_start, 0, sizeof model.close_start);
	memset(model.close_end, 0, sizeof model.close_end);
	model.ops_done = 0;
	model.may_close_early = seed % 2;
	lives_n = per_worker * PLAYERS + 1;
	lives = calloc(lives_n, sizeof *lives);
	for (int c = 0; c < CHANNELS; c++)
		model.chan[c] = goro_chan_of(uint32_t, capacities[c]);
	goro_waitgroup_add(&model.finished, WORKERS);
	for (int w = 0; w < PLAYERS; w++) {
		struct worker *me = &model.worker[w];

		me->room = (int)per_worker + 1000;
		me->log = malloc((size_t)me->room * sizeof *me->log);
		me->n = 0;
		me->next_value = per_worker * (uint32_t)w + 1;
		me->rng = (seed * PLAYERS + (uint64_t)w + 1) * 0x9e3779b97f4a7c15;
	}
	for (int w = 0; w < WORKERS; w++) {
		if (w < GOROUTINES)
			go(work, w);
		else
			CHECK_EQ(pthread_create(&threads[w - GOROUTINES], NULL, work_in_thread,
			                        (void *)(intptr_t)w), 0);
	}
	help_along(&model.worker[WORKERS]);
	for (int c = 0; c < CHANNELS; c++)
		close_chan(c);
	goro_waitgroup_wait(&model.finished);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	drain(&model.worker[WORKERS]);
	check_round();
	for (int c = 0; c < CHANNELS; c++)
		goro_chan_unref(model.chan[c]);
	for (int w = 0; w < WORKERS; w++)
		free(model.worker[w].log);
	free(lives);
}

GO_TEST_TIMEOUT(every_outcome_is_one_a_queue_could_have, 120)
{
	const char *seed = getenv("MODEL_SEED"), *rounds = getenv("MODEL_ROUNDS");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	uint64_t n = rounds ? strtoull(rounds, NULL, 10) : 80;
	uint64_t ops = 0;

	for (uint64_t i = 0; i < n; i++) {
		play_round(first + i);
		ops += model.ops_done;
	}
	printf("%llu operations\n", (unsigned long long)ops);
}
