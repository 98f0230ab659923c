# SPDX-License-Identifier: Apache-2.0
"""The page of a debug report in a browser: it draws, sorts, filters, asks the network for nothing, and shows names from
models as text."""

import html
import json
import os
import shlex
import subprocess
from pathlib import Path

import chromium
import numpy as np
import pytest
import test_cli
import test_debug_advice
import test_debug_masks
import test_debugger

import leadline

ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<!--"


def find_program():
    """LEADLINE_DEBUG_PAGE, or the one in a build folder."""
    places = [os.environ.get("LEADLINE_DEBUG_PAGE"), *sorted(ROOT.glob("build/*/debug_page"))]
    return next((str(place) for place in places if place and os.access(place, os.X_OK)), None)


PROGRAM = find_program()
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="debug_page is not built"),
    pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def make_page(kind, form="page"):
        path = folder / f"{form}_{kind}.html"
        result = subprocess.run([PROGRAM, form, kind], capture_output=True, timeout=120, check=True)
        path.write_bytes(result.stdout)
        return path

    return make_page


@pytest.fixture
def page(browser, make):
    return browser.open(make("sample"))


def column(page, title):
    """The cells of a column, from top to bottom."""
    return page.run(f"""(() => {{
      const at = [...document.querySelectorAll("#layers th")].findIndex(th => th.textContent === {json.dumps(title)});
      return [...document.querySelectorAll("#layers tr[data-row]")].map(tr => tr.children[at].textContent);
    }})()""")


def click_header(page, title):
    titles = page.run('[...document.querySelectorAll("#layers th")].map(th => th.textContent)')
    page.click("#layers th button", titles.index(title))
    return page.run(f'document.querySelectorAll("#layers th")[{titles.index(title)}].getAttribute("aria-sort")')


def percents(cells):
    return [float(cell.rstrip("\u00a0%")) for cell in cells]


def type_into(page, selector, text):
    page.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(text)};"
             'e.dispatchEvent(new Event(e.tagName === "SELECT" ? "change" : "input")); })()')  # fmt: skip


def assert_quiet(page):
    assert page.problems == []
    assert [url for url in page.requests if not url.startswith("file:") or not url.endswith(".html")] == []
    assert len(page.requests) == 1


def test_draws_every_part_and_asks_for_nothing(page):
    assert_quiet(page)
    assert page.run("document.title") == "model.int8.tflite \u00b7 quantization report"
    assert "26.9 % of its signal" in page.run('document.getElementById("verdict").textContent')
    assert page.run('document.querySelectorAll("#chart .own").length') == 24
    assert page.run('document.querySelectorAll("#chart .suspect").length') == 1
    assert page.run('document.querySelectorAll("#chart .total").length') == 1
    assert page.run('document.querySelectorAll("#histograms .histogram svg").length') == 6
    assert len(column(page, "#")) == 24
    assert "leadline debug model.tflite model.int8.tflite --data samples.npz" in page.run(
        'document.querySelector("#commands pre").textContent'
    )


def test_the_worst_suspect_is_chosen_at_first(page):
    assert page.run('document.querySelector("#detail .title b").textContent') == "block1_3"
    assert page.run('document.querySelector("#layers tr.on").dataset.row') == "8"
    assert page.run('document.querySelector("#layers tr.on").getAttribute("aria-current")') == "true"


def test_sorts_by_a_click_on_a_header(page):
    in_order = column(page, "own error")
    assert click_header(page, "own error") == "descending"
    cells = percents(column(page, "own error"))
    assert cells == sorted(cells, reverse=True) and cells[0] == 31
    assert cells != percents(in_order)
    assert click_header(page, "own error") == "ascending"
    assert percents(column(page, "own error")) == sorted(cells)
    assert click_header(page, "op") == "ascending"
    assert column(page, "op") == sorted(column(page, "op"))
    assert page.run('document.querySelectorAll("#layers th[aria-sort]").length') == 1
    click_header(page, "#")
    assert column(page, "own error") == in_order
    assert_quiet(page)


def test_sorts_with_the_keyboard(page):
    page.run('document.querySelectorAll("#layers th button")[2].focus()')
    page.key("Enter")
    cells = percents(column(page, "own error"))
    assert cells == sorted(cells, reverse=True)


def test_filters_by_text_op_and_kind(page):
    type_into(page, "#filter", "BLOCK2")
    assert column(page, "layer") == [f"block2_{i}" for i in range(5)]
    assert page.run('document.getElementById("count").textContent') == "5 of 24"
    type_into(page, "#ops", "ADD")
    assert column(page, "layer") == ["block2_3"]
    type_into(page, "#filter", "no such layer")
    assert column(page, "layer") == []
    type_into(page, "#filter", "")
    type_into(page, "#ops", "")
    type_into(page, "#which", "suspects")
    assert column(page, "layer") == ["block1_3"]
    type_into(page, "#which", "float")
    assert column(page, "#") == ["16"]
    assert_quiet(page)


