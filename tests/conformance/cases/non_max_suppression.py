# SPDX-License-Identifier: Apache-2.0
"""NON_MAX_SUPPRESSION_V4 and NON_MAX_SUPPRESSION_V5."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result


def _boxes(data: Data, count: int) -> np.ndarray:
    corner = data.floats((count, 2), 0, 1)
    size = data.floats((count, 2), 0.05, 0.8)
    boxes = np.concatenate([corner, corner + size], axis=1)
    # Some boxes give the corners the other way round.
    boxes[::3] = boxes[::3][:, [2, 3, 0, 1]]
    return boxes


def cases():
    for count, most in [(6, 3), (20, 10), (20, 30), (1, 1), (5, 0)]:
        for iou in (0.0, 0.1, 0.5, 0.9):
            for threshold in (-1.0, 0.0, 0.5):
                name = f"{count} boxes, at most {most}, iou {iou}, score {threshold}"
                data = Data(name)
                boxes, scores = given(_boxes(data, count)), given(data.floats((count,), 0, 1))
                limits = both_ways(constant(np.array(most, np.int32)))
                for limit in limits if most else limits[:1]:  # LiteRT cannot give empty dynamic results
                    rest = [limit, constant(np.float32(iou)), constant(np.float32(threshold))]
                    outputs = [result(np.int32), result(np.int32)]
                    yield Case("NON_MAX_SUPPRESSION_V4", f"{name} {limit.role}", [boxes, scores, *rest], outputs)
                    for sigma in (0.0, 0.5):
                        inputs = [boxes, scores, *rest, constant(np.float32(sigma))]
                        outputs = [result(np.int32), result(np.float32), result(np.int32)]
                        yield Case("NON_MAX_SUPPRESSION_V5", f"{name} {limit.role} sigma {sigma}", inputs, outputs)
