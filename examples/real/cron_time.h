/*
 * cron_time.h - when a line of cron.c's table is due: the five fields of a crontab,
 * @daily and the like, and @every DURATION. It knows no clock: everything follows from
 * the arguments.
 *
 * Days and hours are those of the local time zone (TZ). What is due at a time that is
 * left out when clocks go forward, 02:30, is due at the moment at which they do. A
 * time that comes twice when they go back counts once, unless the hour's field begins
 * with a star: that means every hour, and these are two.
 */
#ifndef CRON_TIME_H
#define CRON_TIME_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum field { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

struct spec {
	uint64_t values[FIELDS];	/* bits */
	bool star[FIELDS];		/* the field begins with one */
	time_t every;			/* seconds; 0: by the fields */
};

#define NEVER         ((time_t)-1)
#define SECONDS_A_DAY 86400

/* --------------------------------------------------------------- parser */

static const struct {
	int low, high;
	const char *names;		/* of three letters each, for low and on */
	const char *wrong;
} fields[FIELDS] = {
	[MINUTE]  = { 0, 59, "", "a minute is 0 to 59" },
	[HOUR]    = { 0, 23, "", "an hour is 0 to 23" },
	[DAY]     = { 1, 31, "", "a day is 1 to 31" },
	[MONTH]   = { 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec",
	              "a month is 1 to 12 or jan to dec" },
	[WEEKDAY] = { 0, 7, "sunmontuewedthufrisat",
	              "a weekday is 0 to 7 or sun to sat" },
};

/* A number or a name at *text; -1: neither, or out of bounds. */
static long parse_value(const char **text, enum field f)
{
	const char *names = fields[f].names;
	long value = -1;
	char *end;

	if (isdigit((unsigned char)**text)) {
		value = strtol(*text, &end, 10);
		*text = end;
		return value >= fields[f].low && value <= fields[f].high ? value : -1;
	}
	for (int i = 0; names[3 * i]; i++)
		if (strncasecmp(*text, names + 3 * i, 3) == 0) {
			*text += 3;
			return fields[f].low + i;
		}
	return -1;
}

/* One of a list: a star, a value or a range, with a step or without. */
static bool parse_item(struct spec *s, const char **text, enum field f)
{
	long low = fields[f].low, high = fields[f].high, step = 1;

	if (**text == '*') {
		++*text;
	} else {
		if ((low = high = parse_value(text, f)) < 0)
			return false;
		if (**text == '-') {
			++*text;
			high = parse_value(text, f);
		} else if (**text == '/') {
			high = fields[f].high;
		}
	}
	if (**text == '/') {
		char *end;

		step = isdigit((unsigned char)*++*text) ? strtol(*text, &end, 10) : 0;
		if (step < 1 || step > 60)
			return false;
		*text = end;
	}
	for (long value = low; value <= high; value += step)
		s->values[f] |= UINT64_C(1) << (f == WEEKDAY && value == 7 ? 0 : value);
	return low <= high;
}

static bool parse_field(struct spec *s, const char **text, enum field f)
{
	s->star[f] = **text == '*';
	for (;; ++*text) {
		if (!parse_item(s, text, f))
			return false;
		if (**text != ',')
			return **text == '\0' || isspace((unsigned char)**text);
	}
}

/* 90s, 5m, 1h30m, 1d: seconds; 0 if it is none. */
static time_t parse_duration(const char **text)
{
	time_t sum = 0;
	long n;
	char *end;

	while (isdigit((unsigned char)**text)) {
		n = strtol(*text, &end, 10);
		if (n > 100000000)
			return 0;
		switch (*end) {
		case 's': sum += n; break;
		case 'm': sum += n * 60; break;
		case 'h': sum += n * 3600; break;
		case 'd': sum += n * SECONDS_A_DAY; break;
		default: return 0;
		}
		*text = end + 1;
	}
	return **text == '\0' || isspace((unsigned char)**text) ? sum : 0;
}

static void skip_blanks(const char **text)
{
	*text += strspn(*text, " \t");
}

/* The time that a line begins with; *text is set behind it, and behind blanks. NULL, or
 * what is wrong with it. */
