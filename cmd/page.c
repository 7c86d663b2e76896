/*
 * page.c - files that views are written to, and what pages have in common.
 */
#include "page.h"

#include <errno.h>
#include <string.h>

#include "cmd.h"
#include "embed.h"

EMBED(page_common, "page/common.css")
EMBED(page_common_script, "page/common.js")

FILE *view_open(const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out)
		die("cannot write %s: %s", path, strerror(errno));
	return out;
}

void view_close(FILE *out, const char *path)
{
	bool failed = ferror(out) != 0;

	if (fclose(out) != 0 || failed)
		die("cannot write %s: %s", path, strerror(errno));
}

/* Control characters are none in the texts of traces and profiles (names.h). */
void json_text(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (*text == '<' || (unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", (unsigned)*text);
		else
			putc(*text, out);
	}
	putc('"', out);
}

void page_begin(FILE *out, const char *title, const char *style, const char *body)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n", out);
	fprintf(out, "<title>%s</title>\n<style>\n%s%s</style>\n</head>\n", title, page_common, style);
	fprintf(out, "<body>\n%s<script type=\"application/json\" id=\"data\">\n", body);
}

void page_end(FILE *out, const char *const *scripts)
{
	fprintf(out, "</script>\n<script>\n%s", page_common_script);
	for (; *scripts; scripts++)
		fputs(*scripts, out);
	fputs("</script>\n</body>\n</html>\n", out);
}
