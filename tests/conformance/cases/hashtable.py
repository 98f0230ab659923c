# SPDX-License-Identifier: Apache-2.0
"""HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND and HASHTABLE_SIZE, as converters write them: a table that an initialiser
fills once and that every run asks."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given

import leadline

STRING, INT64 = 5, 4  # numbers of the format


def cases():
    texts = np.array([b"one", b"two", b"", b"deep water", b"\xff\x00"], object)
    numbers = np.array([1, -2, 0, 1 << 40, -(1 << 62)], np.int64)
    for count in (1, 3, 5):
        for wanted in [(1,), (4,), (2, 3), (0,)]:
            data = Data(f"{count} {wanted}")
            unknown = {"text": np.array([b"none"], object), "number": np.array([77], np.int64)}
            picks = data.rng.integers(0, count + 1, wanted)
            for keys, values, kind, default in (
                (texts, numbers, "text", np.int64(-1)), (numbers, texts, "number", np.array(b"unknown", object)),
            ):  # fmt: skip
                asked = np.concatenate([keys[:count], unknown[kind]])[picks]
                yield _case(f"{kind} keys, {count} entries, ask {wanted}", keys[:count], values[:count], asked, default)


def _case(name, keys, values, asked, default):
    def build() -> bytes:
        builder = leadline.ModelBuilder()
        codes = [STRING if array.dtype == object else INT64 for array in (keys, values)]
        options = dict(table_id=7, key_dtype=codes[0], value_dtype=codes[1])
        start = builder.subgraph("start")
        table = start.tensor("table", leadline.DType.RESOURCE, [1])
        start.node("HASHTABLE", [], [table], **options)
        start.node("HASHTABLE_IMPORT", [table, start.constant("keys", keys), start.constant("values", values)], [])
        x = builder.input("asked", keys.dtype, asked.shape)
        table = builder.tensor("table", leadline.DType.RESOURCE, [1])
        found = builder.tensor("found", values.dtype, asked.shape)
        size = builder.tensor("size", np.int64, [1])
        builder.node("CALL_ONCE", [], [], init_subgraph_index=start.index)
        builder.node("HASHTABLE", [], [table], **options)
        builder.node("HASHTABLE_FIND", [table, x, builder.constant("default", default)], [found])
        builder.node("HASHTABLE_SIZE", [table], [size])
        builder.output(found, size)
        return builder.to_tflite()

    return Case("HASHTABLE", name, [given(asked)], build=build, runs=[[asked]])
