#!/usr/bin/env bash
# go() accepts what a call of the function would accept, without a warning, and nothing else.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

common='
#include <goro.h>
enum colour { RED, GREEN };
struct pair { int a, b; };
void none(void);
void one(int a);
int two(const char *a, long b);
void kinds(bool a, enum colour b, unsigned char c, void *d, uint64_t e, const int *f);
void fp(void (*f)(void));
void real(double x);
void single(float x);
void whole(struct pair p);
void pointer(int *p);
void flag(bool x);
void flags(void *a, bool b, long c, char d);
void named_real(const char *a, double b);
void reals(double a, double b);
void pair_real(const struct pair *a, double b);
__attribute__((noreturn)) void forever(long a);
__attribute__((warn_unused_result)) int used(bool a);
struct big { long a, b, c; };
struct big big(void);
struct big big_of(int a);
long double extended(int a);
__extension__ typedef __int128 int128;
void whole128(int128 a);
void named128(const char *a, int128 b);
void calls(void (*f)(bool), int n);
int less(int a);
void mixed(char a, double b);
void mixed_long(long a, float b);
void mixed_many(char a, long b, unsigned short c, bool d, float e);
void mixed_pointer(bool a, const char *b, double c, short d);
void mixed_extended(long a, long double b);
'

# compile SNIPPET COMPILER FLAGS...
compile()
{
	local body=$1
	shift
	printf '%s\nint test(int argc, char **argv);\nint test(int argc, char **argv)\n{\n\t(void)argc; (void)argv;\n\t{\n%s\n\t}\n\treturn 0;\n}\n' \
		"$common" "$body" >"$work/snippet.c"
	"$@" -I"$SOURCE_DIR/include" -fsyntax-only "$work/snippet.c" 2>"$work/log"
}

good()
{
	if ! compile "$@"; then
		echo "does not compile: $*"
		cat "$work/log"
		failed=1
	fi
}

bad()
{
	if compile "$@"; then
		echo "compiles, and should not: $*"
		failed=1
	fi
}

all_good=(
	'go(none);'
	'return go(none);'
	'if (go(one, -1) != 0) return 1;'
	'go(one, argc); goro_go(one, argc + 1);'
	'go(two, "text", 5L); go(two, argv[0], 5);'
	'int x = 1; go(kinds, true, GREEN, (unsigned char)200, &x, 5u, &x);'
	'go(kinds, argc > 1, RED, (unsigned char)1, NULL, sizeof(int), (const int *)0);'
	'go(fp, none); go(fp, &none); void (*f)(void) = none; go(f); go(fp, f);'
	'go(calls, flag, argc); go(calls, &flag, argc); go(calls, NULL, argc);'
	'int a[3]; go(pointer, a); go(pointer, &a[1]);'
	'for (int i = 0; i < 10; i++) go(one, i);'
	'if (argc) go(none); else go(none);'
	'return argc > 1 ? go(none) : go(one, 2);'
	'go(flag, argc); go(flag, argv); go(flag, 0x100); go(flags, argv, argc, argc, 300 - argc);'
	'go(forever, 1); go(forever, 1L); go(used, argc); go(one, go(none));'
	'struct { unsigned b : 3; void (*f)(bool); } s = { 1, flag }; go(one, s.b); go(s.f, s.b);'
	'extern double d; go(one, two("", (long)d) + less(d)); go(flag, less(d));'
	'const volatile int c = 1; go(one, c); go(two, 0, c); go(pointer, 0); go(pointer, NULL); go(flag, c);'
)
all_bad=(
	'go(one, 1.5);'
	'go(one, 1.5f);'
	'go(real, 1.5);'
	'go(real, 1.5f);'
	'go(single, 1.5f);'
	'struct pair p = { 1, 2 }; go(whole, p);'
	'struct pair p = { 1, 2 }; go(one, p);'
	'go(none, 1);'
	'go(one);'
	'go(one, 1, 2);'
	'go(two, "text");'
	'go(kinds, true, GREEN, (unsigned char)1, NULL, 5u);'
	'go(kinds, true, GREEN, (unsigned char)1, NULL, 5u, NULL, 7);'
	'double d = 1; go(pointer, &d);'
	'go(pointer, argv);'
	'const int c = 1; go(pointer, &c);'
	'go(two, 5L, "text");'
	'go(pointer, argc);'
	'go(undeclared);'
	'go(argc);'
	'go(real, 1);'
	'go(single, argc);'
	'go(named_real, "text", 1);'
	'struct pair p; go(pair_real, &p, argc);'
	'go(reals, 1, 2);'
	'go(big);'
	'go(big_of, 1);'
	'go(extended, 1);'
	'int128 x = 1; go(one, x);'
	'int128 x = 1; go(whole128, x);'
	'go(whole128, 1);'
	'go(named128, (const char *)"text", 1);'
	'go(mixed, 1, 2);'
	'go(mixed, argc, argc);'
	'go(mixed_long, 1, 2);'
	'go(mixed_long, argv, argc);'
	'go(mixed_many, argc, argc, argc, argc, argc);'
	'go(mixed_pointer, argc, argv[0], argc, argc);'
	'go(mixed_extended, 1, 2);'
)
# .. of which the message says whose it is.
named='go(real, 1);|go(single, argc);|go(named_real|go(pair_real|go(reals|go(big|go(extended|128'

