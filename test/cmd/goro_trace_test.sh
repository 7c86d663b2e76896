#!/usr/bin/env bash
# goro trace: what it says of examples/traced.c is what that program does; the JSON for Perfetto is
# valid, and no P does two things at once; a file that ends early is shown up to its last whole
# generation, and one that is broken never crashes the command.
. "$SOURCE_DIR/test/cmd/command.sh"

# ---------------------------------------------------------------------- a trace

CC=$CC "$goro" build -o traced "$SOURCE_DIR/examples/traced.c"
GORO_MAXPROCS=2 ./traced traced.trace
status 0 "$goro" trace traced.trace
has '^traced.trace: .* 2 processors, 5 goroutines' '^  waiting +[0-9]' '^  chan send +[0-9]' \
	'^  request +200 ' '^  parse +200 ' '^  look up +200 ' '^  answer +200 ' '^P0 .* %$' '^P1 .* %$' \
	'[A-E] G[2-5] worker  [A-E] G' 'goro_[a-z_]+ < (answer < )?worker' '^Ready to running +half <= '
! grep -E '^.{81}' out || fail "wider than 80 columns"
! grep -q $'\033' out || fail "colours, though this is no terminal"
[ ! -s errors ] || fail "says: $(cat errors)"
status 0 "$goro" trace --from 0.01 --to 0.02 traced.trace
has '^Shown: 10.0 ms to 20.0 ms'

# --------------------------------------------------------------------- Perfetto

status 0 "$goro" trace --perfetto traced.json traced.trace
[ ! -s out ] || fail "--perfetto prints: $(cat out)"
cat >check.py <<'END'
import json
from collections import Counter, defaultdict
events = json.load(open("traced.json"))["traceEvents"]
tracks = defaultdict(list)
for e in events:
    if e["ph"] == "X":
        assert e["dur"] >= 0 and e["ts"] >= 0, e
        tracks[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e))
assert len([t for t in tracks if t[0] == 1]) in (2, 3), tracks.keys()    # Ps, and plain threads
assert len([t for t in tracks if t[0] == 2]) == 5, tracks.keys()         # goroutines
for (pid, tid), spans in tracks.items():
    spans.sort(key=lambda s: s[:2])
    if pid in (1, 2):
        for a, b in zip(spans, spans[1:]):
            assert a[1] <= b[0], (a, b)
phases = Counter(e["ph"] for e in events)
assert phases["b"] == phases["e"] == 200 and phases["s"] == phases["f"] > 200, phases
assert sum(e["ph"] == "i" and e["name"].startswith("answered: ") for e in events) == 200
regions = Counter(s[2]["name"] for (pid, tid), spans in tracks.items() if pid == 3 for s in spans)
assert regions == {"parse": 200, "look up": 200, "answer": 200}, regions
# An arrow begins while a goroutine runs, and ends where one begins to.
begins = {(e["tid"], e["ts"]) for e in events if e["ph"] == "X" and e["pid"] == 1}
for e in events:
    assert e["ph"] != "f" or (e["tid"], e["ts"]) in begins, e
END
if command -v python3 >/dev/null; then
	python3 check.py || fail "the JSON is wrong"
fi

# --------------------------------------------------------------------- the page

status 0 "$goro" trace --html page.html traced.trace
! grep -Eiq '(src|href) *=|https?:|@import|url\(|\bfetch\(|XMLHttp|WebSocket' page.html || fail "the page needs other files"
cat >check.py <<'END'
import json, re
page = open("page.html").read()
data, script = re.search(r'<script type="application/json" id="data">(.*?)</script>\s*<script>(.*?)</script>', page, re.S).groups()
open("script.js", "w").write(script)
data = json.loads(data)
assert data["procs"] == 2 and data["goroutines"] == len(data["gs"]) == 5 and len(data["regions"]) == 6 * 600
def spans(items):
    at = 0
    for i in range(0, len(items), 13):
        start = at + items[i]
        assert items[i] >= 0 and items[i + 1] >= 0
        at = start + items[i + 1]
        yield items[i:i + 13]
ran = [sum(s[1] for p in data["ps"] for s in spans(p["items"]) if s[2] == 2),
       sum(s[1] for g in data["gs"] for s in spans(g["items"]) if s[2] == 2)]
