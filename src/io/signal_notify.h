/* signal_notify.h - signals on channels, for the rest of the runtime. Defined in
 * signal.c. */
#ifndef GORO_SIGNAL_NOTIFY_H
#define GORO_SIGNAL_NOTIFY_H

#include <stdbool.h>

struct os_action;

/* From now on the caller of this handles sig. take_over installs its handler, which calls
 * preempt_taken. program: what the program had before our handler; NULL: ours is not
 * installed. In user code. */
void signal_share(int sig, void (*take_over)(const struct os_action *program));

#endif
