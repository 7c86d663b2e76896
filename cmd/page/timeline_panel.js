
// ---------------------------------------------------------------- details

function goroutineLink(g) {
  const name = nameOf.get(g);
  return gRow.has(g) ? link("G" + g + (name ? " " + text(name) : ""), () => selectGoroutine(g)) : "G" + g;
}

function stackList(n) {
  const list = element("ol"), s = data.stacks[n] || [];
  for (let i = 0; i < s.length; i += 3) {
    const place = s[i + 2] ? text(s[i + 1]) + ":" + s[i + 2] : "";
    list.append(element("li", [text(s[i]) + " ", element("span", place)]));
  }
  return list;
}

// The goroutine's span at or after a time.
function selectGoroutine(g, at) {
  const row = gRow.get(g);
  if (!row) return;
  const i = Math.min(row.n - 1, firstAfter(row, at === undefined ? view.from : at));
  reveal(row);
  if (i < 0) return select({ row, i: -1, g });
  if (row.from[i] > view.to || row.to[i] < view.from) center(row.from[i], row.to[i]);
  select(span(row, i));
}

function center(from, to) {
  const size = Math.max(view.to - view.from, (to - from) * 1.5), middle = (from + to) / 2;
  setView(middle - size / 2, middle + size / 2);
}

function reveal(row) {
  if (row.kind === "p") return;
  if (!shown.includes(row)) { $("search").value = ""; search(); }
  const y = shown.indexOf(row) * gHeight, room = height - top0() - (pinned() ? 0 : pRows.length * P_HEIGHT);
  if (y < scroller.scrollTop || y + 2 * gHeight > scroller.scrollTop + room) scroller.scrollTop = Math.max(0, y - room / 2);
}

function step(by) {
  const i = selected ? selected.i + by : -1;
  if (i < 0 || i >= selected.row.n) return;
  const s = span(selected.row, i);
  if (s.from > view.to || s.to < view.from) center(s.from, s.to);
  select(s);
}

const ENDS = { preempted: "It was preempted.", "a call": "A call followed.", "its end": "Then it ended.", "runtime.Gosched": "Then it let others run." };

function describeEnd(s) {
  const why = s.state === RUNNING && s.why ? text(s.why) : "";
  return why ? [" " + (ENDS[why] || "Then it waited for " + why + ".")] : [];
}

function describe(s) {
  const where = s.p === OUTSIDE ? " as a plain thread" : s.p >= 0 ? " on P" + s.p : "";
  const when = [" from " + duration(s.from) + " to " + duration(s.to) + ": ", element("b", duration(s.to - s.from)), "."];
  if (s.n > 1) return [s.n + " short spans" + where, ...when, " Running " + duration(s.busy) + " of it. Traces of a shorter time (--from, --to) show them."];
  const what = s.state === WAITING ? "waited for " + text(s.why) : s.state === RUNNABLE ? "was ready, and waited for a P" : s.state === CALL ? "was in a call" : "ran";
  const p = [what + where, ...when];
  if (s.state === WAITING && s.by) p.push(" ", goroutineLink(s.by), " ended the wait.");
  if (s.state === RUNNING && s.wait >= 0) {
    p.push(" It was ready for " + duration(s.wait));
    if (s.by) p.push("; ", goroutineLink(s.by), " made it ready" + (s.byP >= 0 && s.byP !== OUTSIDE ? " on P" + s.byP : ""));
    p.push(".");
  }
  return p.concat(describeEnd(s));
}

function marksAt(row, s) {
  const p = element("p", [], "soft");
  const inside = row.regions.filter(r => r.from < s.to && r.to > s.from).slice(0, 6);
  if (inside.length) p.append("In " + inside.map(r => text(r.name) + (r.task ? " (task " + r.task + ")" : "")).join(", ") + ". ");
  const logs = row.logs.filter(l => l.at >= s.from && l.at <= s.to).slice(0, 6);
  if (logs.length) p.append("Says " + logs.map(l => text(l.key) + ": " + text(l.value)).join(", ") + ".");
  return p;
}

