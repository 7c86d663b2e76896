// The timeline: rows of Ps above rows of goroutines, drawn on a canvas as large as the window shows.
const canvas = $("canvas"), ctx = canvas.getContext("2d"), scroller = $("rows");
const MIXED = 0, RUNNABLE = 1, RUNNING = 2, CALL = 3, WAITING = 4;
const STATES = ["mixed", "ready", "running", "in a call", "waiting"];
const FIELDS = 13, AXIS = 24, P_HEIGHT = 26, G_HEIGHT_MIN = 19, G_HEIGHT_MAX = 30, PINNED_MAX = 8, OUTSIDE = 4096;

// ---------------------------------------------------------------- data

const nameOf = new Map();	// of goroutines that have a row

function span(row, i) {
  const f = row.flat, k = i * FIELDS;
  return { row, i, from: row.from[i], to: row.to[i], state: f[k + 2], g: f[k + 3], p: f[k + 4] - 1, name: f[k + 5],
    n: f[k + 6], busy: f[k + 7], why: f[k + 8], stack: f[k + 9], by: f[k + 10], byP: f[k + 11] - 1, wait: f[k + 12] };
}

function makeRow(kind, id, label, flat) {
  const n = flat.length / FIELDS, row = { kind, id, label, flat, n, from: new Float64Array(n), to: new Float64Array(n) };
  for (let i = 0, at = 0; i < n; i++) {
    row.from[i] = at + flat[i * FIELDS];
    row.to[i] = at = row.from[i] + flat[i * FIELDS + 1];
  }
  return row;
}

const pRows = data.ps.map(p => makeRow("p", p.p, p.p === OUTSIDE ? "threads" : "P" + p.p, p.items));
const gRows = data.gs.map(g => {
  nameOf.set(g.g, g.name);
  return Object.assign(makeRow("g", g.g, "G" + g.g + " " + text(g.name), g.items), { info: g, regions: [], logs: [] });
});
const gRow = new Map(gRows.map(r => [r.id, r]));
const pRow = new Map(pRows.map(r => [r.id, r]));
for (let i = 0; i < data.regions.length; i += 6) {
  const [g, task, from, to, name] = data.regions.slice(i, i + 6);
  gRow.get(g).regions.push({ task, from, to, name });
}
for (let i = 0; i < data.logs.length; i += 6) {
  const [g, task, from, , key, value] = data.logs.slice(i, i + 6);
  gRow.get(g).logs.push({ task, at: from, key, value });
}

// Those that ran longest have colours: names, or goroutines where there are no more than colours.
const colourOf = new Map(), byGoroutine = data.goroutines <= 8;
const colourKey = s => byGoroutine ? s.g : s.name;
(function chooseColours() {
  const ran = new Map();
  for (const row of pRows)
    for (let i = 0; i < row.n; i++) {
      const s = span(row, i), key = colourKey(s);
      if (key) ran.set(key, (ran.get(key) || 0) + s.busy);
    }
  [...ran].sort((a, b) => b[1] - a[1]).slice(0, 8).forEach(([key], i) => colourOf.set(key, "--c" + i));
})();

// ---------------------------------------------------------------- view

const view = { from: data.from, to: Math.max(data.to, data.from + 1) };
let width = 0, height = 0, labels = 130, colours = {}, selected = null, wanted = null, shown = gRows, queued = false, gHeight = G_HEIGHT_MIN;

const x = t => labels + (t - view.from) / (view.to - view.from) * (width - labels);
const timeAt = px => view.from + (px - labels) / (width - labels) * (view.to - view.from);
const pinned = () => pRows.length <= PINNED_MAX;
const top0 = () => AXIS + (pinned() ? pRows.length * P_HEIGHT + 6 : 0);

function setView(from, to) {
  const all = data.to - data.from, least = Math.min(100, all);
  let size = Math.min(Math.max(to - from, least), all);
  from = Math.max(data.from, Math.min(from, data.to - size));
  view.from = from;
  view.to = from + size;
  redraw();
}