def chart_point(page, index):
    """Where the bar of a layer is in the window."""
    page.run('document.getElementById("along").scrollIntoView()')
    return page.run(f"""(() => {{ const b = document.querySelectorAll("#chart .own")[{index}].getBoundingClientRect();
      return [b.x + b.width / 2, b.y + b.height / 2]; }})()""")


def test_the_chart_names_the_layer_under_the_pointer_and_a_click_jumps_to_its_row(page):
    type_into(page, "#filter", "block0")
    x, y = chart_point(page, 12)
    page.mouse(x, y)
    assert "block2_2" in page.run('document.getElementById("tip").textContent')
    page.mouse(x, y, "mousePressed", "mouseReleased")
    assert page.run('document.querySelector("#layers tr.on").dataset.row') == "12"  # the filter gave way
    assert page.run('document.getElementById("filter").value') == ""
    assert page.run("""(() => { const row = document.querySelector("#layers tr.on").getBoundingClientRect();
      const host = document.getElementById("layers").getBoundingClientRect();
      return row.top >= host.top && row.bottom <= host.bottom && row.top > 0 && row.bottom < innerHeight; })()""")
    assert page.run('document.querySelector("#detail .title b").textContent') == "block2_2"


def test_the_chart_is_walked_with_the_keyboard(page):
    page.run('document.getElementById("chart").focus()')
    page.key("ArrowRight")
    assert "Layer 9" in page.run('document.getElementById("status").textContent')
    page.key("Enter")
    assert page.run('document.activeElement.closest("tr").dataset.row') == "9"
    page.key("ArrowDown")
    assert page.run('document.activeElement.closest("tr").dataset.row') == "10"


def test_the_yardstick_of_rounding_is_drawn_and_explained(page):
    type_into(page, "#metric", "steps")
    assert "0.289" in page.run('document.querySelector("#chart .yard").textContent')
    assert "1/\u221a12 = 0.289" in page.run('document.getElementById("terms").textContent')


def test_neighbours_lead_from_layer_to_layer(page):
    sides = '[...document.querySelectorAll("#detail .near button b")].map(b => b.textContent)'
    assert page.run(sides) == ["block1_2", "block1_0", "block1_4"]
    page.click("#detail .near button", 2)
    assert page.run('document.querySelector("#detail .title b").textContent') == "block1_4"


def test_commands_are_copied(page):
    page.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }; 0")
    page.click("#commands .copy", 1)
    assert "import leadline" in page.run("window.copied")
    assert page.run('document.querySelectorAll("#commands .copy")[1].textContent') == "Copied"


def test_names_from_a_model_are_text(browser, make):
    page = browser.open(make("hostile"))
    assert_quiet(page)  # no dialog either
    assert page.run('document.querySelectorAll("img, iframe, main script").length') == 0
    assert column(page, "tensor")[:2] == [HOSTILE, HOSTILE]
    assert column(page, "op")[0] == HOSTILE
    assert HOSTILE in page.run('document.querySelector("#suspects").textContent')
    assert HOSTILE in page.run('document.querySelector("#detail .name").textContent')
    type_into(page, "#ops", HOSTILE)
    assert len(column(page, "#")) == 24
    page.mouse(*chart_point(page, 3))
    assert HOSTILE in page.run('document.getElementById("tip").textContent')
    click_header(page, "SNR, dB")
    assert_quiet(page)


def test_dark_mode_has_colours_of_its_own(browser, make):
    read = 'getComputedStyle(document.body).backgroundColor + " " + getComputedStyle(document.body).color'
    light, dark = (browser.open(make("sample"), dark=dark).run(read) for dark in (False, True))
    assert light == "rgb(251, 251, 250) rgb(29, 33, 39)"
    assert dark == "rgb(20, 23, 27) rgb(230, 232, 234)"


@pytest.mark.parametrize("kind", ["sample", "hostile", "empty"])
def test_a_phone_scrolls_down_only(browser, make, kind):
    page = browser.open(make(kind), width=390, height=844)
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert (
        page.run("""[...document.querySelectorAll("main *")].filter(e => !e.closest(".table, pre, svg, [hidden]") &&
      e.getBoundingClientRect().right > 390.5).map(e => e.outerHTML.slice(0, 80))""")
        == []
    )
    assert_quiet(page)


