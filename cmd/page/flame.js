// A flame graph that hangs: callers above those that they call, as wide as what they have.
const canvas = $("canvas"), ctx = canvas.getContext("2d"), scroller = $("rows");
const FIELDS = 5, ROW = 20, COLOURS = 8, TOP = 40;

// ---------------------------------------------------------------- data

const nodes = [], functions = [];
for (let i = 0; i < data.nodes.length; i += FIELDS) {
  const [parent, fn, file, flat, all] = data.nodes.slice(i, i + FIELDS), up = i ? nodes[parent] : null;
  const n = { up, fn, file, flat, all, children: [], depth: up ? up.depth + 1 : 0, from: 0, to: 0, near: 0 };
  nodes.push(n);
  if (up) up.children.push(n);
}
for (let i = 0; i < data.functions.length; i += 4) {
  const [fn, file, flat, all] = data.functions.slice(i, i + 4);
  functions.push({ fn, file, flat, all });
}
const root = nodes[0], total = root.all || 1;

// Where each begins, in units of the values. Parents come first.
for (const n of nodes) {
  if (!n.up) { n.from = 0; n.to = total; }
  let at = n.from;
  for (const c of n.children) { c.from = at; at = c.to = at + c.all; }
}

const nameOf = n => n.up ? text(n.fn) : "all";
const fileName = n => n ? text(n).replace(/.*\//, "") : "";

// Files, or libraries, have colours: those in which most was.
const colourOf = new Map();
(function chooseColours() {
  const sums = new Map();
  for (const f of functions) sums.set(f.file, (sums.get(f.file) || 0) + f.flat);
  [...sums].filter(([file]) => file).sort((a, b) => b[1] - a[1]).slice(0, COLOURS).forEach(([file], i) => colourOf.set(file, "--c" + i));
})();

function value(v) {
  if (!v) return "0";
  const times = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };
  if (times[data.unit]) return duration(v * times[data.unit]);
  if (data.unit !== "bytes") return v.toLocaleString("en");
  const u = v < 1024 ? 0 : Math.min(4, Math.floor(Math.log(v) / Math.log(1024)));
  return (v / Math.pow(1024, u)).toFixed(u ? 1 : 0) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][u];
}

const percent = v => (100 * v / total).toFixed(1) + " %";

// ---------------------------------------------------------------- drawing

let zoomed = root, selected = null, wanted = null, width = 0, height = 0, colours = {}, queued = false;
let deepest = Math.max(0, ...nodes.map(n => n.depth));

const x = v => (v - zoomed.from) / Math.max(1e-9, zoomed.to - zoomed.from) * width;

function redraw() {
  if (!queued) requestAnimationFrame(() => { queued = false; draw(); });
  queued = true;
}

// Draws at once: a canvas that has got a size is blank.
function resize() {
  const scale = window.devicePixelRatio || 1;
  width = scroller.clientWidth;
  height = scroller.clientHeight;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  $("space").style.height = Math.max(0, (deepest + 1) * ROW + 4 - height) + "px";
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "panel", "text", "soft", "line", "other", "mark", "ink", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"])
    colours["--" + name] = style.getPropertyValue("--" + name).trim();
  draw();
}

const isAbove = (n, m) => m.depth > n.depth && m.from >= n.from && m.to <= n.to;

// A node's place: [x, width]; those above the zoomed one are as wide as the page.
function place(n) {
  if (n === zoomed || isAbove(n, zoomed)) return [0, width];
  if (n.to <= zoomed.from || n.from >= zoomed.to) return null;
  return [x(n.from), (n.to - n.from) / (zoomed.to - zoomed.from) * width];
}

function drawText(words, x0, y, w, bold) {
  ctx.font = (bold ? "600 " : "") + "12px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  const wide = ctx.measureText(words).width;
  if (wide > w) words = words.slice(0, Math.max(0, Math.floor(words.length * w / wide) - 1)) + "\u2026";
  if (words.length < 3 && wide > w) return;
  ctx.fillText(words, x0, y);
}

