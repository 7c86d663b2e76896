/*
 * kv_command.c - the table of commands; finds one, locks its keys, runs it.
 *
 * Which of a request's words are keys the table knows. Their shards are locked around
 * the command, in one order, so each command is atomic, MSET of a hundred keys, too,
 * and the commands themselves are plain code without a lock. What they answer goes to a
 * buffer: nobody waits for a client while it holds a lock.
 */
#include <string.h>

#include "kv.h"

#define SLOTS    128		/* of the names' hash table; half of them are free */
#define NAME_MAX 16
#define FLUSH_AT (64 << 10)	/* replies that are sent although more may be gathered */

const struct command commands[] = {
	/* name           run                  arity  flags       keys */
	{ "ping",         ping_command,        -1, SUBSCRIBED,    0, 0, 0 },
	{ "echo",         echo_command,         2, 0,             0, 0, 0 },
	{ "quit",         quit_command,        -1, SUBSCRIBED,    0, 0, 0 },
	{ "hello",        hello_command,       -1, 0,             0, 0, 0 },
	{ "info",         info_command,        -1, 0,             0, 0, 0 },
	{ "config",       config_command,      -2, 0,             0, 0, 0 },
	{ "command",      command_command,     -1, 0,             0, 0, 0 },
	{ "shutdown",     shutdown_command,    -1, 0,             0, 0, 0 },

	{ "set",          set_command,         -3, GROWS,         1, 1, 1 },
	{ "get",          get_command,          2, 0,             1, 1, 1 },
	{ "mget",         mget_command,        -2, 0,             1, -1, 1 },
	{ "mset",         mset_command,        -3, GROWS,         1, -1, 2 },
	{ "incr",         incr_command,         2, GROWS,         1, 1, 1 },
	{ "decr",         decr_command,         2, GROWS,         1, 1, 1 },
	{ "incrby",       incrby_command,       3, GROWS,         1, 1, 1 },
	{ "decrby",       decrby_command,       3, GROWS,         1, 1, 1 },
	{ "append",       append_command,       3, GROWS,         1, 1, 1 },
	{ "strlen",       strlen_command,       2, 0,             1, 1, 1 },

	{ "del",          del_command,         -2, 0,             1, -1, 1 },
	{ "exists",       exists_command,      -2, 0,             1, -1, 1 },
	{ "type",         type_command,         2, 0,             1, 1, 1 },
	{ "expire",       expire_command,       3, 0,             1, 1, 1 },
	{ "pexpire",      pexpire_command,      3, 0,             1, 1, 1 },
	{ "ttl",          ttl_command,          2, 0,             1, 1, 1 },
	{ "pttl",         pttl_command,         2, 0,             1, 1, 1 },
	{ "persist",      persist_command,      2, 0,             1, 1, 1 },
	{ "keys",         keys_command,         2, 0,             0, 0, 0 },
	{ "scan",         scan_command,        -2, 0,             0, 0, 0 },
	{ "dbsize",       dbsize_command,       1, EVERYTHING,    0, 0, 0 },
	{ "flushall",     flushall_command,    -1, EVERYTHING,    0, 0, 0 },

	{ "lpush",        lpush_command,       -3, GROWS,         1, 1, 1 },
	{ "rpush",        rpush_command,       -3, GROWS,         1, 1, 1 },
	{ "lpop",         lpop_command,         2, 0,             1, 1, 1 },
	{ "rpop",         rpop_command,         2, 0,             1, 1, 1 },
	{ "llen",         llen_command,         2, 0,             1, 1, 1 },
	{ "lrange",       lrange_command,       4, 0,             1, 1, 1 },

	{ "subscribe",    subscribe_command,   -2, SUBSCRIBED,    0, 0, 0 },
	{ "unsubscribe",  unsubscribe_command, -1, SUBSCRIBED,    0, 0, 0 },
	{ "publish",      publish_command,      3, 0,             0, 0, 0 },
};
const size_t commands_n = sizeof commands / sizeof *commands;

_Static_assert(2 * sizeof commands / sizeof *commands <= SLOTS, "too few slots");

/* ------------------------------------------------------------------- names */

static const struct command *slots[SLOTS];

