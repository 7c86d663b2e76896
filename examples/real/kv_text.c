/*
 * kv_text.c - words, numbers and patterns.
 */
#include <string.h>
#include <strings.h>

#include "kv.h"

bool text_is(struct text t, const char *word)
{
	return strlen(word) == t.n && strncasecmp(t.at, word, t.n) == 0;
}

struct text text_of(const char *s)
{
	return (struct text){ .at = (char *)s, .n = strlen(s) };
}

/* Only as it is printed: no spaces, no +, no leading zeros. So text that is a number
 * stays the same when it is read and printed. */
bool text_int(struct text t, int64_t *n)
{
	bool negative = t.n > 0 && t.at[0] == '-';
	size_t i = negative;
	int64_t sum = 0;

	if (i == t.n || t.n > 20 || (t.at[i] == '0' && t.n > 1))
		return false;
	for (; i < t.n; i++) {
		int digit = t.at[i] - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_sub_overflow(sum, digit, &sum))
			return false;
	}
	if (!negative && sum == INT64_MIN)
		return false;
	*n = negative ? sum : -sum;
	return true;
}

/* Whether a character matches the set that begins at *p, behind its bracket; moves
 * *p behind the set. A set without an end ends with the pattern. */
static bool in_set(unsigned char ch, const char **p, const char *end)
{
	bool not = *p < end && **p == '^', found = false;
	const char *at = *p + not;

	for (; at < end && *at != ']'; at++) {
		unsigned char from, to;

		if (*at == '\\' && at + 1 < end)
			at++;
		from = to = (unsigned char)*at;
		if (end - at >= 3 && at[1] == '-' && at[2] != ']') {
			at += 2;
			to = (unsigned char)*at;
		}
		if (from <= to ? from <= ch && ch <= to : to <= ch && ch <= from)
			found = true;
	}
	*p = at < end ? at + 1 : end;
	return found != not;
}

/* Whether a character matches what is at *p, which is no star; moves *p behind it. */
static bool one_matches(char ch, const char **p, const char *end)
{
	char kind = *(*p)++;

	switch (kind) {
	case '?':
		return true;
	case '[':
		return in_set((unsigned char)ch, p, end);
	case '\\':
		if (*p < end)
			kind = *(*p)++;
		/* fall through */
	default:
		return kind == ch;
	}
}

/* Where it does not go on, the last star takes one character more. Those before it
 * need not be tried again, so a pattern of many stars takes no longer than n times
 * its length. */
bool text_matches(struct text t, struct text pattern)
{
	const char *s = t.at, *s_end = s + t.n, *p = pattern.at, *p_end = p + pattern.n;
	const char *star = NULL, *star_s = NULL;

	while (s < s_end || p < p_end) {
		if (p < p_end && *p == '*') {
			star = ++p;
			star_s = s;
			continue;
		}
		if (p < p_end && s < s_end && one_matches(*s, &p, p_end)) {
			s++;
			continue;
		}
		if (!star || star_s == s_end)
			return false;
		p = star;
		s = ++star_s;
	}
	return true;
}
