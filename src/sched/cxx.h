/*
 * cxx.h - C++ exceptions in goroutines. Defined in cxx.c.
 */
#ifndef GORO_CXX_H
#define GORO_CXX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/print.h"
#include "sched/types.h"

/* What the C++ runtime keeps for a thread (__cxa_eh_globals): the exceptions in whose
 * catch blocks it is, and the number of those that are on their way to one. */
struct cxx_state {
	void *caught;
	unsigned int uncaught;
};

void cxx_init(void);
/* Where it does. NULL: no C++. In user code or without a P: it may allocate memory. */
struct cxx_state *cxx_of_thread(void);

/* The exceptions of the goroutine that runs on mp. */
static inline struct cxx_state cxx_get(const struct m *mp)
{
	return mp->cxx ? *mp->cxx : (struct cxx_state){ 0 };
}

static inline void cxx_set(struct m *mp, struct cxx_state s)
{
	if (mp->cxx) {
		mp->cxx->caught = s.caught;
		mp->cxx->uncaught = s.uncaught;
	}
}

/* The goroutine leaves mp: takes its exceptions off the thread. False: it has none. */
static inline bool cxx_take(struct m *mp, struct cxx_state *s)
{
	if (__builtin_expect(!mp->cxx || !(mp->cxx->caught || mp->cxx->uncaught), 1))
		return false;
	*s = *mp->cxx;
	cxx_set(mp, (struct cxx_state){ 0 });
	return true;
}

/* The unwinder calls routine when an exception passes the function that this stands in,
 * which must not be inlined. */
#define CXX_PERSONALITY(routine) __asm__ volatile(".cfi_personality 0x1b, " #routine)

/* Such a routine. See "Through our frames" in cxx.c. */
#define CXX_ROUTINE(name)                                                          \
	int name(int version, int actions, uint64_t kind, void *exception, void *at); \
	__attribute__((used))                                                      \
	int name(int version, int actions, uint64_t kind, void *exception, void *at)

/* Whether the stack is being unwound; otherwise a frame that catches is looked for. */
#define CXX_UNWINDS (((void)version, (void)kind, (void)exception, (void)at, actions) & 2)
/* Whether it is unwound by an exception, or by pthread_exit. A panic has ended by itself
 * what the routines below it would end. */
#define CXX_PASSES  (CXX_UNWINDS && kind != CXX_PANIC)
#define CXX_GO_ON   8

/* The class of the exception by which panic_cxx.c unwinds: "GOROPANI". */
#define CXX_PANIC UINT64_C(0x474f524f50414e49)

/* Prints the type of an exception that a routine was given, and its what(). Defined in
 * cxx_thrown.c. */
void cxx_print_thrown(struct printer *pr, uint64_t kind, void *exception);

/* The personality of a function that no exception may leave: ends the program. */
int cxx_no_way_out(int version, int actions, uint64_t kind, void *exception, void *at);

#endif
