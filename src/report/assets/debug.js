// SPDX-License-Identifier: Apache-2.0
// What all parts of a debug report's script build on: the result, its numbers as text, and the chosen layer.
import { $ } from "./page.js";

export const result = JSON.parse($("result").textContent);
export const layers = result.layers;
export const yard = result.yardstick;
const EXACT = 300;
layers.forEach((l, i) => {
  l.i = i;
  l.outputs = [];
});
for (const l of layers) for (const i of l.inputs) if (layers[i]) layers[i].outputs.push(l.i);
export const suspectOf = new Map();
for (const s of result.suspects) if (!suspectOf.has(s.layer)) suspectOf.set(s.layer, s);

// Numbers as text. What is not there, or not finite, is null.
export const NONE = "\u2013";
export const sig = (v) => {
  if (v === null || v === undefined) return NONE;
  if (v === 0) return "0";
  const size = Math.abs(v);
  return size >= 1e-3 && size < 1e5 ? String(Number(v.toPrecision(3))) : v.toExponential(2).replace("e+", "e");
};
export const share = (v) =>
  v === null || v === undefined ? NONE : `${v > 0 && v < 1e-5 ? "<\u00a00.001" : sig(100 * v)}\u00a0%`;
export const decibel = (v) => (v === null || v === undefined ? NONE : v >= EXACT ? "exact" : v.toFixed(1));
export const relative = (e) => (e ? e.relative : null);
export const shape = (list) => `[${list.join(", ")}]`;
// The worst of a layer's weights, as a share of their signal.
export const weightError = (l) =>
  l.weights ? Math.max(...l.weights.map((w) => (w.snr === null ? 1 : w.snr >= EXACT ? 0 : 10 ** (-w.snr / 20)))) : null;
// 0.01 % to 100 % on a logarithmic scale, as 0 to 1.
export const heat = (v) => (v ? Math.min(1, Math.max(0.03, Math.log10(v) / 4 + 1)) : 0);

// One layer is chosen at a time; every part of the page listens.
export let chosen = -1;
export const listeners = [];
export const choose = (i) => {
  if (!layers[i]) return;
  chosen = i;
  for (const listen of listeners) listen(i);
};
export const describe = (l) => [
  ["own error", share(relative(l.own))],
  ["total error", share(relative(l.total))],
  ["rmse / scale", l.own?.steps ? `${sig(l.own.steps)} (rounding alone: ${yard.toFixed(3)})` : NONE],
  ["cosine", l.total && l.total.cosine !== null ? l.total.cosine.toFixed(5) : NONE],
  ["saturated", share(l.saturated)],
];
export const scrollTo = (e) =>
  e.scrollIntoView({
    block: "start",
    behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
  });

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-layer]");
  if (target) {
    choose(Number(target.dataset.layer));
    scrollTo($("layer"));
  }
  const copy = event.target.closest(".copy");
  if (!copy) return;
  const code = copy.closest(".command").querySelector("pre");
  const done = (ok) => {
    copy.textContent = ok ? "Copied" : "Press Ctrl+C";
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1600);
  };
  // Old browsers and frames without permission: select the text and ask the document.
  const fallback = () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    done(document.execCommand("copy"));
  };
  if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => done(true), fallback);
  else fallback();
});
