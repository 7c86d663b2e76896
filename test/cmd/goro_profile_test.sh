#!/usr/bin/env bash
# goro profile: its figures are those that are in the file, whether that is packed, stored or bare; a
# program that is run and one that is running are profiled; the page needs nothing else and has the
# whole tree; a file that is broken, cut or hostile is refused, and never crashes the command.
. "$SOURCE_DIR/test/cmd/command.sh"

# says TEXT: the errors do.
says() { grep -q "$1" errors || fail "no '$1' in: $(cat errors)"; }

# ------------------------------------------------------------------ words

for words in "" "--top 0 x" "--top 1.5 x" "--kind x 1" "--seconds -1 1" "--kind block prog.c" "1 2"; do
	status 2 "$goro" profile $words
done
status 0 "$goro" profile --help
has 'usage: goro profile'
status 1 "$goro" profile ./none
status 1 "$goro" profile 1
status 1 "$goro" profile unix:none
echo text >text
status 1 "$goro" profile text
says 'text is not a profile'

# ---------------------------------------------------------------- programs

cat >program.c <<'END'
#include <goro.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static volatile double sum;
static goro_mutex lock;
__attribute__((noinline)) static void computes(int n)
{
	for (int i = 0; i < n; i++)
		sum += i * 1.5;
}
static void fights(void)
{
	for (;;) {
		goro_mutex_lock(&lock);
		goro_sleep(GORO_MILLISECOND);
		goro_mutex_unlock(&lock);
	}
}
static void waits(goro_chan *c) { goro_chan_recv(c, NULL); }
static void leaks(void) { goro_chan_recv(goro_chan_of(int, 0), NULL); }
static int start(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	if (argc > 1 && strcmp(argv[1], "serve") == 0) {
		goro_profile_mutex_fraction(1);
		for (int i = 0; i < 12; i++)
			go(waits, c);
		go(fights);
		go(fights);
		go(leaks);
		for (;;) {
			computes(1000000);
			goro_sleep(GORO_MILLISECOND);
		}
	}
	while (clock() < 300 * (CLOCKS_PER_SEC / 1000))	/* of CPU time: the machine may be busy */
		computes(1000000);
	return argc - 1;
}
GORO_MAIN(start)
END
CC=$CC "$goro" build -o program program.c -- -g -O1
status 0 "$goro" profile -o kept.prof ./program
has '^kept.prof: cpu [0-9.]+ m?s in [0-9.]+ m?s, samples [0-9]+' 'function$' '  computes  program.c$' \
	'tree of calls' ' start  program.c$'
! grep -E '^.{81}' out || fail "wider than 80 columns"
! grep -q $'\033' out || fail "colours, though this is no terminal"
[ ! -s errors ] || fail "says: $(cat errors)"
status 0 "$goro" profile --top 1 kept.prof
has ' computes ' '^and [0-9]+ functions more'
! grep -q 'tree of calls' out || fail "--top shows the tree"
status 0 "$goro" profile --tree --value samples kept.prof
has '^kept.prof: samples [0-9]+ in ' 'tree of calls'
! grep -q 'itself .* function' out || fail "--tree shows the functions"
status 1 "$goro" profile --value alloc_space kept.prof
says 'its values are samples, cpu'
status 1 "$goro" profile ./program x
says 'has ended with status 1'
TMPDIR=$work/none status 1 "$goro" profile ./program
XDG_CACHE_HOME=$work/cache CC=$CC status 0 "$goro" profile program.c
has '^program.c: cpu ' ' computes'
status 1 "$goro" profile true
says 'there is no profile'
status 1 "$goro" profile --html none/page.html kept.prof
says 'cannot write none/page.html'

# -------------------------------------------------------- running programs

./program serve &
pid=$!
at_end="kill $pid"
for ((i = 0; i < 500; i++)); do
	"$goro" top -n 1 -d 0.05 $pid 2>/dev/null | grep -q 'chan receive *13 ' && break
	sleep 0.02
done
status 0 "$goro" profile --seconds 1 -o cpu.prof $pid
has "^$pid: cpu .* in 1[0-9.]* s" ' computes  program.c$'
status 0 "$goro" profile cpu.prof
has ' computes  program.c$'
status 0 "$goro" profile --kind goroutine $pid
has "^$pid: goroutine " '^ +[0-9.]+ +12 +12 +goro_chan_recv' '^ +[0-9.]+ +12 +\+ waits'
for ((i = 0; i < 20; i++)); do		# a pointer that is left somewhere hides the leak until it is overwritten
	status 0 "$goro" profile --kind leak $pid
	! grep -q 'goroutineleak 1$' out || break
	sleep 0.1
