# SPDX-License-Identifier: Apache-2.0
"""TFLite_Detection_PostProcess.

LiteRT leaves the places of detections that it does not find as they were when use_regular_nms is off; all places are
taken in those cases.
"""

from __future__ import annotations

import numpy as np
from flatbuffers import flexbuffers
from harness import Case, Data, both_ways, given, quantize, result

OP = "TFLite_Detection_PostProcess"


def options(**values) -> bytes:
    defaults = dict(
        max_detections=3,
        max_classes_per_detection=1,
        nms_score_threshold=0.0,
        nms_iou_threshold=0.5,
        num_classes=2,
        y_scale=10.0,
        x_scale=10.0,
        h_scale=5.0,
        w_scale=5.0,
    )
    return bytes(flexbuffers.Dumps({**defaults, **values}))


def scene(boxes: int, columns: int, seed: str, width: int = 4):
    """Offsets, distinct scores, and anchors of which about half overlap another."""
    data = Data(f"detection {boxes} {columns} {seed}")
    offsets = data.floats((1, boxes, width), -2, 2)
    scores = (
        data.rng.permutation(np.linspace(0.02, 0.98, boxes * columns)).reshape(1, boxes, columns).astype(np.float32)
    )
    centers = data.floats((boxes, 2), 0, 4)
    centers[1::2] = centers[: boxes // 2 * 2 : 2] + data.floats((boxes // 2, 2), -0.2, 0.2)
    sizes = data.floats((boxes, 2), 0.8, 1.2)
    return offsets, scores, np.concatenate([centers, sizes], 1)


def cases():
    outputs = [result(np.float32) for _ in range(4)]
    for boxes, classes, background in (
        (6, 2, 1),
        (6, 2, 0),
        (1, 1, 0),
        (20, 1, 1),
        (25, 5, 1),
        (100, 10, 1),
        (60, 91, 1),
    ):
        for regular in (True, False):
            for most, per_box in ((1, 1), (3, 1), (5, 2), (10, 3)):
                if not regular and (most > boxes // 3 + 1 or per_box > classes):
                    continue
                offsets, scores, anchors = scene(boxes, classes + background, f"{most} {per_box}")
                if not regular:
                    per_class = {}
                else:
                    per_class = dict(detections_per_class=max(1, most // 2))
                    per_box = 1
                content = options(
                    max_detections=most,
                    max_classes_per_detection=per_box,
                    num_classes=classes,
                    use_regular_nms=regular,
                    **per_class,
                )
                for fixed in both_ways(given(anchors)):
                    name = f"{boxes} boxes, {classes}+{background} classes, {most} x {per_box}, {fixed.role}"
                    name += ", regular" if regular else ""
                    yield Case(OP, name, [given(offsets), given(scores), fixed], outputs, custom_options=content)
    for overlap in (0.05, 0.3, 0.7, 1.0):
        for threshold in (-1.0, 0.0, 0.3, 0.6, 2.0):
            offsets, scores, anchors = scene(30, 4, "thresholds")
            content = options(
                max_detections=8,
                num_classes=3,
                use_regular_nms=True,
                detections_per_class=4,
                nms_iou_threshold=overlap,
                nms_score_threshold=threshold,
            )
            inputs = [given(offsets), given(scores), given(anchors)]
            yield Case(OP, f"overlap {overlap}, score {threshold}", inputs, outputs, custom_options=content)
    for scales in ((1.0, 1.0, 1.0, 1.0), (10.0, 20.0, 5.0, 2.5)):
        names = dict(zip(("y_scale", "x_scale", "h_scale", "w_scale"), scales, strict=True))
        offsets, scores, anchors = scene(12, 3, "scales")
        content = options(max_detections=4, use_regular_nms=True, **names)
        yield Case(
            OP, f"scales {scales}", [given(offsets), given(scores), given(anchors)], outputs, custom_options=content
        )
    offsets, scores, anchors = scene(12, 3, "key points", width=10)
    yield Case(
        OP,
        "key points",
        [given(offsets), given(scores), given(anchors)],
        outputs,
        custom_options=options(max_detections=4, use_regular_nms=True),
    )
    equal = np.full_like(scores, 0.5)
    yield Case(
        OP,
        "equal scores",
        [given(offsets), given(equal), given(anchors)],
        outputs,
        custom_options=options(max_detections=4, use_regular_nms=True),
    )
    for regular in (True, False):
        offsets, scores, anchors = scene(20, 3, "quantized")
        inputs = [given(quantize(offsets, 4 / 255, 128, np.uint8), 4 / 255, 128)]
        inputs.append(given(quantize(scores, 1 / 255, 0, np.uint8), 1 / 255, 0))
        inputs.append(given(quantize(anchors, 5 / 255, 10, np.uint8), 5 / 255, 10))
        yield Case(
            OP,
            f"uint8, regular {regular}",
            inputs,
            outputs,
            custom_options=options(max_detections=4, use_regular_nms=regular),
        )
        x = [scene(20, 3, f"run {i}") for i in range(3)]
        inputs = [given(v) for v in x[0]]
        yield Case(
            OP,
            f"several runs, regular {regular}",
            inputs,
            outputs,
            runs=[list(v) for v in x[1:]],
            custom_options=options(max_detections=4, use_regular_nms=regular),
        )