def test_a_result_of_nothing_has_a_page(browser, make):
    page = browser.open(make("empty"))
    assert_quiet(page)
    assert page.run('document.getElementById("layer").hidden && document.getElementById("histograms").hidden')


def test_ten_thousand_layers_stay_usable(browser, make):
    page = browser.open(make("10000"))
    assert_quiet(page)
    assert page.run('document.querySelectorAll("*").length') < 4000
    page.click("#group")  # layers whose names differ by a number alone are one row at first
    assert page.run('document.querySelectorAll("*").length') < 4000
    assert page.run('document.querySelector("#layers table").getAttribute("aria-rowcount")') == "10001"
    took = page.run("""(() => { const start = performance.now();
      document.querySelectorAll("#layers th button")[2].click();
      return performance.now() - start; })()""")
    assert took < 1000
    assert column(page, "own error")[0] == "31\u00a0%"
    # The end is there, at its place, and rows are no higher than thought.
    page.run('document.getElementById("layers").scrollTop = 1e9')
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert percents(column(page, "own error"))[-1] == min(percents(column(page, "own error")))
    assert (
        page.run("""(() => { const rows = document.querySelectorAll("#layers tr[data-row]");
      const host = document.getElementById("layers").getBoundingClientRect();
      return Math.abs(rows[rows.length - 1].getBoundingClientRect().bottom - host.bottom); })()""")
        < 24
    )
    # A layer far away is found from the chart's keys.
    click_header(page, "#")
    page.run('document.getElementById("chart").focus()')
    page.key("ArrowRight")
    page.key("Enter")
    assert page.run('document.activeElement.closest("tr").dataset.row') == "3334"
    assert page.run("""(() => { const row = document.querySelector("#layers tr.on").getBoundingClientRect();
      const host = document.getElementById("layers").getBoundingClientRect();
      return row.top >= host.top && row.bottom <= host.bottom; })()""")
    assert_quiet(page)


def test_cells_of_a_notebook_do_not_meet(browser, make, tmp_path):
    cells = [make(kind, "notebook").read_text(encoding="utf-8") for kind in ("sample", "hostile")]
    notebook = tmp_path / "notebook.html"
    notebook.write_text("<!doctype html><meta charset=utf-8><p id=result>mine</p>" + "".join(cells), encoding="utf-8")
    page = browser.open(notebook)
    assert page.problems == []
    assert page.run('document.querySelectorAll("iframe").length') == 2
    assert page.run("window.length") == 2
    frames = page.frames()
    assert len(frames) == 2
    for frame in frames:
        assert frame.run('document.querySelectorAll("#layers tr[data-row]").length') == 24
        assert frame.run("origin") == "null"
        assert frame.problems == [] and frame.requests == []
    # The frames are closed to the notebook as the notebook is to them.
    assert page.run('[...document.querySelectorAll("iframe")].every(frame => frame.contentDocument === null)')
    assert page.run('document.getElementById("result").textContent') == "mine"
    assert "<script" not in notebook.read_text(encoding="utf-8")
    assert HOSTILE.split("<img")[0] in html.unescape(html.unescape(cells[1]))


@pytest.mark.skipif(test_cli.PROGRAM is None, reason="the leadline program is not built")
def test_the_command_line_writes_the_page_of_a_real_model(browser, tmp_path):
    float_model, quantized = tmp_path / "float.tflite", tmp_path / "it's.int8.tflite"
    float_model.write_bytes(test_debugger.convnet(outlier=500))
    quantized.write_bytes(leadline.quantize(float_model, "int8", test_debugger.dataset))
    samples, report = tmp_path / "samples.npz", tmp_path / "report.html"
    np.savez(samples, image=np.concatenate(test_debugger.SAMPLES)[:, None])
    test_cli.leadline("debug", float_model, quantized, "--data", samples, "--report", report)
    page = browser.open(report)
    assert_quiet(page)
    assert page.run('document.querySelector("#detail .title b").textContent') == "conv2"
    assert "channel 3 of its weights" in page.run('document.querySelector("#suspects").textContent')
    command = page.run('document.querySelector("#commands pre").textContent')
    assert shlex.split(command)[:6] == ["leadline", "debug", str(float_model), str(quantized), "--data", str(samples)]


def test_a_notebook_that_drops_frames_still_has_the_verdict(make):
    cell = make("sample", "notebook").read_text(encoding="utf-8")
    assert "26.9 % of its signal" in cell[: cell.index("<iframe")]


@pytest.fixture(scope="module")
def masks(tmp_path_factory):
    """The page of blocks that are equal and of whose masks all have to be kept."""
    float_model = test_debug_masks.attention(-1e9, blocks=6)
    quantized = leadline.quantize(float_model, "int8", test_debug_masks.CALIBRATION)
    path = tmp_path_factory.mktemp("masks") / "report.html"
    result = leadline.debug(float_model, quantized, test_debug_masks.DEBUGGED, progress=False)
    result.save(path)
    return path, result


