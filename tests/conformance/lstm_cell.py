# SPDX-License-Identifier: Apache-2.0
"""Operands of the LSTM ops."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from harness import Data, Tensor, constant, given, result, state


@dataclass(frozen=True)
class Cell:
    """An LSTM cell. `kind` is "f32", "hybrid", "hybrid u8" (old files) or "i8" (8-bit values, 16-bit cell state)."""

    kind: str = "f32"
    inputs: int = 3
    cells: int = 4
    outputs: int = 4
    coupled: bool = False  # no input gate
    peephole: bool = False
    projection: bool = False
    projection_bias: bool = False
    norm: bool = False
    aux: int = 0

    def __str__(self) -> str:
        words = [self.kind, f"{self.inputs}-{self.cells}-{self.outputs}"]
        parts = ("coupled", "peephole", "projection", "projection_bias", "norm")
        words += [part for part in parts if getattr(self, part)]
        return " ".join([*words, f"aux {self.aux}"] if self.aux else words)

    @property
    def integer(self) -> bool:
        return self.kind == "i8"


def variants(kind: str) -> list[Cell]:
    """Every combination of a cell's parts, and cells of other sizes."""
    found = []
    for coupled in (False, True):
        for peephole in (False, True):
            for norm in (False, True):
                plain = Cell(kind, coupled=coupled, peephole=peephole, norm=norm)
                projected = replace(plain, outputs=3, projection=True)
                found += [plain, projected, replace(projected, projection_bias=True)]
    return [*found, Cell(kind, 1, 1, 1), Cell(kind, 17, 33, 33), Cell(kind, 8, 16, 5, projection=True, peephole=True)]


STATE_SCALE = 2.0**-11
INPUT = (0.02, 3)
OUTPUT = (1 / 128, 0)
HIDDEN = (1 / 127, 5)


class Operands:
    """The tensors of one cell, from a text that seeds them."""

    def __init__(self, cell: Cell, seed: str):
        self._cell = cell
        self._data = Data(f"{cell} {seed}")
        c, n = cell, cell.cells
        gates = [not c.coupled, True, True, True]
        self.input_weights = [self._matrix((n, c.inputs)) if there else None for there in gates]
        self.recurrent_weights = [self._matrix((n, c.outputs)) if there else None for there in gates]
        self.peephole = [self._vector(0.5) if c.peephole and there else None for there in (gates[0], True, True)]
        self.biases = [self._bias(n, 0.001, there) for there in gates]
        self.projection = self._matrix((c.outputs, n)) if c.projection else None
        self.projection_bias = self._bias(c.outputs, 0.0005, c.projection_bias)
        self.norm = [self._norm() if c.norm and there else None for there in gates]
        self.aux_weights = [self._matrix((n, c.aux)) if c.aux and there else None for there in gates]

    def _matrix(self, shape) -> Tensor:
        if self._cell.kind == "f32":
            return constant(self._data.floats(shape, -0.8, 0.8))
        scale = self._data.rng.uniform(0.5, 1.0) / 127
        levels = self._data.ints(np.int8, shape, -127, 127)
        if self._cell.kind == "hybrid u8":
            return constant(levels.view(np.uint8), scale, 0)
        return constant(levels, scale, 0)

    def _vector(self, largest) -> Tensor:
        """Peephole weights."""
        if not self._cell.integer:
            return self._matrix((self._cell.cells,))
        return constant(self._data.ints(np.int16, self._cell.cells, -32767, 32767), largest / 32767, 0)

    def _norm(self) -> Tensor:
        if not self._cell.integer:
            return constant(self._data.floats(self._cell.cells, 0.2, 1.2))
        return constant(self._data.ints(np.int16, self._cell.cells, 3000, 32767), 1 / 32767, 0)

    def _bias(self, count, scale, there) -> Tensor | None:
        if not there:
            return None
        if not self._cell.integer:
            return constant(self._data.floats(count, -0.5, 0.5))
        return constant(self._data.ints(np.int32, count, -500, 500), scale, 0)

    def states(self, batch: int) -> list[Tensor]:
        """Output state and cell state."""
        if not self._cell.integer:
            return [state((batch, self._cell.outputs)), state((batch, self._cell.cells))]
        return [
            state((batch, self._cell.outputs), np.int8, *OUTPUT),
            state((batch, self._cell.cells), np.int16, STATE_SCALE, 0),
        ]

    def values(self, shape) -> np.ndarray:
        """What an input may hold."""
        return self._data.ints(np.int8, shape) if self._cell.integer else self._data.floats(shape, -2, 2)

    def given(self, shape) -> Tensor:
        return given(self.values(shape), *(INPUT if self._cell.integer else ()))

    def result(self) -> Tensor:
        return result(np.int8, *OUTPUT) if self._cell.integer else result(np.float32)

    def intermediates(self) -> list[Tensor]:
        """Where an integer cell finds the scales of its gates before normalization, and of its hidden value."""
        if not self._cell.integer:
            return []
        return [*(result(np.int16, 0.0008 + 0.0001 * gate, 0) for gate in range(4)), result(np.int8, *HIDDEN)]

    def reference(self, steps: np.ndarray) -> np.ndarray:
        """What a plain float cell without an activation gives for [steps, batch, inputs]."""

        def logistic(x):
            return 1 / (1 + np.exp(-x))

        output, cell = (np.zeros((steps.shape[1], size)) for size in (self._cell.outputs, self._cell.cells))
        results = []
        for step in steps:
            gates = [
                step @ w.value.T + output @ r.value.T + b.value
                for w, r, b in zip(self.input_weights, self.recurrent_weights, self.biases, strict=True)
            ]
            cell = logistic(gates[1]) * cell + logistic(gates[0]) * gates[2]
            output = logistic(gates[3]) * cell
            results.append(output)
        return np.array(results, np.float32)

    def inputs(self, source: Tensor, batch: int) -> list[Tensor | None]:
        """In the order of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM."""
        listed = [source, *self.input_weights, *self.recurrent_weights, *self.peephole, *self.biases, self.projection]
        listed += [self.projection_bias, *self.states(batch)]
        return listed + self.norm if self._cell.norm else listed
