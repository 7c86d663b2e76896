/* symbol_cache_test.c - cached answers are right, also beside concurrent writers */
#include <pthread.h>
#include <string.h>

#include "platform/atomic.h"
#include "await.h"
#include "unwind/symbol.h"
#include "test.h"

#define BASE UINT64_C(0x7f0000001000)

/* Fills s by the key alone, so that is_right can tell what belongs to it. */
static void fill(struct symbol *s, uint64_t base, uint64_t addr)
{
	memset(s, 0, sizeof *s);
	s->offset = base ^ addr;
	s->line = (int)(addr % 1000);
	memset(s->function, 'a' + (int)(addr % 26), sizeof s->function - 1);
	memset(s->file, 'a' + (int)(addr % 25), sizeof s->file - 1);
	memset(s->module, 'a' + (int)(addr % 23), sizeof s->module - 1);
}

static bool is_right(const struct symbol *s, uint64_t base, uint64_t addr)
{
	struct symbol right;

	fill(&right, base, addr);
	return s->offset == right.offset && s->line == right.line && !strcmp(s->function, right.function) &&
	       !strcmp(s->file, right.file) && !strcmp(s->module, right.module);
}

TEST(what_was_put_is_got)
{
	struct symbol s;

	CHECK(!symbol_cache_get(BASE, 1, &s));
	for (uint64_t addr = 1; addr <= 8; addr++) {
		fill(&s, BASE, addr);
		symbol_cache_put(BASE, addr, &s);
	}
	for (uint64_t addr = 1; addr <= 8; addr++) {
		CHECK(symbol_cache_get(BASE, addr, &s));
		CHECK(is_right(&s, BASE, addr));
	}
	CHECK(!symbol_cache_get(BASE + 4096, 1, &s));
	CHECK(!symbol_cache_get(BASE, 9, &s));
}

/* A full cache still takes a new entry. */
TEST(the_latest_has_a_place)
{
	struct symbol s;

	for (uint64_t addr = 0; addr < 5000; addr++) {
		fill(&s, BASE, addr);
		symbol_cache_put(BASE, addr, &s);
		CHECK(symbol_cache_get(BASE, addr, &s));
		CHECK(is_right(&s, BASE, addr));
	}
}

static uint32_t wrong, got;

static void *put_and_get(void *arg)
{
	uint64_t x = (uintptr_t)arg;
	struct symbol s;

	for (int i = 0; i < SCALED(100000); i++) {
		uint64_t addr;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		addr = (x >> 33) % 400;		/* more than the cache has slots */
		if (symbol_cache_get(BASE, addr, &s)) {
			fetch_add_relaxed(&got, 1);
			if (!is_right(&s, BASE, addr))
				fetch_add_relaxed(&wrong, 1);
		} else {
			fill(&s, BASE, addr);
			symbol_cache_put(BASE, addr, &s);
		}
	}
	return NULL;
}

TEST(nobody_gets_half_of_one)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, put_and_get, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(got > 0);
	CHECK_EQ(wrong, 0);
}