# says_go SNIPPET COMPILER FLAGS...
says_go()
{
	! compile "$@" && grep -q 'error: static assertion failed.*go():' "$work/log" && return
	grep -qE 'error: static.assert(ion)? failed.*go\(\):|error: .*go\(\):' "$work/log" && return
	echo "does not say that go() is meant: $*"
	failed=1
}

# All the good ones at once: few compilations, and the log names the line.
check_good()
{
	local all=
	for snippet in "${all_good[@]}"; do all+="{"$'\n'"$snippet"$'\n'"}"$'\n'; done
	good "$all" "$@"
}

# All the bad ones at once, too, each a function in a file of its own name: each is complained about.
# What is not may come after so many complaints that a compiler leaves it (templates): alone, then.
check_bad()
{
	local i snippet left=()
	{
		echo "$common"
		for i in "${!all_bad[@]}"; do
			printf '#line 1 "bad%d"\nint f%d(int argc, char **argv);\n' $i $i
			printf 'int f%d(int argc, char **argv)\n{\n\t(void)argc; (void)argv;\n\t{\n%s\n\t}\n\treturn 0;\n}\n' \
				$i "${all_bad[i]}"
		done
	} >"$work/snippet.c"
	"$@" -I"$SOURCE_DIR/include" -fsyntax-only "$work/snippet.c" 2>"$work/log"
	for i in "${!all_bad[@]}"; do
		grep -qE "^bad$i:6:.*(error: |in expansion of macro)" "$work/log" || left+=("${all_bad[i]}")
		[[ ! ${all_bad[i]} =~ $named ]] || says_go "${all_bad[i]}" "$@"
	done
	for snippet in "${left[@]}"; do bad "$snippet" "$@"; done
}

strict="-Wall -Wextra -pedantic -Werror"
ran=0
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	ran=1
	for std in c11 gnu11 c17; do check_good $cc -x c -std=$std $strict -Wshadow -Wstrict-prototypes; done
	everything=-fmax-errors=0
	[ $cc != clang ] || everything=-ferror-limit=0
	check_bad $cc -x c -std=c11 $strict $everything
	cxx=${cc/gcc/g++}
	printf '#include <type_traits>\n' >"$work/probe.cc"
	$cxx -x c++ -fsyntax-only "$work/probe.cc" 2>/dev/null || continue
	for std in c++17 gnu++17 c++20; do check_good $cxx -x c++ -std=$std $strict; done
	check_bad $cxx -x c++ -std=c++17 $strict $everything
done
[ $ran = 1 ] || exit 77

# In C++ a member may be called go.
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	$cxx -x c++ -fsyntax-only "$work/probe.cc" 2>/dev/null || continue
	cat >"$work/member.cc" <<-'END'
		#include <goro.h>
		struct runner {
			int n = 0;
			void go() { n++; }
			int go(int by) { return n += by; }
		};
		static void f(int) {}
		int main()
		{
			runner r;
			r.go();
			return go(f, (&r)->go(3));
		}
	END
	$cxx -std=c++17 -Wall -Wextra -pedantic -Werror -I"$SOURCE_DIR/include" -fsyntax-only "$work/member.cc" ||
		{ echo "a member called go does not compile with $cxx"; failed=1; }
done

# Without the short name, go is the program's own.
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	good 'int go = 1; goro_go(one, go);' $cc -x c -std=c11 $strict -DGORO_NO_SHORT_NAMES
done
exit $failed
