/*
 * hook.h - how a room below calls rooms above it that it does not know.
 *
 * The room below has an occasion (the runtime starts, a child was forked, a thread came)
 * and a list of hooks, which it runs. A module above adds a function of its own to the
 * list when the library is loaded, before the program's code runs. So a new module
 * touches nothing below it.
 *
 * Rejected: a section that the linker gathers. --gc-sections, `ld -r` and builds as one
 * file each treat it differently.
 */
#ifndef GORO_HOOK_H
#define GORO_HOOK_H

struct hook {
	void (*fn)(void);
	int order;		/* functions run from low to high */
	struct hook *next;
};

/* AT_LOAD(fill); runs the function when the library is loaded, to fill hooks. Priorities
 * up to 100 are the implementation's, so no constructor of the program runs earlier. */
#define AT_LOAD(function)                                                         \
	static __attribute__((constructor(101), used)) void function##_at_load(void) \
	{                                                                         \
		function();                                                       \
	}                                                                         \
	_Static_assert(1, "takes the semicolon")

/* FILL(fatal_dump, dump_fatal); sets a room below's pointer to a function at load. */
#define FILL(pointer, function)                                                   \
	static void fill_##pointer(void)                                          \
	{                                                                         \
		pointer = (function);                                             \
	}                                                                         \
	AT_LOAD(fill_##pointer)

/* ADD_AT_LOAD(signals, struct preempt_guest, preempt_guests, .visits = visit); makes an
 * entry, whose struct has the members `order` and `next`, and adds it to the list at
 * load: by order, and among equals in order of adding. */
#define ADD_AT_LOAD(name, type, list, ...)                                        \
	static void name##_adds_itself(void)                                      \
	{                                                                         \
		static type entry = { __VA_ARGS__ };                              \
		type **at = &(list);                                              \
                                                                                  \
		while (*at && (*at)->order <= entry.order)                        \
			at = &(*at)->next;                                        \
		entry.next = *at;                                                 \
		*at = &entry;                                                     \
	}                                                                         \
	AT_LOAD(name##_adds_itself)

/* HOOK(at_start, START_STATE, dump_init); adds the function to the list at load. */
#define HOOK(list, place, function) \
	ADD_AT_LOAD(list##_##function, struct hook, list, .fn = (function), .order = (place))

static inline void hook_run(const struct hook *h)
{
	for (; h; h = h->next)
		h->fn();
}

#endif