done
has "^$pid: goroutineleak 1$" ' leaks '
status 0 "$goro" profile --kind mutex $pid
has "^$pid: delay .*, contentions [0-9,]+" ' fights '
status 0 "$goro" profile --kind block $pid
says 'the profile is empty: .*goro_profile_block_rate'
has '^No samples of delay'
kill $pid
wait $pid 2>/dev/null || true
at_end=
status 1 "$goro" profile $pid

# ----------------------------------------------- what is made up, and its page

command -v python3 >/dev/null || exit 0
cat >make.py <<'END'
import gzip, zlib
def vi(n):
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n >> 7 else 0)])
        n >>= 7
        if not n:
            return out
def field(n, b): return vi(n << 3 | 2) + vi(len(b)) + b
def number(n, v): return vi(n << 3) + vi(v)
texts = ["", "alloc_space", "bytes", "main", "work", "</script><b>", "a\x1b[2Jb", "/src/main.c", "a note", "inlined", "count", "/lib/x.so"]
types = field(1, number(1, 1) + number(2, 2)) + field(1, number(1, 10) + number(2, 10))
def function(i, name, file=0): return field(5, number(1, i) + number(2, name) + number(4, file))
def location(i, *functions, more=b""): return field(4, number(1, i) + more + b"".join(field(4, number(1, f) + number(2, 7)) for f in functions))
def sample(locations, *values):        # packed, or one by one
    if len(locations) % 2:
        return field(2, b"".join(number(1, l) for l in locations) + b"".join(number(2, v) for v in values))
    return field(2, field(1, b"".join(map(vi, locations))) + field(2, b"".join(map(vi, values))))
