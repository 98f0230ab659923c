// SPDX-License-Identifier: Apache-2.0
// What all pages have in common: the look, light and dark, and the tools of their scripts. Nothing here comes from a
// model, and the tools write with textContent and setAttribute only, never as markup.
#pragma once

#include <string_view>

namespace leadline {

inline constexpr std::string_view kPageLook = R"css(
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
.scroll{overflow-x:auto;overflow-y:hidden}
svg{display:block}
svg text{fill:var(--soft);font:11px system-ui,sans-serif;font-variant-numeric:tabular-nums}
.grid{stroke:var(--grid)}.cap{stroke:var(--soft);stroke-dasharray:2 3}
.curve{fill:none;stroke:var(--curve);stroke-width:1.5}.area{fill:var(--curve);opacity:.14}
.cursor{stroke:var(--soft);opacity:.6;pointer-events:none}
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
.card{padding:10px 12px}.card b{font-size:18px}
.bars{grid-template-columns:auto 1fr;grid-auto-flow:row dense;gap:2px 10px}
.bars .track{grid-column:1/-1;margin-bottom:8px}.bars .num{grid-column:2}}
)css";

inline constexpr std::string_view kPageTools = R"js(
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
// A tooltip with a title and rows of [term, text], beside a point of the window.
const tip = $("tip");
const showTip = (title, rows, x, y) => {
  tip.replaceChildren(html("b", title));
  const list = html("dl");
  for (const [k, v] of rows) list.append(html("dt", k), html("dd", v));
  tip.append(list);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(12, Math.min(x + 14, innerWidth - box.width - 12)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 14) : y + 18) + "px";
};
)js";

}  // namespace leadline
