# SPDX-License-Identifier: Apache-2.0
"""What bench/compare.py shows: a line per model, ratios with their geometric means against the bars, and a page."""

import html
import math
import re
from pathlib import Path

from bench_models import MODELS

PEERS = {"litert": "LiteRT", "openvino": "OpenVINO"}
FORMS = {"f32": "float32", "f16": "float16", "dyn": "dynamic range", "int8": "int8", "other": "other models"}
# Bars: how often as fast as the peer Leadline is to be, in the geometric mean and (least) for any one model; and the
# largest share of the peer's memory and time to the first result.
SPEED_BARS = {
    ("f32", "litert"): (1.15, 0.95), ("f32", "openvino"): (1.1, None),
    ("int8", "litert"): (1.6, 1.2), ("int8", "openvino"): (0.85, None), ("dyn", "litert"): (1.3, None),
}  # fmt: skip
SHARE_BARS = {
    ("peak_bytes", "litert"): 0.8, ("peak_bytes", "openvino"): 0.4,
    ("first_ms", "litert"): 1.0, ("first_ms", "openvino"): 0.2,
}  # fmt: skip
SHARES = {"peak_bytes": "peak resident memory", "first_ms": "load to first result"}


def form_of(model: str) -> str:
    """float32, ... for the models the bars are about; all others are one group."""
    name, _, form = model.rpartition("_")
    return form if name in MODELS and form in FORMS else "other"


def geometric_mean(values) -> float | None:
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def figure(row, engine, key):
    return row["engines"].get(engine, {}).get(key)


def speed(row, peer):
    """How often as fast as the peer. Two threads: fastest run against fastest run. One thread: by CPU time (a low
    percentile, see compare.low), the same on an idle machine, and the only one to trust on a busy one."""
    key = "cpu_ms" if row["threads"] == 1 else "fastest_ms"
    ours, theirs = figure(row, "leadline", key), figure(row, peer, key)
    return theirs / ours if ours and theirs else None


def share(row, peer, key):
    ours, theirs = figure(row, "leadline", key), figure(row, peer, key)
    return ours / theirs if ours and theirs else None


def difference_text(figures) -> str:
    """Distance from Leadline's plain kernels and from LiteRT's reference kernels."""
    parts = []
    for values in figures.get("difference", {}).values():
        parts.append(" ".join(f"{v:.0f}" if unit == "steps" else f"{v:.0e}" for unit, v in values.items()) or "-")
    return " / ".join(parts)


def print_row(row) -> None:
    cells = []
    for name, figures in row["engines"].items():
        if "error" in figures:
            cells.append(f"{name} {figures['error'][:30]:>30}")
            continue
        cells.append(
            f"{name} {figures['fastest_ms']:8.3f} ({figures['median_ms']:8.3f}, CPU {figures['cpu_ms']:8.3f}) first {figures['first_ms']:6.1f} "
            f"{figures['peak_bytes'] / 2**20:4.0f}M diff {difference_text(figures):14}"
        )
    print(f"{row['model'][:34]:34} {row['threads']}  " + " | ".join(cells), flush=True)


def bar_lines(document):
    """(what, value, bar, met, worst model) for every bar that the results can speak about."""
    rows = [row for row in document["results"] if form_of(row["model"]) != "other"]
    for (form, peer), (mean_bar, least) in SPEED_BARS.items():
        for threads in sorted({row["threads"] for row in rows}):
            chosen = [r for r in rows if form_of(r["model"]) == form and r["threads"] == threads and speed(r, peer)]
            if not chosen:
                continue
            worst = min(chosen, key=lambda row: speed(row, peer))
            mean = geometric_mean(speed(row, peer) for row in chosen)
            met = mean >= mean_bar and (least is None or speed(worst, peer) >= least)
            bar = f">= {mean_bar}" + (f", each >= {least}" if least else "")
            what = f"{FORMS[form]}, {threads} thread{'s' * (threads > 1)}, times as fast as {PEERS[peer]}"
            yield what, mean, bar, met, f"{worst['model']} {speed(worst, peer):.2f}"
    for (key, peer), bar in SHARE_BARS.items():
        chosen = [row for row in rows if row["threads"] == 1 and share(row, peer, key)]
        if chosen:
            worst = max(chosen, key=lambda row: share(row, peer, key))
            mean = geometric_mean(share(row, peer, key) for row in chosen)
            what = f"{SHARES[key]}, share of {PEERS[peer]}'s"
            yield what, mean, f"<= {bar}", mean <= bar, f"{worst['model']} {share(worst, peer, key):.2f}"


def print_summary(document) -> None:
    m = document["machine"]
    print(
        f"\n{m['cpu']} (family/model {m['family_model']}), {m['cpus']} CPUs, {' '.join(m['instructions'])}; {m['date']}"
    )
    load = f"load average {m['load_average']:.1f}" + (
        " (busy: two threads mean little)" if m["load_average"] > 1 else ""
    )
    print(load)
    print(f"{'times as fast as the peer':34}   " + "".join(f"{PEERS[p]:>12}" for p in PEERS))
    for row in document["results"]:
        ratios = [speed(row, peer) for peer in PEERS]
        print(
            f"{row['model'][:34]:34} {row['threads']} " + "".join(f"{r:12.2f}" if r else f"{'-':>12}" for r in ratios)
        )
    print("\nGeometric means against the bars")
    for what, mean, bar, met, worst in bar_lines(document):
        print(f"  {'met   ' if met else 'MISSED'} {mean:5.2f}  {bar:22} {what:50} worst: {worst}")
    others = [row for row in document["results"] if form_of(row["model"]) == "other"]
    for peer, name in PEERS.items():
        mean = geometric_mean(s for row in others if (s := speed(row, peer)))
        if mean:
            print(f"         {mean:5.2f}  {'':22} other models, times as fast as {name}")


