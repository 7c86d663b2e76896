/*
 * curl_park.c - see curl_park.h.
 *
 * The sockets of all transfers are in an epoll instance, for which goro_poll waits. The
 * lock is held wherever curl is called, and so where curl calls on_socket and on_timer.
 */
#include "curl_park.h"

#include <goro.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct curl_park {
	goro_mutex lock;
	CURLM *multi;
	int sockets;		/* the epoll instance */
	int woken;		/* an eventfd in it: on_timer was called, or it ends */
	int64_t timer;		/* when curl wants to be called though nothing came */
	bool inside, ends;
	goro_chan *ended;	/* closed when the goroutine has ended */
};

struct transfer {
	bool done;
	CURLcode result;
	goro_chan *answered;	/* closed when done */
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	struct epoll_event event = { .data.fd = fd };
	curl_park *p = arg;

	(void)easy, (void)unused;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(p->sockets, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) |
	               (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	if (epoll_ctl(p->sockets, EPOLL_CTL_MOD, fd, &event) == 0)
		return 0;
	return epoll_ctl(p->sockets, EPOLL_CTL_ADD, fd, &event);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	curl_park *p = arg;

	(void)multi;
	p->timer = ms < 0 ? GORO_FOREVER : goro_deadline_in(ms * GORO_MILLISECOND);
	if (!p->inside)
		eventfd_write(p->woken, 1);
	return 0;
}

/* -------------------------------------------------------- who looks after it */

static void tell_finished(curl_park *p)
{
	struct transfer *t;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(p->multi, &left))) {
		CURLcode result = m->data.result;
		CURL *easy = m->easy_handle;

		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
		curl_multi_remove_handle(p->multi, easy);	/* m is gone */
		t->result = result;
		t->done = true;
		goro_chan_close(t->answered);
	}
}

static void act(curl_park *p)
{
	struct epoll_event events[64];
	int n = epoll_wait(p->sockets, events, 64, 0), running;
	eventfd_t count;

	for (int i = 0; i < n; i++) {
		uint32_t e = events[i].events;

		if (events[i].data.fd == p->woken)
			eventfd_read(p->woken, &count);
		else
			curl_multi_socket_action(p->multi, events[i].data.fd,
				(e & EPOLLIN ? CURL_CSELECT_IN : 0) |
				(e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				(e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0), &running);
	}
	if (goro_now() >= p->timer) {
		p->timer = GORO_FOREVER;
		curl_multi_socket_action(p->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
}

static void look_after(curl_park *p)
{
	goro_mutex_lock(&p->lock);
	while (!p->ends) {
		int64_t until = p->timer;

		goro_mutex_unlock(&p->lock);
		goro_poll(p->sockets, POLLIN, until);
		goro_mutex_lock(&p->lock);
		p->inside = true;
		act(p);
		tell_finished(p);
		p->inside = false;
	}
	goro_mutex_unlock(&p->lock);
	goro_chan_close(p->ended);
}

curl_park *curl_park_make(void)
{
	curl_park *p = calloc(1, sizeof *p);
	struct epoll_event event = { .events = EPOLLIN };

	if (!p)
		return NULL;
	p->timer = GORO_FOREVER;
	p->sockets = epoll_create1(EPOLL_CLOEXEC);
	p->woken = event.data.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->ended = goro_chan_of(char, 0);
	p->multi = curl_multi_init();
	if (p->ended && p->multi && p->sockets >= 0 && p->woken >= 0 &&
	    epoll_ctl(p->sockets, EPOLL_CTL_ADD, p->woken, &event) == 0) {
		curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
		curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p);
		curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, on_timer);
		curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p);
		if (go(look_after, p) == 0)
			return p;
	}
	p->ends = true;
	if (p->ended)
		goro_chan_close(p->ended);
	curl_park_free(p);
	return NULL;
}

void curl_park_free(curl_park *p)
{
	goro_mutex_lock(&p->lock);
	p->ends = true;
	if (p->woken >= 0)
		eventfd_write(p->woken, 1);
	goro_mutex_unlock(&p->lock);
	if (p->ended) {
		goro_chan_recv(p->ended, NULL);
		goro_chan_unref(p->ended);
	}
	if (p->multi)
		curl_multi_cleanup(p->multi);
	if (p->woken >= 0)
		close(p->woken);
	if (p->sockets >= 0)
		close(p->sockets);
	free(p);
}

/* ---------------------------------------------------------- who transfers */

CURLcode curl_park_perform(curl_park *p, CURL *easy, int64_t deadline)
{
	struct transfer t = { .result = CURLE_OPERATION_TIMEDOUT,
	                      .answered = goro_chan_of(char, 0) };
	CURLMcode added;

	if (!t.answered)
		return CURLE_OUT_OF_MEMORY;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, &t);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	goro_mutex_lock(&p->lock);
	added = curl_multi_add_handle(p->multi, easy);	/* calls on_timer */
	goro_mutex_unlock(&p->lock);
	if (added == CURLM_OK) {
		goro_select_until(deadline, GORO_RECV(t.answered, NULL));
		goro_mutex_lock(&p->lock);
		if (!t.done)
			curl_multi_remove_handle(p->multi, easy);
		goro_mutex_unlock(&p->lock);
	} else {
		t.result = added == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY :
		                                          CURLE_FAILED_INIT;
	}
	goro_chan_unref(t.answered);
	return t.result;
}
