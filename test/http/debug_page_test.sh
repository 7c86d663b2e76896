#!/usr/bin/env bash
# The live page fits the screens of a phone and of a desk: no card's content is wider than the card.
# Long names, large numbers and many processors are shown by the page without a server.
. "$SOURCE_DIR/test/script.sh"
command -v chromium >/dev/null || skip "needs chromium"

cat >"$work/figures.js" <<'JS'
const figures = (second) => ({
	goroutines_created: 9e9 + second * 1e6, goroutines_live: 1234567, runnable: 123456, running: 64,
	waiting: 1111000, in_syscall: 47, threads: 128, idle_threads: 60, gomaxprocs: 64, idle_procs: 0,
	spinning_threads: 3, context_switches: 9.99e11 + second * 9.99e8, steals: 1e9, stolen: 9.99e10 + second * 1e7,
	preemptions: 1e8, syscall_handoffs: 999999, netpoll_wakeups: 1e10, timers: 1000000, parks: 9.99e11,
	thread_wakeups: 9.99e9, stack_bytes_reserved: 1e13, stack_bytes_cached: 1.23e10, global_queue: 123456,
	reasons: { "chan receive (nil chan)": 1000000, "sync.WaitGroup.Wait": 123, "select": 1 },
	procs: Array.from({ length: 64 }, (_, id) => ({ id, status: id % 2 ? "running" : "syscall", queue: 256, timers: 1,
		switches: 1, thread: 1, goroutine: 9999999999 })),
	latency: [[1.28e-7, 1e9 + second * 1000], [1.11e-4, 1e8 + second * 500], [0.888, 1e3 + second]],
	program: "/usr/local/bin/a-server-with-a-name-that-is-longer-than-most", pid: 4194304, start: 1.7e9,
	cpu: 9e5 + second * 64, resident_bytes: 1.23e12, virtual_bytes: 1e14, fds: 1048576, version: "10.11.12",
	now: second * 1e9,
});
JS
{
	echo '<!doctype html><body><script>'
	cat "$work/figures.js"
	cat <<'JS'
function show(width) {
	const frame = document.createElement("iframe");
	frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
	document.body.append(frame);
	let second = 0;
	frame.contentWindow.fetch = async () => ({ ok: true, json: async () => figures(++second) });
	const keep = frame.contentWindow.fetch;
	frame.contentDocument.open();
	frame.contentWindow.fetch = keep;
	frame.contentDocument.write(page_html);
	frame.contentDocument.close();
	return frame;
}
function wide(frame) {
	const d = frame.contentDocument, found = [];
	if (d.documentElement.scrollWidth > frame.clientWidth) found.push("the page");
	for (const card of d.querySelectorAll("section")) {
		const style = frame.contentWindow.getComputedStyle(card);
		const right = card.getBoundingClientRect().right - parseFloat(style.paddingRight) + 1;
		for (const e of card.querySelectorAll("*"))
			if (!e.closest("svg") && e.getBoundingClientRect().right > right)
				found.push(card.querySelector("h2").textContent + ": " + e.textContent);
	}
	if (d.getElementById("live").textContent.length < 7) found.push("nothing is shown");
	return found;
}
JS
	printf 'const page_html = '
	python3 -c 'import json, sys; print(json.dumps(open(sys.argv[1]).read()).replace("</", "<\\/"), end=";\n")' \
		"$SOURCE_DIR/src/http/debug_page.html"
	cat <<'JS'
const frames = [320, 390, 700, 1280].map(show);
setTimeout(() => { document.body.textContent = "RESULT:" + frames.map(f => f.style.width + " " +
	wide(f).slice(0, 4).join("; ")).join("|") + ":END" }, 2500);
</script></body>
JS
} >"$work/page.html"
timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
	--disable-background-networking --disable-component-update --disable-sync \
	--user-data-dir="$work/profile" --window-size=1400,1000 --virtual-time-budget=6000 \
	--dump-dom "file://$work/page.html" >"$work/dom" 2>"$work/log" || { cat "$work/log"; fail "chromium fails"; }
result=$(tr '\n' ' ' <"$work/dom" | sed -n 's/.*RESULT:\(.*\):END.*/\1/p')
[ "$result" = "320px |390px |700px |1280px " ] || fail "wider than its card: $result"
