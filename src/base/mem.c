/*
 * mem.c - memory for the runtime's own structures: Ms, Ps, stack regions.
 *
 * The runtime must not call malloc in state RUNTIME: a goroutine that was preempted in
 * malloc may hold its lock. What the runtime needs lives as long as the process, and its
 * users recycle it. So a bump allocator over mapped memory is enough.
 */
#include "base/mem.h"

#include "base/config.h"
#include "base/lock.h"
#include "platform/os.h"
#include "platform/tool.h"

#define CHUNK_BYTES (256 << 10)

/* Mappings that are remembered: enough for the stacks of a hundred million goroutines. */
#define MAPPED_MAX 1024

static struct {
	struct lock lock;
	char *at, *end;
} mem = { .lock = LOCK_INIT(RANK_MEM) };

static struct {
	const char *at;
	size_t bytes;
} mapped[MAPPED_MAX];
static uint32_t mapped_n;	/* may exceed MAPPED_MAX */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static void *map(size_t n)
{
	void *p = os_map(n);
	uint32_t i;

	if (!p)
		return NULL;
	tool_mapped(p, n);
	i = fetch_add_relaxed(&mapped_n, 1);
	if (i < MAPPED_MAX) {
		mapped[i].bytes = n;
		/* release: bytes; pairs with load_acquire in mem_each */
		store_release(&mapped[i].at, p);
	}
	return p;
}

void *mem_alloc(size_t n)
{
	void *p = NULL;

	if (n > CHUNK_BYTES / 4)
		return map(round_up(n, os_page_bytes));
	n = round_up(n, CACHE_LINE);
	lock_acquire(&mem.lock);
	if ((size_t)(mem.end - mem.at) < n) {
		mem.at = map(CHUNK_BYTES);
		mem.end = mem.at ? mem.at + CHUNK_BYTES : NULL;
	}
	if (mem.at) {
		p = mem.at;
		mem.at += n;
	}
	lock_release(&mem.lock);
	return p;
}

void mem_each(void (*fn)(const void *lo, const void *hi, void *arg), void *arg)
{
	for (uint32_t i = 0; i < MAPPED_MAX; i++) {
		const char *at = load_acquire(&mapped[i].at);

		if (at)
			fn(at, at + mapped[i].bytes, arg);
	}
}
