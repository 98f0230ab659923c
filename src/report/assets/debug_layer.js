// SPDX-License-Identifier: Apache-2.0
// The view of one layer: numbers, neighbours in the graph, histogram, channels and weights; and the histograms of all
// layers that have one.
import { choose, decibel, layers, listeners, NONE, relative, result, shape, share, sig, suspectOf } from "./debug.js";
import { $, html, svg } from "./page.js";

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const histogram = (l, width, high) => {
  const h = l.histogram,
    n = h.reference.length,
    base = high - 18,
    edge = 12;
  const all = Math.max(1, sum(h.reference) + h.below + h.above),
    most = Math.sqrt(Math.max(1, h.below, h.above, ...h.reference, ...h.quantized));
  const X = (i) => edge + ((width - 2 * edge) * i) / Math.max(1, n),
    Y = (v) => base - ((base - 6) * Math.sqrt(v)) / most;
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${high}`,
    width: "100%",
    role: "img",
    "aria-label": `Histogram of ${l.label} from ${sig(h.min)} to ${sig(h.max)}, float and quantized`,
  });
  const steps = (counts) =>
    counts.map((v, i) => `${i ? "L" : "M"}${X(i).toFixed(1)} ${Y(v).toFixed(1)}H${X(i + 1).toFixed(1)}`).join("");
  if (n) svg("path", { class: "ref", d: `${steps(h.reference)}V${base}H${X(0)}Z` }, root);
  if (n) svg("path", { class: "quant", d: steps(h.quantized) }, root);
  svg("line", { class: "floor", x1: 0, x2: width, y1: base, y2: base }, root);
  for (const [v, x, at] of [
    [h.below, 1, "start"],
    [h.above, width - edge + 3, "end"],
  ]) {
    if (!v) continue;
    svg(
      "rect",
      { class: "beyond", x, y: Math.min(Y(v), base - 2), width: edge - 4, height: Math.max(2, base - Y(v)) },
      root,
    );
    svg("text", { class: "beyond", x: at === "start" ? 1 : width - 1, y: 11, "text-anchor": at }, root).textContent =
      share(v / all);
  }
  const label = (x, v, at) => {
    svg("text", { x, y: high - 4, "text-anchor": at }, root).textContent = sig(v);
  };
  label(edge, h.min, "start");
  label(width - edge, h.max, "end");
  if (h.min < 0 && h.max > 0) {
    const x = X((n * -h.min) / (h.max - h.min));
    if (x > 60 && x < width - 60) label(x, 0, "middle");
  }
  return root;
};

const plainTable = (caption, titles, rows) => {
  const hold = html("div", undefined, "table"),
    t = html("table"),
    h = html("thead"),
    tr = html("tr"),
    b = html("tbody");
  hold.tabIndex = 0;
  hold.setAttribute("role", "group");
  hold.setAttribute("aria-label", caption);
  titles.forEach((title, k) => {
    const th = html("th", title, k ? "r" : "");
    th.scope = "col";
    tr.append(th);
  });
  for (const row of rows) {
    const line = html("tr");
    row.forEach((v, k) => {
      line.append(html("td", v, k ? "r" : ""));
    });
    b.append(line);
  }
  h.append(tr);
  t.append(h, b);
  hold.append(t);
  return hold;
};

const MOST = 6;
const box = (i) => {
  const l = layers[i],
    b = html("button", undefined, "box");
  b.type = "button";
  b.append(
    html("small", l.op),
    html("b", l.label),
    html("small", `own ${share(relative(l.own))}, total ${share(relative(l.total))}`),
  );
  if (suspectOf.has(i)) b.style.borderLeftColor = "var(--peak)";
  b.title = l.label;
  b.addEventListener("click", () => choose(i));
  return b;
};
const side = (list, none) => {
  const div = html("div"),
    all = [...new Set(list)];
  for (const i of all.slice(0, MOST)) div.append(box(i));
  if (all.length > MOST) div.append(html("span", `and ${all.length - MOST} more`, "none"));
  if (!all.length) div.append(html("span", none, "none"));
  return div;
};
const neighbours = (l) => {
  const near = html("div", undefined, "near"),
    here = html("div"),
    self = html("div", undefined, "box here");
  const arrow = () => {
    const a = html("span", "\u2192");
    a.setAttribute("aria-hidden", "true");
    return a;
  };
  self.append(html("small", l.op), html("b", l.label), html("small", `${l.dtype} ${shape(l.shape)}`));
  here.append(self);
  near.append(
    side(l.inputs, "input of the model"),
    arrow(),
    here,
    arrow(),
    side(l.outputs, l.is_output ? "output of the model" : "nothing compared reads it"),
  );
  return near;
};

const factsOf = (l) => {
  const list = [
    ["Own error", share(relative(l.own))],
    ["Total error", share(relative(l.total))],
    ["rmse / scale", l.own?.steps ? sig(l.own.steps) : NONE],
    ["Own SNR", `${decibel(l.own?.snr)} dB`],
    ["Total SNR", `${decibel(l.total?.snr)} dB`],
    ["Cosine, total", l.total && l.total.cosine !== null ? l.total.cosine.toFixed(6) : NONE],
    ["Largest error, own", sig(l.own?.max)],
    ["Mean error, own", sig(l.own?.mean)],
    ["Saturated", share(l.saturated)],
    ["Values seen", `${sig(l.seen[0])} to ${sig(l.seen[1])}`],
  ];
  if (l.range) list.push(["Integers hold", `${sig(l.range[0])} to ${sig(l.range[1])}`]);
  if (l.scale !== undefined) list.push(["Scale", l.scales > 1 ? `${l.scales} scales` : sig(l.scale)]);
  if (l.zero_point !== undefined && !(l.scales > 1)) list.push(["Zero point", l.zero_point]);
  if (l.levels) list.push(["Levels used", `${l.levels} of 256`]);
  const bad = Math.max(l.own?.not_finite || 0, l.total?.not_finite || 0);
  if (bad) list.push(["NaN or infinite", bad]);
  return list.map(([k, v]) => [k, String(v).replace(/^(exact|\u2013) dB$/, "$1")]);
};
const drawLayer = (i) => {
  const l = layers[i],
    all = [],
    title = html("div", undefined, "title");
  title.append(html("b", l.label), html("span", l.op, "chip"), html("span", `${l.dtype} ${shape(l.shape)}`, "chip"));
  if (suspectOf.has(i)) title.append(html("span", "suspect", "chip bad"));
  if (l.is_output) title.append(html("span", "output", "chip"));
  all.push(
    title,
    html(
      "p",
      "layer " +
        i +
        (l.subgraph ? `, subgraph ${l.subgraph}` : "") +
        (l.node >= 0 ? `, node ${l.node}` : "") +
        ", tensor " +
        l.tensor +
        ": " +
        l.name,
      "name",
    ),
  );
  if (suspectOf.has(i)) all.push(html("p", suspectOf.get(i).why, "why"));
  if (l.note) all.push(html("p", l.note, "note"));
  all.push(html("h3", "In the graph"), neighbours(l));
  const facts = html("dl", undefined, "facts");
  for (const [k, v] of factsOf(l)) {
    const d = html("div");
    d.append(html("dt", k), html("dd", v));
    facts.append(d);
  }
  all.push(html("h3", "Figures"), facts);
  const two = html("div", undefined, "two");
  const part = (heading, content) => {
    const d = html("div");
    d.append(html("h3", heading), content);
    two.append(d);
  };
  if (l.histogram) part("Values, float (area) and quantized (line)", histogram(l, 480, 190));
  if (l.worst)
    part(
      `Worst of ${l.channels} channels`,
      plainTable(
        "Worst channels",
        ["channel", "signal power lost", "rmse", "largest error", "values"],
        l.worst.map((c) => [c.channel, share(c.lost), sig(c.rmse), sig(c.max_error), `${sig(c.min)} to ${sig(c.max)}`]),
      ),
    );
  if (two.children.length) all.push(two);
  if (l.weights) {
    const w = plainTable(
      "Weights",
      ["weights", "type", "shape", "scales", "SNR, dB", "rmse", "worst channel loses", "largest channel / median"],
      l.weights.map((w) => [
        w.name,
        w.dtype,
        shape(w.shape),
        w.scales,
        decibel(w.snr),
        sig(w.rmse),
        `${share(w.worst_lost)} (${w.worst_channel})`,
        `${sig(w.spread)} (${w.largest_channel})`,
      ]),
    );
    for (const td of w.querySelectorAll("td:first-child")) {
      td.className = "clip";
      td.title = td.textContent;
    }
    all.push(html("h3", "Weights"), w);
  }
  $("detail").replaceChildren(...all);
};
if (layers.length) {
  $("layer").hidden = false;
  listeners.push(drawLayer);
}

// Histograms of the worst: suspects in their order, then by own error.
const ranks = new Map(result.suspects.map((s, k) => [s.layer, k]));
const rank = (l) => (ranks.has(l.i) ? ranks.get(l.i) : 1e9);
const drawn = layers
  .filter((l) => l.histogram)
  .sort((a, b) => rank(a) - rank(b) || (relative(b.own) || 0) - (relative(a.own) || 0) || a.i - b.i)
  .slice(0, 24);
$("histograms").hidden = !drawn.length;
for (const l of drawn) {
  const b = html("button", undefined, "histogram");
  b.type = "button";
  b.dataset.layer = l.i;
  b.title = l.label;
  b.append(html("b", l.label), html("small", `${l.op}, own error ${share(relative(l.own))}`), histogram(l, 300, 120));
  $("histograms").querySelector(".histograms").append(b);
}