function select(s) {
  selected = s;
  const panel = $("details"), row = s && (gRow.get(s.g) || (s.row.kind === "g" && s.row));
  panel.replaceChildren();
  redraw();
  if (!s) return overview(panel);
  const title = element("h2", s.g ? "G" + s.g + " " + (s.name ? text(s.name) : row ? text(row.info.name) : "") : spanName(s));
  panel.append(element("p", [title, ...(s.i >= 0 ? describe(s) : [])]));
  panel.append(element("p", [link("before", () => step(-1)), " \u00b7 ", link("next", () => step(1)), " \u00b7 ",
    link("zoom to it", () => setView(s.from - (s.to - s.from) * .5, s.to + (s.to - s.from) * .5)), " \u00b7 ",
    s.row.kind === "p" && gRow.has(s.g) ? link("its row", () => selectGoroutine(s.g, s.from)) : link("close", () => select(null))]));
  if (row && s.n === 1) panel.append(marksAt(row, s));
  if (s.stack) panel.append(stackList(s.stack));
  if (row && row.info.parent) panel.append(element("p", ["Started by ", goroutineLink(row.info.parent), " at " + duration(Math.max(0, row.info.born)) + ":"], "soft"), stackList(row.info.where));
}

function overview(panel) {
  const all = data.states.reduce((a, b) => a + b, 0) || 1;
  const states = [2, 1, 4, 3].map(i => [STATES[i], duration(data.states[i]), (100 * data.states[i] / all).toFixed(0) + " %"]);
  const [p50, p99, most] = data.latency;
  const names = [...colourOf].map(([key, colour]) => {
    const box = element("i", [], "box"), words = byGoroutine ? "G" + key : text(key);
    box.style.background = "var(" + colour + ")";
    return element("span", [box, link(byGoroutine ? words + " " + text(nameOf.get(key)) : words, () => { $("search").value = words; search(); })], "name");
  });
  const latency = p50 < 0 ? [] : [table([["ready to running, half within", duration(p50)], ["99 % within", duration(p99)], ["longest", duration(most)]])];
  panel.append(element("div", [table(states), ...latency, table([["preempted", data.preempted.toLocaleString("en")],
    ["calls that lost their P", data.calls_without_p.toLocaleString("en")], ["moved to another P", data.moved.toLocaleString("en")]])], "columns"));
  panel.append(element("p", ["Ran longest: ", ...names]));
  const notes = [];
  if (data.goroutines > gRows.length) notes.push("Rows of the " + gRows.length + " goroutines that lived longest; the Ps show all.");
  const least = Math.max(...data.shortest);
  if (least) notes.push("Spans within " + duration(least) + " are drawn together: for all, make the page of a part (--from, --to).");
  if (data.regions_left_out + data.logs_left_out) notes.push(data.regions_left_out + " regions and " + data.logs_left_out + " logs are left out.");
  panel.append(element("p", notes.join(" ") || "Click a span for its stack. The wheel, + and - zoom; dragging and the arrow keys move.", "soft"));
}

// ---------------------------------------------------------------- search

function search() {
  const words = $("search").value.trim().toLowerCase(), id = /^g?(\d+)$/.exec(words);
  wanted = null;
  shown = gRows;
  if (words) {
    const names = new Set(data.texts.map((t, i) => i && !id && t.toLowerCase().includes(words) ? i : -1).filter(i => i > 0));
    shown = gRows.filter(r => id ? r.id === +id[1] : names.has(r.info.name) || r.label.toLowerCase().includes(words));
    wanted = { gs: new Set(id ? [+id[1]] : shown.map(r => r.id)), names: id ? new Set() : names };
  }
  $("found").textContent = words ? shown.length + " of " + gRows.length : "";
  scroller.scrollTop = 0;
  resize();
}

// ---------------------------------------------------------------- input

