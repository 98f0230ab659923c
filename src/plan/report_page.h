// SPDX-License-Identifier: Apache-2.0
// The fixed parts of the HTML report: style and script. Nothing here comes from a model; the script reads the data from
// the page's JSON block and writes it with textContent and setAttribute only, never as markup.
#pragma once

#include <string_view>

namespace leadline::plan {

inline constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--panel:#fff;--ink:#1d2127;--soft:#626b76;--line:#e4e5e3;--grid:#eeefed;
--tensor:#bcd0e6;--tensor-edge:#fff;--live:#3f74ad;--live-ink:#fff;--scratch:#e0953f;--peak:#c2453d;--curve:#3f74ad;
--c0:#7d8794;--c1:#b3bac3;--c2:#5b8f7b;--c3:#3f74ad;--c4:#e0953f;--c5:#8a73b5;--c6:#c08497;--c7:#b8a44c}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--panel:#1b1f24;--ink:#e6e8ea;--soft:#98a1ab;--line:#2c3238;
--grid:#252a30;--tensor:#34506e;--tensor-edge:#1b1f24;--live:#6ea3dc;--live-ink:#0e1216;--scratch:#e3a257;--peak:#ef7a70;
--curve:#6ea3dc;--c0:#8b95a1;--c1:#5a636d;--c2:#6fae96;--c3:#6ea3dc;--c4:#e3a257;--c5:#a68fd6;--c6:#d39aad;--c7:#cdb961}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1180px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:22px;line-height:1.3;font-weight:600;margin:0;overflow-wrap:anywhere}
h2{font-size:15px;font-weight:600;margin:0}
.sub,.note{color:var(--soft);margin:4px 0 0}
.warn{border-left:3px solid var(--scratch);padding:8px 12px;background:var(--panel);margin:16px 0 0}
section{margin-top:32px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;margin-top:24px}
.card,.panel{background:var(--panel);border:1px solid var(--line);border-radius:8px}
.card{padding:14px 16px}
.card b{display:block;font-size:22px;font-weight:600;line-height:1.3;font-variant-numeric:tabular-nums}
.card span,.card small{color:var(--soft);font-size:13px;display:block}
.panel{padding:16px;margin-top:12px}
.bars{display:grid;grid-template-columns:minmax(110px,auto) 1fr auto;gap:8px 14px;align-items:center}
.bars .num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bars .num i{color:var(--soft);font-style:normal;margin-left:8px;display:inline-block;min-width:52px}
.track{display:flex;height:12px;border-radius:3px;overflow:hidden;background:var(--grid)}
.track span{display:block;height:100%;min-width:0}
.head{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:center;justify-content:space-between}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;color:var(--soft);font-size:13px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
button{font:inherit;font-size:13px;color:var(--ink);background:var(--panel);border:1px solid var(--line);border-radius:6px;
padding:3px 10px;min-height:32px;cursor:pointer}
button:hover{border-color:var(--soft)}button:disabled{opacity:.4;cursor:default}
:focus-visible{outline:2px solid var(--live);outline-offset:1px}
.plot{display:grid;grid-template-columns:62px minmax(0,1fr)}
.scroll{overflow-x:auto;overflow-y:hidden}
svg{display:block}
svg text{fill:var(--soft);font:11px system-ui,sans-serif;font-variant-numeric:tabular-nums}
.t{fill:var(--tensor);stroke:var(--tensor-edge);stroke-width:1}.t.p{fill:var(--live)}.s{fill:var(--scratch)}
.t.on,.s.on{stroke:var(--ink);stroke-width:2}
.grid{stroke:var(--grid)}.cap{stroke:var(--soft);stroke-dasharray:2 3}.mark{stroke:var(--peak);stroke-width:1.5}
svg text.name{fill:var(--ink);pointer-events:none}svg text.name.p{fill:var(--live-ink)}svg text.pk{fill:var(--peak)}
.curve{fill:none;stroke:var(--curve);stroke-width:1.5}.area{fill:var(--curve);opacity:.14}
.cursor{stroke:var(--soft);opacity:.6;pointer-events:none}
#status{min-height:1.5em;font-size:13px;color:var(--soft);margin:8px 0 0;overflow-wrap:anywhere}
#tip{position:fixed;z-index:9;max-width:min(340px,calc(100vw - 24px));background:var(--panel);color:var(--ink);
border:1px solid var(--line);border-radius:8px;padding:10px 12px;font-size:13px;box-shadow:0 6px 24px rgba(0,0,0,.18);
pointer-events:none}
#tip b{display:block;overflow-wrap:anywhere;font-weight:600}
#tip dl{margin:6px 0 0;display:grid;grid-template-columns:auto 1fr;gap:1px 12px}
#tip dt{color:var(--soft)}#tip dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
details>summary{cursor:pointer;font-weight:600}
.tools{display:flex;gap:12px;align-items:center;margin:12px 0;flex-wrap:wrap}
input{font:inherit;font-size:16px;color:var(--ink);background:var(--bg);border:1px solid var(--line);border-radius:6px;
padding:4px 10px;min-height:34px;width:min(320px,100%)}
.table{overflow:auto;max-height:480px;border-top:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:5px 14px 5px 0;border-bottom:1px solid var(--grid);white-space:nowrap;vertical-align:top}
th{position:sticky;top:0;background:var(--panel);font-weight:600;padding-top:8px}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--live)}
th[aria-sort=ascending] button::after{content:" \2191"}th[aria-sort=descending] button::after{content:" \2193"}
td.r,th.r{text-align:right}td.w{white-space:normal;overflow-wrap:anywhere;min-width:200px}
tbody tr{cursor:pointer}tbody tr:hover,tbody tr.on{background:var(--grid)}
@media (max-width:600px){main{padding:20px 14px 48px}.panel{padding:12px}.cards{grid-template-columns:1fr 1fr;gap:8px}
.card{padding:10px 12px}.card b{font-size:18px}.plot{grid-template-columns:50px minmax(0,1fr)}
.bars{grid-template-columns:auto 1fr;grid-auto-flow:row dense;gap:2px 10px}
.bars .track{grid-column:1/-1;margin-bottom:8px}.bars .num{grid-column:2}}
)css";

