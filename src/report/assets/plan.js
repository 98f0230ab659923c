// SPDX-License-Identifier: Apache-2.0
// The picture of the arena and the tables of a plan's page, drawn from its JSON block.
import { $, bytes, html, showTip, svg, tip } from "./page.js";

const plan = JSON.parse(document.getElementById("plan").textContent);
const decimal = plan.units === "decimal";
// Pieces of arena memory: tensors, then scratch. Segments have arenas of their own, drawn one above the other.
const steps = plan.steps,
  tensors = plan.tensors,
  last = steps.length - 1;
const base = [];
let total = 0;
for (const s of plan.segments) {
  base.push(total);
  total += s.arena_bytes;
}
const lives = (t) => [Math.max(0, t.first_step), Math.min(last, Math.max(t.last_step, t.first_step))];
const pieces = [];
for (const t of tensors) {
  if (t.storage !== "arena" || !t.bytes || t.offset < 0) continue;
  const [from, to] = lives(t);
  pieces.push({
    tensor: t,
    from,
    to,
    y: (base[t.segment] || 0) + t.offset,
    bytes: t.bytes,
    shared: t.shares_with >= 0,
    peak: from <= plan.peak_step && plan.peak_step <= to,
  });
}
steps.forEach((s, i) => {
  if (s.scratch_bytes && s.scratch_offset >= 0)
    pieces.push({ step: s, from: i, to: i, y: (base[s.segment] || 0) + s.scratch_offset, bytes: s.scratch_bytes });
});
pieces.sort((a, b) => (a.shared || false) - (b.shared || false));
const pieceOf = new Map();
pieces.forEach((p, i) => {
  if (p.tensor) pieceOf.set(p.tensor.index, i);
});
const tensorAt = new Map(tensors.map((t) => [t.index, t]));

// What the tooltip says.
const facts = (p) =>
  p.tensor
    ? [
        p.tensor.name || "(no name)",
        [
          ["tensor", `#${p.tensor.index}`],
          ["type", p.tensor.dtype],
          ["shape", `[${p.tensor.shape.join(", ")}]`],
          ["bytes", `${bytes(p.bytes, decimal)} (${p.bytes})`],
          ["steps", `${p.from} to ${p.to}`],
          ["offset", `${bytes(p.tensor.offset, decimal)} (${p.tensor.offset})`],
          ...(p.shared ? [["memory of", tensorAt.get(p.tensor.shares_with)?.name || `#${p.tensor.shares_with}`]] : []),
        ],
      ]
    : [
        `Scratch of ${p.step.op} #${p.step.node}`,
        [
          ["bytes", `${bytes(p.bytes, decimal)} (${p.bytes})`],
          ["step", String(p.from)],
          ["for", p.step.name || "(no name)"],
        ],
      ];
let chosen = -1,
  pinned = false;
const choose = (i) => {
  if (i === chosen) return;
  for (const [n, on] of [
    [chosen, false],
    [i, true],
  ]) {
    const e = document.querySelector(`[data-i="${n}"]`);
    if (e) e.classList.toggle("on", on);
  }
  chosen = i;
};
const say = (i) => {
  const s = steps[i];
  $("status").textContent = s
    ? "step " +
      i +
      ": " +
      s.op +
      " #" +
      s.node +
      " " +
      s.name +
      ", " +
      bytes(s.live_bytes, decimal) +
      " alive" +
      (s.scratch_bytes ? `, ${bytes(s.scratch_bytes, decimal)} scratch` : "")
    : "";
};

// Round numbers for an axis, at most `most` of them.
const ticks = (max, most, binary) => {
  let unit = 1;
  if (binary) {
    while (max / unit > most) unit *= 2;
  } else for (let k = 0; max / unit > most; ++k) unit *= k % 3 === 1 ? 2.5 : 2;
  const list = [];
  for (let v = 0; v <= max; v += unit) list.push(v);
  return list;
};

// As many of the last parts of a name as fit.
const tail = (name, room) => {
  const parts = name.split(";")[0].split("/");
  let text = parts.pop();
  while (parts.length && text.length + parts[parts.length - 1].length < room) text = `${parts.pop()}/${text}`;
  return text;
};

const scroll = $("scroll");
const TOP = 18,
  GAP = 26,
  LIVE = 84,
  BOTTOM = 22;
let zoom = 1,
  width = 0,
  cursor = null;