def test_suggestions_show_before_and_after(browser, tmp_path):
    float_model, quantized = test_debug_advice.planted("huge dead weight")
    result = leadline.debug(float_model, quantized, test_debug_advice.DEBUGGED, progress=False)
    result.save(tmp_path / "report.html")
    page = browser.open(tmp_path / "report.html")
    assert_quiet(page)
    first = result.suggestions[0]
    cells = page.run('[...document.querySelectorAll("#suggestions tbody tr:first-child td")].map(td => td.textContent)')
    assert first.what in cells[0]
    assert f"{first.before['cosine']:.4f}" in cells[2] and f"{first.after['cosine']:.4f}" in cells[2]
    widths = page.run("""[...document.querySelectorAll("#suggestions tr:nth-child(1) .beforeafter > *")].map(
      bar => bar.getBoundingClientRect().width)""")
    assert widths[1] < widths[0] / 5, "what is left of the error is a fraction of it"
    page.click("#suggestions summary")
    recipe = json.loads(page.run('document.querySelector("#suggestions pre").textContent'))
    assert recipe["rules"] == json.loads(result.to_json())["suggestions"][0]["recipe"]["rules"]


def test_parts_open_into_their_parts(browser, masks):
    page = browser.open(masks[0])
    shown = '[...document.querySelectorAll("#parts .part")].filter(e => e.checkVisibility()).length'
    before = page.run(shown)
    assert before >= 1
    assert page.run('document.querySelectorAll("#parts details.part").length') >= 1
    page.click("#parts details.part > summary")
    assert page.run(shown) > before
    alike = page.run("""[...document.querySelectorAll("#parts summary")].map(e => e.textContent).filter(
      text => text.includes("the worst is shown"))""")
    assert alike, "equal blocks are one row"
    assert_quiet(page)


def test_equal_blocks_are_one_row_that_opens(browser, masks):
    page = browser.open(masks[0])
    rows = 'Number(document.querySelector("#layers table").getAttribute("aria-rowcount")) - 1'
    if not page.run('document.getElementById("group").checked'):
        page.click("#group")
    grouped = page.run(rows)
    assert grouped < len(masks[1].layers) / 2
    assert "rows" in page.run('document.getElementById("count").textContent')
    others = int(page.run('document.querySelector("#layers button.alike").textContent').strip("+"))
    page.click("#layers button.alike")
    assert page.run(rows) == grouped + others
    # A layer inside of a closed row is found from the chart.
    page.click("#layers button.alike")
    page.run('document.getElementById("chart").focus()')
    for key in ("ArrowRight", "Enter"):
        page.key(key)
    chosen = page.run('document.activeElement.closest("tr").dataset.row')
    assert page.run('document.querySelector("#layers tr.on").dataset.row') == chosen
    page.click("#group")
    assert page.run(rows) == len(masks[1].layers)
    assert_quiet(page)


def test_the_chart_zooms(browser, make):
    page = browser.open(make("10000"))
    labels = """[...document.querySelectorAll("#chart text")].map(e => e.textContent).filter(t => /^\\d+$/.test(t)).map(
      Number)"""
    assert max(page.run(labels)) >= 9000
    whole = page.run('document.querySelectorAll("#chart rect.own").length')
    for _ in range(6):
        page.click('#zoom [data-zoom="in"]')
    near = page.run(labels)
    assert max(near) - min(near) < 400
    page.click('#zoom [data-zoom="right"]')
    assert min(page.run(labels)) > min(near)
    # A drag over a part of it shows that part.
    page.click('#zoom [data-zoom="all"]')
    assert page.run('document.querySelectorAll("#chart rect.own").length') == whole
    page.run('document.getElementById("chart").scrollIntoView({block: "center"})')
    box = page.run(
        '(() => { const b = document.getElementById("chart").getBoundingClientRect(); return [b.x, b.y]; })()'
    )
    page.mouse(box[0] + 300, box[1] + 100, "mousePressed")
    for x in (320, 360, 400):
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + x, y=box[1] + 100, button="left", buttons=1)
    page.mouse(box[0] + 400, box[1] + 100, "mouseReleased")
    assert max(page.run(labels)) - min(page.run(labels)) < 1500
    # What is chosen outside of it is brought into it.
    page.run('document.getElementById("chart").focus()')
    page.run('document.getElementById("chart").dispatchEvent(new KeyboardEvent("keydown", {key: "End"}))')
    assert max(page.run(labels)) > 9900
    assert_quiet(page)
