# SPDX-License-Identifier: Apache-2.0
"""Cases whose files say the shapes of the outputs, as converters write them.

LiteRT hands a node to XNNPACK only when its output has a shape of the right rank in the file, so a case with and one
without shapes are two different kernels there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from harness import Case, Tensor

from leadline import lite

OWN_KERNELS = (np.int16, np.int32, np.int64, bool)  # types that XNNPACK has no ops for


def shaped(case: Case) -> Case | None:
    """The case with output shapes in its file; None when they depend on data, or when it is not a single node."""
    if case.build is not None or case.litert != "right" or any(t.shape for t in case.outputs):
        return None
    try:
        interpreter = lite.Interpreter(model_content=case.model())
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError):
        return None  # the case itself will fail
    details = interpreter.get_output_details()
    shapes = [[int(size) for size in detail["shape"]] for detail in details]
    if any(not shape or 0 in shape for shape in shapes):
        return None
    outputs = [Tensor(**{**vars(t), "shape": shape}) for t, shape in zip(case.outputs, shapes, strict=True)]
    return Case(**{**vars(case), "name": case.name + " shaped", "outputs": outputs})


def both(cases: Iterable[Case]) -> Iterator[Case]:
    """Each case without output shapes in its file, and with them where they are fixed.

    Where LiteRT's own kernel rounds otherwise, only the case with shapes is right: dynamic range quantizes activations
    to other levels, and bilinear int8 images are resized with coarser positions.
    """
    for case in cases:
        other = shaped(case) if case.outputs[0].dtype not in OWN_KERNELS else None
        coarse = case.loose or (case.op == "RESIZE_BILINEAR" and case.outputs[0].dtype is np.int8)
        half = case.outputs[0].dtype is np.float16  # only XNNPACK has it
        if (other is None or not coarse) and not half:
            yield case
        if other is not None:
            yield other
