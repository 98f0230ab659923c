# SPDX-License-Identifier: Apache-2.0
"""Takes a .tflite file apart, lets a test change any field, and writes it again: files that no writer would make.

    def stretch(model):
        model.subgraphs[0].tensors[1].buffer = 0x7FFFFFFF

    broken = edited(content, stretch)

Tables are objects with the format's field names; an absent field is None. Option tables of ops are kept as they are.
`locate` and `patched` are for what even a rewritten file cannot hold: offsets that point nowhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from tflite_builder import Scalar, Table, Vector, write_file

# Fields in the order of the format. One letter: a number of that struct format; [X]: a vector; Capital: a table.
_SCHEMA = {
    "Model": "version:I operator_codes:[OperatorCode] subgraphs:[SubGraph] description:string buffers:[Buffer] "
    "metadata_buffer:[i] metadata:[Metadata] signature_defs:[SignatureDef] "
    "external_buffer_groups:[ExternalBufferGroup] external_buffers:[ExternalBuffer]",
    "OperatorCode": "deprecated_builtin_code:b custom_code:string version:i builtin_code:i",
    "SubGraph": "tensors:[Tensor] inputs:[i] outputs:[i] operators:[Operator] name:string debug_metadata_index:i",
    "Tensor": "shape:[i] type:b buffer:I name:string quantization:Quantization is_variable:? sparsity:Sparsity "
    "shape_signature:[i] has_rank:? variant_tensors:[Variant] external_buffer:I",
    "Quantization": "min:[f] max:[f] scale:[f] zero_point:[q] details_type:B details:Options quantized_dimension:i",
    "Sparsity": "traversal_order:[i] block_map:[i] dim_metadata:[Dimension]",
    "Dimension": "format:b dense_size:i array_segments_type:B array_segments:Int32Vector array_indices_type:B "
    "array_indices:Int32Vector",
    "Int32Vector": "values:[i]",
    "Variant": "shape:[i] type:b has_rank:?",
    "Operator": "opcode_index:I inputs:[i] outputs:[i] builtin_options_type:B builtin_options:Options "
    "custom_options:[B] custom_options_format:b mutating_variable_inputs:[?] intermediates:[i] "
    "large_custom_options_offset:Q large_custom_options_size:Q builtin_options_2_type:B builtin_options_2:Options "
    "debug_metadata_index:i",
    "Buffer": "data:[B] offset:Q size:Q",
    "Metadata": "name:string buffer:I",
    "TensorMap": "name:string tensor_index:I",
    "SignatureDef": "inputs:[TensorMap] outputs:[TensorMap] signature_key:string deprecated_tag:string "
    "subgraph_index:I",
    "ExternalBufferGroup": "name:string",
    "ExternalBuffer": "id:I group:I offset:Q length:Q packing:string",
    "ReshapeOptions": "new_shape:[i]",
    "SqueezeOptions": "squeeze_dims:[i]",
    "VarHandleOptions": "container:string shared_name:string",
}  # fmt: skip
_FIELDS = {table: [field.split(":") for field in fields.split()] for table, fields in _SCHEMA.items()}
_OPTIONS_WITH_VECTORS = {17: "ReshapeOptions", 30: "SqueezeOptions", 111: "VarHandleOptions"}
_NUMPY = {"i": np.int32, "f": np.float32, "q": np.int64, "B": np.uint8, "?": np.bool_}


class Node:
    """A table of the file."""

    def __init__(self, table: str, **fields):
        self.table = table
        for name, _ in _FIELDS[table]:
            setattr(self, name, fields.pop(name, None))
        if fields:
            raise ValueError(f"{table} has no {', '.join(fields)}")


def edited(content: bytes, change: Callable[[Node], None]) -> bytes:
    """The file after `change` was applied to its root table."""
    root = _read_table(content, _at(content, 0), "Model")
    change(root)
    return write_file(_to_table(root), b"TFL3")


def locate(content: bytes, *path: str | int) -> int:
    """Where in the file a field's number or offset is: locate(content, "subgraphs", 0, "tensors")."""
    position, table = _at(content, 0), "Model"
    steps = list(path)
    while True:
        slot = [name for name, _ in _FIELDS[table]].index(steps.pop(0))
        kind = _FIELDS[table][slot][1]
        place = position + _slots(content, position)[slot]
        if steps and kind.startswith("["):
            place = _at(content, place) + 4 + 4 * steps.pop(0)
        if not steps:
            return place
        position, table = _at(content, place), kind.strip("[]")


def patched(content: bytes, position: int, form: str, value: int) -> bytes:
    """The file with the number at `position` replaced."""
    changed = bytearray(content)
    struct.pack_into("<" + form, changed, position, value)
    return bytes(changed)


def _at(content: bytes, position: int) -> int:
    return position + struct.unpack_from("<I", content, position)[0]


def _slots(content: bytes, position: int) -> list[int]:
    vtable = position - struct.unpack_from("<i", content, position)[0]
    size = struct.unpack_from("<H", content, vtable)[0]
    return list(struct.unpack_from(f"<{size // 2 - 2}H", content, vtable + 4))


def _read_table(content: bytes, position: int, table: str) -> Node:
    node = Node(table)
    for (name, kind), slot in zip(
        _FIELDS[table], _slots(content, position), strict=False
    ):  # a file may have fewer fields
        if slot:
            setattr(node, name, _read(content, position + slot, kind, node))
    return node


def _read(content: bytes, position: int, kind: str, owner: Node):
    if len(kind) == 1:
        return struct.unpack_from("<" + kind, content, position)[0]
    target = _at(content, position)
    if kind == "Options":
        known = _OPTIONS_WITH_VECTORS.get(getattr(owner, "builtin_options_type", None) or 0)
        return _read_table(content, target, known) if known else _read_numbers(content, target)
    if kind in _FIELDS:
        return _read_table(content, target, kind)
    count = struct.unpack_from("<I", content, target)[0]
    if kind == "string":
        return content[target + 4 : target + 4 + count].decode()
    element = kind[1:-1]
    if element in _NUMPY:
        return np.frombuffer(content, _NUMPY[element], count, target + 4).tolist()
    return [_read_table(content, _at(content, target + 4 + 4 * i), element) for i in range(count)]


def _read_numbers(content: bytes, position: int) -> Table:
    """A table of numbers whose types are not known: each with the bytes up to the next."""
    slots = _slots(content, position)
    vtable = position - struct.unpack_from("<i", content, position)[0]
    ends = sorted({*slots, struct.unpack_from("<H", content, vtable + 2)[0]})
    table = Table()
    for slot, offset in enumerate(slots):
        if offset:
            gap = ends[ends.index(offset) + 1] - offset
            size = max(power for power in (1, 2, 4, 8) if power <= gap)
            table[slot] = Scalar(f"{size}s", content[position + offset : position + offset + size])
    return table


def _to_table(node: Node) -> Table:
    table = Table()
    for slot, (name, kind) in enumerate(_FIELDS[node.table]):
        value = getattr(node, name)
        if value is None:
            continue
        if len(kind) == 1:
            table[slot] = Scalar(kind, value)
        elif kind in ("string", "Options") and not isinstance(value, Node):
            table[slot] = value
        elif isinstance(value, Node):
            table[slot] = _to_table(value)
        elif kind[1:-1] in _NUMPY:
            align = {"B": 16, "q": 8}.get(kind[1:-1], 4)
            table[slot] = Vector(np.asarray(value, _NUMPY[kind[1:-1]]), align)
        else:
            table[slot] = [_to_table(element) for element in value]
    return table
