/*
 * kv_server.c - commands on the connection and on the server itself.
 */
#include "kv.h"

COMMAND(ping)
{
	if (c->argc > 2) {
		reply_error(c, "ERR wrong number of arguments for 'ping' command");
	} else if (pubsub_subscriptions(c) > 0) {
		struct text said = c->argc > 1 ? c->argv[1] : text_of("");

		reply_array(c, 2);
		reply_text(c, "pong");
		reply_bulk(c, said.at, said.n);
	} else if (c->argc > 1) {
		reply_bulk(c, c->argv[1].at, c->argv[1].n);
	} else {
		reply_simple(c, "PONG");
	}
}

COMMAND(echo)
{
	reply_bulk(c, c->argv[1].at, c->argv[1].n);
}

COMMAND(quit)
{
	reply_simple(c, "OK");
	c->closing = true;
}

/* Clients that know a later protocol ask for it by this, and go on with RESP2. */
COMMAND(hello)
{
	reply_error(c, "NOPROTO unsupported protocol version");
}

COMMAND(shutdown)
{
	c->closing = true;
	server_stop();
}

COMMAND(info)
{
	struct goro_stats stats;
	char text[512];
	int n;

	goro_stats_read(&stats);
	n = snprintf(text, sizeof text,
		     "# kv\r\n"
		     "connected_clients:%d\r\n"
		     "maxclients:%d\r\n"
		     "used_memory:%zu\r\n"
		     "used_memory_buffers:%zu\r\n"
		     "maxmemory:%zu\r\n"
		     "goroutines:%llu\r\n"
		     "threads:%llu\r\n"
		     "gomaxprocs:%llu\r\n",
		     clients_count(), clients_max(), memory_used(MEMORY_DATA),
		     memory_used(MEMORY_BUFFERS), memory_limit_is(),
		     (unsigned long long)stats.goroutines_live,
		     (unsigned long long)stats.threads,
		     (unsigned long long)stats.gomaxprocs);
	reply_bulk(c, text, (size_t)n);
}

/* redis-benchmark asks for the first two before it starts. */
COMMAND(config)
{
	char memory[24], clients[24];
	const char *settings[][2] = {
		{ "save", "" },
		{ "appendonly", "no" },
		{ "maxmemory", memory },
		{ "maxclients", clients },
	};
	size_t n = sizeof settings / sizeof *settings, found = 0;
	size_t settings_at = c->out.n, head;

	if (!text_is(c->argv[1], "get") || c->argc != 3) {
		reply_error(c, "ERR only CONFIG GET with one pattern is known here");
		return;
	}
	snprintf(memory, sizeof memory, "%zu", memory_limit_is());
	snprintf(clients, sizeof clients, "%d", clients_max());
	for (size_t i = 0; i < n; i++) {
		if (!text_matches(text_of(settings[i][0]), c->argv[2]))
			continue;
		reply_text(c, settings[i][0]);
		reply_text(c, settings[i][1]);
		found++;
	}
	head = c->out.n;
	reply_array(c, 2 * found);
	reply_move(c, head, settings_at);
}

static void describe(struct conn *c, const struct command *cmd)
{
	reply_array(c, 6);
	reply_text(c, cmd->name);
	reply_int(c, cmd->arity);
	reply_array(c, cmd->flags & GROWS ? 1 : 0);
	if (cmd->flags & GROWS)
		reply_simple(c, "denyoom");
	reply_int(c, cmd->first);
	reply_int(c, cmd->last);
	reply_int(c, cmd->step);
}

/* redis-cli asks for COMMAND DOCS, and does without. */
COMMAND(command)
{
	if (c->argc == 1) {
		reply_array(c, commands_n);
		for (size_t i = 0; i < commands_n; i++)
			describe(c, &commands[i]);
	} else if (c->argc == 2 && text_is(c->argv[1], "count")) {
		reply_int(c, (int64_t)commands_n);
	} else {
		reply_array(c, 0);
	}
}