function drawNode(n, x0, w, y) {
  const above = isAbove(n, zoomed), hit = wanted && wanted.has(n.fn) && n.up;
  ctx.globalAlpha = wanted && !hit ? .28 : above ? .55 : 1;
  ctx.fillStyle = n.up ? colours[colourOf.get(n.file) || "--other"] : colours["--line"];
  ctx.fillRect(x0, y, Math.max(.5, w - (w > 3 ? 1 : 0)), ROW - 1);
  ctx.globalAlpha = 1;
  if (n === selected) {
    ctx.strokeStyle = colours["--mark"];
    ctx.lineWidth = 2;
    ctx.strokeRect(x0 + 1, y + 1, Math.max(1, w - 3), ROW - 3);
  }
  if (w > 28) {
    ctx.fillStyle = n.up && !above && !(wanted && !hit) ? colours["--ink"] : colours["--text"];
    drawText(n.up ? nameOf(n) : "all: " + value(total), x0 + 5, y + ROW / 2, w - 9, hit);
  }
}

function draw() {
  const scrolled = scroller.scrollTop;
  ctx.fillStyle = colours["--back"];
  ctx.fillRect(0, 0, width, height);
  const todo = [root];
  while (todo.length) {
    const n = todo.pop(), at = place(n);
    if (!at || at[1] < .3) continue;
    const y = n.depth * ROW + 2 - scrolled;
    if (y > height) continue;
    if (y > -ROW) drawNode(n, Math.max(0, at[0]), Math.min(at[1], width), y);
    todo.push(...n.children);
  }
  if (!root.all) {
    ctx.fillStyle = colours["--soft"];
    drawText("The profile has no samples.", 12, 40, width - 20);
  }
}

// ---------------------------------------------------------------- details

function stack(n) {
  const list = [];
  for (let m = n; m && m.up; m = m.up) list.unshift(m);
  return list;
}

function row(f) {
  const tr = element("tr", [value(f.flat), percent(f.flat), value(f.all), percent(f.all)].map(c => element("td", c, "n")));
  tr.append(element("td", [link(text(f.fn), () => { $("search").value = text(f.fn); search(true); }), " ", element("span", fileName(f.file), "soft")]));
  return tr;
}

function functionTable() {
  const rows = functions.filter(f => !wanted || wanted.has(f.fn)).slice(0, TOP);
  const t = element("table", [element("tr", ["itself", "", "with calls", "", "function"].map(c => element("th", c)))]);
  t.id = "functions";
  for (const f of rows) t.append(row(f));
  return t;
}

function select(n) {
  const panel = $("details");
  selected = n;
  panel.replaceChildren();
  redraw();
  if (!n || !n.up) return overview(panel);
  panel.append(element("p", [element("h2", nameOf(n)), element("span", n.file ? text(n.file) : "", "soft")]));
  panel.append(element("p", [element("b", value(n.all)), " with its calls, " + percent(n.all) + "; itself ", element("b", value(n.flat)), ", " + percent(n.flat) + "."]));
  const path = element("p", ["Called by: "]);
  path.id = "path";
  stack(n).slice(0, -1).forEach((m, i) => path.append(i ? " \u203a " : "", link(nameOf(m), () => show(m))));
  panel.append(stack(n).length > 1 ? path : element("p", "The profile has no caller of it.", "soft"));
  panel.append(element("p", [link("zoom to it", () => zoom(n)), " \u00b7 ", link("all places of it", () => { $("search").value = nameOf(n); search(true); }), " \u00b7 ", link("close", () => select(null))]));
}

function overview(panel) {
  panel.append(functionTable());
  const notes = [...data.comments];
  if (functions.length > TOP) notes.push("The " + TOP + " of " + data.all_functions.toLocaleString("en") + " functions that have most.");
  if (data.all_nodes > nodes.length) notes.push("What is below " + value(data.least) + " is left out of the graph.");
  notes.push("A click zooms. The arrow keys select, Enter zooms, Backspace goes out, 0 shows all, / searches.");
  panel.append(element("p", notes.join(" "), "soft"));
}

// ---------------------------------------------------------------- moving

function zoom(n) {
  zoomed = n;
  const y = n.depth * ROW;
  if (y < scroller.scrollTop || y > scroller.scrollTop + height - 3 * ROW) scroller.scrollTop = Math.max(0, y - height / 3);
  location.replace("#" + (n.up ? nodes.indexOf(n) : ""));
  redraw();
}