def _look() -> str:
    """The style of all of Leadline's pages, from where they have it."""
    parts = (Path(__file__).parents[1] / "src" / "base" / "page_parts.h").read_text()
    return re.search(r'R"css\((.*?)\)css"', parts, re.DOTALL).group(1)


def _chart(rows) -> str:
    """Horizontal bars of the ratios, one pair for each model and number of threads, on a logarithmic axis around 1."""
    left, right, line = 230, 70, 15
    width, low, high = 1100, 0.25, 8.0

    def x(ratio):
        return left + (width - left - right) * math.log(min(max(ratio, low), high) / low) / math.log(high / low)

    shapes, y = [], 24
    colours = {"litert": "var(--c3)", "openvino": "var(--c4)"}
    for row in rows:
        ratios = {peer: speed(row, peer) for peer in PEERS if speed(row, peer)}
        if not ratios:
            continue
        label = html.escape(f"{row['model']}, {row['threads']} thr.")
        shapes.append(f'<text x="{left - 8}" y="{y + line * len(ratios) / 2 + 4}" text-anchor="end">{label}</text>')
        for peer, ratio in ratios.items():
            begin, end = sorted((x(1.0), x(ratio)))
            title = html.escape(f"{row['model']}: {ratio:.2f} times as fast as {PEERS[peer]}")
            shapes.append(
                f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{line - 3}" '
                f'fill="{colours[peer]}"><title>{title}</title></rect>'
                f'<text x="{(end + 5 if ratio >= 1 else begin - 5):.1f}" y="{y + 10}" '
                f'text-anchor="{"start" if ratio >= 1 else "end"}">{ratio:.2f}</text>'
            )
            y += line
        y += 7
    grid = "".join(
        f'<line class="{"cap" if tick == 1 else "grid"}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="16" y2="{y}"/>'
        f'<text x="{x(tick):.1f}" y="11" text-anchor="middle">{tick:g}x</text>'
        for tick in (0.25, 0.5, 1, 2, 4, 8)
    )
    legend = "".join(f'<span><i style="background:{colours[p]}"></i>than {n}</span>' for p, n in PEERS.items())
    return (
        f'<div class="legend">times as fast: {legend}</div><div class="scroll">'
        # As wide as the panel; narrow windows scroll instead of making the text too small to read.
        f'<svg viewBox="0 0 {width} {y + 4}" style="display:block;width:100%;min-width:680px" role="img">'
        f"{grid}{''.join(shapes)}</svg></div>"
    )


def _table(head, rows) -> str:
    def cells(row, tag):
        return "".join(
            f"<{tag}{' class=r' if i else ''}>{html.escape(str(cell))}</{tag}>" for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{cells(head, "th")}</tr></thead><tbody>{body}</tbody></table></div>'


def _figures(rows):
    for row in rows:
        for name, f in row["engines"].items():
            begin = (row["model"], row["threads"], name)
            if "error" in f:
                yield (*begin, f["error"][:60], *[""] * 6)
                continue
            yield (
                *begin, f"{f['fastest_ms']:.3f}", f"{f['median_ms']:.3f}", f"{f['p95_ms']:.3f}", f"{f['cpu_ms']:.3f}",
                f"{f['first_ms']:.1f}", f"{f['peak_bytes'] / 2**20:.1f}", difference_text(f),
            )  # fmt: skip


def page(document) -> str:
    """One self-contained HTML file."""
    m = document["machine"]
    bars = [
        (what, f"{mean:.2f}", bar, "met" if met else "missed", worst)
        for what, mean, bar, met, worst in bar_lines(document)
    ]
    engines = {n: f["version"] for row in document["results"] for n, f in row["engines"].items() if "version" in f}
    versions = ", ".join(f"{name} {version}" for name, version in engines.items())
    sections = [
        f"<section><h2>Bars</h2><div class=panel>{_table(('', 'mean', 'bar', '', 'worst'), bars)}</div></section>"
    ]
    for form, title in FORMS.items():
        rows = [row for row in document["results"] if form_of(row["model"]) == form]
        if rows:
            sections.append(f"<section><h2>{title}</h2><div class=panel>{_chart(rows)}</div></section>")
    head = ("model", "threads", "engine", "fastest ms", "median", "p95", "CPU ms", "first result ms", "peak MiB",
            "off plain / reference kernels")  # fmt: skip
    sections.append(
        f"<section><h2>Figures</h2><div class=panel>{_table(head, _figures(document['results']))}</div></section>"
    )
    subtitle = f"{m['cpu']} (family/model {m['family_model']}), {m['cpus']} CPUs, {' '.join(m['instructions'])}. {versions}. {m['date']}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>Leadline beside LiteRT and OpenVINO</title>\n<style>{_look()}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>Leadline beside LiteRT and OpenVINO</h1><p class=sub>{html.escape(subtitle)}</p>"
        f"{''.join(sections)}\n</main>\n</body>\n</html>\n"
    )
