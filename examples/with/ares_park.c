/*
 * ares_park.c - see ares_park.h.
 *
 * The lock is held wherever c-ares is called, which never waits for anything. So it is
 * when c-ares calls answered(), out of any of its calls. A lookup belongs to both who
 * waits for it and c-ares; the last of them frees it.
 */
#include "ares_park.h"

#include <goro.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "poll_park.h"

struct ares_park {
	goro_mutex lock;
	ares_channel channel;
	bool ends;
	int woken;		/* an eventfd: there is something new to wait for */
	goro_chan *ended;	/* closed when the goroutine has ended */
};

struct lookup {
	bool done, given_up;
	goro_chan *answered;	/* closed when done */
	int status;
	struct ares_addrinfo *result;
};

static void lookup_free(struct lookup *l)
{
	ares_freeaddrinfo(l->result);
	goro_chan_unref(l->answered);
	free(l);
}

static void answered(void *arg, int status, int timeouts, struct ares_addrinfo *result)
{
	struct lookup *l = arg;

	(void)timeouts;
	l->done = true;
	l->status = status;
	l->result = result;
	goro_chan_close(l->answered);
	if (l->given_up)
		lookup_free(l);
}

/* -------------------------------------------------- who looks after c-ares */

/* The sockets that c-ares waits for, and what for. */
static nfds_t sockets(ares_channel channel, struct pollfd *fds)
{
	ares_socket_t all[ARES_GETSOCK_MAXNUM];
	unsigned mask = (unsigned)ares_getsock(channel, all, ARES_GETSOCK_MAXNUM);
	nfds_t n = 0;

	for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
		bool in = mask >> i & 1, out = mask >> (i + ARES_GETSOCK_MAXNUM) & 1;
		short events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));

		if (events)
			fds[n++] = (struct pollfd){ .fd = all[i], .events = events };
	}
	return n;
}

/* When c-ares wants to be called though nothing came: it asks another server then. */
static int64_t next_timeout(ares_channel channel)
{
	struct timeval t;

	return ares_timeout(channel, NULL, &t) ?
	       goro_deadline_in(t.tv_sec * GORO_SECOND + t.tv_usec * GORO_MICROSECOND) :
	       GORO_FOREVER;
}

static void process(ares_channel channel, const struct pollfd *fds, nfds_t n)
{
	ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);	/* timeouts */
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents)
			ares_process_fd(channel,
			                fds[i].revents & ~POLLOUT ? fds[i].fd : ARES_SOCKET_BAD,
			                fds[i].revents & POLLOUT ? fds[i].fd : ARES_SOCKET_BAD);
}

static void look_after(ares_park *r)
{
	struct pollfd fds[ARES_GETSOCK_MAXNUM + 1];
	eventfd_t count;

	goro_mutex_lock(&r->lock);
	while (!r->ends) {
		nfds_t n = sockets(r->channel, fds);
		int64_t until = next_timeout(r->channel);

		fds[n] = (struct pollfd){ .fd = r->woken, .events = POLLIN };
		goro_mutex_unlock(&r->lock);
		if (poll_park(fds, n + 1, until) < 0)
			goro_sleep(GORO_MILLISECOND);	/* no descriptors left */
		goro_mutex_lock(&r->lock);
		eventfd_read(r->woken, &count);
		process(r->channel, fds, n);
	}
	goro_mutex_unlock(&r->lock);
	goro_chan_close(r->ended);
}

ares_park *ares_park_make(struct ares_options *options, int mask, int *status)
{
	ares_park *r = calloc(1, sizeof *r);

	*status = ARES_ENOMEM;
	if (!r)
		return NULL;
	r->ended = goro_chan_of(char, 0);
	r->woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!r->ended || r->woken < 0)
		goto fail;
	*status = ares_init_options(&r->channel, options, mask);
	if (*status != ARES_SUCCESS)
		goto fail;
	if (go(look_after, r) == 0)
		return r;
	*status = ARES_ENOMEM;
	ares_destroy(r->channel);
fail:
	if (r->woken >= 0)
		close(r->woken);
	if (r->ended)
		goro_chan_unref(r->ended);
	free(r);
	return NULL;
}

void ares_park_free(ares_park *r)
{
	goro_mutex_lock(&r->lock);
	r->ends = true;
	eventfd_write(r->woken, 1);
	goro_mutex_unlock(&r->lock);
	goro_chan_recv(r->ended, NULL);
	ares_destroy(r->channel);
	close(r->woken);
	goro_chan_unref(r->ended);
	free(r);
}

/* ------------------------------------------------------------ who looks up */

int ares_park_getaddrinfo(ares_park *r, const char *node, const char *service,
                          const struct ares_addrinfo_hints *hints,
                          struct ares_addrinfo **result, int64_t deadline)
{
	struct lookup *l = calloc(1, sizeof *l);
	int status;

	*result = NULL;
	if (!l || !(l->answered = goro_chan_of(char, 0))) {
		free(l);
		return ARES_ENOMEM;
	}
	goro_mutex_lock(&r->lock);
	ares_getaddrinfo(r->channel, node, service, hints, answered, l);
	if (!l->done)
		eventfd_write(r->woken, 1);
	goro_mutex_unlock(&r->lock);
	goro_select_until(deadline, GORO_RECV(l->answered, NULL));

	goro_mutex_lock(&r->lock);
	if (!l->done) {
		l->given_up = true;
		goro_mutex_unlock(&r->lock);
		return ARES_ETIMEOUT;
	}
	goro_mutex_unlock(&r->lock);
	status = l->status;
	*result = l->result;
	l->result = NULL;
	lookup_free(l);
	return status;
}
