# SPDX-License-Identifier: Apache-2.0
"""HASHTABLE_LOOKUP, LSH_PROJECTION, SKIP_GRAM, UNIQUE, BUCKETIZE, SPARSE_TO_DENSE."""

from __future__ import annotations

import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result


def cases():
    yield from _hashtable_lookup()
    yield from _lsh_projection()
    yield from _skip_gram()
    yield from _unique()
    yield from _bucketize()
    yield from _sparse_to_dense()


def _texts(*items: bytes) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _hashtable_lookup():
    for keys, wanted in [([-11, 0, 1234], [1234, -292, -11, 0]), ([5], [5, 4]), ([1, 2, 3, 9], [9, 9, 1])]:
        for shape in [(), (2,), (3, 2)]:
            data = Data(f"{keys} {shape}")
            for dtype in (np.float32, np.int32, np.uint8):
                values = data.any(dtype, (len(keys), *shape))
                inputs = [given(np.array(wanted, np.int32)), given(np.array(keys, np.int32)), given(values)]
                name = f"{np.dtype(dtype)} {wanted} in {keys} {shape}"
                yield Case("HASHTABLE_LOOKUP", name, inputs, [result(dtype), result(np.uint8)])
        texts = _texts(*(b"value %d" % key for key in keys))
        inputs = [given(np.array(wanted, np.int32)), given(np.array(keys, np.int32)), given(texts)]
        outputs = [result(object), result(np.uint8)]
        yield Case("HASHTABLE_LOOKUP", f"string {wanted} in {keys}", inputs, outputs)


def _lsh_projection():
    sparse, dense = 1, 2
    for kind in (sparse, dense):
        for shape in [(3, 2), (1, 4), (5, 1), (2, 31)]:
            for dtype in (np.int32, np.float32, np.int64, object):
                for weighted in (False, True):
                    data = Data(f"{kind} {shape}")
                    seeds = data.floats(shape, -1, 1)
                    values = data.any(dtype, (4, 2) if dtype is not object else (4,))
                    inputs = [constant(seeds), given(values)]
                    inputs += [given(data.floats((4,), 0.1, 2))] if weighted else []
                    name = f"type {kind} seeds {shape} of {np.dtype(dtype)} weighted {weighted}"
                    yield Case("LSH_PROJECTION", name, inputs, [result(np.int32)], type=kind)


def _skip_gram():
    sentences = [b"The quick\t brown fox\n jumps over\n the lazy dog!", b"one", b"", b"  two   words ", b"a b c"]
    for sentence in sentences:
        for size in (1, 2, 3):
            for skip in (0, 1, 3):
                for all_sizes in (False, True):
                    name = f"{sentence!r} {size} skip {skip} all {all_sizes}"
                    options = dict(ngram_size=size, max_skip_size=skip, include_all_ngrams=all_sizes)
                    yield Case("SKIP_GRAM", name, [given(_texts(sentence))], [result(object)], **options)


def _unique():
    for dtype in (np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8):
        for index, code in ((np.int32, 2), (np.int64, 4)):
            for count in (0, 1, 2, 17):
                values = Data(f"{count}").ints(np.int8, (count,), 0, 5).astype(dtype)
                name = f"{np.dtype(dtype)} {count} index {np.dtype(index)}"
                nothing = [np.zeros(0, dtype), np.zeros(0, index)]
                fault = dict(litert="refuses", because=EMPTY_DYNAMIC, reference=lambda _, n=nothing: n)
                options = dict(idx_out_type=code, **({} if count else fault))
                yield Case("UNIQUE", name, [given(values)], [result(dtype), result(index)], **options)
    for low in (-128, 0):
        values = Data(f"{low}").ints(np.int8, (23,), low, low + 6)
        outputs = [result(np.int8, 0.5, 3), result(np.int32)]
        yield Case("UNIQUE", f"quantized from {low}", [given(values, 0.5, 3)], outputs, exact=True)


def _bucketize():
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        for boundaries in ([], [0.0], [-10.0, 0.0, 5.5, 100.0], [1.0, 1.0, 2.0]):
            for shape in [(), (9,), (3, 4), (0,)]:
                name = f"{np.dtype(dtype)} {shape} {boundaries}"
                values = Data(name).any(dtype, shape)
                if values.size > 3:
                    values.flat[0], values.flat[1] = 0, 1
                yield Case("BUCKETIZE", name, [given(values)], [result(np.int32)], boundaries=boundaries)


def _sparse_to_dense():
    places = [
        (3, [5]), ([1, 4], [5]), ([[0], [3]], [4]), ([[0, 1], [2, 0], [1, 1]], [3, 2]), ([[1, 0, 2]], [2, 1, 3]),
        ([[0, 0, 0, 0], [1, 0, 1, 2]], [2, 1, 2, 3]), (np.zeros((0, 2), int), [2, 2]),
    ]  # fmt: skip
    for at, shape in places:
        at = np.array(at)
        count = 1 if at.ndim == 0 else at.shape[0]
        for dtype in (np.float32, np.int32, np.int64, np.int8, np.uint8):
            for index in (np.int32, np.int64):
                for scalar in (False, True):
                    name = f"{np.dtype(dtype)} {at.tolist()} in {shape} {np.dtype(index)} scalar {scalar}"
                    data = Data(name)
                    values = data.any(dtype, () if scalar else (count,))
                    for size in both_ways(constant(np.array(shape, index))):
                        inputs = [given(at.astype(index)), size, given(values), constant(np.array(9, dtype))]
                        yield Case("SPARSE_TO_DENSE", f"{name} shape {size.role}", inputs, [result(dtype)])