/* The slot that has this name, or the free one where it would be. */
static const struct command **slot(struct text name)
{
	unsigned h = 0;

	for (size_t i = 0; i < name.n; i++)
		h = h * 31 + ((unsigned char)name.at[i] | 0x20);
	while (slots[h % SLOTS] && !text_is(name, slots[h % SLOTS]->name))
		h++;
	return &slots[h % SLOTS];
}

void command_init(void)
{
	for (size_t i = 0; i < commands_n; i++) {
		struct text name = text_of(commands[i].name);

		*slot(name) = &commands[i];
	}
}

static int shown(struct text t, int most)
{
	return t.n < (size_t)most ? (int)t.n : most;
}

static void reply_unknown(struct conn *c)
{
	char args[128] = "";
	size_t n = 0;

	for (int i = 1; i < c->argc && n < sizeof args - 4; i++)
		n += (size_t)snprintf(args + n, sizeof args - n, "'%.*s' ",
		                      shown(c->argv[i], 32), c->argv[i].at);
	reply_error(c, "ERR unknown command '%.*s', with args beginning with: %s",
	            shown(c->argv[0], 64), c->argv[0].at, args);
}

/* ------------------------------------------------------------- for commands */

void reply_syntax_error(struct conn *c)
{
	reply_error(c, "ERR syntax error");
}

void reply_no_memory(struct conn *c)
{
	reply_error(c, "OOM command not allowed when used memory > 'maxmemory'.");
}

bool command_find(struct conn *c, enum type type, struct entry **e)
{
	*e = store_find(&c->argv[1]);
	if (!*e || (*e)->type == type)
		return true;
	reply_error(c, "WRONGTYPE Operation against a key holding the wrong kind "
	               "of value");
	return false;
}

bool command_int(struct conn *c, int arg, int64_t *n)
{
	if (text_int(c->argv[arg], n))
		return true;
	reply_error(c, "ERR value is not an integer or out of range");
	return false;
}

bool command_time(struct conn *c, int arg, int64_t unit, int64_t *when)
{
	int64_t n;

	if (!command_int(c, arg, &n))
		return false;
	if (!__builtin_mul_overflow(n, unit, &n) &&
	    !__builtin_add_overflow(goro_now(), n, when) && *when != GORO_FOREVER)
		return true;
	reply_error(c, "ERR invalid expire time in '%s' command",
	            (*slot(c->argv[0]))->name);
	return false;
}

/* --------------------------------------------------------------------- run */

/* The command, if the request is in order; NULL with a reply if not. */
static const struct command *check(struct conn *c)
{
	struct text name = c->argv[0];
	const struct command *cmd = name.n <= NAME_MAX ? *slot(name) : NULL;

	if (!cmd)
		reply_unknown(c);
	else if (cmd->arity > 0 ? c->argc != cmd->arity : c->argc < -cmd->arity)
		reply_error(c, "ERR wrong number of arguments for '%s' command",
		            cmd->name);
	else if (!(cmd->flags & SUBSCRIBED) && pubsub_subscriptions(c) > 0)
		reply_error(c, "ERR Can't execute '%s': only SUBSCRIBE / UNSUBSCRIBE / "
		               "PING / QUIT are allowed in this context", cmd->name);
	else if (cmd->flags & GROWS && !memory_fits(MEMORY_DATA, c->at - c->start))
		reply_no_memory(c);
	else
		return cmd;
	return NULL;
}

static uint64_t shards_of(struct conn *c, const struct command *cmd)
{
	int last = cmd->last < 0 ? c->argc - 1 : cmd->last;
	uint64_t set = 0;

	if (cmd->flags & EVERYTHING)
		return ALL_SHARDS;
	for (int i = cmd->first; i > 0 && i <= last; i += cmd->step) {
		c->argv[i].hash = store_hash(c->argv[i]);
		set |= store_shard(c->argv[i].hash);
	}
	return set;
}

void command_run(struct conn *c)
{
	const struct command *cmd = check(c);
	uint64_t shards;

	if (cmd) {
		shards = shards_of(c, cmd);
		store_lock(shards);
		cmd->run(c);
		store_unlock(shards);
	}
	if (c->out.n >= FLUSH_AT)
		resp_flush(c);
}
