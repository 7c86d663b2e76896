#!/usr/bin/env bash
# The pages of goro profile and goro trace in a browser: on a phone's and on a desk's screen they fit
# and draw something, a click and the keys zoom, the search finds, and nothing goes wrong.
. "$SOURCE_DIR/test/cmd/command.sh"
command -v chromium >/dev/null || skip "needs chromium"
command -v python3 >/dev/null || skip "needs python3"

cat >program.c <<'END'
#include <goro.h>
#include <time.h>
static volatile double sum;
__attribute__((noinline)) static void deep(int n)
{
	for (int i = 0; i < n; i++)
		sum += i * 1.5;
}
__attribute__((noinline)) static void middle(int n) { deep(n); sum += 1; }
__attribute__((noinline)) static void other(int n) { for (int i = 0; i < n; i++) sum += i; }
static void worker(goro_waitgroup *group)
{
	/* CPU time of the process, since the machine may be busy. */
	for (; clock() < 500 * (CLOCKS_PER_SEC / 1000); goro_sleep(GORO_MICROSECOND)) {
		middle(300000);
		other(100000);
	}
	goro_waitgroup_done(group);
}
static int start(int argc, char **argv)
{
	(void)argc, (void)argv;
	goro_waitgroup group = { 0 };
	goro_waitgroup_add(&group, 3);
	for (int i = 0; i < 3; i++)
		go(worker, &group);
	goro_waitgroup_wait(&group);
	return 0;
}
GORO_MAIN(start)
END
CC=$CC "$goro" build -o program program.c -- -g -O1
"$goro" profile --html flame.html ./program
"$goro" trace --html timeline.html ./program