const draw = () => {
  const view = scroll.clientWidth,
    high = innerWidth < 600 ? 260 : 380;
  width = Math.max(view * zoom, 1);
  const px = width / Math.max(1, steps.length),
    all = TOP + high + GAP + LIVE + BOTTOM;
  const cap = Math.max(total, 1),
    most = Math.max(1, ...steps.map((s) => s.live_bytes));
  const X = (step) => step * px,
    Y = (at) => TOP + high * (1 - at / cap),
    floor = TOP + high + GAP + LIVE;
  const L = (n) => floor - (LIVE * n) / Math.max(most, plan.arena_bytes, 1);
  const root = svg("svg", {
    width,
    height: all,
    role: "img",
    "aria-label": "Tensors of the arena over the steps of a run",
  });
  const axis = svg("svg", { width: "100%", height: all, "aria-hidden": "true" });
  const left = document.querySelector(".plot").firstElementChild.clientWidth - 8;
  const label = (y, text) => {
    svg("text", { x: left, y: y + 4, "text-anchor": "end" }, axis).textContent = text;
  };
  for (const v of ticks(cap, high / 44, !decimal)) {
    svg("line", { class: "grid", x1: 0, x2: width, y1: Y(v), y2: Y(v) }, root);
    label(Y(v), bytes(v, decimal));
  }
  plan.segments.forEach((_s, i) => {
    if (i) svg("line", { class: "cap", x1: 0, x2: width, y1: Y(base[i]), y2: Y(base[i]) }, root);
  });
  const names = [];
  pieces.forEach((p, i) => {
    const x = X(p.from + (p.shared ? 0.5 : 0)),
      y = Y(p.y + p.bytes);
    const w = Math.max(1, X(p.to + 1) - x),
      h = Math.max(1, Y(p.y) - y);
    svg(
      "rect",
      {
        class: (p.step ? "s" : "t") + (p.peak ? " p" : ""),
        "data-i": i,
        x,
        y,
        width: w,
        height: h,
        rx: Math.min(2, w / 4, h / 4),
        ...(w < 4 || h < 4 ? { "stroke-width": 0 } : {}),
      },
      root,
    );
    if (p.tensor && w > 54 && h > 16) names.push([p, x, y, w, h]);
  });
  for (const [p, x, y, w, h] of names) {
    const room = Math.floor((w - 12) / 6.2),
      text = tail(p.tensor.name, room);
    svg("text", { class: `name${p.peak ? " p" : ""}`, x: x + 6, y: y + Math.min(h / 2, 40) + 4 }, root).textContent =
      text.length > room ? `${text.slice(0, Math.max(1, room - 1))}\u2026` : text;
  }
  // Live bytes below, with the lower bound that they set and the arena.
  let path = "";
  steps.forEach((s, i) => {
    path += `${i ? "L" : "M"}${X(i)} ${L(s.live_bytes)}H${X(i + 1)}`;
  });
  if (steps.length) {
    svg("path", { class: "area", d: `${path}V${floor}H0Z` }, root);
    svg("path", { class: "curve", d: path }, root);
  }
  svg("line", { class: "grid", x1: 0, x2: width, y1: floor, y2: floor }, root);
  svg("line", { class: "cap", x1: 0, x2: width, y1: L(plan.arena_bytes), y2: L(plan.arena_bytes) }, root);
  label(L(plan.arena_bytes), bytes(plan.arena_bytes, decimal));
  label(floor, "0 B");
  label(floor - LIVE / 2, "alive");
  for (const v of ticks(last, Math.max(2, width / 70), false)) {
    if (!Number.isInteger(v)) continue;
    svg("text", { x: X(v + 0.5), y: all - 5, "text-anchor": v ? "middle" : "start" }, root).textContent = v
      ? v
      : "step 0";
  }
  if (plan.peak_step >= 0) {
    const x = X(plan.peak_step + 0.5),
      end = x > width - 120;
    svg("line", { class: "mark", x1: x, x2: x, y1: TOP - 4, y2: floor }, root);
    svg("text", { class: "pk", x: x + (end ? -5 : 5), y: 11, "text-anchor": end ? "end" : "start" }, root).textContent =
      `peak: step ${plan.peak_step}, ${bytes(steps[plan.peak_step].live_bytes, decimal)}`;
  }
  cursor = svg("line", { class: "cursor", x1: -9, x2: -9, y1: TOP, y2: floor }, root);
  scroll.replaceChildren(root);
  $("axis").replaceChildren(axis);
  $("out").disabled = zoom <= 1;
  $("in").disabled = px > 60;
  if (chosen >= 0) {
    const c = chosen;
    chosen = -1;
    choose(c);
  }
};
// The peak stays where it is on the screen, or the middle where the peak is out of view.
const setZoom = (z) => {
  const peak = (plan.peak_step + 0.5) / steps.length,
    seen = peak * width - scroll.scrollLeft;
  const inView = seen >= 0 && seen <= scroll.clientWidth,
    at = inView ? seen : scroll.clientWidth / 2;
  const fixed = inView ? peak : (scroll.scrollLeft + at) / width;
  zoom = Math.max(1, z);
  draw();
  scroll.scrollLeft = fixed * width - at;
};
const point = (event, pin) => {
  const box = scroll.firstElementChild.getBoundingClientRect();
  const at = Math.floor(((event.clientX - box.left) / width) * steps.length);
  if (at >= 0 && at <= last) {
    const x = ((at + 0.5) * width) / steps.length;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    say(at);
  }
  const hit = event.target.closest("[data-i]");
  if (pinned && !pin) return;
  pinned = Boolean(pin && hit);
  choose(hit ? Number(hit.dataset.i) : -1);
  if (hit) showTip(...facts(pieces[chosen]), event.clientX, event.clientY);
  else tip.hidden = true;
};
if (steps.length) {
  scroll.addEventListener("pointermove", (e) => {
    if (e.pointerType === "mouse") point(e, false);
  });
  scroll.addEventListener("click", (e) => point(e, true));
  const leave = () => {
    if (!pinned) {
      tip.hidden = true;
      choose(-1);
    }
  };
  scroll.addEventListener("pointerleave", leave);
  const unpin = () => {
    pinned = false;
    leave();
  };
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") unpin();
  });
  document.addEventListener("click", (e) => {
    if (!scroll.contains(e.target) && !e.target.closest("tbody")) unpin();
  });
  addEventListener("scroll", unpin, { passive: true });
  $("in").addEventListener("click", () => setZoom(zoom * 2));
  $("out").addEventListener("click", () => setZoom(zoom / 2));
  let seen = 0;
  new ResizeObserver(() =>
    requestAnimationFrame(() => {
      if (scroll.clientWidth !== seen) {
        seen = scroll.clientWidth;
        draw();
      }
    }),
  ).observe(scroll);
}
say(plan.peak_step);

