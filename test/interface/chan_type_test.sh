#!/usr/bin/env bash
# Channels with a type, GORO_CHAN_TYPE, and the check of sizes, GORO_CHECK_CHANNELS, as C11 and as
# C++17: what is right compiles without a warning and runs, what is wrong is refused, or panics.
. "$SOURCE_DIR/test/script.sh"
[ -z "$GORO_SANITIZE" ] || skip "the libraries of sanitizer builds need the sanitizer"
cd "$work"

cat >right.c <<'END'
#include <goro.h>
#include <string.h>

struct pair { int a, b; };
typedef void (*function)(void);

GORO_CHAN_TYPE(int_chan, int);
GORO_CHAN_TYPE(pairs, struct pair);
GORO_CHAN_TYPE(texts, const char *);
GORO_CHAN_TYPE(functions, function);
GORO_CHAN_TYPE(unused, double);

static void squares(int_chan *c, int n)
{
	for (int i = 1; i <= n; i++)
		int_chan_send(c, i * i);
	int_chan_close(c);
	int_chan_unref(c);
}

static int typed(void)
{
	int_chan *c = int_chan_make(0);
	pairs *p = pairs_make(1);
	texts *t = texts_make(1);
	functions *f = functions_make(1);
	struct pair one = { 1, 2 }, got = { 0, 0 };
	const char *text = NULL;
	int sum = 0, x = 0;
	bool ok = false;

	go(squares, int_chan_ref(c), 3);
	while (int_chan_recv(c, &x))
		sum += x;
	int_chan_unref(c);
	texts_send(t, "text");
	if (pairs_try_send(p, one) && texts_try_recv(t, &text) == GORO_RECV_OK && !strcmp(text, "text"))
		sum += 100;
	if (goro_select(pairs_recv_case(p, &got, &ok), texts_recv_case(t, &text, NULL)) == 0 && ok)
		sum += 1000 * got.b;
	if (goro_select(pairs_send_case(p, &one), texts_recv_case(t, NULL, NULL)) == 0)
		sum += 10000 * (int)goro_chan_len(pairs_chan(p));
	functions_send(f, NULL);
	pairs_unref(p);
	texts_unref(t);
	functions_unref(f);
	return sum;
}

/* All that is right without types is right with the check, too. */
static int untyped(void *unknown, char name[16])
{
	goro_chan *c = goro_chan_of(int, 8), *p = goro_chan_of(struct pair, 8), *n = goro_chan_of(char[16], 8);
	goro_chan *none = goro_chan_make(0, 8), *nil = NULL;
	void (*send)(goro_chan *, const void *) = goro_chan_send;
	bool (*recv)(goro_chan *, void *) = &goro_chan_recv;
	const struct pair two = { 3, 4 };
	struct pair pair = { 5, 6 };
	const int k = 5;
	int v[3] = { 1, 2, 3 }, *at = v, sum = 0;
	char own[16] = "";
	bool ok = false;

	send(c, v);
	recv(c, v);
	goro_chan_send(c, at++);		/* evaluated once */
	goro_chan_send(c, &v[1]);
	goro_chan_send(c, &k);
	goro_chan_send(c, unknown);
	goro_chan_send(p, &two);
#ifndef __cplusplus
	goro_chan_send(p, &(struct pair){ 7, 8 });
	goro_chan_send(c, (int[]){ 1, 2 } + 1);
#endif
	goro_chan_send(n, own);
	goro_chan_send(n, (void *)name);
	goro_chan_send(none, NULL);
	goro_chan_recv(none, NULL);
	goro_chan_recv(c, NULL);
	goro_chan_recv(c, 0);
	goro_chan_try_recv(c, &sum);
	goro_chan_try_send(nil, &sum);
	goro_chan_recv(p, &pair);
	goro_select_until(GORO_NOW, GORO_RECV(c, &v[0]), GORO_SEND(nil, &two));
	goro_select(GORO_RECV_OKP(n, own, &ok), GORO_RECV(nil, NULL));
	goro_chan_unref(c);
	goro_chan_unref(p);
	goro_chan_unref(n);
	goro_chan_unref(none);
	return sum * 10 + pair.a + (int)(at - v) + ok;
}