body = types
body += sample([2, 1], 3 << 20, 3) + sample([3, 2, 1], 1 << 20, 1) + sample([2, 1], 1 << 20, 1)      # the first stack twice
body += sample([4, 1], 1 << 20, 1) + sample([5, 5, 1], 2 << 20, 2) + sample([2, 1], (1 << 64) - 5, 0)  # less than nothing
body += location(1, 1) + location(2, 5, 2) + location(3, 3) + location(4, more=number(2, 9) + number(3, 0x1234)) + location(5, 4)
body += function(1, 3, 7) + function(2, 4, 7) + function(3, 5) + function(4, 6) + function(5, 9, 7)
body += field(3, number(1, 9) + number(5, 11))
body += b"".join(field(6, t.encode()) for t in texts)
body += number(13, 8) + number(14, 1) + field(100, b"y" * 5000)      # long runs; a field that nobody knows
open("bare", "wb").write(body)
open("packed", "wb").write(gzip.compress(body, 9))
open("stored", "wb").write(gzip.compress(body, 0))
fixed = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_FIXED)
head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + b"\x03\0abc" + b"name\0comment\0" + b"xx"
tail = zlib.crc32(body).to_bytes(4, "little") + len(body).to_bytes(4, "little")
open("fixed", "wb").write(head + fixed.compress(body) + fixed.flush() + tail)
half = len(body) // 2
open("members", "wb").write(gzip.compress(body[:half]) + gzip.compress(body[half:]))
bits = [1, 1, 0] + [int(b) for b in "10010001"] + [0] * 6 + [1] + [1, 1, 1, 0, 1] + [0] * 40   # a byte; three of 24,577 before
far = bytes(sum(bit << i for i, bit in enumerate(bits[at:at + 8])) for at in range(0, len(bits), 8))
open("far", "wb").write(b"\x1f\x8b\x08" + b"\0" * 7 + far)
open("badsum", "wb").write(gzip.compress(body)[:-8] + b"\0" * 8)
many = b"".join(sample([i % 5 + 1, 1], i, 1) for i in range(1, 30000))     # more than one block of codes
open("large", "wb").write(gzip.compress(body + many, 6))
open("largebare", "wb").write(body + many)
open("bomb", "wb").write(gzip.compress(b"\0" * (300 << 20), 9))
open("crowd", "wb").write(gzip.compress(types + b"\x12\0" * (9 << 20), 1))
open("deep", "wb").write(body + field(2, field(1, b"\1" * 200000) + field(2, b"\5")))
open("types", "wb").write(types * 20 + body)
END
python3 make.py
cat >want <<'END'

    itself      %   with calls      %   function
   4.0 MiB   50.0      5.0 MiB   62.5   inlined  main.c
   2.0 MiB   25.0      2.0 MiB   25.0   a?[2Jb
   1.0 MiB   12.5      1.0 MiB   12.5   </script><b>
   1.0 MiB   12.5      1.0 MiB   12.5   [x.so]
         0    0.0      8.0 MiB  100.0   main  main.c
         0    0.0      5.0 MiB   62.5   work  main.c

     % with calls     itself   tree of calls
 100.0    8.0 MiB              main  main.c
  62.5    5.0 MiB              + work  main.c
  62.5    5.0 MiB    4.0 MiB     inlined  main.c
  12.5    1.0 MiB    1.0 MiB     + </script><b>
  25.0    2.0 MiB    2.0 MiB   + a?[2Jb
  12.5    1.0 MiB    1.0 MiB   + [x.so]
END
for file in bare packed stored fixed members; do
	status 0 "$goro" profile "$file"
	has "^$file: alloc_space 8.0 MiB, count 8$" '^a note$'
	sed '1,2d; $d' out | diff want - || fail "$file is read otherwise"
done
"$goro" profile --top 100 large | sed 1d >out
"$goro" profile --top 100 largebare | sed 1d | diff out - || fail "what was packed is not what it was"

status 0 "$goro" profile --html page.html packed
[ ! -s out ] || fail "--html prints: $(cat out)"
! grep -Eiq '(src|href) *=|https?:|@import|url\(|\bfetch\(|XMLHttp|WebSocket' page.html || fail "the page needs other files"
cat >check.py <<'END'
import json, re
page = open("page.html").read()
assert page.count("</script>") == 2 and "\x1b" not in page
data, script = re.search(r'<script type="application/json" id="data">(.*?)</script>\s*<script>(.*?)</script>', page, re.S).groups()
open("script.js", "w").write(script)
data = json.loads(data)
nodes = [data["nodes"][i:i + 5] for i in range(0, len(data["nodes"]), 5)]
names = [data["texts"][n[1]] for n in nodes]
assert names == ["", "main", "work", "a?[2Jb", "[x.so]", "inlined", "a?[2Jb", "</script><b>"], names
assert [n[0] for n in nodes[1:]] == [0, 1, 1, 1, 2, 3, 5], nodes
assert [n[4] >> 20 for n in nodes] == [8, 8, 5, 2, 1, 5, 2, 1] and sum(n[3] for n in nodes) == 8 << 20, nodes
assert data["comments"] == ["a note"] and data["unit"] == "bytes", data
END
python3 check.py || fail "the page is wrong"
! command -v node >/dev/null || node --check script.js || fail "the page's script is wrong"

# ---------------------------------------------------------------- broken files

status 1 "$goro" profile far
says 'points to before its start'

for file in bomb crowd badsum types; do
	status 1 "$goro" profile "$file"
	says "^goro: $file "
done
status 0 "$goro" profile deep
has '\(further out\)'
for file in packed fixed stored bare; do
	size=$(stat -c %s "$file")
	for ((at = 0; at < size; at += size / 11 + 1)); do
		head -c "$at" "$file" >cut
		"$goro" profile ./cut >out 2>errors || [ $? = 1 ] || fail "$file cut at $at: status $?"
		[ "$file" = bare ] || grep -q '^goro: ./cut ' errors || fail "$file cut at $at: says $(cat errors)"
		{ head -c "$at" "$file"; printf '\377\001'; tail -c +$((at + 3)) "$file"; } >broken
		"$goro" profile ./broken >out 2>errors || [ $? = 1 ] || fail "$file broken at $at: status $?"
	done
done

# ------------------------------------------------------------------- Go's view

(need_go pprof 17) || exit 0
need_go pprof 17
cat >profiled.go <<'END'
package main

import (
	"os"
	"runtime/pprof"
	"time"
)

var sum float64

func computes() {
	for i := 0; i < 1000000; i++ {
		sum += float64(i)
	}
}
func main() {
	f, _ := os.Create("go.prof")
	pprof.StartCPUProfile(f)
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		computes()
	}
	pprof.StopCPUProfile()
	h, _ := os.Create("heap.prof")
	pprof.Lookup("allocs").WriteTo(h, 0)
}
END
GOCACHE=$work/gocache HOME=$work "$go" run profiled.go
status 0 "$goro" profile --top 3 go.prof
has '^go.prof: cpu ' ' main.computes  profiled.go$'
status 0 "$goro" profile --value alloc_space heap.prof
has '^heap.prof: alloc_space '
# What pprof finds in goro's profile, goro finds, too.
HOME=$work "$go" tool pprof -top -sample_index=samples kept.prof 2>/dev/null >theirs
"$goro" profile --top 1 --value samples kept.prof >out
theirs=$(awk '$NF == "computes" { print $1 }' theirs) ours=$(awk '/ computes /{ print $1 }' out)
[ "$theirs" = "$ours" ] || fail "pprof finds $theirs samples in computes, goro profile $ours"