function show(n) {
  if (n !== zoomed && !isAbove(zoomed, n)) zoom(n);
  const y = n.depth * ROW;
  if (y < scroller.scrollTop) scroller.scrollTop = y - ROW;
  if (y > scroller.scrollTop + height - 2 * ROW) scroller.scrollTop = y - height + 3 * ROW;
  select(n);
}

function sibling(by) {
  if (!selected || !selected.up) return;
  const all = selected.up.children, n = all[all.indexOf(selected) + by];
  if (n) show(n);
}

function search(fromLink) {
  const words = $("search").value.trim().toLowerCase();
  wanted = null;
  if (words) {
    wanted = new Set();
    for (const n of nodes)
      if (n.up && (fromLink ? nameOf(n).toLowerCase() === words : nameOf(n).toLowerCase().includes(words) || text(n.file).toLowerCase().includes(words))) wanted.add(n.fn);
  }
  let sum = 0;
  const todo = wanted ? [root] : [];
  while (todo.length) {
    const n = todo.pop();
    if (n.up && wanted.has(n.fn)) sum += n.all; else todo.push(...n.children);
  }
  $("found").textContent = words ? (wanted.size ? percent(sum) : "nothing") : "";
  select(null);
}

function nodeAt(e) {
  const box = canvas.getBoundingClientRect(), px = e.clientX - box.left;
  const depth = Math.floor((e.clientY - box.top + scroller.scrollTop - 2) / ROW);
  let n = root;
  for (let d = 0; n && d < depth; d++)
    n = n.children.find(c => { const at = place(c); return at && at[1] >= .3 && px >= at[0] && px < at[0] + at[1]; });
  return n && n.depth === depth ? n : null;
}

canvas.addEventListener("click", e => {
  const n = nodeAt(e);
  $("tip").style.display = "none";
  scroller.focus({ preventScroll: true });
  if (n) { zoom(n); select(n); } else select(null);
});
canvas.addEventListener("pointermove", e => {
  const n = e.pointerType === "mouse" ? nodeAt(e) : null, tip = $("tip");
  tip.style.display = n ? "block" : "none";
  if (!n) return;
  tip.textContent = nameOf(n) + ": " + value(n.all) + ", " + percent(n.all) + (n.flat ? "; itself " + value(n.flat) : "");
  tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 6)) + "px";
  tip.style.top = Math.min(e.clientY + 16, innerHeight - tip.offsetHeight - 6) + "px";
});
canvas.addEventListener("pointerleave", () => { $("tip").style.display = "none"; });

const keys = {
  ArrowDown: () => show(((selected || zoomed).children[0]) || selected || zoomed),
  ArrowUp: () => { if (selected && selected.up) show(selected.up); },
  ArrowLeft: () => sibling(-1), ArrowRight: () => sibling(1),
  Enter: () => { if (selected) zoom(selected); },
  Backspace: () => { if (zoomed.up) { const n = zoomed.up; zoom(n); select(n.up ? n : null); } },
  "0": () => { zoom(root); select(null); },
  "/": () => $("search").focus(),
  Escape: () => { $("search").value = ""; zoomed = root; search(); },
};
document.addEventListener("keydown", e => {
  const inSearch = e.target === $("search");
  if (e.ctrlKey || e.altKey || e.metaKey || !keys[e.key] || (inSearch && e.key !== "Escape") || (e.target.tagName === "A" && e.key === "Enter")) return;
  e.preventDefault();
  keys[e.key]();
});
$("search").addEventListener("input", () => search());
$("up").onclick = keys.Backspace;
$("all").onclick = keys["0"];
scroller.addEventListener("scroll", redraw);
new ResizeObserver(resize).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);

document.title = data.name + " - goro profile";
$("title").textContent = data.name;
$("figures").textContent = data.what + ": " + value(root.all) + (data.took ? " in " + duration(data.took) : "") + ", " +
  data.all_functions.toLocaleString("en") + " functions";
for (const [file, colour] of colourOf) {
  const box = element("i", [], "box");
  box.style.background = "var(" + colour + ")";
  $("legend").append(element("span", [box, fileName(file)], "name"));
}
const start = nodes[+location.hash.slice(1)];
if (start && start.up) zoomed = start;
select(start && start.up ? start : null);
resize();