function zoom(factor, px) {
  const at = timeAt(px === undefined ? labels + (width - labels) / 2 : px);
  setView(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

const pan = share => setView(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

function redraw() {
  if (!queued) requestAnimationFrame(() => { queued = false; draw(); });
  queued = true;
}

// Draws at once: a canvas that has got a size is blank.
function resize() {
  const scale = window.devicePixelRatio || 1;
  width = scroller.clientWidth;
  height = scroller.clientHeight;
  labels = width < 600 ? 84 : 150;
  gHeight = Math.max(G_HEIGHT_MIN, Math.min(G_HEIGHT_MAX, (height - top0()) / Math.max(1, shown.length)));
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  $("space").style.height = Math.max(0, contentHeight() - height) + "px";
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "panel", "text", "soft", "line", "grid", "ready", "call", "wait", "other", "mark", "ink", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"])
    colours["--" + name] = style.getPropertyValue("--" + name).trim();
  draw();
}

const contentHeight = () => top0() + (pinned() ? 0 : pRows.length * P_HEIGHT + 6) + shown.length * gHeight + 8;

// Rows with their places: [row, y, height].
function* places() {
  let y = AXIS;
  const scrolled = scroller.scrollTop;
  if (pinned())
    for (const row of pRows) { yield [row, y, P_HEIGHT]; y += P_HEIGHT; }
  y = top0() - scrolled;
  if (!pinned()) {
    for (const row of pRows) { yield [row, y, P_HEIGHT]; y += P_HEIGHT; }
    y += 6;
  }
  const first = Math.max(0, Math.floor((top0() - y) / gHeight));
  for (let i = first; i < shown.length && y + i * gHeight < height; i++) yield [shown[i], y + i * gHeight, gHeight];
}

// The first span that ends after a time.
function firstAfter(row, t) {
  let lo = 0, hi = row.n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (row.to[mid] <= t) lo = mid + 1; else hi = mid;
  }
  return lo;
}

// ---------------------------------------------------------------- drawing

function fill(colour, x0, y, w, h, alpha) {
  ctx.globalAlpha = alpha === undefined ? 1 : alpha;
  ctx.fillStyle = colours[colour];
  ctx.fillRect(x0, y, w, h);
  ctx.globalAlpha = 1;
}

function niceStep(least) {
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map(n => n * power).find(n => n >= least);
}

function drawAxis() {
  const step = niceStep((view.to - view.from) / ((width - labels) / 100));
  fill("--panel", 0, 0, width, AXIS);
  ctx.fillStyle = colours["--soft"];
  ctx.font = "11.5px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    fill("--grid", x(t), AXIS, 1, height);
    fill("--soft", x(t), AXIS - 5, 1, 5);
    ctx.fillStyle = colours["--soft"];
    if (x(t) + 50 < width) ctx.fillText(t === 0 ? "0" : tick(t, step), x(t) + 4, AXIS / 2);
  }
}

// A time with as many digits as the step needs.
function tick(t, step) {
  const [unit, ns] = view.to >= 1e9 ? ["s", 1e9] : view.to >= 1e6 ? ["ms", 1e6] : view.to >= 1e3 ? ["us", 1e3] : ["ns", 1];
  return (t / ns).toFixed(Math.max(0, Math.ceil(Math.log10(ns / step)))) + " " + unit;
}

const isWanted = s => !wanted || (s.g ? wanted.gs.has(s.g) || wanted.names.has(s.name) : wanted.names.has(s.name));

function drawSpan(s, x0, w, y, h) {
  const colour = colourOf.get(colourKey(s)) || "--other", alpha = isWanted(s) ? 1 : .18;
  if (s.n > 1 && (s.state === MIXED || s.state === RUNNING)) {
    const share = s.busy / Math.max(1, s.to - s.from);
    fill(colour, x0, y, w, h, .25 * alpha);
    fill(colour, x0, y + h * (1 - share), w, h * share, alpha);
  } else if (s.state === RUNNING) fill(colour, x0, y, w, h, alpha);
  else if (s.state === CALL) fill("--call", x0, y + h * .2, w, h * .6, alpha);
  else if (s.state === RUNNABLE) fill("--ready", x0, y + h * .2, w, h * .6, alpha);
  else fill("--wait", x0, y + h / 2 - 1.5, w, 3, alpha);
  if (w > 42 && (s.state === RUNNING || s.state === CALL) && s.row.kind === "p") drawText(spanName(s), x0 + 4, y + h / 2 + .5, w - 8, colours["--ink"]);
  if (w > 60 && s.state === WAITING) drawText(text(s.why), x0 + 6, y + h / 2, w - 12, colours["--soft"], true);
}

function spanName(s) {
  const who = s.g ? "G" + s.g + " " + (s.name ? text(s.name) : "") : s.name ? text(s.name) : "several";
  return s.n > 1 ? who + " (" + s.n + " times)" : s.state === CALL ? who + ": a call" : who;
}

function drawText(words, x0, y, w, colour, onBack) {
  ctx.font = "11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  let n = words.length, wide = ctx.measureText(words).width;
  if (wide > w) n = Math.floor(n * w / wide) - 1;
  if (n < 2) return;
  words = n < words.length ? words.slice(0, n) + "\u2026" : words;
  if (onBack) fill("--back", x0 - 2, y - 6, Math.min(w, ctx.measureText(words).width) + 4, 12);
  ctx.fillStyle = colour;
  ctx.fillText(words, x0, y);
}

function drawRow(row, y, h) {
  let drawn = -1;
  const pad = row.kind === "p" ? 2 : 3;
  for (let i = firstAfter(row, view.from); i < row.n && row.from[i] < view.to; i++) {
    const x0 = Math.max(labels, x(row.from[i])), x1 = Math.min(width, x(row.to[i]));
    if (x1 - x0 < 1 && Math.floor(x1) === drawn) continue;
    drawn = Math.floor(x1);
    drawSpan(span(row, i), x0, Math.max(1, x1 - x0 - (x1 - x0 > 4 ? .7 : 0)), y + pad, h - 2 * pad);
  }
  if (row.kind === "g") drawMarks(row, y, h);
}

function drawMarks(row, y, h) {
  for (const r of row.regions)
    if (r.to > view.from && r.from < view.to && x(r.to) - x(r.from) > 2)
      fill("--mark", Math.max(labels, x(r.from)), y + h - 2.5, Math.min(width, x(r.to)) - Math.max(labels, x(r.from)) - 1, 2, .45);
  for (const l of row.logs)
    if (l.at > view.from && l.at < view.to) fill("--mark", x(l.at) - .5, y, 1.5, 4, .7);
}

function drawLabel(row, y, h) {
  const hit = selected && (selected.row === row || (row.kind === "g" && selected.g === row.id));
  fill(hit ? "--line" : "--panel", 0, y, labels - 1, h);
  drawText(row.label, 8, y + h / 2, labels - 14, row.kind === "p" || hit ? colours["--text"] : colours["--soft"]);
}

function draw() {
  const bands = [...places()], split = top0();
  fill("--back", 0, 0, width, height);
  drawAxis();
  for (const clip of [true, false]) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, clip ? split : AXIS, width, height);
    ctx.clip();
    for (const [row, y, h] of bands)
      if ((row.kind === "p" && pinned()) !== clip) { drawRow(row, y, h); drawLabel(row, y, h); }
    ctx.restore();
  }
  fill("--line", labels - 1, 0, 1, height);
  if (pinned()) fill("--line", 0, split - 3, width, 1);
  if (selected && selected.i >= 0) drawSelected(bands);
}