assert ran == [data["states"][2]] * 2, (ran, data["states"])
names = sorted(data["texts"][g["name"]] for g in data["gs"])
assert names == ["start"] + 4 * ["worker"], names
assert all(0 <= t < len(data["texts"]) for s in data["stacks"] for i, t in enumerate(s) if i % 3 < 2)
END
if command -v python3 >/dev/null; then
	python3 check.py || fail "the page is wrong"
	! command -v node >/dev/null || node --check script.js || fail "the page's script is wrong"
fi

# ---------------------------------------------------------------- broken files

size=$(stat -c %s traced.trace)
for ((at = 0; at < size; at += size / 23)); do
	head -c "$at" traced.trace >cut.trace
	status 1 "$goro" trace ./cut.trace
	grep -q "cut.trace" errors || fail "cut at $at: says $(cat errors)"
done
for ((at = 16; at < size; at += size / 29)); do
	{ head -c "$at" traced.trace; printf '\377\001'; tail -c +$((at + 3)) traced.trace; } >broken.trace
	"$goro" trace broken.trace >out 2>errors || [ $? = 1 ] || fail "broken at $at: status $?"
done
# A second generation that is not whole.
{ cat traced.trace; printf '\001\002\001\001\005'; } >cut.trace
status 0 "$goro" trace cut.trace
grep -q "ends in the middle" errors || fail "cut in the second generation: says $(cat errors)"
has '5 goroutines'
{ printf 'go 1.27 trace\0\0\0'; tail -c +17 traced.trace; } >newer.trace
status 1 "$goro" trace newer.trace
grep -q "of Go 1.27" errors || fail "a newer version: says $(cat errors)"

# ---------------------------------------------------------------- programs

cat >program.c <<'END'
#include <goro.h>
static int start(int argc, char **argv)
{
	goro_sleep(GORO_MILLISECOND);
	(void)argv;
	return argc - 1;
}
GORO_MAIN(start)
END
XDG_CACHE_HOME=$work/cache CC=$CC status 0 "$goro" trace program.c
has '^program.c: ' '^  sleep +1 ' 'G[12] start'
"$goro" build -o program program.c
TMPDIR=$work/none status 1 "$goro" trace ./program
status 1 "$goro" trace -o kept.trace ./program x
has '^kept.trace: ' '^  sleep +1 '
grep -q "has ended with status 1" errors || fail "a program that fails: $(cat errors)"
status 0 "$goro" trace kept.trace
sed 's/goro_sleep(GORO_MILLISECOND)/while (argc) goro_sleep(GORO_MILLISECOND)/' program.c >runs.c
"$goro" build -o runs runs.c
./runs &
pid=$!
at_end="kill $pid"
for ((i = 0; i < 500; i++)); do
	"$goro" dump $pid >/dev/null 2>&1 && break
	sleep 0.02
done
status 0 "$goro" trace --seconds 0.5 $pid
has "^$pid: [0-9.]+ m?s, " '^  sleep +[1-9]' 'G[12] start'
status 0 "$goro" trace --seconds 0.2 -o live.trace $pid
status 0 "$goro" trace live.trace
has '^live.trace: ' '^  sleep +[1-9]'
kill $pid
wait $pid 2>/dev/null || true
at_end=
status 1 "$goro" trace $pid
grep -q "$pid" errors || fail "a process that is gone: $(cat errors)"
status 1 "$goro" trace true
grep -q "there is no trace" errors || fail "a program without goro: $(cat errors)"
status 1 "$goro" trace ./none
echo text >text
status 1 "$goro" trace text
grep -q "is not an execution trace" errors || fail "a text: $(cat errors)"
for words in "" "-x" "--from x t" "--to 0 t" "--from 2 --to 1 t" "--seconds 0 1" "traced.trace x"; do
	status 2 "$goro" trace $words
done
status 0 "$goro" trace --help
has 'usage: goro trace'

# ------------------------------------------------------------------- Go's view

(need_go trace 23) || exit 0
need_go trace 23
"$go" tool trace -d=1 traced.trace >events
[ "$(grep -o 'GoID=[0-9]*' events | sort -u | wc -l)" = 5 ] || fail "Go finds other goroutines"
"$goro" trace --perfetto traced.json traced.trace
found=$(grep -c 'Running->Waiting' events)
ours=$(grep '"pid":2' traced.json | grep -c '"state":"waiting"')
[ "$found" = "$ours" ] || fail "Go finds $found waits, goro trace $ours"