inline constexpr std::string_view kPageScript = R"js(
(() => {
"use strict";
const plan = JSON.parse(document.getElementById("plan").textContent);
const NS = "http://www.w3.org/2000/svg";
const $ = id => document.getElementById(id);
const html = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
const svg = (tag, attributes, parent) => {
  const e = document.createElementNS(NS, tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (parent) parent.appendChild(e);
  return e;
};
const bytes = n => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let v = Math.abs(n), u = 0;
  while (u < 5 && v >= (u ? 1023.95 : 1024)) { v /= 1024; ++u; }
  return (n < 0 ? "-" : "") + v.toFixed(1).replace(/\.0$/, "") + " " + units[u];
};

// Pieces of arena memory: tensors, then scratch. Segments have arenas of their own, drawn one above the other.
const steps = plan.steps, tensors = plan.tensors, last = steps.length - 1;
const base = [];
let total = 0;
for (const s of plan.segments) { base.push(total); total += s.arena_bytes; }
const lives = t => [Math.max(0, t.first_step), Math.min(last, Math.max(t.last_step, t.first_step))];
const pieces = [];
for (const t of tensors) {
  if (t.storage !== "arena" || !t.bytes || t.offset < 0) continue;
  const [from, to] = lives(t);
  pieces.push({tensor: t, from, to, y: (base[t.segment] || 0) + t.offset, bytes: t.bytes,
    shared: t.shares_with >= 0, peak: from <= plan.peak_step && plan.peak_step <= to});
}
steps.forEach((s, i) => {
  if (s.scratch_bytes && s.scratch_offset >= 0)
    pieces.push({step: s, from: i, to: i, y: (base[s.segment] || 0) + s.scratch_offset, bytes: s.scratch_bytes});
});
pieces.sort((a, b) => (a.shared || false) - (b.shared || false));
const pieceOf = new Map();
pieces.forEach((p, i) => { if (p.tensor) pieceOf.set(p.tensor.index, i); });
const tensorAt = new Map(tensors.map(t => [t.index, t]));

// What the tooltip says.
const facts = p => p.tensor ? [p.tensor.name || "(no name)", [
  ["tensor", "#" + p.tensor.index], ["type", p.tensor.dtype], ["shape", "[" + p.tensor.shape.join(", ") + "]"],
  ["bytes", bytes(p.bytes) + " (" + p.bytes + ")"], ["steps", p.from + " to " + p.to],
  ["offset", bytes(p.tensor.offset) + " (" + p.tensor.offset + ")"],
  ...(p.shared ? [["memory of", (tensorAt.get(p.tensor.shares_with) || {}).name || "#" + p.tensor.shares_with]] : [])]]
  : ["Scratch of " + p.step.op + " #" + p.step.node, [["bytes", bytes(p.bytes) + " (" + p.bytes + ")"],
    ["step", String(p.from)], ["for", p.step.name || "(no name)"]]];
const tip = $("tip");
const showTip = (p, x, y) => {
  const [title, rows] = facts(p);
  tip.replaceChildren(html("b", title));
  const list = html("dl");
  for (const [k, v] of rows) list.append(html("dt", k), html("dd", v));
  tip.append(list);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(12, Math.min(x + 14, innerWidth - box.width - 12)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 14) : y + 18) + "px";
};
let chosen = -1, pinned = false;
const choose = i => {
  if (i === chosen) return;
  for (const [n, on] of [[chosen, false], [i, true]]) {
    const e = document.querySelector('[data-i="' + n + '"]');
    if (e) e.classList.toggle("on", on);
  }
  chosen = i;
};
const say = i => {
  const s = steps[i];
  $("status").textContent = s ? "step " + i + ": " + s.op + " #" + s.node + " " + s.name + ", " + bytes(s.live_bytes) +
    " alive" + (s.scratch_bytes ? ", " + bytes(s.scratch_bytes) + " scratch" : "") : "";
};

// Round numbers for an axis, at most `most` of them.
const ticks = (max, most, binary) => {
  let unit = 1;
  if (binary) { while (max / unit > most) unit *= 2; }
  else for (let k = 0; max / unit > most; ++k) unit *= k % 3 === 1 ? 2.5 : 2;
  const list = [];
  for (let v = 0; v <= max; v += unit) list.push(v);
  return list;
};

// As many of the last parts of a name as fit.
const tail = (name, room) => {
  const parts = name.split(";")[0].split("/");
  let text = parts.pop();
  while (parts.length && text.length + parts[parts.length - 1].length < room) text = parts.pop() + "/" + text;
  return text;
};

const scroll = $("scroll");
const TOP = 18, GAP = 26, LIVE = 84, BOTTOM = 22;
let zoom = 1, width = 0, cursor = null;
const draw = () => {
  const view = scroll.clientWidth, high = innerWidth < 600 ? 260 : 380;
  width = Math.max(view * zoom, 1);
  const px = width / Math.max(1, steps.length), all = TOP + high + GAP + LIVE + BOTTOM;
  const cap = Math.max(total, 1), most = Math.max(1, ...steps.map(s => s.live_bytes));
  const X = step => step * px, Y = at => TOP + high * (1 - at / cap), floor = TOP + high + GAP + LIVE;
  const L = n => floor - LIVE * n / Math.max(most, plan.arena_bytes, 1);
  const root = svg("svg", {width, height: all, role: "img", "aria-label": "Tensors of the arena over the steps of a run"});
  const axis = svg("svg", {width: "100%", height: all, "aria-hidden": "true"});
  const left = document.querySelector(".plot").firstElementChild.clientWidth - 8;
  const label = (y, text) => { svg("text", {x: left, y: y + 4, "text-anchor": "end"}, axis).textContent = text; };
  for (const v of ticks(cap, high / 44, true)) {
    svg("line", {class: "grid", x1: 0, x2: width, y1: Y(v), y2: Y(v)}, root);
    label(Y(v), bytes(v));
  }
  plan.segments.forEach((s, i) => {
    if (i) svg("line", {class: "cap", x1: 0, x2: width, y1: Y(base[i]), y2: Y(base[i])}, root);
  });
  const names = [];
  pieces.forEach((p, i) => {
    const x = X(p.from + (p.shared ? .5 : 0)), y = Y(p.y + p.bytes);
    const w = Math.max(1, X(p.to + 1) - x), h = Math.max(1, Y(p.y) - y);
    svg("rect", {class: (p.step ? "s" : "t") + (p.peak ? " p" : ""), "data-i": i, x, y, width: w, height: h,
      rx: Math.min(2, w / 4, h / 4), ...(w < 4 || h < 4 ? {"stroke-width": 0} : {})}, root);
    if (p.tensor && w > 54 && h > 16) names.push([p, x, y, w, h]);
  });
  for (const [p, x, y, w, h] of names) {
    const room = Math.floor((w - 12) / 6.2), text = tail(p.tensor.name, room);
    svg("text", {class: "name" + (p.peak ? " p" : ""), x: x + 6, y: y + Math.min(h / 2, 40) + 4}, root).textContent =
      text.length > room ? text.slice(0, Math.max(1, room - 1)) + "\u2026" : text;
  }
  // Live bytes below, with the lower bound that they set and the arena.
  let path = "";
  steps.forEach((s, i) => { path += (i ? "L" : "M") + X(i) + " " + L(s.live_bytes) + "H" + X(i + 1); });
  if (steps.length) {
    svg("path", {class: "area", d: path + "V" + floor + "H0Z"}, root);
    svg("path", {class: "curve", d: path}, root);
  }
  svg("line", {class: "grid", x1: 0, x2: width, y1: floor, y2: floor}, root);
  svg("line", {class: "cap", x1: 0, x2: width, y1: L(plan.arena_bytes), y2: L(plan.arena_bytes)}, root);
  label(L(plan.arena_bytes), bytes(plan.arena_bytes));
  label(floor, "0 B");
  label(floor - LIVE / 2, "alive");
  for (const v of ticks(last, Math.max(2, width / 70), false)) {
    if (!Number.isInteger(v)) continue;
    svg("text", {x: X(v + .5), y: all - 5, "text-anchor": v ? "middle" : "start"}, root).textContent = v ? v : "step 0";
  }
  if (plan.peak_step >= 0) {
    const x = X(plan.peak_step + .5), end = x > width - 120;
    svg("line", {class: "mark", x1: x, x2: x, y1: TOP - 4, y2: floor}, root);
    svg("text", {class: "pk", x: x + (end ? -5 : 5), y: 11, "text-anchor": end ? "end" : "start"}, root).textContent =
      "peak: step " + plan.peak_step + ", " + bytes(steps[plan.peak_step].live_bytes);
  }
  cursor = svg("line", {class: "cursor", x1: -9, x2: -9, y1: TOP, y2: floor}, root);
  scroll.replaceChildren(root);
  $("axis").replaceChildren(axis);
  $("out").disabled = zoom <= 1;
  $("in").disabled = px > 60;
  if (chosen >= 0) { const c = chosen; chosen = -1; choose(c); }
};
// The peak stays where it is on the screen, or the middle where the peak is out of view.
const setZoom = z => {
  const peak = (plan.peak_step + .5) / steps.length, seen = peak * width - scroll.scrollLeft;
  const inView = seen >= 0 && seen <= scroll.clientWidth, at = inView ? seen : scroll.clientWidth / 2;
  const fixed = inView ? peak : (scroll.scrollLeft + at) / width;
  zoom = Math.max(1, z);
  draw();
  scroll.scrollLeft = fixed * width - at;
};
const point = (event, pin) => {
  const box = scroll.firstElementChild.getBoundingClientRect();
  const at = Math.floor((event.clientX - box.left) / width * steps.length);
  if (at >= 0 && at <= last) {
    const x = (at + .5) * width / steps.length;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    say(at);
  }
  const hit = event.target.closest("[data-i]");
  if (pinned && !pin) return;
  pinned = Boolean(pin && hit);
  choose(hit ? Number(hit.dataset.i) : -1);
  if (hit) showTip(pieces[chosen], event.clientX, event.clientY); else tip.hidden = true;
};
if (steps.length) {
  scroll.addEventListener("pointermove", e => { if (e.pointerType === "mouse") point(e, false); });
  scroll.addEventListener("click", e => point(e, true));
  const leave = () => { if (!pinned) { tip.hidden = true; choose(-1); } };
  scroll.addEventListener("pointerleave", leave);
  const unpin = () => { pinned = false; leave(); };
  document.addEventListener("keydown", e => { if (e.key === "Escape") unpin(); });
  document.addEventListener("click", e => { if (!scroll.contains(e.target) && !e.target.closest("tbody")) unpin(); });
  addEventListener("scroll", unpin, {passive: true});
  $("in").addEventListener("click", () => setZoom(zoom * 2));
  $("out").addEventListener("click", () => setZoom(zoom / 2));
  let seen = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (scroll.clientWidth !== seen) { seen = scroll.clientWidth; draw(); }
  })).observe(scroll);
}
say(plan.peak_step);

