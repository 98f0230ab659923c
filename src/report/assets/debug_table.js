// SPDX-License-Identifier: Apache-2.0
// The table of layers: sorted by a click on a header, filtered, and usable with thousands of rows, of which only those in
// view (and some around them) exist at a time.
import {
  choose,
  chosen,
  decibel,
  heat,
  layers,
  listeners,
  NONE,
  relative,
  scrollTo,
  share,
  sig,
  suspectOf,
  weightError,
  yard,
} from "./debug.js";
import { $, html } from "./page.js";

const ROW = 34,
  ALL = 300,
  AROUND = 20;
const key = (get, none) => (l) => {
  const v = get(l);
  return v === null || v === undefined ? none : v;
};
const columns = [
  { title: "#", r: true, key: (l) => l.i, show: (l) => l.i, up: true, means: "Place in the order of running." },
  {
    title: "layer",
    cls: "stick",
    key: (l) => l.label.toLowerCase(),
    button: true,
    show: (l) => l.label,
    up: true,
    means: "The Keras layer that the tensor's name leads back to, or the end of that name. A red dot marks suspects.",
  },
  {
    title: "own error",
    r: true,
    key: key((l) => relative(l.own), -1),
    show: (l) => share(relative(l.own)),
    heat: "heat",
    means: "What the layer adds by itself: noise over signal (amplitudes) against the float node on the same inputs.",
  },
  {
    title: "total error",
    r: true,
    key: key((l) => relative(l.total), -1),
    show: (l) => share(relative(l.total)),
    heat: "heat blue",
    means: "All error so far: noise over signal against the float model.",
  },
  {
    title: "effect",
    r: true,
    key: key((l) => l.effect, -9),
    show: (l) => share(l.effect),
    hot: (l) => l.effect > 0.05,
    means:
      "What the layer, or the part of the network it was measured with, costs at the model's outputs: the share of the " +
      "power of their error that goes when it computes in float.",
  },
  { title: "op", cls: "op", key: (l) => l.op, show: (l) => l.op, up: true, means: "Op of the quantized model." },
  {
    title: "rmse / scale",
    r: true,
    key: key((l) => l.own?.steps, -1),
    show: (l) => sig(l.own?.steps),
    hot: (l) => l.own && l.own.steps > 2 * yard,
    means:
      "Own error in quantization steps. Values rounded to the nearest step are off by 1/\u221a12 = 0.289 steps on " +
      "average, whatever the scale: much more (red: over twice) means that the error is not rounding, but saturation, " +
      "weights or the arithmetic; less, that values repeat or sit on steps.",
  },
  {
    title: "SNR, dB",
    r: true,
    up: true,
    key: key((l) => l.total?.snr, 1e9),
    show: (l) => decibel(l.total?.snr),
    means: "Signal to noise of the total error: 20 dB is 10 %, 40 dB 1 %.",
  },
  {
    title: "cosine",
    r: true,
    up: true,
    key: key((l) => l.total?.cosine, 2),
    show: (l) => (l.total && l.total.cosine !== null ? l.total.cosine.toFixed(5) : NONE),
    means: "Of the angle to the float model's values; 1 is the same direction.",
  },
  {
    title: "saturated",
    r: true,
    key: key((l) => l.saturated, -1),
    show: (l) => share(l.saturated),
    hot: (l) => l.saturated > 0.01,
    means: "Share of values that lie outside what the integers can hold, and are clipped (red: over 1 %).",
  },
  {
    title: "scale",
    r: true,
    key: key((l) => l.scale, -1),
    show: (l) => (l.scales > 1 ? `${l.scales} scales` : sig(l.scale)),
    means: "Size of a quantization step.",
  },
  {
    title: "zero point",
    r: true,
    key: key((l) => l.zero_point, -1e9),
    show: (l) => (l.scales > 1 || l.zero_point === undefined ? NONE : l.zero_point),
    means: "The integer that stands for 0.",
  },
  {
    title: "weights error",
    r: true,
    key: key(weightError, -1),
    show: (l) => share(weightError(l)),
    means: "Noise over signal of the quantized weights, the worst operand.",
  },
  { title: "type", key: (l) => l.dtype, show: (l) => l.dtype, up: true, means: "Of the output." },
  {
    title: "tensor",
    cls: "clip long",
    key: (l) => l.name,
    show: (l) => l.name,
    up: true,
    means: "Name in the quantized model, as denylisted_nodes takes it.",
  },
];
for (const c of columns) $("terms").append(html("dt", c.title), html("dd", c.means));

