#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler does not: includes between folders, names of ops in comparisons, the glossary, file lengths,
SPDX lines.

usage: check_layering.py [repository root]

Exit code 1 when a rule is broken; each line names the file, the line and the rule.
"""

import re
import sys
from pathlib import Path

# A folder of src may include itself and the folders listed here: core <- kernels; core <- io;
# core <- ir <- ops (+ kernels, io) <- {model, import, passes, plan} <- runtime <- {quantize, debug} <- api <- jobs;
# core, io <- guard.
OPS = {"core", "io", "kernels", "ir", "ops"}
RUNTIME = OPS | {"model", "import", "passes", "plan", "runtime"}
FACADE = RUNTIME | {"quantize", "debug", "report", "api"}
MAY_INCLUDE = {
    "core": set(), "io": {"core"}, "report": {"core", "io"}, "kernels": {"core"}, "ir": {"core", "io"}, "ops": OPS,
    "model": OPS, "import": OPS, "passes": OPS, "plan": OPS,
    "runtime": RUNTIME, "quantize": RUNTIME, "debug": RUNTIME, "guard": {"core", "io"},
    "api": FACADE, "jobs": FACADE | {"jobs"}, "cli": {"core", "io"},
}  # fmt: skip
# Public headers that are plain words of the whole project; the other public ones are the facade.
VOCABULARY = {"error.h", "types.h", "budget.h", "plan.h", "progress.h", "observer.h", "debug_result.h", "devices.h",
              "conversion_record.h",
              "interpreter_options.h", "job_plan.h", "job_progress.h", "model_info.h", "names.h", "recipe.h",
              "tensor_memory.h", "version.h", "work_limit.h"}  # fmt: skip
USES_FACADE = {"api", "jobs", "cli"}

# The library beside the engine, and who links it.
USES_GUARD = {"guard", "cli"}

WARN_LINES, MAX_LINES = 600, 1000
SOURCE_SUFFIXES = {".h", ".cc", ".inc", ".fbs", ".js", ".css", ".html", ".py", ".pyi", ".sh"}
SOURCE_FOLDERS = ("include", "src", "python", "tests", "bench", "examples", "fuzz", "tools")
# Which op a node is, its handle says; only the ops themselves and importers, which translate names, look at names.
KNOWS_OP_NAMES = {"ops", "import"}
OP_ID = re.compile(r'OpId::(?:builtin|custom|fused)\((?:\d+, )?"([^"]+)"\)')
LITERAL = re.compile(r'"([^"\\]*)"')
COMPARED_NAME = re.compile(r"\bop\.name\(\)\s*[=!]=|[=!]=\s*[\w.()>-]*\bop\.name\(\)")
# Kernels take ranges and cannot fail: nothing in src/kernels may cut work, ask whether to go on, or throw.
CUTS_OR_THROWS = {"core/cancel.h", "core/work.h", "core/thread_pool.h", "core/error.h"}
THROWS = re.compile(r"\bthrow\b|\bcheck_cancelled\b|\bstd::(vector|string|function)\b|\bmake_unique\b")
# A function, or a pointer to one, that a header of src/kernels declares at the start of a line.
DECLARED = re.compile(
    r"^(?!return|typedef|friend)(?:using \w+ = )?[A-Za-z_][\w:<>,&* ]*[ *&](?:\w+|\(\*\))\([^;{}]*\)[^;{}()]*;",
    re.MULTILINE,
)
# In src/ops work is cut by for_pieces() and its kin (core/work.h). These files are not kernels and may ask directly.
ASKS_DIRECTLY = {"src/ops/graph_builder.cc"}
# A type in the scope of a namespace, which is not indented.
TYPE = re.compile(r"^(?:(?:class|struct|union|enum(?: class)?) (\w+)\b(?!::)[^;]*$|using (\w+) = )", re.MULTILINE)
TERM = re.compile(r"\*\*(`?)([^*`]+)`?\*\*")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def include_problem(file, quote, target, siblings):
    """Why `file` (path from the root) must not include `target`, or None."""
    parts = file.parts
    in_src, is_test = parts[0] == "src", file.name.endswith("_test.cc") or parts[0] == "tests"
    layer = parts[1] if in_src else "/".join(parts[:2])
    first, _, rest = target.partition("/")

    if first == "flatbuffers" or target.endswith("tflite_generated.h"):
        allowed = (in_src and layer == "model") or file.name == "tree_file.cc"  # the fuzzer's own writer
        return None if allowed else "only src/model may see flatbuffers"
    if first == "nanobind" or target == "Python.h":
        return None if layer == "python/src" else "only python/src may see Python and nanobind"
    if target.startswith("leadline/guard/"):
        engine = (in_src and not is_test and layer not in USES_GUARD) or (parts[0] == "include" and parts[2] != "guard")
        return "the engine does without leadline::guard" if engine else None
    if first == "leadline":
        if in_src and not is_test and layer not in USES_FACADE and rest not in VOCABULARY:
            return f"src/{layer} may use only the public headers {', '.join(sorted(VOCABULARY))}"
        return None
    if parts[0] == "include":
        own = quote == '"' or first in {"fmt", "hwy", "nlohmann", "CLI"}
        return "a public header may include only leadline/*.h and system headers" if own else None
    if first in MAY_INCLUDE and rest:
        if (
            is_test
            or parts[0] in {"bench", "fuzz"}
            or first == layer
            or (in_src and first in MAY_INCLUDE.get(layer, set()))
        ):
            return None
        return f"{'src/' * in_src}{layer} may not include src/{first}"
    if in_src and quote == '"' and target in siblings:
        return f'include by path from src: "{"/".join((*parts[1:-1], target))}"'
    return None


def op_names(root):
    """The names in the list of ops."""
    ids = root / "src" / "ops" / "op_ids.h"
    return set(OP_ID.findall(ids.read_text(encoding="utf-8"))) if ids.exists() else set()


def op_name_problem(file, line, names):
    """Why this line of `file` must not look at the name of an op, or None."""
    parts = file.parts
    if parts[0] != "src" or parts[1] in KNOWS_OP_NAMES or file.name.endswith("_test.cc"):
        return None
    code = line.split("//")[0]
    if COMPARED_NAME.search(code) or names.intersection(LITERAL.findall(code)):
        return "ops are identified by handle (src/ops/op_ids.h), not by name"
    return None


def is_product(file, folder):
    """Whether `file` is a source of src/<folder> and no test."""
    return file.parts[:2] == ("src", folder) and not re.search(r"_test\.cc$|_testing\.h$", file.name)


def cancellation_problems(file, text):
    """Yields (line, message) where cancellation or failure gets into kernels, or cancellation into ops by hand."""
    code = re.sub(r"//[^\n]*", "", text)

    def line_of(match):
        return code.count("\n", 0, match.start()) + 1

    if is_product(file, "kernels"):
        for match in re.finditer(r'#\s*include "([^"]+)"', code):
            if match.group(1) in CUTS_OR_THROWS:
                yield line_of(match), f"{match.group(1)}: src/kernels takes ranges; who calls it cuts the work"
        for match in THROWS.finditer(code):
            yield line_of(match), f"{match.group(0)}: kernels cannot fail"
        if file.suffix == ".h" and not file.name.endswith("-inl.h"):
            for match in DECLARED.finditer(code):
                if "noexcept" not in match.group(0):
                    yield line_of(match), "a kernel's function is not noexcept"
    if is_product(file, "ops") and file.as_posix() not in ASKS_DIRECTLY:
        for match in re.finditer(r'"core/cancel\.h"|\bcheck_cancelled\b|\bcurrent_limit\b', code):
            yield line_of(match), f"{match.group(0)}: src/ops cuts work with core/work.h"


def check_file(root, file, names):
    """Yields (line, message, is_error) for one file; `names` are those of ops."""
    lines = (root / file).read_text(encoding="utf-8").splitlines()
    if not lines:
        return
    if len(lines) > WARN_LINES and file.name != "_leadline.pyi":  # which is generated
        yield len(lines), f"{len(lines)} lines; the aim is {WARN_LINES}, the limit {MAX_LINES}", len(lines) > MAX_LINES
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        yield 1, "the SPDX line is missing (// SPDX-License-Identifier: Apache-2.0)", True
    # Headers that Highway compiles once per instruction set guard themselves.
    text = "\n".join(lines)
    if file.suffix == ".h" and "#pragma once" not in lines and "HWY_TARGET_TOGGLE" not in text:
        yield 1, "#pragma once is missing", True
    if file.suffix not in {".h", ".cc", ".inc"}:
        return
    for number, problem in cancellation_problems(file, text):
        yield number, problem, True
    siblings = {entry.name for entry in (root / file).parent.iterdir()}
    for number, line in enumerate(lines, 1):
        if (match := INCLUDE.match(line)) and (problem := include_problem(file, *match.groups(), siblings)):
            yield number, f"{match.group(2)}: {problem}", True
        if problem := op_name_problem(file, line, names):
            yield number, problem, True


def defined_types(root):
    """The headers that define each type of the product, by its name without namespaces; helpers of tests aside."""
    types = {}
    for folder in ("include", "src"):
        for path in sorted((root / folder).rglob("*.h")):
            if not path.name.endswith("_testing.h"):
                for match in TYPE.finditer(path.read_text(encoding="utf-8")):
                    types.setdefault(match[1] or match[2], []).append(path.relative_to(root).as_posix())
    return types


def glossary_problems(root):
    """Yields (line, message): a term in code style is one type, any other term is not a type."""
    file = root / "ARCHITECTURE.md"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    start = text.find("\n## Glossary\n")
    if start < 0:
        return
    types = defined_types(root)
    for match in TERM.finditer(text, start):
        is_type, term = bool(match[1]), match[2]
        found = types.get(term if is_type else "".join(word.capitalize() for word in re.split(r"[ -]", term)), [])
        if len(found) != is_type:
            places = f"defined in {', '.join(found)}" if found else "not a type"
            yield text.count("\n", 0, match.start()) + 1, f"glossary: {term} is {places}; expected {int(is_type)} type"


def missing_headers(root):
    """Public headers that leadline.h, which is everything, does not include."""
    everything = root / "include/leadline/leadline.h"
    text = everything.read_text(encoding="utf-8") if everything.exists() else ""
    headers = {path.name for path in (root / "include/leadline").glob("*.h")} - {"leadline.h"}
    return sorted(name for name in headers if f'"leadline/{name}"' not in text)


def main(argv):
    root = Path(argv[1] if len(argv) > 1 else Path(__file__).parent.parent).resolve()
    files = sorted(
        path.relative_to(root)
        for folder in SOURCE_FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SOURCE_SUFFIXES and path.is_file()
    )
    errors = 0
    for name in missing_headers(root):
        print(f"include/leadline/leadline.h:1: error: it does not include leadline/{name}")
        errors += 1
    for line, problem in glossary_problems(root):
        print(f"ARCHITECTURE.md:{line}: error: {problem}")
        errors += 1
    names = op_names(root)
    for file in files:
        if file.parts[0] == "src" and len(file.parts) > 2 and file.parts[1] not in MAY_INCLUDE:
            print(f"{file}:1: error: src/{file.parts[1]} has no place in the layering; see MAY_INCLUDE")
            errors += 1
        for line, message, is_error in check_file(root, file, names):
            print(f"{file}:{line}: {'error' if is_error else 'warning'}: {message}")
            errors += is_error
    print(f"layering: {len(files)} files, {errors} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
