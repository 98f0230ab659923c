# SPDX-License-Identifier: Apache-2.0
"""Every op that runs has conformance cases, or a reason why it cannot have any."""

from test_conformance import CASES

import leadline

LAST_NUMBERED = 161  # RIGHT_SHIFT: what follows is StableHLO's, and ops for it

# Covered by the cases of another op, whose models hold them.
INSIDE_OTHERS = {
    "ASSIGN_VARIABLE": "VAR_HANDLE", "READ_VARIABLE": "VAR_HANDLE", "CALL_ONCE": "VAR_HANDLE",
    "HASHTABLE_FIND": "HASHTABLE", "HASHTABLE_IMPORT": "HASHTABLE", "HASHTABLE_SIZE": "HASHTABLE",
}  # fmt: skip

# Runs here and has unit tests, but LiteRT as installed does not run it: there is nothing to compare with.
NOT_IN_LITERT = {
    "DenseImageWarp", "Landmarks2TransformMatrix", "LiteRtMaxUnpooling2D", "MaxPoolWithArgmax", "MaxUnpooling2D",
    "Resampler", "TransformLandmarks", "TransformTensorBilinear",
}  # fmt: skip


def covered() -> set[str]:
    return set(CASES) | {op for op, home in INSIDE_OTHERS.items() if home in CASES}


def test_every_op_that_runs_has_cases():
    # No wheel of LiteRT runs Flex ops: tests/tensorflow/test_flex.py compares them with TensorFlow.
    ops = [op.name for op in leadline.known_ops() if op.runs and not op.name.startswith("Flex")]
    missing = [name for name in ops if name not in covered() | NOT_IN_LITERT]
    assert not missing


def test_every_op_that_does_not_run_says_why():
    numbered = {op.code: op for op in leadline.known_ops() if op.code >= 0}
    assert set(range(LAST_NUMBERED + 1)) <= set(numbered) | {32}, "32 is CUSTOM"
    unexplained = [op.name for op in numbered.values() if not op.runs and not op.reason]
    assert not unexplained


def test_exceptions_are_still_needed():
    names = {op.name for op in leadline.known_ops() if op.runs}
    assert set(INSIDE_OTHERS) | NOT_IN_LITERT <= names
