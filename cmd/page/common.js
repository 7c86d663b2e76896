// What the pages have in common: their data, elements, words.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const text = n => data.texts[n] || "?";

function duration(ns) {
  const [n, unit] = ns < 1e3 ? [ns, "ns"] : ns < 1e6 ? [ns / 1e3, "us"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return (unit === "ns" ? Math.round(n) : n.toPrecision(n < 999.5 ? 3 : 4)) + " " + unit;
}

function element(tag, content, className) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  for (const c of [].concat(content === undefined ? [] : content)) e.append(c);
  return e;
}

function link(words, action) {
  const a = element("a", words);
  a.tabIndex = 0;
  a.onclick = action;
  a.onkeydown = e => { if (e.key === "Enter") action(); };
  return a;
}

function table(rows) {
  return element("table", rows.map(r => element("tr", r.map((c, i) => element("td", c, i ? "n" : "")))));
}