function at(e) {
  const box = canvas.getBoundingClientRect();
  return [e.clientX - box.left, e.clientY - box.top];
}

function hit(px, py) {
  const place = [...places()].filter(([row, y, h]) => py >= y && py < y + h && (row.kind === "p" || py >= top0())).pop();
  if (!place) return null;
  const row = place[0];
  if (px < labels) return { row, i: -1, g: row.kind === "g" ? row.id : 0 };
  const near = 3 * (view.to - view.from) / (width - labels), t = timeAt(px), i = firstAfter(row, t - near);
  let best = -1, far = near;
  for (let j = i; j < row.n && row.from[j] <= t + near; j++) {
    const distance = t < row.from[j] ? row.from[j] - t : t > row.to[j] ? t - row.to[j] : -1;
    if (distance < far) { best = j; far = distance; }
    if (distance < 0) break;
  }
  return best < 0 ? null : span(row, best);
}

const fingers = new Map();
let moved = 0;

canvas.addEventListener("pointerdown", e => {
  fingers.set(e.pointerId, at(e));
  canvas.setPointerCapture(e.pointerId);
  moved = 0;
});
canvas.addEventListener("pointermove", e => {
  const before = fingers.get(e.pointerId), now = at(e);
  if (!before) return;
  const other = [...fingers].find(([id]) => id !== e.pointerId);
  if (other) {
    const [ox] = other[1], was = Math.abs(before[0] - ox), is = Math.abs(now[0] - ox);
    if (was > 10 && is > 10) zoom(was / is, (ox + now[0]) / 2);
    moved = 100;
  } else {
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    if (moved > 4) {
      pan((before[0] - now[0]) / (width - labels));
      scroller.scrollTop += before[1] - now[1];
    }
  }
  fingers.set(e.pointerId, now);
});
for (const type of ["pointerup", "pointercancel"])
  canvas.addEventListener(type, e => {
    if (fingers.delete(e.pointerId) && type === "pointerup" && moved <= 4) {
      const s = hit(...at(e));
      if (s && s.i < 0 && s.g) selectGoroutine(s.g); else select(s && s.i >= 0 ? s : null);
      scroller.focus({ preventScroll: true });
    }
  });
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan((e.deltaX || e.deltaY) / (width - labels));
  else zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaMode ? e.deltaY * 20 : e.deltaY)) / 250), at(e)[0]);
}, { passive: false });

const keys = {
  "+": () => zoom(.6), "=": () => zoom(.6), "-": () => zoom(1 / .6), "0": () => setView(data.from, data.to),
  ArrowLeft: () => pan(-.2), ArrowRight: () => pan(.2), ArrowUp: () => { scroller.scrollTop -= 3 * gHeight; },
  ArrowDown: () => { scroller.scrollTop += 3 * gHeight; }, "[": () => step(-1), "]": () => step(1),
  "/": () => $("search").focus(), Escape: () => { $("search").value = ""; search(); select(null); },
};
document.addEventListener("keydown", e => {
  const inSearch = e.target === $("search");
  if (e.ctrlKey || e.altKey || e.metaKey || !keys[e.key] || (inSearch && e.key !== "Escape")) return;
  e.preventDefault();
  keys[e.key]();
});
$("search").addEventListener("input", search);
$("search").addEventListener("keydown", e => { if (e.key === "Enter" && shown.length) selectGoroutine(shown[0].id); });
$("in").onclick = keys["+"];
$("out").onclick = keys["-"];
$("all").onclick = keys["0"];
$("left").onclick = keys.ArrowLeft;
$("right").onclick = keys.ArrowRight;
scroller.addEventListener("scroll", redraw);
new ResizeObserver(resize).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);

document.title = data.name + " - goro trace";
$("title").textContent = data.name;
$("figures").textContent = duration(data.to - data.from) + ", " + data.procs + " Ps, " + data.goroutines.toLocaleString("en") +
  " goroutines, " + data.events.toLocaleString("en") + " events";
select(null);
resize();
