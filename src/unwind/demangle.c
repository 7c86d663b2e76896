/*
 * demangle.c - C++ names as people write them, shortened.
 *
 * A trace says where a goroutine is. So a name is shown as "ns::table<...>::find":
 * without parameters, and without the arguments of templates, which are often longer than
 * the rest. This needs no table of substitutions: arguments are read but not printed, and
 * the part that is printed does not refer back to types in them. A name with anything
 * that is not known here (expressions in template arguments, above all) fails, and the
 * caller shows it mangled.
 *
 * The grammar is that of the Itanium C++ ABI, section 5.1. Each function below reads one
 * of its symbols at d->at, and returns false if that is not there.
 *
 * Rejected: __cxa_demangle, which only programs that link libstdc++ have, and which
 * allocates: a dump may be made in a goroutine that was preempted inside malloc.
 */
#include "unwind/symbol.h"

#include <string.h>

#include "base/text.h"

#define DEPTH_MAX 32

struct demangler {
	const char *at, *end;
	struct text out;
	int quiet;		/* > 0: what is read is not printed */
	int depth;
	const char *last;	/* the last name printed, which a constructor repeats */
	size_t last_n;
};

static bool type(struct demangler *d);
static bool name(struct demangler *d);
static bool encoding(struct demangler *d);

/* ------------------------------------------------------------------ pieces */

static char peek(const struct demangler *d)
{
	return d->at < d->end ? *d->at : '\0';
}

static bool take(struct demangler *d, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(d->end - d->at) < n || memcmp(d->at, s, n) != 0)
		return false;
	d->at += n;
	return true;
}

/* Takes the next byte if it is in set. */
static bool take_any(struct demangler *d, const char *set)
{
	if (!peek(d) || !strchr(set, peek(d)))
		return false;
	d->at++;
	return true;
}

static void put(struct demangler *d, const char *s, size_t n)
{
	if (!d->quiet)
		text_add_bytes(&d->out, s, n);
}