const host = $("layers"),
  body = html("tbody"),
  sheet = html("table"),
  count = $("count");
const texts = layers.map((l) => [l.i, l.op, l.label, l.name, l.dtype].join(" ").toLowerCase());
const tests = {
  all: () => true,
  suspects: (l) => suspectOf.has(l.i),
  saturated: (l) => l.saturated > 0,
  above: (l) => l.own && l.own.steps > 2 * yard,
  float: (l) => !l.quantized,
};
// Layers of equal blocks: the same but for numbers in their names.
const kinds = layers.map((l) => `${l.op} ${l.label.replace(/\d+/g, "#")}`);
const opened = new Set();
let alike = new Map();
const GROUPED = 60; // fewer layers fit without
$("group").checked = layers.length > GROUPED && new Set(kinds).size * 2 <= layers.length;
let order = null,
  down = false,
  list = [],
  from = 0,
  until = 0;

const makeRow = (at) => {
  const l = layers[list[at]],
    tr = html("tr");
  tr.dataset.row = l.i;
  tr.setAttribute("aria-rowindex", at + 2);
  if (suspectOf.has(l.i)) tr.classList.add("suspect");
  for (const c of columns) {
    const td = html("td", undefined, `${c.r ? "r " : ""}${c.cls || ""} ${c.heat || ""}`.trim());
    const text = String(c.show(l));
    if (c.button) {
      const b = html("button", text);
      b.type = "button";
      td.append(b);
    } else {
      td.textContent = text;
    }
    const others = c.button && alike.get(l.i);
    if (others) {
      const b = html("button", opened.has(kinds[l.i]) ? "\u2212" : `+${others}`, "alike");
      b.type = "button";
      b.title = `${others} more like it`;
      b.setAttribute("aria-expanded", opened.has(kinds[l.i]));
      b.dataset.kind = l.i;
      td.append(b);
    }
    if (c.button || c.cls === "clip long") td.title = text;
    if (c.heat) td.style.setProperty("--w", `${100 * heat(Math.max(0, c.key(l)))}%`);
    if (c.hot?.(l)) td.classList.add("hot");
    tr.append(td);
  }
  if (l.i === chosen) markRow(tr, true);
  return tr;
};
const markRow = (tr, on) => {
  tr.classList.toggle("on", on);
  if (on) tr.setAttribute("aria-current", "true");
  else tr.removeAttribute("aria-current");
};
const pad = (rows) => {
  const tr = html("tr", undefined, "pad"),
    td = html("td");
  tr.setAttribute("aria-hidden", "true");
  td.colSpan = columns.length;
  td.style.height = `${rows * ROW}px`;
  tr.append(td);
  return tr;
};
// Rows in view and around; the space of the others is kept free.
const show = (force) => {
  let a = 0,
    b = list.length;
  if (b > ALL) {
    a = Math.max(0, Math.floor(host.scrollTop / ROW) - AROUND);
    b = Math.min(b, a + Math.ceil(host.clientHeight / ROW) + 2 * AROUND);
    if (!force && a >= from - AROUND / 2 && a <= from + AROUND / 2 && (b <= until || until === list.length)) return;
  }
  const focus = body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.row : null;
  from = a;
  until = b;
  const all = document.createDocumentFragment();
  if (a > 0) all.append(pad(a));
  for (let at = a; at < b; ++at) all.append(makeRow(at));
  if (b < list.length) all.append(pad(list.length - b));
  body.replaceChildren(all);
  if (focus !== null) focusRow(Number(focus));
};
const rowOf = (i) => body.querySelector(`tr[data-row="${i}"]`);
const focusRow = (i) => {
  const tr = rowOf(i);
  if (tr) tr.querySelector("button").focus({ preventScroll: true });
};
// One row for layers of equal blocks, the first in order or that with the largest error, until it is opened.
const group = () => {
  const first = new Map(),
    members = new Map();
  for (const i of list) {
    const kind = kinds[i],
      old = first.get(kind);
    members.set(kind, (members.get(kind) || 0) + 1);
    if (old === undefined || (!order && (relative(layers[i].own) || 0) > (relative(layers[old].own) || 0)))
      first.set(kind, i);
  }
  for (const [kind, i] of first) if (members.get(kind) > 1) alike.set(i, members.get(kind) - 1);
  list = list.filter((i) => opened.has(kinds[i]) || first.get(kinds[i]) === i);
};
const fill = (stay) => {
  const word = $("filter").value.trim().toLowerCase(),
    op = $("ops").value,
    test = tests[$("which").value];
  list = [];
  layers.forEach((l, i) => {
    if ((!word || texts[i].includes(word)) && (!op || l.op === op) && test(l)) list.push(i);
  });
  if (order) {
    const sign = down ? -1 : 1,
      keys = new Map(list.map((i) => [i, order.key(layers[i])]));
    list.sort((a, b) => {
      const x = keys.get(a),
        y = keys.get(b);
      return (x < y ? -1 : x > y ? 1 : 0) * sign || a - b;
    });
  }
  const layersShown = list.length;
  alike = new Map();
  if ($("group").checked) group();
  sheet.setAttribute("aria-rowcount", list.length + 1);
  const some = layersShown === layers.length ? `${layers.length} layers` : `${layersShown} of ${layers.length}`;
  count.textContent = list.length === layersShown ? some : `${some} in ${list.length} rows`;
  if (!stay) host.scrollTop = 0;
  show(true);
};
const head = html("tr");
for (const c of columns) {
  const th = html("th", undefined, (c.r ? "r " : "") + (c.cls === "stick" ? "stick" : "")),
    b = html("button", c.title);
  th.scope = "col";
  b.type = "button";
  b.title = c.means;
  b.addEventListener("click", () => {
    down = order === c ? !down : !c.up;
    order = c;
    for (const other of head.children) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    fill();
  });
  th.append(b);
  head.append(th);
}
const heading = html("thead");
heading.append(head);
sheet.append(heading, body);
host.append(sheet);

