/*
 * kv_pubsub.c - SUBSCRIBE and PUBLISH.
 *
 * A connection that subscribes gets a second goroutine, the writer. Whoever publishes
 * sends the message on the goroutine channel of each subscriber, and the writer
 * receives it there and writes it to the socket; meanwhile the connection's own
 * goroutine goes on reading requests. Both write under the connection's write_lock, and
 * whole replies.
 *
 * Nobody waits for a subscriber who is slow: its goroutine channel takes so many
 * messages and so many bytes; when there is no more room the connection is shut down.
 *
 * The answer to SUBSCRIBE comes before the channel's first message, and everything that
 * is published after the answer has come is received. So the connection subscribes
 * while it holds its write_lock, and sends the answer before it gives that back.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "kv.h"

#define ROOMS             256		/* of the channels' hash table */
#define SUBSCRIPTIONS_MAX 1024		/* of a connection */
#define MESSAGES_MAX      1024		/* that wait for a subscriber */
#define BACKLOG_MAX       (32 << 20)	/* bytes of them */
#define GATHER            16		/* messages written at once */
#define LEAVE_TIMEOUT     (5 * GORO_SECOND)

/* As it is sent; shared by all to whom it goes. */
struct message {
	atomic_int refs;
	size_t n;
	char bytes[];
};

GORO_CHAN_TYPE(message_chan, struct message *);

struct subscriber {
	message_chan *messages;
	atomic_size_t backlog;		/* bytes of messages not written yet */
	atomic_bool slow;		/* it gets no message any more */
	goro_waitgroup writer;
	struct subscription *first;	/* only its connection's goroutine looks */
	size_t n;
};

/* In two lists: its subscriber's and its channel's. */
struct subscription {
	struct conn *c;
	struct channel *channel;
	struct subscription *next_own;
	struct subscription *next, **prev;	/* under the lock of the channel's room */
};

struct channel {
	struct channel *next;
	struct subscription *first;	/* without subscribers a channel is freed */
	size_t name_n;
	char name[];
};

static struct room {
	goro_mutex lock;
	struct channel *first;
} rooms[ROOMS];

static struct room *room_of(struct text name)
{
	return &rooms[store_hash(name) % ROOMS];
}

/* Where the channel hangs, or where one that is made would. */
static struct channel **find(struct room *r, struct text name)
{
	struct channel **at = &r->first;

	while (*at &&
	       ((*at)->name_n != name.n || memcmp((*at)->name, name.at, name.n) != 0))
		at = &(*at)->next;
	return at;
}

/* ---------------------------------------------------------------- messages */

static char *add(char *to, const char *at, size_t n)
{
	memcpy(to, at, n);
	return to + n;
}

static struct message *message_make(struct text channel, struct text bytes)
{
	char head[64], middle[32], *to;
	int head_n = snprintf(head, sizeof head, "*3\r\n$7\r\nmessage\r\n$%zu\r\n",
	                      channel.n);
	int middle_n = snprintf(middle, sizeof middle, "\r\n$%zu\r\n", bytes.n);
	size_t n = (size_t)head_n + channel.n + (size_t)middle_n + bytes.n + 2;
	struct message *m = memory_get(MEMORY_BUFFERS, sizeof *m + n);

	if (!m)
		return NULL;
	atomic_init(&m->refs, 1);
	m->n = n;
	to = add(m->bytes, head, (size_t)head_n);
	to = add(to, channel.at, channel.n);
	to = add(to, middle, (size_t)middle_n);
	to = add(to, bytes.at, bytes.n);
	add(to, "\r\n", 2);
	return m;
}

static void message_unref(struct message *m)
{
	if (atomic_fetch_sub(&m->refs, 1) == 1)
		memory_put(MEMORY_BUFFERS, m, sizeof *m + m->n);
}

