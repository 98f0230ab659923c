# SPDX-License-Identifier: Apache-2.0
"""The outcome of each program: on leadline.tf, and on TensorFlow in a guarded cell with 3 GB.

The seeds are the programs of ../shared/seeds/examples, by number; the others are those of tests/notebook/programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EMPTY_GRAPH = "The Session graph is empty"  # TensorFlow 2 about sess.run(eager tensor)


@dataclass(frozen=True)
class Expected:
    """The cell's end. Patterns are regular expressions; `says` maps each to how often standard output has it."""

    says: dict[str, int] | None = None
    error: str = ""  # a pattern of its name; empty: none
    words: tuple[str, ...] = ()  # patterns in what the error says
    check: str = ""  # an expression that is True in the same kernel afterwards
    seconds: float = 60  # most time

    def problems(self, result) -> list[str]:
        """What differs; empty when nothing does."""
        found = []
        if result.died:
            found.append("the kernel died")
        if not re.fullmatch(self.error, result.error or ""):
            found.append(f"ended with {result.error or 'no error'}, expected {self.error or 'none'}")
        found += [f"the error does not say {word!r}" for word in self.words if not re.search(word, result.message)]
        for pattern, count in (self.says or {}).items():
            times = len(re.findall(pattern, result.stdout, re.MULTILINE))
            if times != count:
                found.append(f"{pattern!r} is {times} times in the output, expected {count}")
        if result.seconds > self.seconds:
            found.append(f"took {result.seconds:.1f} s, expected at most {self.seconds}")
        return found


def fails(error: str, *words: str, says: dict[str, int] | None = None, seconds: float = 60) -> Expected:
    return Expected(says, error, words, seconds=seconds)


_PRODUCT = {"^Tensor Defined$": 1, "^Matrix product defined$": 1, "^Starting Computation$": 1}
_NO_TEBIBYTES = ("4000000000000|3.6 TiB|4.0 TB", "tf.random.normal")
# A notebook looks at a cell before Python does, and has words of its own for one that stops too early.
_CUT_OFF = fails("SyntaxError|IndentationError", "incomplete input|expected an indented block after 'with' statement")
_QUANTIZED = Expected({r"^Quantization iteration: \d$": 5, "Model converted and allocated": 5, "failed": 0})
_DEBUGGED = Expected({r"^Iteration: \d, creating debugger$": 3, "^Interpreter created successfully": 3, "^Error": 0})
_TWENTY = Expected({r"^ Output: \[0?\.\d+ +0?\.\d+ *\]$": 20, "Error": 0})
_CAUGHT = Expected({r"^TensorFlow Error: .*\[10, ?10\].*\[20, ?20\]": 1})
_NO_NUMPY = fails("NameError", "name 'np' is not defined")