static const char *spec_parse(struct spec *s, const char **text)
{
	static const struct {
		const char *name, *same_as;
	} words[] = {
		{ "@hourly", "0 * * * *" }, { "@daily", "0 0 * * *" },
		{ "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
		{ "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
		{ "@annually", "0 0 1 1 *" },
	};
	size_t n = strcspn(*text, " \t");
	const char *word;

	memset(s, 0, sizeof *s);
	if (n == 6 && strncmp(*text, "@every", n) == 0) {
		*text += n;
		skip_blanks(text);
		s->every = parse_duration(text);
		skip_blanks(text);
		return s->every > 0 ? NULL : "@every wants a time such as 90s or 1h30m";
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (n == strlen(words[i].name) && strncmp(*text, words[i].name, n) == 0) {
			*text += n;
			skip_blanks(text);
			word = words[i].same_as;
			return spec_parse(s, &word);
		}
	if (**text == '@')
		return "unknown word after @";
	for (enum field f = MINUTE; f < FIELDS; f++) {
		if (!parse_field(s, text, f))
			return fields[f].wrong;
		skip_blanks(text);
	}
	return NULL;
}

/* ------------------------------------------------------------ next time */

/* If one of the two fields for days begins with a star the other decides; if none does,
 * either will do. */
static bool day_matches(const struct spec *s, const struct tm *tm)
{
	bool day = s->values[DAY] >> tm->tm_mday & 1;
	bool weekday = s->values[WEEKDAY] >> tm->tm_wday & 1;

	return s->star[DAY] || s->star[WEEKDAY] ? day && weekday : day || weekday;
}

static bool matches(const struct spec *s, const struct tm *tm)
{
	return s->values[MONTH] >> (tm->tm_mon + 1) & 1 && day_matches(s, tm) &&
	       s->values[HOUR] >> tm->tm_hour & 1 && s->values[MINUTE] >> tm->tm_min & 1;
}

/* What a clock on the wall shows, as if it were UTC: in this all days have 24 hours. */
static time_t to_wall(time_t t)
{
	struct tm tm;

	localtime_r(&t, &tm);
	return t + tm.tm_gmtoff;
}

/* When the wall shows this: the first time if it does twice; if it never does, when the
 * clock passes over it. */
static time_t from_wall(time_t wall)
{
	time_t offset = to_wall(wall - SECONDS_A_DAY) - (wall - SECONDS_A_DAY);
	time_t offset_after = to_wall(wall + SECONDS_A_DAY) - (wall + SECONDS_A_DAY);
	time_t low = wall - offset_after, high = wall - offset, middle;

	if (to_wall(high) == wall)
		return high;
	if (to_wall(low) == wall)
		return low;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (to_wall(middle) - middle == offset)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* The first minute after wall that matches, on a wall's clock. The longest wait is that
 * for 29 February, eight years around 2100. */
static time_t next_on_wall(const struct spec *s, time_t wall)
{
	time_t end = wall + 9 * 366 * (time_t)SECONDS_A_DAY;
	struct tm tm;

	for (wall += 60 - wall % 60; wall < end; wall = timegm(&tm)) {
		gmtime_r(&wall, &tm);
		if (matches(s, &tm))
			return wall;
		if (!(s->values[MONTH] >> (tm.tm_mon + 1) & 1)) {
			tm.tm_mon++;
			tm.tm_mday = 1;
			tm.tm_hour = tm.tm_min = 0;
		} else if (!day_matches(s, &tm)) {
			tm.tm_mday++;
			tm.tm_hour = tm.tm_min = 0;
		} else if (!(s->values[HOUR] >> tm.tm_hour & 1)) {
			tm.tm_hour++;
			tm.tm_min = 0;
		} else {
			tm.tm_min++;
		}
	}
	return NEVER;
}

/* When it is due next, after that time; NEVER. */
static time_t spec_next(const struct spec *s, time_t after)
{
	time_t t, wall;
	struct tm tm;

	if (s->every)
		return after + s->every;
	/* Every hour: also in the one that comes twice. */
	t = after + 60 - after % 60;
	for (; s->star[HOUR] && t <= after + SECONDS_A_DAY; t += 60)
		if (matches(s, localtime_r(&t, &tm)))
			return t;
	for (wall = to_wall(after); (wall = next_on_wall(s, wall)) != NEVER; )
		if ((t = from_wall(wall)) > after)
			return t;
	return NEVER;
}

#endif
