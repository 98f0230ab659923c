# SPDX-License-Identifier: Apache-2.0
"""Writes .tflite files for tests, independently of Leadline's own writer.

    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.float32, [1, 4])
    y = graph.op("ADD", [x, graph.constant("one", np.ones(4, np.float32))], ("y", np.float32, [1, 4]))
    graph.output(y)
    content = builder.build()

A flatbuffer is written front to back: a table first, then what it points to, so that offsets only point forward.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

STRING, RESOURCE, INT4 = 5, 13, 17
_TYPE_CODES = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "complex64": 8, "int8": 9,
    "float64": 10, "complex128": 11, "uint64": 12, "uint32": 15, "uint16": 16,
}  # fmt: skip

# Op: its code, and number and scalar format of its option table.
_OPS = {
    "ADD": (0, 11), "CONV_2D": (3, 1), "FULLY_CONNECTED": (9, 8), "MUL": (18, 21), "RESHAPE": (22, 17),
    "SOFTMAX": (25, 9), "TANH": (28, 0), "GATHER": (36, 23), "EXP": (47, 0), "LESS": (58, 41), "RANGE": (96, 73),
    "WHERE": (109, 85), "WHILE": (119, 93), "BATCH_MATMUL": (126, 101), "CALL_ONCE": (129, 103),
    "VAR_HANDLE": (142, 111), "READ_VARIABLE": (143, 112), "ASSIGN_VARIABLE": (144, 113),
}  # fmt: skip
_CUSTOM = 32


@dataclass
class Scalar:
    """A number with its struct format."""

    format: str
    value: float


@dataclass
class Vector:
    """Numbers, with the alignment of the first."""

    data: np.ndarray
    align: int = 4


class Table(dict):
    """Slot number -> Scalar, Vector, str, Table, or a list of Tables; None: absent."""


def ints(values) -> Vector:
    """A vector of int32."""
    return Vector(np.asarray(values, np.int32).reshape(-1))


class _Writer:
    def __init__(self):
        self.buffer = bytearray()

    def pad(self, align: int, ahead: int = 0) -> None:
        """Zeros until the position `ahead` bytes from here is a multiple of `align`."""
        self.buffer += bytes(-(len(self.buffer) + ahead) % align)

    def point(self, at: int, target: int) -> None:
        struct.pack_into("<I", self.buffer, at, target - at)

    def file(self, root: Table, identifier: bytes) -> bytes:
        self.buffer += bytes(4) + identifier
        self.point(0, self.table(root))
        return bytes(self.buffer)

    def table(self, table: Table) -> int:
        slots = {slot: value for slot, value in table.items() if value is not None}
        layout, size = {}, 4
        # Largest first, so that nothing inside the table needs padding but its start.
        for slot, value in sorted(slots.items(), key=lambda item: -_size(item[1])):
            size += -size % _size(value)
            layout[slot] = size
            size += _size(value)
        count = max(slots, default=-1) + 1
        self.pad(2)
        vtable = len(self.buffer)
        self.buffer += struct.pack("<HH", 4 + 2 * count, size)
        self.buffer += struct.pack(f"<{count}H", *(layout.get(slot, 0) for slot in range(count)))
        self.pad(8)
        start = len(self.buffer)
        self.buffer += bytes(size)
        struct.pack_into("<i", self.buffer, start, start - vtable)
        for slot, value in slots.items():
            at = start + layout[slot]
            if isinstance(value, Scalar):
                struct.pack_into("<" + value.format, self.buffer, at, value.value)
            else:
                self.point(at, self.reference(value))
        return start

    def reference(self, value) -> int:
        if isinstance(value, Table):
            return self.table(value)
        if isinstance(value, str):
            return self.vector(np.frombuffer(value.encode(), np.uint8), 1, tail=b"\0")
        if isinstance(value, Vector):
            return self.vector(value.data, value.align)
        self.pad(4)
        start = len(self.buffer)
        self.buffer += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for i, element in enumerate(value):
            self.point(start + 4 + 4 * i, self.table(element))
        return start

    def vector(self, data: np.ndarray, align: int, tail: bytes = b"") -> int:
        self.pad(max(4, align), ahead=4)
        start = len(self.buffer)
        self.buffer += struct.pack("<I", data.size) + data.tobytes() + tail
        return start


def write_file(root: Table, identifier: bytes) -> bytes:
    """A flatbuffer file."""
    return _Writer().file(root, identifier)


def _size(value) -> int:
    return struct.calcsize("<" + value.format) if isinstance(value, Scalar) else 4


@dataclass
class Subgraph:
    """Tensors and nodes in the making; tensors are known by their number."""

    model: ModelBuilder
    index: int
    tensors: list[Table] = field(default_factory=list)
    nodes: list[Table] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(
        self, name, dtype, shape, *, data=None, scales=(), zero_points=None, axis=0, variable=False, signature=None
    ) -> int:
        """A tensor. `dtype` is a numpy type or a type code of the format, `data` its bytes when it is constant."""
        code = dtype if isinstance(dtype, int) else _TYPE_CODES[np.dtype(dtype).name]
        quantization = None
        if len(scales):
            zeros = np.zeros(len(scales)) if zero_points is None else zero_points
            quantization = Table({
                2: Vector(np.asarray(scales, np.float32)),
                3: Vector(np.asarray(zeros, np.int64), 8),
                6: Scalar("i", axis),
            })  # fmt: skip
        self.tensors.append(Table({
            0: ints(shape), 1: Scalar("b", code), 2: Scalar("I", self.model.buffer(data)), 3: name, 4: quantization,
            5: Scalar("?", variable), 7: None if signature is None else ints(signature),
        }))  # fmt: skip
        return len(self.tensors) - 1

    def input(self, name, dtype, shape, **options) -> int:
        self.inputs.append(self.tensor(name, dtype, shape, **options))
        return self.inputs[-1]

    def constant(self, name, value, **options) -> int:
        value = np.asarray(value)
        return self.tensor(name, value.dtype, value.shape, data=value.tobytes(), **options)

    def op(self, name, inputs, *outputs, options=None, version=1, quantization=None, custom_options=b""):
        """A node. Each output is a tensor number or (name, dtype, shape); returns the number(s)."""
        code, union = _OPS.get(name, (_CUSTOM, 0))
        made = [out if isinstance(out, int) else self.tensor(*out, **(quantization or {})) for out in outputs]
        self.nodes.append(Table({
            0: Scalar("I", self.model.operator_code(code, name if code == _CUSTOM else None, version)),
            1: ints(inputs), 2: ints(made),
            3: Scalar("B", union) if union else None, 4: Table(options or {}) if union else None,
            5: Vector(np.frombuffer(custom_options, np.uint8), 16) if custom_options else None,
        }))  # fmt: skip
        return made[0] if len(made) == 1 else made

    def output(self, *tensors: int) -> None:
        self.outputs += tensors

    def table(self) -> Table:
        return Table({
            0: self.tensors, 1: ints(self.inputs), 2: ints(self.outputs), 3: self.nodes, 4: f"subgraph_{self.index}"
        })  # fmt: skip


class ModelBuilder:
    """A model being built."""

    def __init__(self):
        self._subgraphs: list[Subgraph] = []
        self._codes: list[tuple] = []
        self._buffers: list[bytes] = [b""]  # buffer 0 is the empty one by rule
        self._signatures: list[Table] = []

    def subgraph(self) -> Subgraph:
        self._subgraphs.append(Subgraph(self, len(self._subgraphs)))
        return self._subgraphs[-1]

    def signature(self, key: str, subgraph: Subgraph, inputs: dict[str, int], outputs: dict[str, int]) -> None:
        def maps(tensors):
            return [Table({0: name, 1: Scalar("I", index)}) for name, index in tensors.items()]

        index = Scalar("I", subgraph.index)
        self._signatures.append(Table({0: maps(inputs), 1: maps(outputs), 2: key, 4: index}))

    def buffer(self, data: bytes | None) -> int:
        if data is None:
            return 0
        self._buffers.append(data)
        return len(self._buffers) - 1

    def operator_code(self, code: int, custom: str | None, version: int) -> int:
        entry = (code, custom, version)
        if entry not in self._codes:
            self._codes.append(entry)
        return self._codes.index(entry)

    def build(self) -> bytes:
        codes = [
            Table({0: Scalar("b", min(code, 127)), 1: custom, 2: Scalar("i", version), 3: Scalar("i", code)})
            for code, custom, version in self._codes
        ]
        buffers = [Table({0: Vector(np.frombuffer(data, np.uint8), 16)}) if data else Table() for data in self._buffers]
        subgraphs = [subgraph.table() for subgraph in self._subgraphs]
        root = Table({
            0: Scalar("I", 3), 1: codes, 2: subgraphs, 3: "made for a test", 4: buffers, 7: self._signatures or None
        })  # fmt: skip
        return write_file(root, b"TFL3")