// Tables are filled when they are opened; a click on a row shows the tensor in the picture.
const reveal = i => {
  if (i === undefined) return;
  $("picture").scrollIntoView({block: "start"});
  const e = document.querySelector('[data-i="' + i + '"]');
  scroll.scrollLeft += e.getBoundingClientRect().left - scroll.getBoundingClientRect().left - scroll.clientWidth / 3;
  choose(i);
  const box = e.getBoundingClientRect();
  setTimeout(() => { pinned = true; showTip(pieces[i], box.left + Math.min(box.width, 40), box.top + Math.min(box.height, 20)); }, 80);
};
const table = (id, rows, columns, pick) => {
  const host = $(id), body = html("tbody"), head = html("tr"), filter = host.querySelector("input");
  let order = null, down = false, filled = false;
  const texts = rows.map(r => columns.map(c => String(c.show(r))).join(" ").toLowerCase());
  const fill = () => {
    const word = filter.value.trim().toLowerCase();
    const list = rows.map((_, i) => i).filter(i => !word || texts[i].includes(word));
    if (order) list.sort((a, b) => {
      const x = order.key(rows[a]), y = order.key(rows[b]);
      return (x < y ? -1 : x > y ? 1 : a - b) * (down ? -1 : 1);
    });
    const all = document.createDocumentFragment();
    for (const i of list) {
      const tr = html("tr");
      for (const c of columns) tr.append(html("td", c.show(rows[i]), c.cls));
      tr.addEventListener("click", () => reveal(pick(rows[i], i)));
      all.append(tr);
    }
    body.replaceChildren(all);
    host.querySelector(".count").textContent = list.length + " of " + rows.length;
  };
  for (const c of columns) {
    const th = html("th", undefined, c.cls === "r" ? "r" : ""), button = html("button", c.title);
    button.addEventListener("click", () => {
      down = order === c ? !down : c.cls === "r" && c.title !== "step" && c.title !== "#";
      order = c;
      for (const other of head.children) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      fill();
    });
    th.append(button);
    head.append(th);
  }
  const t = html("table"), h = html("thead");
  h.append(head);
  t.append(h, body);
  host.querySelector(".table").append(t);
  filter.addEventListener("input", fill);
  host.addEventListener("toggle", () => { if (host.open && !filled) { filled = true; fill(); } });
};
const number = (title, get, show) => ({title, cls: "r", key: get, show: show || get});
const word = (title, get, cls) => ({title, cls: cls || "", key: get, show: get});
const size = (title, get) => number(title, get, r => get(r) ? bytes(get(r)) : "");
const numbered = steps.map((s, i) => ({...s, step: i}));
table("steps", numbered, [number("step", s => s.step), number("#", s => s.node), word("op", s => s.op),
  size("alive", s => s.live_bytes), size("scratch", s => s.scratch_bytes), size("packed", s => s.packed_bytes),
  word("name", s => s.name, "w")], s => s.outputs.map(o => pieceOf.get(o)).find(i => i !== undefined));
table("tensors", tensors, [number("#", t => t.index), word("where", t => t.storage), word("type", t => t.dtype),
  {title: "shape", cls: "", key: t => t.shape.reduce((a, b) => a * b, 1), show: t => "[" + t.shape.join(", ") + "]"},
  size("bytes", t => t.bytes), number("from", t => t.first_step, t => t.first_step < 0 ? "" : t.first_step),
  number("to", t => t.last_step, t => t.last_step < 0 ? "" : t.last_step),
  number("offset", t => t.offset, t => t.offset < 0 ? "" : t.offset), word("name", t => t.name, "w")],
  t => pieceOf.get(t.index));
})();
)js";

}  // namespace leadline::plan
