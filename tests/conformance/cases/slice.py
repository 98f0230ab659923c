# SPDX-License-Identifier: Apache-2.0
"""SLICE STRIDED_SLICE."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

from leadline import DType

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.uint32, np.int64, np.uint64, bool, np.complex64, np.object_,
]  # fmt: skip
SHAPES = [(7,), (3, 5), (2, 3, 4), (2, 3, 4, 5), (2, 1, 3, 2, 4), (2, 1, 3, 2, 2, 3), (1, 2, 1, 2, 3, 1, 2, 2)]


def cases():
    yield from slices()
    yield from slice_types()
    yield from strided_by_hand()
    yield from strided_by_empty_ellipsis()
    yield from strided_at_random()
    yield from strided_types()
    yield from strided_offsets()


def slices():
    for shape in [*SHAPES, (0,), (2, 0, 3)]:
        x = Data(f"slice {shape}")
        for number in range(6):
            begin = [int(x.rng.integers(0, n + (number == 5))) if n else 0 for n in shape]
            size = [
                int(x.rng.integers(number < 4, n - b + 1)) if n > b else 0 for n, b in zip(shape, begin, strict=True)
            ]
            size = [-1 if x.rng.random() < 0.3 else s for s in size]
            value = x.floats(shape)
            kind = (np.int32, np.int64)[number % 2]
            for first in both_ways(constant(np.array(begin, kind))):
                for extent in both_ways(constant(np.array(size, kind))):
                    want = reference_slice(value, begin, size)
                    fault = {}
                    if not want.size and "given" in (first.role, extent.role):
                        fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
                        fault["reference"] = lambda v, *_, b=begin, s=size: [reference_slice(v, b, s)]
                    name = f"#{number} {shape} from {begin} {first.role} {size} {extent.role}"
                    yield Case("SLICE", name, [given(value), first, extent], [result(np.float32)], **fault)


def reference_slice(value, begin, size):
    return value[tuple(slice(b, None if s < 0 else b + s) for b, s in zip(begin, size, strict=True))]


def slice_types():
    x = Data("slice types")
    for kind in TYPES:
        for shape, begin, size in (((5,), [1], [3]), ((3, 4), [1, 2], [-1, 2]),
            ((2, 3, 2, 3), [0, 1, 1, 0], [1, 2, 1, 2]),
                                   ((2, 2, 2, 2, 2, 3), [0, 1, 0, 1, 0, 1], [2, 1, -1, 1, 2, 2])):  # fmt: skip
            for source in both_ways(given(x.any(kind, shape))):
                for first in both_ways(constant(np.array(begin, np.int32))):
                    inputs = [source, first, constant(np.array(size, np.int32))]
                    name = f"{np.dtype(kind).name} {shape} {source.role} from {begin} {first.role}"
                    yield Case("SLICE", name, inputs, [result(kind)])
    for shape, begin, size in (((8,), [2], [4]), ((7,), [1], [5]), ((3, 5), [1, 1], [2, 3]),
        ((2, 3, 3), [1, 0, 1], [-1, 2, 2]),
                               ((1, 2, 1, 2, 3, 3), [0, 1, 0, 0, 1, 0], [1, 1, 1, 2, 2, 3])):  # fmt: skip
        four_bits = constant(x.ints(np.int8, shape, -8, 7), dtype=DType.INT4)
        inputs = [four_bits, constant(np.array(begin, np.int32)), constant(np.array(size, np.int32))]
        yield Case("SLICE", f"int4 {shape} from {begin}", inputs, [result(DType.INT4)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), constant(np.array([1, 1], np.int32))]
        inputs.append(constant(np.array([2, 2], np.int32)))
        yield Case("SLICE", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[x.floats((4, 6)), np.array(b, np.int32), np.array(s, np.int32)]
            for b, s in (([0, 0], [4, 6]), ([3, 5], [1, 1]), ([1, 2], [-1, -1]))]  # fmt: skip
    inputs = [given(x.floats((4, 6))), given(np.array([1, 1], np.int32)), given(np.array([2, 3], np.int32))]
    yield Case("SLICE", "box changes", inputs, [result(np.float32)], runs=runs)
    runs = [[x.floats(s)] for s in ((5, 3), (2, 8))]
    inputs = [given(x.floats((3, 5)), declared=(1, 1)), constant(np.array([1, 0], np.int32))]
    inputs.append(constant(np.array([-1, -1], np.int32)))
    yield Case(
        "SLICE",
        "resized twice",
        inputs,
        [result(np.float32)],
        runs=runs,
        litert="refuses",
        because="the output keeps the shape of the first allocation, which then does not fit",
        reference=lambda value: [value[1:]],
    )
    yield Case("SLICE", "resized", inputs, [result(np.float32)])


def strided(name, value, begin, end, strides, kind=None, roles=("constant",) * 3, fault=None, **masks) -> Case:
    """`roles` are those of begin, end and strides."""
    makers = dict(constant=constant, given=given)
    operands = [makers[role](np.array(v, np.int32)) for role, v in zip(roles, (begin, end, strides), strict=True)]
    kind = value.dtype if kind is None else kind
    return Case("STRIDED_SLICE", name, [given(value), *operands], [result(kind)], attributes=masks, **(fault or {}))


def strided_by_hand():
    x = Data("strided slice")
    one, two, three = x.floats((4,)), x.floats((2, 3)), x.floats((2, 3, 2))
    table = [
        (one, [1], [3], [1], {}), (one, [-3], [3], [1], {}), (one, [-5], [3], [1], {}), (one, [1], [-2], [1], {}),
        (one, [-3], [-5], [-1], {}), (one, [1], [5], [1], {}), (one, [4], [2], [-1], {}), (one, [1], [3], [2], {}),
        (one, [-1], [-4], [-1], {}), (one, [-1], [-4], [-2], {}), (one, [8], [-8], [-3], {}), (one, [3], [1], [1], {}),
        (one, [0], [4], [1], dict(begin_mask=1)), (one, [2], [4], [1], dict(begin_mask=1)),
        (one, [1], [2], [1], dict(end_mask=1)), (one, [1], [2], [-1], dict(end_mask=1, begin_mask=1)),
        (one, [1], [2], [1], dict(shrink_axis_mask=1)), (one, [-1], [0], [1], dict(shrink_axis_mask=1)),
        (one, [-2], [-1], [1], dict(shrink_axis_mask=1)), (one, [1], [-9], [1], dict(shrink_axis_mask=1)),
        (two, [1, -1], [2, -4], [2, -1], {}), (two, [1, 0], [2, 2], [1, 1], dict(begin_mask=1)),
        (two, [1, 0], [2, 2], [1, 1], dict(end_mask=2)), (two, [1], [2], [1], {}), (two, [], [], [], {}),
        (two, [0], [1], [1], dict(shrink_axis_mask=1)), (two, [0, 0], [1, 3], [1, 1], dict(shrink_axis_mask=1)),
        (two, [0, 0], [2, 1], [1, 1], dict(shrink_axis_mask=2)),
        (two, [0, 2], [1, 3], [1, 1], dict(shrink_axis_mask=3)),
        (three, [0, 0, 0], [2, 3, 2], [1, 1, 1], {}), (three, [0, 0], [2, 3], [1, 1], dict(ellipsis_mask=1)),
        (three, [0, 0], [0, 2], [1, 1], dict(ellipsis_mask=1)), (three, [0, 1], [1, 0], [1, 1], dict(ellipsis_mask=2)),
        (three, [0, 0, 1], [1, 0, 2], [1, 1, 1], dict(ellipsis_mask=2)),
        (three, [0, 0, 1, 0], [1, 0, 2, 0], [1, 1, 1, 1], dict(ellipsis_mask=2, new_axis_mask=8)),
        (three, [0, 0, 1], [1, 0, 2], [1, 1, 1], dict(ellipsis_mask=2, shrink_axis_mask=4)),
        (three, [0, 0, 1], [1, 0, 2], [1, 1, 1], dict(ellipsis_mask=2, shrink_axis_mask=5)),
        (three, [0, 0, 0], [0, 0, 0], [1, 1, 1], dict(new_axis_mask=1, begin_mask=6, end_mask=6)),
        (three, [0, 0, 0], [0, 0, 0], [1, 1, 1], dict(new_axis_mask=2, begin_mask=5, end_mask=5)),
        (three, [0, 0, 0], [1, 1, 1], [1, 1, 1], dict(new_axis_mask=5)),
        (three, [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], dict(new_axis_mask=9, shrink_axis_mask=2)),
        (three, [0, 0, 0], [1, 1, 1], [1, 1, 1], dict(new_axis_mask=2, ellipsis_mask=2)),
        (three, [0, 0, 0], [1, 1, 1], [1, 1, 1], dict(new_axis_mask=1, ellipsis_mask=4)),
        (three, [0, 0, 0, 0], [1, 1, 1, 2], [1, 1, 1, 1], dict(new_axis_mask=5, ellipsis_mask=2)),
        (three, [-1, -1, -1], [-3, -4, -3], [-1, -1, -1], {}),
        (three, [1, 2, 1], [0, 0, 0], [-1, -2, -1], dict(end_mask=7)),
        (x.floats((0,)), [0], [5], [1], {}), (x.floats((2, 0)), [0, 0], [1, 0], [1, 1], {}),
        (x.floats((5, 4, 3)), [-1, 0, 2], [-6, 4, 0], [-2, 3, -1], {}), (x.floats(()), [], [], [], {}),
        (x.floats(()), [0], [1], [1], dict(new_axis_mask=1)),
        (one, [2147483647], [-2147483648], [-1], {}), (one, [-2147483648], [2147483647], [2147483647], {}),
        (one, [0], [4], [1000000007], {}), (one, [3], [-2147483648], [-2147483647], {}),
    ]  # fmt: skip
    table += [
        (two, [1, 1], [2, 2], [1, 1], dict(shrink_axis_mask=3, begin_mask=m, end_mask=n))
        for m in range(4)
        for n in range(4)
    ]
    for value, begin, end, strides, masks in table:
        name = f"{value.shape} {begin} {end} {strides} {masks}"
        yield strided(name, value, begin, end, strides, **masks)


def strided_by_empty_ellipsis():
    """As many entries as dimensions beside the ellipsis."""
    x = Data("strided slice ellipsis").floats((3, 5))
    for begin, end, mask in (([0, 0, 1], [2, 0, 4], 2), ([0, 1, 1], [0, 3, 3], 1), ([1, 2, 0], [3, 4, 0], 4)):
        want = reference_strided(x, begin, end, [1] * 3, ellipsis_mask=mask)
        fault = {}
        if mask < 4:
            fault = dict(
                litert="wrong", because="an ellipsis stands for at least one axis", reference=lambda v, w=want: [w]
            )
        yield strided(f"empty ellipsis {mask}", x, begin, end, [1] * 3, ellipsis_mask=mask, fault=fault)


def reference_strided(value, begin, end, strides, begin_mask=0, end_mask=0, shrink_axis_mask=0, ellipsis_mask=0,
                      new_axis_mask=0):  # fmt: skip
    """The slice as numpy writes it."""
    spec = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        if ellipsis_mask >> i & 1:
            spec.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            spec.append(None)
        elif shrink_axis_mask >> i & 1:
            spec.append(b)
        else:
            spec.append(slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s))
    return value[tuple(spec)]


def strided_at_random():
    """Every mask in every mix, positive and negative strides, all operands constant or not."""
    for number in range(500):
        x = Data(f"strided slice {number}")
        rng = x.rng
        shape = SHAPES[rng.integers(len(SHAPES) - 1)]
        entries = int(rng.integers(1, len(shape) + 1))
        value = x.floats(shape)
        masks = {}
        if rng.random() < 0.3:
            masks["ellipsis_mask"] = 1 << int(rng.integers(entries))
        if rng.random() < 0.3:
            masks["new_axis_mask"] = int(rng.integers(1, 1 << min(entries, 8 - len(shape))))  # to rank 8 at most
        for mask in ("begin_mask", "end_mask", "shrink_axis_mask"):
            if rng.random() < 0.4:
                masks[mask] = int(rng.integers(1, 1 << entries))
        shrink, ellipsis = masks.get("shrink_axis_mask", 0), masks.get("ellipsis_mask", 0)
        new = masks.get("new_axis_mask", 0)
        begin, end, strides = [], [], []
        left = len(shape) - sum(not (ellipsis | new) >> i & 1 for i in range(entries))
        axis = 0
        for i in range(entries):
            if ellipsis >> i & 1:
                size, axis = 3, axis + left
            elif new >> i & 1:
                size = 3
            else:
                size, axis = shape[axis], axis + 1
            stride = int(rng.choice([1, 1, 1, 2, 3, -1, -1, -2]))
            if shrink >> i & 1:
                b = int(rng.integers(-size, size))
                begin, end, strides = [*begin, b], [*end, b + 1], [*strides, 1]
                continue
            begin.append(int(rng.integers(-size - 1, size + 2)))
            end.append(int(rng.integers(-size - 2, size + 2)))
            strides.append(stride)
        if shrink:
            masks["begin_mask"] = masks.get("begin_mask", 0) & ~shrink
        roles = [("constant", "given")[int(r)] for r in rng.random(3) < 0.35]
        want = reference_strided(value, begin, end, strides, **masks)
        fault = {}
        if not want.size and "given" in roles:
            fault = dict(litert="refuses", because=EMPTY_DYNAMIC, reference=lambda *_, w=want: [w])
        name = f"#{number} {shape} {begin} {end} {strides} {masks} {roles}"
        yield strided(name, value, begin, end, strides, roles=roles, fault=fault, **masks)


def strided_types():
    x = Data("strided slice types")
    for kind in TYPES:
        value = x.any(kind, (3, 4, 5))
        title = np.dtype(kind).name
        for roles in (("constant",) * 3, ("given",) * 3):
            yield strided(f"{title} {roles[0]}", value, [0, -1, 1], [3, -4, 4], [2, -1, 1], kind, roles)
            yield strided(
                f"{title} shrink {roles[0]}", value, [1, 0, -2], [2, 4, -1], [1, 2, 1], kind, roles, shrink_axis_mask=5
            )
        operands = [constant(np.array(v, np.int32)) for v in ([0, 3, 1], [3, 0, 5], [1, -1, 2])]
        yield Case("STRIDED_SLICE", f"{title} constant input", [constant(value), *operands], [result(kind)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        operands = [constant(np.array(v, np.int32)) for v in ([0, 3], [3, 0], [1, -1])]
        yield Case(
            "STRIDED_SLICE",
            f"quantized {np.dtype(kind).name}",
            [given(x.ints(kind, (3, 4)), scale, zero), *operands],
            [result(kind, scale, zero)],
            exact=True,
        )
    for shape in ((2, 2, 2, 2, 2, 2, 2), (2, 1, 2, 1, 2, 1, 2, 2)):
        rank = len(shape)
        value = x.floats(shape)
        yield strided(f"rank {rank} {shape}", value, [-1] * rank, [0] * rank, [-1] * rank, end_mask=(1 << rank) - 1)
        yield strided(f"rank {rank} {shape} first", value, [0] * rank, [1] * rank, [1] * rank, shrink_axis_mask=3)
    runs = [[x.floats((4, 6)), *(np.array(v, np.int32) for v in box)]
            for box in (([0, 0], [4, 6], [2, 1]), ([3, 5], [0, 0], [-1, -2]), ([-2, -2], [4, 6], [1, 1]))]  # fmt: skip
    inputs = [given(x.floats((4, 6))), *(given(np.array(v, np.int32)) for v in ([1, 1], [3, 5], [1, 2]))]
    yield Case("STRIDED_SLICE", "box changes", inputs, [result(np.float32)], runs=runs)
    runs = [[x.floats(s)] for s in ((5, 3), (2, 8))]
    inputs = [
        given(x.floats((3, 5)), declared=(1, 1)),
        *(constant(np.array(v, np.int32)) for v in ([0, -1], [9, -9], [1, -2])),
    ]
    yield Case("STRIDED_SLICE", "resized", inputs, [result(np.float32)], runs=runs)


def strided_offsets():
    """With the attribute offset, `end` counts from begin."""
    x = Data("strided slice offset")
    for shape, begin, end, strides, masks in (
        ((6,), [1], [3], [1], {}), ((6,), [-4], [3], [1], {}), ((6,), [1], [4], [2], {}),
        ((4, 5), [1, 0], [2, 5], [1, 1], {}),
        ((4, 5), [-2, -3], [2, 2], [1, 1], {}), ((4, 5), [2, 1], [1, 3], [1, 1], dict(shrink_axis_mask=1)),
        ((4, 5), [1, 1], [3, 2], [1, 1], dict(begin_mask=2)), ((2, 3, 4), [0, 1, 2], [2, 2, 2], [1, 1, 1], {}),
        ((7,), [5], [-4], [-1], {}), ((7,), [-1], [-4], [-2], {}),
    ):  # fmt: skip
        for roles in (("constant",) * 3, ("given", "constant", "constant"), ("given",) * 3):
            name = f"offset {shape} {begin} {end} {strides} {masks} {roles}"
            yield strided(name, x.floats(shape), begin, end, strides, roles=roles, offset=True, **masks)