# program: (on leadline.tf, on TensorFlow in the guard)
SEEDS = {
    "000_1": (_QUANTIZED, _QUANTIZED),
    "000_2": (_TWENTY, _TWENTY),
    "000_3": (_DEBUGGED, _DEBUGGED),
    "001_2": (fails("IoError|FileNotFoundError|OSError", "path/to/saved_model"), fails("OSError", "path/to/saved_model")),
    "002_1": (
        Expected(
            {**_PRODUCT, "^Computation Completed$": 1},
            check="output.shape == (10000, 10000) and all(abs(output[i, j] - np.dot(np.asarray(large_tensor[i]), "
            "np.asarray(large_tensor[j]))) < 0.05 for i, j in [(0, 0), (9999, 0), (5000, 7777), (9999, 9999)])",
            seconds=120,
        ),
        # 3 GB is what it takes: on a machine with more threads the product may need more.
        fails("RuntimeError|GuardError", f"{EMPTY_GRAPH}|more than its memory limit", says=_PRODUCT, seconds=150),
    ),
    "002_2": (
        Expected({"^No GPUs detected, running on CPU$": 1, r"^Result: \[5\. 7\. 9\.\]$": 1}),
        fails("RuntimeError", EMPTY_GRAPH, says={"^No GPUs detected, running on CPU$": 1}),
    ),
    "002_3": (
        Expected({"^TensorFlow Version: ": 1, r"^Python Version: 3\.": 1, r"^Result: \[5 7 9\]$": 1}),
        fails("RuntimeError", EMPTY_GRAPH, says={r"^TensorFlow Version: 2\.": 1, r"^Python Version: 3\.": 1}),
    ),
    "003_1": (
        fails("InvalidArgumentError", r"10000, ?10000, ?3\b"),
        # Killed at the limit, or, where TensorFlow has taken more address space before, told by numpy.
        fails(
            "GuardError|MemoryError",
            "more than its memory limit|Unable to allocate 2.24 GiB",
            "line [5-7] in <module>|Unable to allocate 2.24 GiB",
        ),
    ),
    "003_2": (_NO_NUMPY, _NO_NUMPY),
    "003_3": (_CAUGHT, _CAUGHT),
    # Refused before anything is taken; TensorFlow tries for ten seconds, twice.
    "004_1": (
        fails("BudgetError|ResourceExhaustedError", *_NO_TEBIBYTES, seconds=5),
        fails("ResourceExhaustedError", r"OOM when allocating tensor with shape\[10000,10000,10000\]", seconds=90),
    ),
    "004_2": (
        Expected(check="v3.shape == (1000, 1000) and v4.name.startswith('my_scope/variable_4') and "
                 "abs(float(v1.numpy().mean())) < 0.01 and abs(float(v2.numpy().std()) - 1) < 0.01"),
        Expected(),
    ),
    "004_3": (_CUT_OFF, _CUT_OFF),
}  # fmt: skip

CUT_OFF = """import tensorflow as tf

with tf.compat.v1.Session() as session:
    # nothing yet
"""

OWN = {
    "quantize_in_a_loop": (Expected({r"^turn \d takes int8$": 3}),) * 2,
    "invoke_in_a_loop": (Expected({"^answers: 1 error below 10 %: True$": 1}),) * 2,
    "half_precision": (
        fails("IoError|FileNotFoundError|OSError", "a/saved/model"),
        fails("OSError", "a/saved/model"),
    ),
    "product_with_transpose": (
        Expected({r"^shape \(700, 700\)$": 1, "^right: True$": 1}),
        fails("RuntimeError", EMPTY_GRAPH, says={r"^shape \(700, 700\)$": 1}),
    ),
    "choose_a_device": (
        Expected({"^chosen /CPU:0 of True$": 1, r"^total \[2.5, 4.5\]$": 1}),
        fails("RuntimeError", EMPTY_GRAPH, says={"^chosen /CPU:0 of True$": 1}),
    ),
    "versions": (Expected({"^versions True True$": 1, r"^result \[4, 6\]$": 1}),) * 2,
    "wrong_product": (
        fails("InvalidArgumentError", r"400, ?300, ?3\b", says={"^before$": 1, "^after": 0}),
        fails("InvalidArgumentError", r"400, ?300, ?3\b", says={"^before$": 1, "^after": 0}),
    ),
    "tensors_in_a_list": (
        Expected({"^kept 500$": 1, r"^sum 124750\.0$": 1}),
        fails("RuntimeError", EMPTY_GRAPH, says={"^kept 500$": 1}),
    ),
    "wrong_sum": (Expected({r"^caught: .*\[4, ?5\].*\[6, ?7\]": 1}),) * 2,
    "terabytes": (
        fails("BudgetError|ResourceExhaustedError", "7.3 TiB|8.0 TB|8000000000000", "tf.random.uniform", seconds=5),
        fails("ResourceExhaustedError", r"OOM when allocating tensor with shape\[20000,20000,5000\]"),
    ),
    "variables_in_scopes": (
        Expected({r"^shapes \(300, 300\) \(3,\)$": 1, r"^value \[1\.0, 2\.0, 3\.0\]$": 1}),
    ) * 2,
    "forgotten_sessions": (Expected({r"^doubled \[2\.0, 5\.0\] with 50 open$": 1}),) * 2,
    "cut_off": (_CUT_OFF, _CUT_OFF),
}  # fmt: skip
