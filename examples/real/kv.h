/*
 * kv.h - what the parts of kv, a server for the Redis protocol, offer each other.
 *
 *	kv.c            the program: accepts, serves, ends in good order
 *	kv_resp.c       reads requests, gathers replies
 *	kv_command.c    the table of commands; finds one, locks its keys, runs it
 *	kv_keys.c  kv_string.c  kv_list.c  kv_server.c     the commands
 *	kv_pubsub.c     SUBSCRIBE and PUBLISH
 *	kv_store.c      the table of keys
 *	kv_text.c  kv_memory.c     numbers and patterns; memory, counted and limited
 */
#ifndef KV_H
#define KV_H

#include <goro.h>
#include <stdatomic.h>

/* Bytes of any kind. */
struct text {
	char *at;
	size_t n;
	union {
		size_t offset;		/* resp_read: from the request's start */
		uint64_t hash;		/* of a command's keys: command_run sets it */
	};
};

/* ------------------------------------------------------------- kv_text.c */

bool text_is(struct text t, const char *word);		/* in either case */
struct text text_of(const char *s);
bool text_int(struct text t, int64_t *n);		/* no +, no leading zero */
bool text_matches(struct text t, struct text pattern);	/* as a glob: * ? [a-z] \x */

/* ------------------------------------------------------------ kv_memory.c */

/* Each kind has the limit for itself, so that full data leaves room to talk. */
enum memory { MEMORY_DATA, MEMORY_BUFFERS };

void memory_limit(size_t bytes);
size_t memory_limit_is(void);
size_t memory_used(enum memory kind);
bool memory_fits(enum memory kind, size_t n);
void *memory_get(enum memory kind, size_t n);		/* NULL: there is none */
void memory_put(enum memory kind, void *p, size_t n);	/* n: as in memory_get */

/* ------------------------------------------------------------- connections */

#define BUFFER_FIRST 1024
#define ARGS_FIRST   32

/* Bytes that have come, or that are to be sent. The first few lie on the goroutine's
 * stack, more on the heap for as long as they are needed. */
struct buffer {
	char *at;
	size_t n, room;
	char first[BUFFER_FIRST];
};

struct conn {
	int fd;
	bool closing;			/* after the replies so far */
	bool broken;			/* nothing can be read or sent any more */
	struct conn *next, **prev;	/* all connections: kv.c */
	goro_mutex write_lock;		/* one writes at a time, of those who serve it */
	struct subscriber *sub;		/* NULL until the first SUBSCRIBE */

	struct buffer in, out;
	size_t start, at;		/* in what came: the request; what is next */

	int argc, argv_room;		/* the request; argv[0] is the command's name */
	struct text *argv;
	struct text first_argv[ARGS_FIRST];
};

/* kv.c */
int clients_count(void);
int clients_max(void);
void server_stop(void);			/* as a SIGTERM does */

/* -------------------------------------------------------------- kv_resp.c */

void resp_init(struct conn *c, int fd);
void resp_free(struct conn *c);
/* Waits for a request. False: there are no more. */
bool resp_read(struct conn *c);
/* Sends the replies so far. False: the connection is broken. */
bool resp_flush(struct conn *c);
bool resp_send(struct conn *c);		/* the same; c->write_lock is held */

void reply_simple(struct conn *c, const char *line);
void reply_error(struct conn *c, const char *fmt, ...)	/* "ERR why" */
	__attribute__((format(printf, 2, 3)));
void reply_int(struct conn *c, int64_t n);
void reply_bulk(struct conn *c, const char *at, size_t n);
void reply_text(struct conn *c, const char *s);		/* a bulk */
void reply_null(struct conn *c);
void reply_array(struct conn *c, size_t n);		/* n replies follow */
/* Moves the short replies from out.at[from] on before those from out.at[to] on: for
 * those who know only afterwards how many there are. */
void reply_move(struct conn *c, size_t from, size_t to);
/* Room for n bytes of replies, which count as written; NULL: the connection is broken. */
char *reply_room(struct conn *c, size_t n);

/* ------------------------------------------------------------- kv_store.c */

enum type { TYPE_STRING, TYPE_LIST };

struct string {
	char *at;
	size_t n, room;
};

