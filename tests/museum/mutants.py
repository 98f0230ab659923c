# SPDX-License-Identifier: Apache-2.0
"""Models changed through the schema: the file stays a valid flatbuffer, its meaning does not stay legal."""

from __future__ import annotations

import random

from surgery import Node, edited

_SIZES = [0, 1, 2, 3, 5, 17, 1000, 65536, 2**31 - 1, -1, -7]
_NUMBERS = [-1, 0, 1, 2, 3, 7, 1000, 2**31 - 1]
_SCALES = [0.0, -1.0, 1e-38, 1e38, 4.0, float("inf"), float("nan")]


def mutant(content: bytes, seed: int) -> bytes:
    """The model with one to three changes that depend on nothing but the seed."""
    rng = random.Random(seed)

    def change(model: Node) -> None:
        for _ in range(rng.randint(1, 3)):
            rng.choice(_CHANGES)(model, rng)

    return edited(content, change)


def _tensor(model: Node, rng: random.Random) -> Node:
    return rng.choice(rng.choice(model.subgraphs).tensors)


def _node(model: Node, rng: random.Random) -> Node:
    return rng.choice(rng.choice(model.subgraphs).operators)


def _shape(model: Node, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    shape = list(tensor.shape or [])
    action = rng.randrange(3)
    if action == 0 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(_SIZES)
    elif action == 1 and shape:
        shape.pop()
    else:
        shape.insert(rng.randint(0, len(shape)), rng.choice(_SIZES))
    tensor.shape = shape


def _type(model: Node, rng: random.Random) -> None:
    _tensor(model, rng).type = rng.randrange(20)


def _buffer(model: Node, rng: random.Random) -> None:
    _tensor(model, rng).buffer = rng.choice([0, rng.randrange(len(model.buffers)), 1000])


def _variable(model: Node, rng: random.Random) -> None:
    _tensor(model, rng).is_variable = True


def _quantization(model: Node, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    found = tensor.quantization or Node("Quantization")
    found.scale = [rng.choice(_SCALES) for _ in range(rng.choice([0, 1, 3]))]
    found.zero_point = [rng.choice([0, 127, -128, 2**40]) for _ in found.scale]
    found.quantized_dimension = rng.choice([0, 1, 3, -1, 9])
    tensor.quantization = found


def _operand(model: Node, rng: random.Random) -> None:
    node = _node(model, rng)
    operands = rng.choice([node.inputs, node.outputs])
    if operands:
        operands[rng.randrange(len(operands))] = rng.choice([-1, *range(12), 999])


def _arity(model: Node, rng: random.Random) -> None:
    operands = _node(model, rng).inputs
    if operands and rng.random() < 0.5:
        operands.pop()
    else:
        operands.append(rng.choice([-1, 0, 1, 2]))


def _option(model: Node, rng: random.Random) -> None:
    options = _node(model, rng).builtin_options
    if isinstance(options, dict) and options:
        number = options[rng.choice(list(options))]
        size = len(number.value)
        limit = 2 ** (8 * size - 1)
        number.value = max(-limit, min(limit - 1, rng.choice(_NUMBERS))).to_bytes(size, "little", signed=True)


def _op(model: Node, rng: random.Random) -> None:
    code = rng.choice(model.operator_codes)
    code.builtin_code = rng.randrange(162)
    code.deprecated_builtin_code = min(code.builtin_code, 127)


def _constant(model: Node, rng: random.Random) -> None:
    buffer = rng.choice(model.buffers)
    if buffer.data:
        if rng.random() < 0.3:
            buffer.data = buffer.data[: rng.randrange(len(buffer.data))]
        else:
            for _ in range(4):
                buffer.data[rng.randrange(len(buffer.data))] = rng.choice([0, 1, 127, 128, 255])


def _order(model: Node, rng: random.Random) -> None:
    rng.shuffle(rng.choice(model.subgraphs).operators)


_CHANGES = [
    _shape, _type, _buffer, _variable, _quantization, _operand, _arity, _option, _op, _constant, _order,
]  # fmt: skip