const placeOf = (bands, row) => bands.find(b => b[0] === row);

function drawSelected(bands) {
  const place = placeOf(bands, selected.row);
  if (!place || selected.to < view.from || selected.from > view.to) return;
  const x0 = Math.max(labels, x(selected.from)), x1 = Math.min(width, x(selected.to));
  ctx.strokeStyle = colours["--mark"];
  ctx.lineWidth = 2;
  ctx.strokeRect(x0 - 1, place[1] + 1, Math.max(3, x1 - x0 + 1), place[2] - 2);
  const from = placeOf(bands, selected.row.kind === "p" ? pRow.get(selected.byP) : gRow.get(selected.by));
  if (selected.state === RUNNING && selected.by && selected.wait >= 0 && from && from !== place)
    drawArrow(x(selected.from - selected.wait), from[1] + from[2] / 2, x(selected.from), place[1] + place[2] / 2);
}

function drawArrow(x0, y0, x1, y1) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(labels, AXIS, width, height);
  ctx.clip();
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.bezierCurveTo(x0 - 30, (y0 + y1) / 2, x1 - 40, y1, x1 - 3, y1);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x1 - 8, y1 - 4);
  ctx.lineTo(x1 - 8, y1 + 4);
  ctx.fillStyle = colours["--mark"];
  ctx.fill();
  ctx.beginPath();
  ctx.arc(x0, y0, 3, 0, 7);
  ctx.fill();
  ctx.restore();
}
