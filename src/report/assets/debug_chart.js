// SPDX-License-Identifier: Apache-2.0
// The chart: the error each layer adds and the error so far, along the network. Thousands of layers are drawn column by
// column, so that the picture has never more parts than pixels.
import { choose, chosen, describe, layers, listeners, relative, result, share, sig, suspectOf, yard } from "./debug.js";
import { revealRow } from "./debug_table.js";
import { $, showTip, svg, tip } from "./page.js";

const chart = $("chart");
const LEFT = 50,
  RIGHT = 8,
  TOP = 14,
  HIGH = 230,
  BOTTOM = 26;
// What is shown: layers [viewFrom, viewUntil).
let viewFrom = 0,
  viewUntil = layers.length,
  slot = 1,
  band = null,
  cursor = null;
const metrics = {
  relative: { get: (e) => (e ? e.relative : null), show: (v) => `${sig(100 * v)}%` },
  steps: { get: (e) => (e?.steps ? e.steps : null), show: sig, yard },
};
const decades = (values, most) => {
  const positive = values.filter((v) => v > 0);
  if (!positive.length) return [-3, 0];
  const high = Math.ceil(Math.log10(positive.reduce((a, b) => Math.max(a, b))) + 0.02);
  let low = Math.floor(Math.log10(positive.reduce((a, b) => Math.min(a, b))));
  low = Math.max(low, high - most);
  return high - low < 2 ? [high - 2, high] : [low, high];
};
const drawChart = () => {
  const width = Math.max(220, chart.clientWidth),
    metric = metrics[$("metric").value],
    n = viewUntil - viewFrom;
  const own = layers.map((l) => metric.get(l.own)),
    total = layers.map((l) => metric.get(l.total));
  const [low, high] = decades([...own, ...total, metric.yard], 6);
  slot = (width - LEFT - RIGHT) / Math.max(1, n);
  const floor = TOP + HIGH,
    X = (i) => LEFT + (i - viewFrom + 0.5) * slot;
  const Y = (v) => Math.min(floor, TOP + (HIGH * (high - Math.log10(v))) / (high - low));
  const root = svg("svg", {
    width,
    height: floor + BOTTOM,
    role: "img",
    "aria-label": "Error of each layer, logarithmic",
  });
  for (let d = low; d <= high; ++d) {
    const y = Y(10 ** d);
    svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }, root);
    svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, root).textContent = metric.show(10 ** d);
  }
  band = svg("rect", { class: "chosen", x: -99, y: TOP, width: Math.max(3, slot), height: HIGH }, root);
  // Own errors: a bar for a layer, or for a column of pixels its largest, a suspect before all others.
  const wide = Math.max(1, Math.min(16, slot * 0.62)),
    columns = new Map();
  own.forEach((v, i) => {
    if (!(v > 0) || i < viewFrom || i >= viewUntil) return;
    const at = slot >= 1.5 ? i : Math.floor(X(i)),
      old = columns.get(at),
      suspect = suspectOf.has(i);
    if (!old || suspect > old.suspect || (suspect === old.suspect && v > old.v)) columns.set(at, { i, v, suspect });
  });
  for (const { i, v, suspect } of columns.values()) {
    const y = Math.min(Y(v), floor - 1.5);
    svg(
      "rect",
      {
        class: suspect ? "own suspect" : "own",
        x: X(i) - wide / 2,
        y,
        width: wide,
        height: floor - y,
        rx: Math.min(2, wide / 4),
      },
      root,
    );
  }
  // Error so far: a line, broken where nothing was compared.
  let path = "",
    pen = false,
    lastX = -9,
    lastY = 0;
  total.forEach((v, i) => {
    if (i < viewFrom || i >= viewUntil) return;
    if (v === null || v === undefined) {
      pen = false;
      return;
    }
    const x = X(i),
      y = v > 0 ? Y(v) : floor;
    if (pen && x - lastX < 0.7 && y >= lastY) return;
    path += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
    lastX = x;
    lastY = y;
    if (slot > 14) svg("circle", { class: "dot", cx: x, cy: y, r: 2.5 }, root);
  });
  if (path) svg("path", { class: "total", d: path }, root);
  svg("line", { class: "floor", x1: LEFT, x2: width - RIGHT, y1: floor, y2: floor }, root);
  if (metric.yard) {
    const y = Y(metric.yard);
    svg("line", { class: "yardline", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }, root);
    svg("text", { class: "yard", x: width - RIGHT, y: y - 5, "text-anchor": "end" }, root).textContent =
      `rounding alone: 1/\u221a12 = ${metric.yard.toFixed(3)}`;
  }
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5].find((k) => k * slot >= 38) || 1e6;
  for (let i = Math.ceil(viewFrom / every) * every; i < viewUntil; i += every)
    svg("text", { x: X(i), y: floor + 18, "text-anchor": "middle" }, root).textContent = i;
  cursor = svg("line", { class: "cursor", x1: -9, x2: -9, y1: TOP, y2: floor }, root);
  chart.replaceChildren(root);
  mark(chosen);
};
const say = (i) => {
  const l = layers[i];
  $("status").textContent = l
    ? "Layer " +
      i +
      ": " +
      l.op +
      " " +
      l.label +
      ", adds " +
      share(relative(l.own)) +
      ", so far " +
      share(relative(l.total))
    : "";
};
const mark = (i) => {
  const seen = i >= viewFrom && i < viewUntil;
  if (band && i >= 0) band.setAttribute("x", seen ? LEFT + (i - viewFrom + 0.5) * slot - Math.max(3, slot) / 2 : -99);
};
// Shows so many layers around one, which keeps its place.
const FEWEST = 8;
const zoomTo = (a, b) => {
  const size = Math.max(Math.min(FEWEST, layers.length), Math.min(layers.length, Math.round(b - a)));
  viewFrom = Math.max(0, Math.min(layers.length - size, Math.round(a)));
  viewUntil = viewFrom + size;
  drawChart();
};
const zoom = (how) => {
  const size = viewUntil - viewFrom,
    middle = chosen >= viewFrom && chosen < viewUntil ? chosen : (viewFrom + viewUntil) / 2,
    before = (middle - viewFrom) / size;
  if (how === "in") zoomTo(middle - (before * size) / 2, middle + ((1 - before) * size) / 2);
  if (how === "out") zoomTo(middle - before * size * 2, middle + (1 - before) * size * 2);
  if (how === "left") zoomTo(viewFrom - size / 2, viewUntil - size / 2);
  if (how === "right") zoomTo(viewFrom + size / 2, viewUntil + size / 2);
  if (how === "all") zoomTo(0, layers.length);
};
listeners.push((i) => {
  if (i < viewFrom || i >= viewUntil) zoomTo(i - (viewUntil - viewFrom) / 2, i + (viewUntil - viewFrom) / 2);
  mark(i);
  say(i);
});
const layerAt = (event) => {
  const i = viewFrom + Math.floor((event.clientX - chart.getBoundingClientRect().left - LEFT) / slot);
  return i >= viewFrom && i < viewUntil ? i : -1;
};
const hover = (event) => {
  const i = layerAt(event);
  if (i < 0) {
    leave();
    return;
  }
  const x = LEFT + (i - viewFrom + 0.5) * slot;
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  showTip(`${i}  ${layers[i].label}`, [["op", layers[i].op], ...describe(layers[i])], event.clientX, event.clientY);
};
const leave = () => {
  tip.hidden = true;
  if (cursor) for (const k of ["x1", "x2"]) cursor.setAttribute(k, -9);
};
if (layers.length) {
  chart.addEventListener("pointermove", (e) => {
    if (e.pointerType === "mouse") hover(e);
  });
  chart.addEventListener("pointerleave", leave);
  // Drag over layers: they fill the chart.
  let drag = null,
    dragged = false;
  chart.addEventListener("pointerdown", (e) => {
    dragged = false;
    if (e.pointerType === "mouse" && e.button === 0) drag = { x: e.clientX, at: layerAt(e), range: null };
  });
  chart.addEventListener("pointermove", (e) => {
    if (!drag || Math.abs(e.clientX - drag.x) < 6) return;
    const left = chart.getBoundingClientRect().left,
      x = [drag.x - left, e.clientX - left].sort((a, b) => a - b);
    drag.range ??= svg("rect", { class: "range", y: TOP, height: HIGH }, chart.firstChild);
    drag.range.setAttribute("x", x[0]);
    drag.range.setAttribute("width", x[1] - x[0]);
  });
  document.addEventListener("pointerup", (e) => {
    if (!drag) return;
    const { at, range } = drag,
      to = layerAt(e);
    drag = null;
    if (!range) return;
    dragged = true;
    range.remove();
    const first = at < 0 ? viewFrom : at,
      last = to < 0 ? (e.clientX > chart.getBoundingClientRect().left + LEFT ? viewUntil - 1 : viewFrom) : to;
    zoomTo(Math.min(first, last), Math.max(first, last) + 1);
  });
  $("zoom").addEventListener("click", (e) => {
    const how = e.target.dataset.zoom;
    if (how) zoom(how);
  });
  chart.addEventListener("click", (e) => {
    if (dragged) return;
    const i = layerAt(e);
    if (i >= 0) {
      leave();
      choose(i);
      revealRow(i);
    }
  });
  chart.addEventListener("keydown", (e) => {
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: layers.length - 1 }[e.key];
    if (to !== undefined) choose(Math.max(0, Math.min(layers.length - 1, to)));
    else if (e.key === "Enter") revealRow(chosen, true);
    else if (e.key === "+" || e.key === "-") zoom(e.key === "+" ? "in" : "out");
    else return;
    e.preventDefault();
  });
  $("metric").addEventListener("change", drawChart);
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") leave();
  });
  let seen = 0;
  new ResizeObserver(() =>
    requestAnimationFrame(() => {
      if (chart.clientWidth !== seen) {
        seen = chart.clientWidth;
        drawChart();
      }
    }),
  ).observe(chart);
  drawChart();
  // The first thing to look at: the worst suspect, else the layer that adds most.
  choose(
    result.suspects.length
      ? result.suspects[0].layer
      : layers.reduce((best, l) => ((relative(l.own) || 0) > (relative(layers[best].own) || 0) ? l.i : best), 0),
  );
}
