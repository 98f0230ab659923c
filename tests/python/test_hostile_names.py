# SPDX-License-Identifier: Apache-2.0
"""Names in a model are data: whatever they hold, they cannot act on a terminal, a page, a spreadsheet or a JSON reader."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from test_cli import leadline as run_program, leadline_json

import leadline
from leadline import lite

MARKUP = "</script></title><img src=x onerror=alert(1)>\"'&<!--"
TERMINAL = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\n\x08\u202egnp.\u2028"
FORMULA = '=HYPERLINK("http://x","y"),@SUM(1)'
NAMES = {"markup": MARKUP, "terminal": TERMINAL, "formula": FORMULA, "long": "n" * 5000}
RAW_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
RNG = np.random.default_rng(3)


def float_model(name: str) -> bytes:
    """A model that says `name` wherever a file may: tensors, signature, its keys, metadata."""
    b = leadline.ModelBuilder()
    x = b.input(f"{name}.x", np.float32, [1, 8])
    w = b.constant(f"{name}.w", RNG.normal(size=(40, 8)).astype(np.float32))
    y = b.tensor(f"{name}.y", np.float32, [1, 40])
    b.node("FULLY_CONNECTED", [x, w, -1], [y])
    b.output(y)
    b.signature(name, b, {f"{name}.in": x}, {f"{name}.out": y})
    return b.to_tflite()


def custom_model(name: str) -> bytes:
    """An op that is unknown."""
    b = leadline.ModelBuilder()
    x = b.input(f"{name}.x", np.float32, [4])
    y = b.tensor(f"{name}.y", np.float32, [4])
    b.node(name, [x], [y], custom=True)
    b.output(y)
    return b.to_tflite()


class Page(HTMLParser):
    """Elements and attributes of a page; what is inside <script> is data of the page's own."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.handlers += [f"{key}={value}" for key, value in attributes if key.startswith("on") or key == "src"]


def check_text(text: str) -> None:
    found = RAW_CONTROL.search(text)
    assert not found, f"{found!r} in {text[max(0, found.start() - 40) : found.end() + 40]!r}"


def check_page(text: str) -> None:
    page = Page(text)
    assert "img" not in page.tags
    assert not page.handlers
    assert "<img" not in text.replace("\\u003cimg", "")
    assert text.count("<script") == text.count("</script>")


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return NAMES[request.param]


@pytest.fixture
def pair(name):
    """Float and int8 model, and samples."""
    samples = [[RNG.normal(size=(1, 8)).astype(np.float32)] for _ in range(3)]
    model = float_model(name)
    return model, leadline.quantize(model, "int8", samples), samples


def test_plans(name):
    plan = lite.Interpreter(model_content=float_model(name)).plan()
    check_text(str(plan))
    check_page(plan._repr_html_())
    check_page(plan.to_html())
    assert f"{name}.x" in [tensor["name"] for tensor in json.loads(plan.to_json())["tensors"]]


def test_errors(name):
    with pytest.raises(leadline.Error) as unknown:
        lite.Interpreter(model_content=custom_model(name)).allocate_tensors()
    check_text(str(unknown.value))
    interpreter = lite.Interpreter(model_content=float_model(name))
    with pytest.raises(ValueError) as wrong:
        interpreter.set_tensor(0, np.zeros(3, np.float32))
    check_text(str(wrong.value))
    with pytest.raises(ValueError) as runner:
        interpreter.get_signature_runner("another")
    check_text(str(runner.value))
    with pytest.raises(leadline.BudgetError) as refused:
        lite.Interpreter(model_content=float_model(name), budget=100).allocate_tensors()
    check_text(str(refused.value))


def test_debugging(pair, name):
    model, quantized, samples = pair
    result = leadline.debug(model, quantized, samples)
    check_text(str(result))
    check_page(result.to_html())
    json.loads(result.to_json())
    rows = list(csv.reader(io.StringIO(result.to_csv())))
    assert len({len(row) for row in rows}) == 1 and len(rows) == 1 + len(result.layers)
    assert not any(cell[:1] in ("=", "+", "@") for row in rows for cell in row)
    check_text(result.to_csv())


def test_programs(pair, name, tmp_path):
    model, quantized, samples = pair
    floats, integers = tmp_path / "float.tflite", tmp_path / "int8.tflite"
    floats.write_bytes(model)
    integers.write_bytes(quantized)
    unknown = tmp_path / "unknown.tflite"
    unknown.write_bytes(custom_model(name))
    for arguments in (["inspect", floats], ["inspect", unknown], ["plan", floats], ["run", floats], ["plan", unknown]):
        check_text(run_program(*arguments).stdout)
        leadline_json(*arguments)
    check_page(page_of("plan", floats, "--html", tmp_path / "plan.html"))
    check_text(run_program("run", unknown, expect=3).stderr)
    data = tmp_path / "samples.npy"
    np.save(data, np.concatenate([sample[0] for sample in samples])[:, None])
    report = tmp_path / "debug.html"
    check_text(run_program("debug", floats, integers, "--data", data, "--report", report).stdout)
    check_page(report.read_text())


def page_of(*arguments) -> str:
    run_program(*arguments)
    return arguments[-1].read_text()
