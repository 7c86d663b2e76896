/*
 * goroutine.c - what a goroutine calls about itself: start with attributes or a copy of
 * data, id, name, lock to a thread.
 */
#include <errno.h>
#include <goro.h>
#include <string.h>

#include "sched/runtime.h"
#include "stack/stack.h"
#include "sched/trace_hook.h"

/* A long name is cut at a byte, even inside a UTF-8 character: it is for display only. */
static void set_name(struct g *gp, const char *name)
{
	size_t n = strlen(name);

	if (n >= sizeof gp->name)
		n = sizeof gp->name - 1;
	memcpy(gp->name, name, n);
	gp->name[n] = '\0';
	store_relaxed(&gp->untidy, true);
}

/* The copy of data lies between the G and the first frame, beyond the usual size. */
static int start_attr(const struct goro_attr *attr, void (*fn)(void *), void *arg,
                      const void *data, size_t n, void *caller)
{
	size_t bytes = attr && attr->stack_size ? attr->stack_size
	                                        : stack_class_bytes(stack_default_class);
	int cls = n > STACK_MAX_BYTES || bytes > STACK_MAX_BYTES ? -1 : stack_class(bytes + n);
	struct m *mp;
	struct g *gp;

	if (attr && attr->flags)
		return -EINVAL;
	if (cls < 0)
		return -ENOMEM;
	mp = rt_enter();
	if (unlikely(!fn))
		g_of_nil();
	gp = g_get(mp, cls);
	if (!gp) {
		rt_exit(mp);
		return -ENOMEM;
	}
	if (data) {
		store_relaxed(&gp->stack.hi, gp->stack.hi - (n + 63) / 64 * 64);
		arg = memcpy(gp->stack.hi, data, n);
	}
	if (attr && attr->name)
		set_name(gp, attr->name);
	gp->fn = (void (*)(void))fn;
	gp->arg[0] = (uintptr_t)arg;
	g_launch(mp, gp, caller);
	rt_exit(mp);
	return 0;
}

int goro_go_attr(const struct goro_attr *attr, void (*fn)(void *arg), void *arg)
{
	return start_attr(attr, fn, arg, NULL, 0, __builtin_return_address(0));
}

/* Without data there is still a copy, of no bytes: arg then points to it. */
int goro_go_copy(const struct goro_attr *attr, void (*fn)(void *arg), const void *data, size_t n)
{
	static const char none;

	return start_attr(attr, fn, NULL, n ? data : &none, n, __builtin_return_address(0));
}

/* ------------------------------------------------------------ the running one */

uint64_t goro_id(void)
{
	struct m *mp = m_self();

	return mp && !mp->is_foreign ? mp->curg->id : 0;
}

void goro_set_name(const char *name)
{
	struct m *mp = rt_enter();

	set_name(mp->curg, name ? name : "");
	if (mp->p)
		trace_go_named(mp);
	rt_exit(mp);
}

/* A plain thread's goroutine runs on no other thread anyway: the depth is counted. */
void goro_lock_os_thread(void)
{
	struct m *mp = rt_enter();
	struct g *gp = mp->curg;

	gp->lock_depth++;
	if (!mp->is_foreign) {
		gp->locked_m = mp;
		mp->locked_g = gp;
	}
	rt_exit(mp);
}

void goro_unlock_os_thread(void)
{
	struct m *mp = rt_enter();
	struct g *gp = mp->curg;

	if (gp->lock_depth > 0 && --gp->lock_depth == 0) {
		gp->locked_m = NULL;
		mp->locked_g = NULL;
	}
	rt_exit(mp);
}

size_t goro_num_goroutine(void)
{
	return g_alive();
}