cat >driver.js <<'END'
const $w = f => f.contentWindow, inside = (f, code) => $w(f).eval(code);
const key = (f, k) => f.contentDocument.dispatchEvent(new ($w(f).KeyboardEvent)("keydown", { key: k, bubbles: true, cancelable: true }));
function point(f, type, x, y) {
	const canvas = f.contentDocument.getElementById("canvas"), box = canvas.getBoundingClientRect();
	const kind = type.startsWith("pointer") ? $w(f).PointerEvent : $w(f).MouseEvent;
	canvas.setPointerCapture = () => {};
	canvas.dispatchEvent(new kind(type, { clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerId: 1, pointerType: "touch" }));
}
function type(f, words) {
	const box = f.contentDocument.getElementById("search");
	box.value = words;
	box.dispatchEvent(new ($w(f).Event)("input"));
}
function colours(f) {
	const canvas = f.contentDocument.getElementById("canvas"), seen = new Set();
	const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
	for (let i = 0; i < pixels.length; i += 7) seen.add(pixels[i]);
	return seen.size;
}
const details = f => f.contentDocument.getElementById("details").textContent;
const redrawn = f => (inside(f, "resize()"), colours(f) > 4);
const legend = f => [...f.contentDocument.querySelectorAll("#legend .name")];
const found = f => f.contentDocument.getElementById("found").textContent;
function* flame(f) {
	yield ["draws", colours(f) > 4];
	yield ["draws at once when its size changes", redrawn(f)];
	yield ["a colour and its name stay together", legend(f).length > 0 && legend(f).every(e => e.offsetHeight < 24)];
	yield ["lists functions", /itself/.test(details(f)) && /deep/.test(details(f))];
	const n = "nodes.find(n => nameOf(n) === 'middle')";
	point(f, "click", inside(f, `place(${n})[0] + place(${n})[1] / 2`), inside(f, `${n}.depth * ROW + 10`));
	yield ["a click zooms", inside(f, `zoomed === ${n} && selected === zoomed`) && /middle.*with its calls.*Called by: .*worker/.test(details(f))];
	key(f, "ArrowDown");
	yield ["a key selects what is called", inside(f, "nameOf(selected) === 'deep' && nameOf(zoomed) === 'middle'")];
	key(f, "Enter");
	yield ["Enter zooms", inside(f, "nameOf(zoomed) === 'deep'")];
	key(f, "Backspace");
	yield ["Backspace goes out", inside(f, "nameOf(zoomed) === 'middle'")];
	key(f, "0");
	yield ["0 shows all", inside(f, "zoomed === root")];
	type(f, "middl");
	yield ["the search finds", /^[1-9][0-9.]* %$/.test(found(f)) && /middle/.test(details(f)) && !/other/.test(details(f))];
	type(f, "no such function");
	yield ["the search finds nothing", found(f) === "nothing"];
	key(f, "Escape");
	yield ["Escape ends the search", found(f) === "" && /other/.test(details(f))];
}
function* timeline(f) {
	yield ["draws", colours(f) > 4];
	yield ["draws at once when its size changes", redrawn(f)];
	yield ["a colour and its name stay together", legend(f).length > 0 && legend(f).every(e => e.offsetHeight < 24)];
	yield ["tells of all", /running/.test(details(f)) && /ready to running/.test(details(f))];
	key(f, "+");
	yield ["+ zooms", inside(f, "view.to - view.from < .7 * (data.to - data.from)")];
	key(f, "ArrowRight");
	key(f, "0");
	yield ["0 shows all", inside(f, "view.from === data.from && view.to >= data.to")];
	const busy = "pRows.flatMap(r => [...Array(r.n).keys()].map(i => span(r, i))).filter(s => s.state === RUNNING && s.n === 1).sort((a, b) => b.to - b.from - a.to + a.from)[0]";
	inside(f, `{ const s = ${busy}; setView(s.from, s.to); }`);
	const y = inside(f, `[...places()].find(p => p[0] === ${busy}.row)[1] + 8`), x = inside(f, "labels + (width - labels) / 2");
	point(f, "pointerdown", x, y);
	point(f, "pointerup", x, y);
	yield ["a click tells", /ran on P[0-9]+ from /.test(details(f)) && inside(f, "selected !== null")];
	key(f, "]");
	yield ["] goes on", inside(f, `selected === null || selected.i > 0`)];
	key(f, "Escape");
	type(f, "worker");
	yield ["the search finds", found(f) === "3 of " + inside(f, "gRows.length")];
	type(f, "g1");
	yield ["the search finds a goroutine", /^1 of/.test(found(f))];
	key(f, "Escape");
	yield ["Escape ends the search", found(f) === "" && inside(f, "shown === gRows")];
}
const wrong = [];
function show(name, page, width) {
	const frame = document.createElement("iframe");
	frame.style.cssText = `width: ${width}px; height: 800px; border: 0`;
	frame.srcdoc = page.replace("<script>", "<script>onerror = e => parent.wrong.push(e);</" + "script><script>");
	frame.onload = () => setTimeout(() => {
		try {
			if (frame.contentDocument.documentElement.scrollWidth > width) wrong.push(name + " " + width + ": too wide");
			for (const [what, is] of (name === "flame" ? flame : timeline)(frame)) if (!is) wrong.push(name + " " + width + ": not so: " + what);
		} catch (e) { wrong.push(name + " " + width + ": " + e); }
		done++;
	}, 500);
	document.body.append(frame);
}
let done = 0;
window.wrong = wrong;
for (const width of [390, 1280])
	for (const name of ["flame", "timeline"]) show(name, pages[name], width);
setInterval(() => { if (done === 4) document.body.textContent = "RESULT:" + (wrong.join("; ") || "good") + ":END"; }, 300);
END
python3 - >page.html <<'END'
import json
pages = {n: open(n + ".html").read() for n in ("flame", "timeline")}
script = "const pages = " + json.dumps(pages).replace("</", "<\\/") + ";\n" + open("driver.js").read()
print("<!doctype html><body><script>\n" + script + "</script></body>")
END
timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
	--disable-background-networking --disable-component-update --disable-sync \
	--user-data-dir="$work/profile" --window-size=1400,1000 --virtual-time-budget=15000 \
	--dump-dom "file://$work/page.html" >"$work/dom" 2>"$work/log" || { cat "$work/log"; fail "chromium fails"; }
result=$(tr '\n' ' ' <"$work/dom" | sed -n 's/.*RESULT:\(.*\):END.*/\1/p')
[ "$result" = good ] || fail "in the browser: ${result:-nothing}"