static void put_string(struct demangler *d, const char *s)
{
	put(d, s, strlen(s));
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t number(struct demangler *d)
{
	size_t n = 0;

	for (; is_digit(peek(d)) && n < 100000; d->at++)
		n = n * 10 + (size_t)(*d->at - '0');
	return n;
}

static bool quietly(struct demangler *d, bool (*read)(struct demangler *d))
{
	bool good;

	if (++d->depth > DEPTH_MAX)
		return false;
	d->quiet++;
	good = read(d);
	d->quiet--;
	d->depth--;
	return good;
}

/* ---------------------------------------------- what is read and not printed */

static bool until_e(struct demangler *d, bool (*read)(struct demangler *d))
{
	while (!take(d, "E"))
		if (!read(d))
			return false;
	return true;
}

/* Behind the L: type value E, or _Z, the name of a function or variable, and E. */
static bool literal(struct demangler *d)
{
	if (take(d, "_Z"))
		return encoding(d) && take(d, "E");
	if (!type(d))
		return false;
	while (d->at < d->end && *d->at != 'E')
		d->at++;
	return take(d, "E");
}

static bool template_argument(struct demangler *d)
{
	if (take(d, "L"))
		return literal(d);
	return take(d, "J") ? until_e(d, template_argument) : type(d);
}

static bool template_arguments_inside(struct demangler *d)
{
	return until_e(d, template_argument);
}

/* Behind the I. */
static bool template_arguments(struct demangler *d)
{
	put_string(d, "<...>");
	return quietly(d, template_arguments_inside);
}

/* Behind the letter of S_, S0_, T_, T0_. */
static bool back_reference(struct demangler *d)
{
	while (is_digit(peek(d)) || (peek(d) >= 'A' && peek(d) <= 'Z'))
		d->at++;
	return take(d, "_");
}

/* Behind the A, and behind the v of a vector type: a size, _ and a type. */
static bool array(struct demangler *d)
{
	number(d);
	return take(d, "_") && type(d);
}

/* Behind the D: "Dp", "Dv16_" and the like are followed by a type. */
static bool type_with_d(struct demangler *d)
{
	if (take_any(d, "dfheisuacn"))
		return true;
	if (take_any(d, "po"))
		return type(d);
	if (take(d, "F")) {
		number(d);
		return take_any(d, "_bx");
	}
	return take(d, "v") && is_digit(peek(d)) && array(d);
}

static bool function_type(struct demangler *d)
{
	take(d, "Y");
	while (!take(d, "E"))
		if (!take_any(d, "RO") && !type(d))
			return false;
	return true;
}

static bool vendor_qualifier(struct demangler *d)
{
	size_t n = number(d);

	if (n == 0 || (size_t)(d->end - d->at) < n)
		return false;
	d->at += n;
	return !take(d, "I") || until_e(d, template_argument);
}

static bool type_inside(struct demangler *d)
{
	while (take_any(d, "rVKPROCG"))
		;
	if (take_any(d, "vwbcahstijlmxynofdegz"))
		return true;
	if (take(d, "D"))
		return type_with_d(d);
	if (take(d, "F"))
		return function_type(d);
	if (take(d, "A"))
		return array(d);
	if (take(d, "M"))
		return type(d) && type(d);
	if (take(d, "U"))
		return vendor_qualifier(d) && type(d);
	if (take(d, "u"))
		return vendor_qualifier(d);
	if (peek(d) == 'T' && !take(d, "Ts") && !take(d, "Tu") && !take(d, "Te")) {
		d->at++;
		return back_reference(d) && (!take(d, "I") || until_e(d, template_argument));
	}
	return name(d);
}

static bool type(struct demangler *d)
{
	return quietly(d, type_inside);
}

/* ------------------------------------------------------------------- names */

static bool source_name(struct demangler *d)
{
	size_t n = number(d);
	const char *s = d->at;

	if (n == 0 || (size_t)(d->end - s) < n)
		return false;
	d->at += n;
	if (n >= 10 && memcmp(s, "_GLOBAL__N", 10) == 0) {
		s = "(anonymous namespace)";
		n = strlen(s);
	}
	put(d, s, n);
	if (!d->quiet) {
		d->last = s;
		d->last_n = n;
	}
	return true;
}

/* B name: tells versions of an ABI apart. Not printed. */
static bool abi_tags(struct demangler *d)
{
	while (take(d, "B"))
		if (!quietly(d, source_name))
			return false;
	return true;
}

static bool operator_name(struct demangler *d)
{
	static const char names[][12] = {
		"nwnew", "nanew[]", "dldelete", "dadelete[]", "awco_await", "ps+", "ng-", "ad&", "de*",
		"co~", "pl+", "mi-", "ml*", "dv/", "rm%", "an&", "or|", "eo^", "aS=", "pL+=", "mI-=",
		"mL*=", "dV/=", "rM%=", "aN&=", "oR|=", "eO^=", "ls<<", "rs>>", "lS<<=", "rS>>=", "eq==",
		"ne!=", "lt<", "gt>", "le<=", "ge>=", "ss<=>", "nt!", "aa&&", "oo||", "pp++", "mm--",
		"cm,", "pm->*", "pt->", "cl()", "ix[]",
	};
	const char *s;

	if (take(d, "cv")) {
		put_string(d, "operator type");
		return type(d);
	}
	if (take(d, "li")) {
		put_string(d, "operator\"\" ");
		return source_name(d);
	}
	for (size_t i = 0; d->end - d->at >= 2 && i < sizeof names / sizeof *names; i++) {
		s = names[i];
		if (memcmp(d->at, s, 2) != 0)
			continue;
		d->at += 2;
		put_string(d, s[2] >= 'a' && s[2] <= 'z' ? "operator " : "operator");
		put_string(d, s + 2);
		return true;
	}
	return false;
}

/* The count before the _ is "" for the first in a function, "0" for the second. */
static bool put_count(struct demangler *d, const char *what)
{
	size_t n = is_digit(peek(d)) ? number(d) + 2 : 1;

	put_string(d, what);
	if (!d->quiet)
		text_add_decimal(&d->out, (unsigned)n);
	put_string(d, "}");
	return take(d, "_");
}

/* Behind the U: a lambda or a type without a name. */
static bool unnamed(struct demangler *d)
{
	if (take(d, "t"))
		return put_count(d, "{unnamed#");
	return take(d, "l") && until_e(d, type) && put_count(d, "{lambda#");
}

static bool constructor(struct demangler *d)
{
	if (take(d, "D")) {
		put_string(d, "~");
	} else {
		if (!take(d, "C"))
			return false;
		take(d, "I");
	}
	if (d->last)
		put(d, d->last, d->last_n);
	return (d->last || d->quiet) && take_any(d, "0123459");
}

static bool unqualified_name(struct demangler *d)
{
	bool good;

	take(d, "L");		/* internal linkage */
	if (is_digit(peek(d)))
		good = source_name(d);
	else if (peek(d) == 'C' || peek(d) == 'D')
		good = constructor(d);
	else
		good = take(d, "U") ? unnamed(d) : operator_name(d);
	return good && abi_tags(d);
}

/* Behind the S, other than St. References back are only read where nothing is printed. */
static bool substitution(struct demangler *d)
{
	static const struct {
		char key[2];
		const char *text, *last;
	} known[] = {
		{ "a", "std::allocator", "allocator" }, { "b", "std::basic_string", "basic_string" },
		{ "s", "std::string", "basic_string" }, { "i", "std::istream", "basic_istream" },
		{ "o", "std::ostream", "basic_ostream" }, { "d", "std::iostream", "basic_iostream" },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (take(d, known[i].key)) {
			put_string(d, known[i].text);
			if (!d->quiet) {
				d->last = known[i].last;
				d->last_n = strlen(d->last);
			}
			return true;
		}
	return d->quiet && back_reference(d);
}

static bool nested_part(struct demangler *d)
{
	if (take(d, "St")) {
		put_string(d, "std");
		return true;
	}
	if (take(d, "S"))
		return substitution(d);
	if (take(d, "T"))
		return d->quiet && back_reference(d);
	take(d, "W");		/* in a C++20 module, whose name comes first */
	return unqualified_name(d);
}

/* Behind the N. */
static bool nested_name(struct demangler *d)
{
	bool first = true;

	while (take_any(d, "rVK"))
		;
	take_any(d, "RO");
	while (!take(d, "E")) {
		take(d, "M");	/* behind a member whose initial value has a lambda */
		if (take(d, "I")) {
			if (!template_arguments(d))
				return false;
			continue;
		}
		if (!first)
			put_string(d, "::");
		first = false;
		if (!nested_part(d))
			return false;
	}
	return !first;
}

/* Reads the _ and number that tell several of the same name in one function apart. */
static void discriminator(struct demangler *d)
{
	if (take(d, "_"))
		number(d);
	take(d, "_");
}

/* Behind the Z: something in a function. */
static bool local_name(struct demangler *d)
{
	if (!encoding(d) || !take(d, "E"))
		return false;
	put_string(d, "::");
	if (take(d, "s")) {
		put_string(d, "string");
		discriminator(d);
		return true;
	}
	if (take(d, "d")) {	/* in a parameter's default value */
		number(d);
		if (!take(d, "_"))
			return false;
	}
	if (!name(d))
		return false;
	discriminator(d);
	return true;
}

static bool name_inside(struct demangler *d)
{
	if (take(d, "N"))
		return nested_name(d);
	if (take(d, "Z"))
		return local_name(d);
	if (take(d, "St"))
		put_string(d, "std::");
	else if (take(d, "S"))
		return substitution(d) && (!take(d, "I") || template_arguments(d));
	return unqualified_name(d) && (!take(d, "I") || template_arguments(d));
}

static bool name(struct demangler *d)
{
	bool good = ++d->depth <= DEPTH_MAX && name_inside(d);

	d->depth--;
	return good;
}

/* ---------------------------------------------------------------- functions */

static bool offset(struct demangler *d)
{
	take(d, "n");
	number(d);
	return take(d, "_");
}

static bool call_offset(struct demangler *d)
{
	if (take(d, "h"))
		return offset(d);
	return take(d, "v") && offset(d) && offset(d);
}

/* Behind the T: functions that the compiler makes to reach another. Others are data. */
static bool special_name(struct demangler *d)
{
	if (take(d, "H")) {
		put_string(d, "TLS init function for ");
		return name(d);
	}
	if (take(d, "W")) {
		put_string(d, "TLS wrapper function for ");
		return name(d);
	}
	if (take(d, "c") && !call_offset(d))
		return false;
	return call_offset(d) && encoding(d);
}

/* A name and its parameters' types, up to the end or to the E of an enclosing name. */
static bool encoding(struct demangler *d)
{
	if (take(d, "T"))
		return special_name(d);
	if (!name(d))
		return false;
	while (d->at < d->end && *d->at != 'E')
		if (!type(d))
			return false;
	return true;
}

bool demangle(const char *mangled, size_t n, char *out, size_t max)
{
	struct demangler d = { .at = mangled, .end = mangled + n, .out = text_make(out, max) };

	if (!take(&d, "_Z"))
		return false;
	if (take(&d, "T"))
		return special_name(&d);
	return name(&d);	/* the parameters behind it are not read */
}
