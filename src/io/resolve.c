/*
 * resolve.c - names to addresses; no other goroutine waits meanwhile.
 *
 * Addresses in digits and well-known ports are read here. Everything else takes
 * getaddrinfo. It blocks in the kernel, for seconds if a name server does not answer, and
 * loads modules that use any amount of stack. So each lookup runs on a plain thread with
 * a stack of the usual size, up to LOOKUPS_MAX at a time. Further ones wait in line.
 *
 * A caller whose deadline comes first leaves. The lookup goes on and its result is
 * dropped. So what they share is counted, and the thread, not the caller, gives back the
 * place in line.
 *
 * Rejected: getaddrinfo on the goroutine's own thread and stack in an announced call (a
 * stack of 16 KiB would overflow, and a deadline could not end it); a resolver of goro's
 * own (the system decides what a name means: nsswitch.conf, mDNS, a directory of users).
 */
#define _GNU_SOURCE
#include "io/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <goro.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "platform/atomic.h"
#include "base/config.h"
#include "platform/os.h"

/* Lookups at a time, Go's number: enough that name servers which do not answer do not
 * hold up the others, and threads that any system can bear. */
#define LOOKUPS_MAX    500

/* ------------------------------------------------------------- in digits */

static bool parse_v6(const char *host, struct sockaddr_in6 *sa)
{
	char copy[INET6_ADDRSTRLEN + IF_NAMESIZE + 1], *zone;

	if (strlen(host) >= sizeof copy)
		return false;
	strcpy(copy, host);
	zone = strchr(copy, '%');
	if (zone)
		*zone++ = '\0';
	sa->sin6_family = AF_INET6;
	if (inet_pton(AF_INET6, copy, &sa->sin6_addr) != 1)
		return false;
	if (zone) {
		sa->sin6_scope_id = if_nametoindex(zone);
		if (sa->sin6_scope_id == 0)
			sa->sin6_scope_id = (uint32_t)strtoul(zone, NULL, 10);
	}
	return true;
}

static bool parse_address(const char *host, union net_addr *a)
{
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		return true;
	}
	return parse_v6(host, &a->v6);
}

/* 0 to 65535, "" is 0; -1: not a number; -EINVAL: too large. */
static int parse_port(const char *s)
{
	int n = 0;

	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		n = n * 10 + (*s - '0');
		if (n > 65535)
			return -EINVAL;
	}
	return n;
}

/* Go's list, for systems without /etc/services; -1: not in it. */
static int known_port(const char *service, int type)
{
	static const struct { const char *name; int port; } known[] = {
		{ "domain", 53 }, { "ftp", 21 }, { "ftps", 990 }, { "http", 80 },
		{ "https", 443 }, { "imap2", 143 }, { "imaps", 993 }, { "pop3", 110 },
		{ "pop3s", 995 }, { "smtp", 25 }, { "ssh", 22 }, { "submissions", 465 },
		{ "telnet", 23 },
	};

	if (type == SOCK_DGRAM)
		return strcmp(service, "domain") == 0 ? 53 : -1;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, service) == 0)
			return known[i].port;
	return -1;
}

static void set_port(union net_addr *a, int port)
{
	if (a->any.sa_family == AF_INET)
		a->v4.sin_port = htons((uint16_t)port);
	else
		a->v6.sin6_port = htons((uint16_t)port);
}

/* ----------------------------------------------------------------- lookups */

struct lookup {
	uint32_t refs;
	int family, type;
	int error;			/* 0, or why there is no result */
	struct net_addrs *result;
	goro_chan *done;		/* closed when the lookup is over */
	const char *service;		/* behind host; NULL: none */
	char host[];
};

static goro_sema places;

static void lookup_unref(struct lookup *l)
{
	/* acqrel: the last one has seen what the other did; pairs with itself */
	if (fetch_add_acqrel(&l->refs, (uint32_t)-1) != 1)
		return;
	free(l->result);
	goro_chan_unref(l->done);
	free(l);
}

static int error_of(int eai, int system)
{
	switch (eai) {
	case EAI_AGAIN: return -EAGAIN;
	case EAI_MEMORY: return -ENOMEM;
	case EAI_SERVICE: case EAI_SOCKTYPE: case EAI_BADFLAGS: return -EINVAL;
	case EAI_FAMILY: return -EAFNOSUPPORT;
	case EAI_SYSTEM: return system ? -system : -EIO;
	case EAI_FAIL: return -EIO;
	default: return -ENOENT;	/* EAI_NONAME, EAI_NODATA, EAI_ADDRFAMILY */
	}
}

