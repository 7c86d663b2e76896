/*
 * mem.c - memory for the runtime's own structures: Ms, Ps, stack regions.
 *
 * The runtime must not call malloc in state RUNTIME: a goroutine stopped inside
 * malloc may hold its lock. What it needs lives as long as the process and is
 * recycled by its users, so a bump allocator over mapped memory is all it takes.
 */
#include "mem.h"

#include "config.h"
#include "lock.h"
#include "os.h"
#include "tool.h"

#define CHUNK_BYTES (256 << 10)

static struct {
	struct lock lock;
	char *at, *end;
} mem = { .lock = LOCK_INIT(RANK_MEM) };

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static void *map(size_t n)
{
	void *p = os_map(n);

	if (p)
		tool_mapped(p, n);
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