/* Never waits. One who is too slow is shut down: its goroutines see the end. */
static bool deliver(struct conn *c, struct message *m)
{
	struct subscriber *sub = c->sub;

	if (atomic_load(&sub->slow))
		return false;
	atomic_fetch_add(&m->refs, 1);
	if (atomic_fetch_add(&sub->backlog, m->n) + m->n <= BACKLOG_MAX &&
	    message_chan_try_send(sub->messages, m))
		return true;
	atomic_fetch_sub(&sub->backlog, m->n);
	message_unref(m);
	/* also where the writer makes room before the end */
	atomic_store(&sub->slow, true);
	shutdown(c->fd, SHUT_RDWR);
	return false;
}

COMMAND(publish)
{
	struct text name = c->argv[1];
	struct room *r = room_of(name);
	struct message *m = NULL;
	struct channel *ch;
	int64_t n = 0;

	goro_mutex_lock(&r->lock);
	ch = *find(r, name);
	if (ch)
		m = message_make(name, c->argv[2]);
	for (struct subscription *s = m ? ch->first : NULL; s; s = s->next)
		n += deliver(s->c, m);
	goro_mutex_unlock(&r->lock);
	if (m)
		message_unref(m);
	if (ch && !m)
		reply_no_memory(c);
	else
		reply_int(c, n);
}

/* ------------------------------------------------------------------ writer */

/* Receives what there is, up to GATHER messages; waits for the first. 0: no more
 * will come. */
static int gather(message_chan *messages, struct message **m)
{
	int n = message_chan_recv(messages, &m[0]);

	while (n > 0 && n < GATHER &&
	       message_chan_try_recv(messages, &m[n]) == GORO_RECV_OK)
		n++;
	return n;
}

/* A write that fails is not its concern: the connection's own goroutine sees the
 * end, too. */
static void writer(struct conn *c)
{
	struct subscriber *sub = c->sub;
	struct message *m[GATHER];
	struct iovec iov[GATHER];
	int n;

	while ((n = gather(sub->messages, m)) > 0) {
		for (int i = 0; i < n; i++)
			iov[i] = (struct iovec){ m[i]->bytes, m[i]->n };
		goro_mutex_lock(&c->write_lock);
		goro_writev(c->fd, iov, n);
		goro_mutex_unlock(&c->write_lock);
		for (int i = 0; i < n; i++) {
			atomic_fetch_sub(&sub->backlog, m[i]->n);
			message_unref(m[i]);
		}
	}
	goro_waitgroup_done(&sub->writer);
}

static bool become_subscriber(struct conn *c)
{
	struct subscriber *sub = memory_get(MEMORY_BUFFERS, sizeof *sub);

	if (!sub)
		return false;
	*sub = (struct subscriber){ .messages = message_chan_make(MESSAGES_MAX) };
	c->sub = sub;
	goro_waitgroup_add(&sub->writer, 1);
	if (sub->messages && go(writer, c) == 0)
		return true;
	message_chan_unref(sub->messages);
	memory_put(MEMORY_BUFFERS, sub, sizeof *sub);
	c->sub = NULL;
	return false;
}

/* ----------------------------------------------------------- subscriptions */

static bool is(const struct subscription *s, struct text name)
{
	return s->channel->name_n == name.n &&
	       memcmp(s->channel->name, name.at, name.n) == 0;
}

/* Where the subscription hangs, or where one that is made would. */
static struct subscription **find_own(struct conn *c, struct text name)
{
	struct subscription **at = &c->sub->first;

	while (*at && !is(*at, name))
		at = &(*at)->next_own;
	return at;
}

static struct channel *channel_make(struct text name)
{
	struct channel *ch = memory_get(MEMORY_BUFFERS, sizeof *ch + name.n);

	if (ch) {
		*ch = (struct channel){ .name_n = name.n };
		memcpy(ch->name, name.at, name.n);
	}
	return ch;
}

/* Puts a subscription into its channel's list; makes the channel if need be. */
static bool enter(struct subscription *s, struct text name)
{
	struct room *r = room_of(name);
	struct channel **at;

	goro_mutex_lock(&r->lock);
	at = find(r, name);
	if (!*at)
		*at = channel_make(name);
	s->channel = *at;
	if (s->channel) {
		s->prev = &s->channel->first;
		s->next = s->channel->first;
		if (s->next)
			s->next->prev = &s->next;
		s->channel->first = s;
	}
	goro_mutex_unlock(&r->lock);
	return s->channel;
}

