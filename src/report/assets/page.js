// SPDX-License-Identifier: Apache-2.0
// Tools of every page's script. They write with textContent and setAttribute only, never as markup.
const NS = "http://www.w3.org/2000/svg";
export const $ = (id) => document.getElementById(id);
export const html = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
export const svg = (tag, attributes, parent) => {
  const e = document.createElementNS(NS, tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (parent) parent.appendChild(e);
  return e;
};
export const bytes = (n, decimal) => {
  const units = ["B", ...[..."KMGTP"].map((letter) => letter + (decimal ? "B" : "iB"))];
  const step = decimal ? 1000 : 1024;
  let v = Math.abs(n),
    u = 0;
  while (u < 5 && v >= (u ? step - 0.05 : step)) {
    v /= step;
    ++u;
  }
  return `${n < 0 ? "-" : ""}${v.toFixed(1).replace(/\.0$/, "")} ${units[u]}`;
};
// A tooltip with a title and rows of [term, text], beside a point of the window.
export const tip = $("tip");
export const showTip = (title, rows, x, y) => {
  tip.replaceChildren(html("b", title));
  const list = html("dl");
  for (const [k, v] of rows) list.append(html("dt", k), html("dd", v));
  tip.append(list);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(12, Math.min(x + 14, innerWidth - box.width - 12))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 14) : y + 18}px`;
};
