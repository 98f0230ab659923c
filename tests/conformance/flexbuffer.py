# SPDX-License-Identifier: Apache-2.0
"""Writes custom options: a FlexBuffers map of numbers, all four bytes wide."""

from __future__ import annotations

import struct

_INT, _FLOAT, _MAP, _BOOL = 1, 3, 9, 26
_WIDTH, _WIDTH_CODE = 4, 2


def flexbuffer(**values: float) -> bytes:
    """The map; keys in the order of their bytes, as readers expect."""
    items = sorted(values.items())
    data = bytearray()
    key_at = []
    for key, _ in items:
        key_at.append(len(data))
        data += key.encode() + b"\0"
    data += bytes(-len(data) % _WIDTH)
    data += struct.pack("<I", len(items))
    keys_at = len(data)
    for at in key_at:
        data += struct.pack("<I", len(data) - at)  # offsets count backwards from where they are stored
    data += struct.pack("<I", len(data) - keys_at) + struct.pack("<II", _WIDTH, len(items))
    values_at = len(data)
    for _, value in items:
        data += struct.pack("<f" if isinstance(value, float) else "<i", value)
    for _, value in items:
        kind = _BOOL if isinstance(value, bool) else _FLOAT if isinstance(value, float) else _INT
        data.append(kind << 2 | _WIDTH_CODE)
    data += bytes(-len(data) % _WIDTH)
    data += struct.pack("<I", len(data) - values_at)
    return bytes(data) + bytes([_MAP << 2 | _WIDTH_CODE, _WIDTH])