// Into view within the table, whatever the filter was, and the table into view within the page.
const bringRow = (i) => {
  const at = list.indexOf(i);
  if (at < 0) return;
  const high = heading.offsetHeight || ROW,
    y = at * ROW;
  if (y < host.scrollTop || y + ROW + high > host.scrollTop + host.clientHeight)
    host.scrollTop = Math.max(0, y - (host.clientHeight - high) / 2);
  show(false);
};
export const revealRow = (i, focus) => {
  if ($("group").checked && !list.includes(i)) {
    opened.add(kinds[i]);
    fill();
  }
  if (!list.includes(i)) {
    $("filter").value = $("ops").value = "";
    $("which").value = "all";
    fill();
  }
  bringRow(i);
  scrollTo($("table"));
  if (focus) focusRow(i);
};
listeners.push((i) => {
  for (const tr of body.querySelectorAll("tr.on")) markRow(tr, false);
  const tr = rowOf(i);
  if (tr) markRow(tr, true);
  bringRow(i);
});
body.addEventListener("click", (e) => {
  const more = e.target.closest("button.alike");
  if (more) {
    const i = Number(more.dataset.kind);
    if (!opened.delete(kinds[i])) opened.add(kinds[i]);
    fill(true);
    body.querySelector(`button.alike[data-kind="${i}"]`)?.focus({ preventScroll: true });
    return;
  }
  const tr = e.target.closest("tr[data-row]");
  if (tr) choose(Number(tr.dataset.row));
});
// Up and down move between rows, also to those that do not exist yet.
body.addEventListener("keydown", (e) => {
  const tr = e.target.closest("tr[data-row]"),
    step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!tr || !step) return;
  e.preventDefault();
  const next = list[list.indexOf(Number(tr.dataset.row)) + step];
  if (next === undefined) return;
  choose(next);
  focusRow(next);
});
host.addEventListener("scroll", () => requestAnimationFrame(() => show(false)), { passive: true });

const byOp = new Map();
for (const l of layers) byOp.set(l.op, (byOp.get(l.op) || 0) + 1);
const option = (value, text) => {
  const o = html("option", text);
  o.value = value;
  $("ops").append(o);
};
option("", "All ops");
for (const op of [...byOp.keys()].sort()) option(op, `${op} (${byOp.get(op)})`);
$("filter").addEventListener("input", () => fill());
for (const id of ["ops", "which", "group"]) $(id).addEventListener("change", () => fill());
fill();
