# SPDX-License-Identifier: Apache-2.0
"""Cases whose files say the shapes of the outputs, as converters write them.

LiteRT hands a node to XNNPACK only when its output has a shape of the right rank in the file, so a case with and one
without shapes are two different kernels there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness import Case, Tensor

from leadline import lite


def shaped(case: Case) -> Case | None:
    """The case with output shapes in its file; None when they depend on data, or when it is not a single node."""
    if case.build is not None or case.litert != "right" or any(t.shape for t in case.outputs):
        return None
    interpreter = lite.Interpreter(model_content=case.model())
    interpreter.allocate_tensors()
    details = interpreter.get_output_details()
    shapes = [[int(size) for size in detail["shape"]] for detail in details]
    if any(not shape or 0 in shape for shape in shapes):
        return None
    outputs = [Tensor(**{**vars(t), "shape": shape}) for t, shape in zip(case.outputs, shapes, strict=True)]
    return Case(**{**vars(case), "name": case.name + " shaped", "outputs": outputs})


def both(cases: Iterable[Case]) -> Iterator[Case]:
    """Each case without output shapes in its file, and with them where they are fixed.

    Dynamic range is only taken with shapes: without XNNPACK it rounds the activations to other levels.
    """
    for case in cases:
        other = shaped(case)
        if other is None or not case.loose:
            yield case
        if other is not None:
            yield other