// Tables are filled when they are opened; a click on a row shows the tensor in the picture.
const reveal = (i) => {
  if (i === undefined) return;
  $("picture").scrollIntoView({ block: "start" });
  const e = document.querySelector(`[data-i="${i}"]`);
  scroll.scrollLeft += e.getBoundingClientRect().left - scroll.getBoundingClientRect().left - scroll.clientWidth / 3;
  choose(i);
  const box = e.getBoundingClientRect();
  setTimeout(() => {
    pinned = true;
    showTip(...facts(pieces[i]), box.left + Math.min(box.width, 40), box.top + Math.min(box.height, 20));
  }, 80);
};
const table = (id, rows, columns, pick) => {
  const host = $(id),
    body = html("tbody"),
    head = html("tr"),
    filter = host.querySelector("input");
  let order = null,
    down = false,
    filled = false;
  const texts = rows.map((r) =>
    columns
      .map((c) => String(c.show(r)))
      .join(" ")
      .toLowerCase(),
  );
  const fill = () => {
    const word = filter.value.trim().toLowerCase();
    const list = rows.map((_, i) => i).filter((i) => !word || texts[i].includes(word));
    if (order)
      list.sort((a, b) => {
        const x = order.key(rows[a]),
          y = order.key(rows[b]);
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
    host.querySelector(".count").textContent = `${list.length} of ${rows.length}`;
  };
  for (const c of columns) {
    const th = html("th", undefined, c.cls === "r" ? "r" : ""),
      button = html("button", c.title);
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
  const t = html("table"),
    h = html("thead");
  h.append(head);
  t.append(h, body);
  host.querySelector(".table").append(t);
  filter.addEventListener("input", fill);
  host.addEventListener("toggle", () => {
    if (host.open && !filled) {
      filled = true;
      fill();
    }
  });
};
const number = (title, get, show) => ({ title, cls: "r", key: get, show: show || get });
const word = (title, get, cls) => ({ title, cls: cls || "", key: get, show: get });
const size = (title, get) => number(title, get, (r) => (get(r) ? bytes(get(r), decimal) : ""));
const numbered = steps.map((s, i) => ({ ...s, step: i }));
table(
  "steps",
  numbered,
  [
    number("step", (s) => s.step),
    number("#", (s) => s.node),
    word("op", (s) => s.op),
    size("alive", (s) => s.live_bytes),
    size("scratch", (s) => s.scratch_bytes),
    size("packed", (s) => s.packed_bytes),
    word("name", (s) => s.name, "w"),
  ],
  (s) => s.outputs.map((o) => pieceOf.get(o)).find((i) => i !== undefined),
);
table(
  "tensors",
  tensors,
  [
    number("#", (t) => t.index),
    word("where", (t) => t.storage),
    word("type", (t) => t.dtype),
    {
      title: "shape",
      cls: "",
      key: (t) => t.shape.reduce((a, b) => a * b, 1),
      show: (t) => `[${t.shape.join(", ")}]`,
    },
    size("bytes", (t) => t.bytes),
    number(
      "from",
      (t) => t.first_step,
      (t) => (t.first_step < 0 ? "" : t.first_step),
    ),
    number(
      "to",
      (t) => t.last_step,
      (t) => (t.last_step < 0 ? "" : t.last_step),
    ),
    number(
      "offset",
      (t) => t.offset,
      (t) => (t.offset < 0 ? "" : t.offset),
    ),
    word("name", (t) => t.name, "w"),
  ],
  (t) => pieceOf.get(t.index),
);