static struct net_addrs *addrs_of(const struct addrinfo *list)
{
	struct net_addrs *out;
	size_t n = 0;

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
		n++;
	out = calloc(1, sizeof *out + n * sizeof out->at[0]);
	for (const struct addrinfo *ai = list; out && ai; ai = ai->ai_next)
		if ((ai->ai_family == AF_INET || ai->ai_family == AF_INET6) &&
		    ai->ai_addrlen <= sizeof out->at[0])
			memcpy(&out->at[out->n++], ai->ai_addr, ai->ai_addrlen);
	return out;
}

static void look_up(struct lookup *l)
{
	/* With one type each address is there once, and the service has one meaning. */
	struct addrinfo hints = { .ai_family = l->family, .ai_socktype = l->type };
	struct addrinfo *list = NULL;
	int r = getaddrinfo(l->host, l->service, &hints, &list);

	if (r != 0) {
		l->error = error_of(r, errno);
		return;
	}
	l->result = addrs_of(list);
	freeaddrinfo(list);
	if (!l->result)
		l->error = -ENOMEM;
	else if (l->result->n == 0)
		l->error = -ENOENT;
}

static void *lookup_thread(void *arg)
{
	struct lookup *l = arg;

	look_up(l);
	goro_chan_close(l->done);
	lookup_unref(l);
	goro_sema_release(&places, 1);
	return NULL;
}

static void init(void *arg)
{
	(void)arg;
	goro_sema_init(&places, LOOKUPS_MAX);
}

/* The thread blocks all signals: they are for the program's own threads. */
static int thread_start(struct lookup *l)
{
	sigset_t all, old;
	pthread_t thread;
	int error;

	os_all_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, NULL, lookup_thread, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		return -error;
	pthread_detach(thread);
	return 0;
}

/* Gives the lookup to a thread, with a reference. */
static int hand_over(struct lookup *l, int64_t deadline)
{
	int r = goro_sema_acquire(&places, 1, deadline);

	if (r != 0)
		return r;
	fetch_add_relaxed(&l->refs, 1);
	r = thread_start(l);
	if (r != 0) {
		lookup_unref(l);
		goro_sema_release(&places, 1);
	}
	return r;
}

static struct lookup *lookup_make(const char *host, const char *service, int family, int type)
{
	size_t host_n = strlen(host) + 1, service_n = service ? strlen(service) + 1 : 0;
	struct lookup *l = malloc(sizeof *l + host_n + service_n);

	if (!l)
		return NULL;
	*l = (struct lookup){ .refs = 1, .family = family, .type = type,
	                      .done = goro_chan_make(0, 0) };
	memcpy(l->host, host, host_n);
	if (service)
		l->service = memcpy(l->host + host_n, service, service_n);
	if (!l->done) {
		free(l);
		return NULL;
	}
	return l;
}

static int ask_system(const char *host, const char *service, int family, int type,
                      int64_t deadline, struct net_addrs **out)
{
	static goro_once once;
	struct lookup *l = lookup_make(host, service, family, type);
	int r;

	goro_once_do(&once, init, NULL);
	if (!l)
		return -ENOMEM;
	r = hand_over(l, deadline);
	if (r == 0 && goro_select_until(deadline, GORO_RECV(l->done, NULL)) != 0)
		r = -ETIMEDOUT;
	if (r == 0)
		r = l->error;
	if (r == 0) {
		*out = l->result;
		l->result = NULL;
	}
	lookup_unref(l);
	return r;
}

/* ------------------------------------------------------------------- both */

int resolve(const char *host, const char *service, int family, int type, int64_t deadline,
            struct net_addrs **out)
{
	int port = parse_port(service), r;
	union net_addr a;

	if (port == -1)
		port = known_port(service, type);
	if (port < -1)
		return port;
	if (!parse_address(host, &a) || port < 0) {
		r = ask_system(host, port < 0 ? service : NULL, family, type, deadline, out);
		for (size_t i = 0; r == 0 && port >= 0 && i < (*out)->n; i++)
			set_port(&(*out)->at[i], port);
		return r;
	}
	if (family != AF_UNSPEC && family != a.any.sa_family)
		return -EAFNOSUPPORT;
	*out = malloc(sizeof **out + sizeof a);
	if (!*out)
		return -ENOMEM;
	set_port(&a, port);
	(*out)->n = 1;
	(*out)->at[0] = a;
	return 0;
}
