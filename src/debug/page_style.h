// SPDX-License-Identifier: Apache-2.0
// The style of a debug report beyond that of every page, and the part of its script that the others build on. Nothing
// here comes from a model.
#pragma once

#include <string_view>

namespace leadline::debug {

inline constexpr std::string_view kPageStyle = R"css(
:root{--own:var(--scratch);--total:var(--curve);--good:var(--c2);--tint:rgba(224,149,63,.22);--tint2:rgba(63,116,173,.18)}
h3{font-size:13px;font-weight:600;margin:20px 0 8px;color:var(--soft)}
p{margin:0}
bdi,.why,.name{overflow-wrap:anywhere;unicode-bidi:isolate}
.verdict{font-size:17px;line-height:1.45;border-left:4px solid var(--soft);margin-top:20px;overflow-wrap:anywhere}
.verdict.good{border-left-color:var(--good)}.verdict.fair{border-left-color:var(--scratch)}
.verdict.poor{border-left-color:var(--peak)}
.cards{grid-template-columns:repeat(auto-fit,minmax(150px,1fr));margin-top:12px}
.suspects{margin-bottom:0;padding:0;list-style:none;counter-reset:rank}
.panel.suspects{padding:0 16px}
.suspects li{counter-increment:rank;display:flex;gap:14px;align-items:flex-start;padding:14px 0}
.suspects li+li{border-top:1px solid var(--grid)}
.suspects li::before{content:counter(rank);font-weight:600;min-width:26px;height:26px;line-height:26px;text-align:center;
border-radius:13px;background:var(--grid);color:var(--soft);font-size:13px}
.panel.suspects li:first-child::before{background:var(--peak);color:var(--panel)}
.suspects .text{flex:1;min-width:0;overflow-wrap:anywhere}.suspects button{flex:none}
.kind{font-weight:600}
.kind span{font-weight:400;color:var(--soft);font-size:13px;margin-left:10px}.kind span:first-of-type{color:var(--peak)}
.try{color:var(--soft);margin-top:4px}.try b{color:var(--good);font-weight:600}
select{font:inherit;font-size:14px;color:var(--ink);background:var(--bg);border:1px solid var(--line);border-radius:6px;
padding:4px 8px;min-height:34px;max-width:100%}
.legend i.line{height:3px;vertical-align:middle}
#chart{margin-top:10px;touch-action:pan-y;cursor:crosshair}
#chart:focus-visible{outline-offset:4px}
.own{fill:var(--own)}.own.suspect{fill:var(--peak)}.total{fill:none;stroke:var(--total);stroke-width:1.75;
stroke-linejoin:round}.dot{fill:var(--total)}.chosen{fill:var(--ink);opacity:.09}
.floor{stroke:var(--soft);opacity:.5}svg text.yard{fill:var(--good)}.yardline{stroke:var(--good);stroke-dasharray:5 4}
.status{min-height:1.5em;font-size:13px;color:var(--soft);margin:8px 0 0;overflow-wrap:anywhere}
#layers{max-height:520px;overflow:auto}
#layers td,#layers th{height:34px;padding:0 9px;vertical-align:middle}
#layers td:first-child,#layers th:first-child{padding-left:6px;color:var(--soft)}
#layers td.op{font-size:12px;color:var(--soft)}
td.clip{max-width:230px;overflow:hidden;text-overflow:ellipsis}#layers td.long{max-width:320px;color:var(--soft)}
#layers .stick{position:sticky;left:0;background:var(--panel);z-index:1}
#layers th.stick{z-index:3}#layers thead th{z-index:2}
#layers tr:hover .stick,#layers tr.on .stick{background:var(--grid)}
#layers tr.on td:first-child{box-shadow:inset 3px 0 var(--live)}
#layers td button{all:unset;cursor:pointer;font-weight:600;color:var(--ink);display:block;max-width:230px;overflow:hidden;
text-overflow:ellipsis}
#layers td button:focus-visible{outline:2px solid var(--live);outline-offset:-2px}
#layers tr.suspect td button::before{content:"";display:inline-block;width:7px;height:7px;border-radius:4px;
background:var(--peak);margin-right:7px;vertical-align:middle}
#layers tr.pad td{padding:0;border:0}#layers tr.pad{pointer-events:none}
.heat{background:linear-gradient(var(--tint),var(--tint)) no-repeat right/var(--w,0%) calc(100% - 8px)}
.heat.blue{background-image:linear-gradient(var(--tint2),var(--tint2))}
.hot{color:var(--peak);font-weight:600}
dl.terms,dl.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 16px;margin:10px 0 0;font-size:13px}
dl.facts{grid-template-columns:repeat(auto-fit,minmax(135px,1fr));gap:12px 16px}
dl dt{color:var(--soft)}dl dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
dl.facts dt{font-size:12px}dl.facts dd{font-size:15px}
details.terms{margin-top:12px;font-size:13px}details.terms>summary{font-weight:400;color:var(--soft)}
#layer h3:first-of-type{margin-top:16px}
.title{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline}.title b{font-size:17px;overflow-wrap:anywhere}
.chip{font-size:12px;color:var(--soft);border:1px solid var(--line);border-radius:10px;padding:0 8px;white-space:nowrap;
max-width:100%;overflow:hidden;text-overflow:ellipsis}
.chip.bad{color:var(--peak);border-color:var(--peak)}
.name{font-size:12px;color:var(--soft);margin-top:2px}
.why{border-left:3px solid var(--peak);padding-left:10px;margin-top:12px}
.near{display:grid;grid-template-columns:1fr auto 1fr auto 1fr;gap:8px 12px;align-items:center}
.near>div{display:grid;gap:8px;min-width:0}.near>span{color:var(--soft)}
.box{display:block;width:100%;text-align:left;padding:7px 10px;min-width:0;border-left:3px solid var(--line);line-height:1.35}
.box small{display:block;color:var(--soft);font-size:12px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.box b{display:block;font-weight:600;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.box.here{border:1px solid var(--live);border-left-width:3px;border-radius:6px;font-size:13px;background:var(--bg)}
.none{color:var(--soft);font-size:13px;text-align:center}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(340px,100%),1fr));gap:0 28px}
.two>div{min-width:0}.two .table{max-height:260px}
.histograms{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(260px,100%),1fr));gap:12px;margin-top:12px}
.histogram{display:block;width:100%;text-align:left;padding:10px 12px 8px;margin:0;border-radius:8px;min-width:0}
.histogram b{display:block;font-weight:600;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.histogram small{color:var(--soft);font-size:12px;display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.ref{fill:var(--tensor)}.quant{fill:none;stroke:var(--own);stroke-width:1.5}.beyond{fill:var(--peak)}
svg text.beyond{fill:var(--peak)}
.command pre{margin:8px 0 0;overflow:auto;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
white-space:pre;padding:10px 12px;background:var(--bg);border-radius:6px}
.command .head span{font-size:13px;color:var(--soft)}
#tip{max-width:min(420px,calc(100vw - 24px))}
@media (prefers-color-scheme:dark){:root{--tint:rgba(227,162,87,.25);--tint2:rgba(110,163,220,.22)}}
@media (max-width:600px){.verdict{font-size:16px}.suspects li{flex-wrap:wrap;gap:8px 12px}.suspects button{margin-left:38px}
.suspects .text{flex-basis:calc(100% - 40px)}.kind span{display:block;margin:0}
.near{grid-template-columns:minmax(0,1fr)}.near>span{justify-self:center;transform:rotate(90deg);line-height:1}
#layers td button,#layers td.clip{max-width:150px}dl.terms{grid-template-columns:1fr}dl.terms dd{margin-bottom:6px}
.tools select{flex:1}.tools input{width:100%}dl.facts{grid-template-columns:1fr 1fr}}
@media print{#layers{max-height:none}button{display:none}}
)css";

inline constexpr std::string_view kBaseScript = R"js(
const result = JSON.parse($("result").textContent);
const layers = result.layers, yard = result.yardstick, EXACT = 300;
layers.forEach((l, i) => { l.i = i; l.outputs = []; });
for (const l of layers) for (const i of l.inputs) if (layers[i]) layers[i].outputs.push(l.i);
const suspectOf = new Map();
for (const s of result.suspects) if (!suspectOf.has(s.layer)) suspectOf.set(s.layer, s);

// Numbers for people. What is not there, or not finite, is null.
const NONE = "\u2013";
const sig = v => {
  if (v === null || v === undefined) return NONE;
  if (v === 0) return "0";
  const size = Math.abs(v);
  return size >= 1e-3 && size < 1e5 ? String(Number(v.toPrecision(3))) : v.toExponential(2).replace("e+", "e");
};
const share = v => v === null || v === undefined ? NONE : (v > 0 && v < 1e-5 ? "<\u00a00.001" : sig(100 * v)) + "\u00a0%";
const decibel = v => v === null || v === undefined ? NONE : v >= EXACT ? "exact" : v.toFixed(1);
const relative = e => e ? e.relative : null;
const shape = list => "[" + list.join(", ") + "]";
// The worst of a layer's weights, as a share of their signal.
const weightError = l => l.weights ? Math.max(...l.weights.map(w =>
  w.snr === null ? 1 : w.snr >= EXACT ? 0 : Math.pow(10, -w.snr / 20))) : null;
// 0.01 % to 100 % on a logarithmic scale, as 0 to 1.
const heat = v => v ? Math.min(1, Math.max(.03, Math.log10(v) / 4 + 1)) : 0;

// One layer is chosen at a time; every part of the page listens.
let chosen = -1;
const listeners = [];
const choose = i => {
  if (!layers[i]) return;
  chosen = i;
  for (const listen of listeners) listen(i);
};
const describe = l => [["own error", share(relative(l.own))], ["total error", share(relative(l.total))],
  ["rmse / scale", l.own && l.own.steps ? sig(l.own.steps) + " (rounding alone: " + yard.toFixed(3) + ")" : NONE],
  ["cosine", l.total && l.total.cosine !== null ? l.total.cosine.toFixed(5) : NONE],
  ["saturated", share(l.saturated)]];
const scrollTo = e => e.scrollIntoView({block: "start",
  behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});

document.addEventListener("click", event => {
  const target = event.target.closest("[data-layer]");
  if (target) {
    choose(Number(target.dataset.layer));
    scrollTo($("layer"));
  }
  const copy = event.target.closest(".copy");
  if (!copy) return;
  const code = copy.closest(".command").querySelector("pre");
  const done = ok => {
    copy.textContent = ok ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { copy.textContent = "Copy"; }, 1600);
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
)js";

}  // namespace leadline::debug
