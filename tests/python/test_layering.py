# SPDX-License-Identifier: Apache-2.0
"""tools/check_layering.py finds each kind of violation planted in a small tree, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "check_layering.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"

CLEAN = {
    "include/leadline/leadline.h": SPDX + '#pragma once\n#include "leadline/error.h"\n#include "leadline/model.h"\n',
    "include/leadline/error.h": SPDX + "#pragma once\n#include <string>\n",
    "include/leadline/model.h": SPDX + '#pragma once\n#include "leadline/error.h"\n',
    "src/core/error.h": SPDX + '#pragma once\n#include <fmt/format.h>\n#include "leadline/error.h"\n',
    "src/kernels/gemm/gemm.cc": SPDX + '#include "core/index_range.h"\n#include "hwy/highway.h"\n// throws nothing\n',
    "src/kernels/gemm/gemm.h": SPDX + "#pragma once\nvoid gemm(const float* a,\n          int n) noexcept;\n",
    "src/kernels/gemm/gemm_test.cc": SPDX + '#include "core/thread_pool.h"\nstd::vector<float> a;\n',
    "src/ops/graph_builder.cc": SPDX + '#include "core/cancel.h"\n',
    "src/ops/loop.cc": SPDX + '#include "core/work.h"\n',
    "src/kernels/gemm/gemm-inl.h": SPDX + "#if defined(GEMM_INL) == defined(HWY_TARGET_TOGGLE)\n#endif\n",
    "src/ops/op_ids.h": SPDX + '#pragma once\nconstexpr auto kConv2D = ir::OpId::builtin(3, "CONV_2D");\n',
    "src/import/layers.cc": SPDX + 'if (op == "CONV_2D") return;\n',
    "src/passes/fold.cc": SPDX + 'fail("{} is not a \'CONV_2D\'", node.op.name());  // "CONV_2D"\n',
    "src/passes/fold_test.cc": SPDX + 'EXPECT_EQ(ops, "CONV_2D");\n',
    "src/ops/conv.cc": SPDX + '#include "kernels/gemm/gemm.h"\n#include "ir/graph.h"\n',
    "src/model/read.cc": SPDX + '#include <flatbuffers/flatbuffers.h>\n#include "model/tflite_generated.h"\n',
    "src/plan/plan_test.cc": SPDX + '#include "runtime/executable.h"\n#include "leadline/model.h"\n',
    "src/api/model.cc": SPDX + '#include "leadline/model.h"\n#include "model/read.h"\n',
    "src/cli/main.cc": SPDX + '#include "leadline/model.h"\n#include "io/zip.h"\n#include "cli/main.h"\n',
    "src/guard/watch.cc": SPDX + '#include "leadline/guard/watch.h"\n#include "io/zip.h"\n',
    "python/src/module.cc": SPDX + '#include <nanobind/nanobind.h>\n#include "module.h"\n#include "leadline/model.h"\n',
}


def check(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)


def test_clean_tree_passes(tmp_path):
    result = check(tmp_path, CLEAN)
    assert result.returncode == 0, result.stdout
    assert result.stdout == f"layering: {len(CLEAN)} files, 0 errors\n"


GLOSSARY = "# A\n\n## Glossary\n**`Graph`** is a type, **`Names`** too; **flight recorder** and **arena** are not.\n"
GRAPH = SPDX + "#pragma once\nclass Node;\nstruct Graph final : Base {\n  struct Arena {};\n};\nusing Names = int;\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, ""),
        ({"src/plan/graph_testing.h": GRAPH, "src/plan/graph.cc": SPDX + "struct Graph {};\n"}, ""),
        ({"src/plan/graph.h": GRAPH}, "Graph is defined in src/ir/graph.h, src/plan/graph.h; expected 1 type"),
        (
            {"include/leadline/error.h": GRAPH},
            "Names is defined in include/leadline/error.h, src/ir/graph.h; expected 1",
        ),
        (
            {"src/ir/graph.h": SPDX + "#pragma once\nclass Graph;\nusing Names = int;\n"},
            "Graph is not a type; expected 1",
        ),
        (
            {"src/guard/a.h": SPDX + "#pragma once\nenum class FlightRecorder {\n"},
            "flight recorder is defined in src/guard",
        ),
    ],
)
def test_the_glossary_matches_the_code(tmp_path, files, message):
    result = check(tmp_path, CLEAN | {"ARCHITECTURE.md": GLOSSARY, "src/ir/graph.h": GRAPH} | files)
    assert result.returncode == bool(message), result.stdout
    assert not message or f"ARCHITECTURE.md:4: error: glossary: {message}" in result.stdout, result.stdout


def test_leadline_h_is_everything(tmp_path):
    result = check(tmp_path, CLEAN | {"include/leadline/plan.h": SPDX + "#pragma once\n"})
    assert result.returncode == 1
    assert "include/leadline/leadline.h:1: error: it does not include leadline/plan.h" in result.stdout


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("src/core/a.cc", '#include "ir/graph.h"', "src/core may not include src/ir"),
        ("src/kernels/a.cc", '#include "ir/graph.h"', "src/kernels may not include src/ir"),
        ("src/ir/a.cc", '#include "kernels/gemm/gemm.h"', "src/ir may not include src/kernels"),
        ("src/ops/a.cc", '#include "plan/plan.h"', "src/ops may not include src/plan"),
        ("src/plan/a.cc", '#include "model/read.h"', "src/plan may not include src/model"),
        ("src/plan/a.cc", '#include "report/page.h"', "src/plan may not include src/report"),
        ("src/debug/a.cc", '#include "report/page.h"', "src/debug may not include src/report"),
        ("src/model/a.cc", '#include "runtime/executable.h"', "src/model may not include src/runtime"),
        ("src/debug/a.cc", '#include "quantize/recipe.h"', "src/debug may not include src/quantize"),
        ("src/runtime/a.cc", '#include "api/model.h"', "src/runtime may not include src/api"),
        ("src/api/a.cc", '#include "guard/spawn.h"', "src/api may not include src/guard"),
        ("src/api/a.cc", '#include "leadline/guard/watch.h"', "the engine does without leadline::guard"),
        ("include/leadline/model.h", '#pragma once\n#include "leadline/guard/watch.h"', "the engine does without"),
        ("src/guard/a.cc", '#include "ir/graph.h"', "src/guard may not include src/ir"),
        ("src/guard/a.cc", '#include "leadline/model.h"', "src/guard may use only the public headers"),
        ("src/cli/a.cc", '#include "ir/graph.h"', "src/cli may not include src/ir"),
        ("python/src/a.cc", '#include "runtime/executable.h"', "python/src may not include src/runtime"),
        ("examples/a.cc", '#include "core/error.h"', "may not include src/core"),
        ("src/runtime/a.cc", '#include "leadline/model.h"', "src/runtime may use only the public headers"),
        ("src/ops/a.cc", "#include <flatbuffers/verifier.h>", "only src/model may see flatbuffers"),
        ("src/api/a.cc", '#include "model/tflite_generated.h"', "only src/model may see flatbuffers"),
        ("src/api/a.cc", "#include <Python.h>", "only python/src may see Python"),
        ("src/cli/a.cc", "  #  include <nanobind/nanobind.h>", "only python/src may see Python"),
        ("include/leadline/model.h", '#pragma once\n#include "core/error.h"', "a public header may include only"),
        ("include/leadline/model.h", "#pragma once\n#include <fmt/format.h>", "a public header may include only"),
        ("src/core/a.cc", '#include "error.h"', 'include by path from src: "core/error.h"'),
        ("src/core/a.h", "int x;", "#pragma once is missing"),
        ("src/extra/a.cc", "int x;", "src/extra has no place in the layering"),
        ("src/core/a.cc", "int x;\n" * 1000, "1001 lines"),
        ("src/passes/a.cc", "if (node.op.name() == name) return;", "ops are identified by handle"),
        ("src/debug/a.cc", "if (name != node.op.name()) return;", "ops are identified by handle"),
        ("src/api/a.cc", 'if (layer.op == "CONV_2D") return;', "ops are identified by handle"),
        ("src/quantize/a.cc", 'constexpr auto kOps = {"CONV_2D"};', "ops are identified by handle"),
        ("src/kernels/a.cc", '#include "core/cancel.h"', "src/kernels takes ranges"),
        ("src/kernels/a.cc", '#include "core/work.h"', "src/kernels takes ranges"),
        ("src/kernels/a.cc", '#include "core/thread_pool.h"', "src/kernels takes ranges"),
        ("src/kernels/a.cc", '#include "core/error.h"', "src/kernels takes ranges"),
        ("src/kernels/a.cc", "void f() { throw 1; }", "kernels cannot fail"),
        ("src/kernels/a.cc", "void f() { std::vector<int> v; }", "kernels cannot fail"),
        ("src/kernels/a.h", "#pragma once\nvoid f(int begin,\n       int end);", "is not noexcept"),
        ("src/kernels/a.h", "#pragma once\nusing Row = void (*)(const float* in, int count);", "is not noexcept"),
        ("src/ops/a.cc", '#include "core/cancel.h"', "src/ops cuts work with core/work.h"),
        ("src/ops/a.cc", "void f() { check_cancelled(); }", "src/ops cuts work with core/work.h"),
    ],
)
def test_violation_is_named(tmp_path, name, line, message):
    result = check(tmp_path, CLEAN | {name: SPDX + line})
    assert result.returncode == 1
    problems = [text for text in result.stdout.splitlines() if ": error: " in text]
    assert len(problems) == 1, result.stdout
    assert problems[0].startswith(f"{name}:")
    assert message in problems[0]


def test_missing_spdx_line_is_named_in_every_language(tmp_path):
    files = {
        "src/core/a.cc": "int x;\n",
        "src/report/assets/a.js": "f();\n",
        "tools/a.py": "x = 1\n",
        "tests/a.sh": "true\n",
    }
    result = check(tmp_path, files)
    assert result.returncode == 1
    assert [line.split(":")[0] for line in result.stdout.splitlines()[:-1]] == sorted(files)


def test_long_file_is_a_warning_below_the_limit(tmp_path):
    result = check(tmp_path, {"src/core/a.cc": SPDX + "int x;\n" * 700})
    assert result.returncode == 0
    assert "src/core/a.cc:701: warning: 701 lines" in result.stdout