static void leave(struct subscription *s)
{
	struct text name = { .at = s->channel->name, .n = s->channel->name_n };
	struct room *r = room_of(name);
	struct channel *ch = s->channel;

	goro_mutex_lock(&r->lock);
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (!ch->first) {
		*find(r, name) = ch->next;
		memory_put(MEMORY_BUFFERS, ch, sizeof *ch + ch->name_n);
	}
	goro_mutex_unlock(&r->lock);
}

static bool subscribe(struct conn *c, struct text name)
{
	struct subscription **at, *s;

	if (!c->sub && !become_subscriber(c))
		return false;
	at = find_own(c, name);
	if (*at)
		return true;
	s = c->sub->n < SUBSCRIPTIONS_MAX ? memory_get(MEMORY_BUFFERS, sizeof *s) : NULL;
	if (!s)
		return false;
	*s = (struct subscription){ .c = c };
	if (!enter(s, name)) {
		memory_put(MEMORY_BUFFERS, s, sizeof *s);
		return false;
	}
	*at = s;
	c->sub->n++;
	return true;
}

static void unsubscribe(struct conn *c, struct subscription **at)
{
	struct subscription *s = *at;

	if (!s)
		return;
	leave(s);
	*at = s->next_own;
	memory_put(MEMORY_BUFFERS, s, sizeof *s);
	c->sub->n--;
}

size_t pubsub_subscriptions(const struct conn *c)
{
	return c->sub ? c->sub->n : 0;
}

static void reply_about(struct conn *c, const char *kind, const struct text *name)
{
	reply_array(c, 3);
	reply_text(c, kind);
	if (name)
		reply_bulk(c, name->at, name->n);
	else
		reply_null(c);
	reply_int(c, (int64_t)pubsub_subscriptions(c));
}

COMMAND(subscribe)
{
	goro_mutex_lock(&c->write_lock);
	for (int i = 1; i < c->argc; i++) {
		if (subscribe(c, c->argv[i]))
			reply_about(c, "subscribe", &c->argv[i]);
		else
			reply_error(c, "ERR no memory, or more than %d subscriptions",
			            SUBSCRIPTIONS_MAX);
	}
	resp_send(c);
	goro_mutex_unlock(&c->write_lock);
}

/* Of these, or of all. */
COMMAND(unsubscribe)
{
	if (c->argc == 1 && pubsub_subscriptions(c) == 0)
		reply_about(c, "unsubscribe", NULL);
	for (int i = 1; i < c->argc; i++) {
		if (c->sub)
			unsubscribe(c, find_own(c, c->argv[i]));
		reply_about(c, "unsubscribe", &c->argv[i]);
	}
	while (c->argc == 1 && pubsub_subscriptions(c) > 0) {
		struct channel *ch = c->sub->first->channel;
		struct text name = { .at = ch->name, .n = ch->name_n };

		reply_array(c, 3);
		reply_text(c, "unsubscribe");
		reply_bulk(c, name.at, name.n);
		unsubscribe(c, &c->sub->first);
		reply_int(c, (int64_t)pubsub_subscriptions(c));
	}
}

/* When nobody can send any more the writer writes what is left, and ends. */
void pubsub_leave(struct conn *c)
{
	struct subscriber *sub = c->sub;

	if (!sub)
		return;
	while (sub->n > 0)
		unsubscribe(c, &sub->first);
	goro_set_deadline(c->fd, GORO_NOW, goro_now() + LEAVE_TIMEOUT);
	message_chan_close(sub->messages);
	goro_waitgroup_wait(&sub->writer);
	message_chan_unref(sub->messages);
	memory_put(MEMORY_BUFFERS, sub, sizeof *sub);
	c->sub = NULL;
}