#ifdef GORO_CHECK_CHANNELS
static void send_wrong(void *c) { int x = 1; goro_chan_send((goro_chan *)c, &x); }
static void recv_wrong(void *c) { struct pair x[2]; goro_chan_recv((goro_chan *)c, &x); }
static void try_send_wrong(void *c) { char x[3] = ""; goro_chan_try_send((goro_chan *)c, x); }
static void try_recv_wrong(void *c) { bool x; goro_chan_try_recv((goro_chan *)c, &x); }
static void select_wrong(void *c) { int x; goro_select(GORO_RECV((goro_chan *)c, &x)); }
#endif

static int start(int argc, char **argv)
{
	char name[16] = "";
	int five = 5;

	(void)argc; (void)argv;
	printf("%d %d\n", typed(), untyped(&five, name));
#ifdef GORO_CHECK_CHANNELS
	goro_chan *c = goro_chan_of(int64_t, 1);
	void (*const wrong[])(void *) = { send_wrong, recv_wrong, try_send_wrong, try_recv_wrong, select_wrong };

	for (int i = 0; i < 5; i++)
		printf("%s\n", goro_try(wrong[i], c));
	goro_chan_unref(c);
#endif
	return 0;
}
GORO_MAIN(start)
END
cp right.c right.cc
cat >expected <<'END'
goro_chan_send: 4-byte element on a channel of 8-byte elements
goro_chan_recv: 16-byte element on a channel of 8-byte elements
goro_chan_try_send: 3-byte element on a channel of 8-byte elements
goro_chan_try_recv: 1-byte element on a channel of 8-byte elements
goro_select: 4-byte element on a channel of 8-byte elements
END

wrong=(
	'int_chan_send(i, "text");'
	'int_chan_send(i, one);'
	'long x; int_chan_recv(i, &x);'
	'long x; int_chan_try_recv(i, &x);'
	'long x; goro_select(int_chan_recv_case(i, &x, NULL));'
	'long x = 1; goro_select(int_chan_send_case(i, &x));'
	'pairs_send(p, 1);'
	'pairs_send((struct i *)i, one);'
	'goro_chan_send(i, &one);'
	'int_chan_close(p);'
	'GORO_CHAN_TYPE(names, char[16]); names_make(1);'
)

# right COMPILER FLAGS... FILE: compiles and runs, unchecked and checked.
right()
{
	command -v "$1" >/dev/null || return 0
	"$@" -Wall -Wextra -pedantic -Werror -I"$SOURCE_DIR/include" "$BUILD_DIR/libgoro.a" -pthread -o plain
	[ "$($TEST_LAUNCHER ./plain)" = "12114 55" ] || { ./plain; fail "$*"; }
	"$@" -DGORO_CHECK_CHANNELS -Wall -Wextra -pedantic -Werror -I"$SOURCE_DIR/include" \
		"$BUILD_DIR/libgoro.a" -pthread -o checked
	$TEST_LAUNCHER ./checked >out || fail "$*, checked: status $?"
	[ "$(head -1 out)" = "12114 55" ] && tail -n +2 out | diff expected - || { cat out; fail "$*, checked"; }
}

# Each of the wrong ones is complained about, at its line.
wrong()
{
	command -v "$1" >/dev/null || return 0
	{
		printf '#include <goro.h>\nstruct pair { int a, b; };\nGORO_CHAN_TYPE(int_chan, int);\nGORO_CHAN_TYPE(pairs, struct pair);\n'
		for i in "${!wrong[@]}"; do
			printf '#line 1 "wrong%d"\nvoid f%d(int_chan *i, pairs *p);\nvoid f%d(int_chan *i, pairs *p)\n{\n\tstruct pair one = { 1, 2 };\n\t(void)i; (void)p; (void)one;\n\t%s\n}\n' \
				$i $i $i "${wrong[i]}"
		done
	} >wrong.c
	"$@" -Wall -Wextra -Werror -I"$SOURCE_DIR/include" -fsyntax-only wrong.c 2>log && fail "$*: compiles"
	for i in "${!wrong[@]}"; do
		grep -qE "^wrong$i:6:.*(error|in expansion)" log || { cat log; fail "$*: compiles: ${wrong[i]}"; }
	done
}

right "$CC" -std=c11 right.c
wrong "$CC" -x c -std=c11
if [ "$CC" = "${CC%-gcc}" ]; then # not a cross compiler
	right g++ -std=c++17 right.cc
	right clang -std=c11 right.c
	right clang++ -std=c++17 right.cc
	wrong g++ -x c++ -std=c++17
	wrong clang -x c -std=c11
fi