/* A ring: element i is at[(head + i) % room]. */
struct list {
	struct string *at;
	size_t head, n, room;
};

struct entry {
	struct entry *next;		/* in its bucket */
	uint64_t hash;
	int64_t expires;		/* a goro_now() time, or GORO_FOREVER */
	enum type type;
	union {
		struct string string;
		struct list list;
	};
	size_t key_n;
	char key[];
};

#define SHARDS 64
#define ALL_SHARDS UINT64_MAX

/* Which shard has a key is in its hash. A set of shards is a word with a bit for each;
 * they are locked in order, so nobody waits in a circle. */
int store_init(void);			/* 0, or -errno */
uint64_t store_hash(struct text key);
uint64_t store_shard(uint64_t hash);	/* as a set of one */
void store_lock(uint64_t shards);
void store_unlock(uint64_t shards);

/* The key's shard is locked in all of these, and all shards in those without a key. */
struct entry *store_find(const struct text *key);		/* NULL: not there */
struct entry *store_add(const struct text *key, enum type);	/* NULL: no memory */
bool store_remove(const struct text *key);
void store_expire(struct entry *e, int64_t when);
size_t store_count(void);
void store_clear(void);
/* Calls each(e, arg) for the entries from one place on, by the hashes' order, until
 * it has seen enough of them; and returns the place to go on from, 0 at the end. An
 * entry that is there all the time is seen, however the table grows meanwhile. Locks
 * by itself. */
uint64_t store_walk(uint64_t place, size_t enough,
                    void (*each)(struct entry *, void *arg), void *arg);
void store_start_janitor(void);		/* removes what has expired, as long as we run */

bool string_set(struct string *s, const char *at, size_t n);	/* false: no memory */
bool string_append(struct string *s, const char *at, size_t n);
void string_free(struct string *s);
struct string *list_at(const struct list *l, size_t i);
bool list_push(struct list *l, bool left, const char *at, size_t n);
void list_pop(struct list *l, bool left);
void list_free(struct list *l);

/* ----------------------------------------------------------- kv_command.c */

/* Commands run with the shards of their keys locked: each is atomic. */
struct command {
	const char *name;
	void (*run)(struct conn *c);
	int arity;			/* words; at least as many if negative */
	int flags;
	int first, last, step;		/* which words are keys; last -1: the last one */
};

enum {
	GROWS      = 1,			/* refused when memory is full */
	EVERYTHING = 2,			/* locks all shards */
	SUBSCRIBED = 4,			/* may be used by one who has subscribed */
};

extern const struct command commands[];
extern const size_t commands_n;

void command_init(void);
void command_run(struct conn *c);

/* What commands share. False: it has answered with an error. */
bool command_find(struct conn *c, enum type type, struct entry **e);	/* NULL: none */
bool command_int(struct conn *c, int arg, int64_t *n);
bool command_time(struct conn *c, int arg, int64_t unit, int64_t *when);
void reply_syntax_error(struct conn *c);
void reply_no_memory(struct conn *c);

#define COMMAND(name) void name##_command(struct conn *c)
COMMAND(ping);
COMMAND(echo);
COMMAND(quit);
COMMAND(hello);
COMMAND(info);
COMMAND(config);
COMMAND(command);
COMMAND(shutdown);
COMMAND(set);
COMMAND(get);
COMMAND(mget);
COMMAND(mset);
COMMAND(incr);
COMMAND(decr);
COMMAND(incrby);
COMMAND(decrby);
COMMAND(append);
COMMAND(strlen);
COMMAND(del);
COMMAND(exists);
COMMAND(type);
COMMAND(expire);
COMMAND(pexpire);
COMMAND(ttl);
COMMAND(pttl);
COMMAND(persist);
COMMAND(keys);
COMMAND(scan);
COMMAND(dbsize);
COMMAND(flushall);
COMMAND(lpush);
COMMAND(rpush);
COMMAND(lpop);
COMMAND(rpop);
COMMAND(llen);
COMMAND(lrange);
COMMAND(subscribe);
COMMAND(unsubscribe);
COMMAND(publish);

/* ------------------------------------------------------------ kv_pubsub.c */

size_t pubsub_subscriptions(const struct conn *c);
void pubsub_leave(struct conn *c);	/* no more messages come when it returns */

#endif
