# SPDX-License-Identifier: Apache-2.0
"""One subgraph of an interpreter as Python sees it, and what tf.lite reports about its tensors and ops."""

from __future__ import annotations

import operator
import os
import weakref

# Not from threading: that module takes longer to import than a small model to load.
from _thread import RLock
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from leadline import _leadline
from leadline._leadline import Error, InvalidArgumentError, Model
from leadline._native import tensors
from leadline._native.tensors import TensorSpec


class CallLock:
    """A lock that its holder may take again. Waiting for it obeys time limits; and what threads of the process before
    a fork held is free in the process after it, where the native interpreter says what became of their runs."""

    def __init__(self) -> None:
        self._lock = RLock()
        _call_locks.add(self)

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            while not self._lock.acquire(timeout=0.05):
                _leadline.check_limits()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def forget_other_threads(self) -> None:
        if not self._lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition uses it too
            self._lock = RLock()


_call_locks: weakref.WeakSet[CallLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_call_locks):
        lock.forget_other_threads()


os.register_at_fork(after_in_child=_after_fork)


class Session:
    """One subgraph and the native interpreter that runs it, made when it is first needed.

    Sessions refer to the main one and never to an Interpreter, so that memory is released as soon as the last
    reference is dropped, not when the garbage collector runs.
    """

    def __init__(self, model: Model, subgraph: int, options: dict[str, Any], main: Session | None = None):
        self.model = model
        self.subgraph = subgraph
        self.ready = False
        # Sessions of one interpreter share variables, so only one of them may run.
        self.lock: CallLock = main.lock if main else CallLock()
        self._main = main
        self._options = options
        self._native: _leadline.Interpreter | None = None
        self._description: _leadline.SubgraphInfo | None = None
        self._tensors: list[_leadline.TensorInfo] | None = None
        self._specs: dict[int, TensorSpec] = {}
        self._views: list[weakref.ref[np.ndarray]] = []  # that view() gave

    @property
    def description(self) -> _leadline.SubgraphInfo:
        """Tensors and nodes as the file has them."""
        if self._description is None:
            self._description = self.model.subgraph(self.subgraph)
        return self._description

    @property
    def tensors(self) -> list[_leadline.TensorInfo]:
        """Of the description, which makes a new list each time it is asked."""
        if self._tensors is None:
            self._tensors = self.description.tensors
        return self._tensors

    @property
    def native(self) -> _leadline.Interpreter:
        if self._native is not None:
            return self._native
        with self.lock:
            if self._native is None:
                variables = self._main.native if self._main else None
                self._native = _leadline.Interpreter(
                    self.model, subgraph=self.subgraph, shares_state_with=variables, **self._options
                )
            return self._native

    @property
    def inputs(self) -> list[int]:
        return self._native.inputs if self._native else self.description.inputs

    @property
    def outputs(self) -> list[int]:
        return self._native.outputs if self._native else self.description.outputs

    @property
    def tensor_count(self) -> int:
        return self._native.tensor_count if self._native else len(self.tensors)

    def check_index(self, index: int) -> int:
        index = operator.index(index)
        count = self.tensor_count
        if not 0 <= index < count:
            raise InvalidArgumentError(f"Invalid tensor index {index} exceeds max tensor index {count}")
        return index

    def info(self, index: int) -> _leadline.TensorInfo:
        index = self.check_index(index)
        return self._native.tensor_info(index) if self._native else self.tensors[index]

    def sparsity(self, index: int) -> _leadline.SparsityInfo | None:
        return self.model.sparsity(self.subgraph, index)

    def allocate(self) -> None:
        self.native.allocate()
        self.ready = True

    def resize(self, index: int, shape: Sequence[int], strict: bool) -> None:
        given = np.asarray(shape)
        if given.ndim != 1:
            raise InvalidArgumentError(f"Shape should be 1D instead of {given.ndim}.")
        sizes = [int(size) for size in given]
        index = self.check_index(index)
        changed = sizes != list(self.info(index).shape)
        self.native.resize_input(index, sizes, strict)
        self._specs.pop(index, None)
        if changed:
            self.ready = False

    def spec(self, index: int) -> TensorSpec:
        spec = self._specs.get(index)
        if spec is None:
            spec = self._specs[index] = tensors.TensorSpec.of(self.info(index))
        return spec

    def set(self, index: int, value: Any) -> None:
        spec = self.spec(operator.index(index))
        data = tensors.to_bytes(value, spec)
        if not self.ready:
            raise InvalidArgumentError(
                f"Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first for input {index}, "
                f"name: {tensors.shown(spec.name)}"
            )
        self.native.set_tensor(index, data)

    def bind(self, index: int, array: np.ndarray | None) -> None:
        index = self.check_index(index)
        if array is None:
            self.native.unbind_tensor(index)
            return
        self.native.bind_tensor(index, tensors.to_memory(array, self.spec(index)), np.shape(array))

    def array(self, index: int) -> np.ndarray:
        """The tensor, as a view where numpy can express one."""
        spec = self.spec(operator.index(index))
        if not self.ready and not self.info(index).constant:
            raise InvalidArgumentError(
                f"Tensor data is null. Run allocate_tensors() first; tensor {index}, name: {tensors.shown(spec.name)}"
            )
        return tensors.to_numpy(self.native.tensor(index), spec)

    def view(self, index: int) -> np.ndarray:
        """The same for a caller who may keep it: has_views() knows of it and of what is sliced from it."""
        array = self.array(index)
        if len(self._views) >= 32:
            self._views = [held for held in self._views if held() is not None]
        self._views.append(weakref.ref(array))
        return array

    def has_views(self) -> bool:
        return any(held() is not None for held in self._views)

    def get(self, index: int) -> np.ndarray:
        array = self.array(index)
        # [()] makes a numpy scalar of a tensor without dimensions, as tf.lite returns it.
        return array.copy() if array.ndim or array.dtype == np.object_ else array[()]

    def invoke(self) -> None:
        if not self.ready:
            raise Error("Invoke called on model that is not ready. Run allocate_tensors() first")
        with self.lock:
            self.native.invoke()


def _sparsity_details(sparsity: _leadline.SparsityInfo | None) -> dict[str, Any]:
    if sparsity is None:
        return {}
    details: dict[str, Any] = {"traversal_order": np.array(sparsity.traversal_order, np.int32)}
    if sparsity.block_map:
        details["block_map"] = np.array(sparsity.block_map, np.int32)
    details["dim_metadata"] = [
        {
            "format": 1,
            "array_segments": np.array(dimension.segments, np.int32),
            "array_indices": np.array(dimension.indices, np.int32),
        }
        if dimension.compressed
        else {"format": 0, "dense_size": dimension.dense_size}
        for dimension in sparsity.dimensions
    ]
    return details


def tensor_details(session: Session, index: int) -> dict[str, Any]:
    """What tf.lite reports about a tensor."""
    info = session.info(index)
    scales, zero_points = info.scales, info.zero_points
    per_tensor = len(scales) == 1
    # A signature without an unknown dimension follows the shape, as tf.lite has it for files that hold none.
    signature = info.shape_signature if -1 in info.shape_signature else info.shape
    return {
        "name": info.name,
        "index": info.index,
        "shape": np.array(info.shape, np.int32),
        "shape_signature": np.array(signature, np.int32),
        "dtype": tensors.numpy_type(info.dtype),
        "quantization": (scales[0], zero_points[0] if zero_points else 0) if per_tensor else (0.0, 0),
        "quantization_parameters": {
            "scales": np.array(scales, np.float32),
            "zero_points": np.array(zero_points, np.int32),
            "quantized_dimension": info.quantized_dimension,
            "block_size": 0,
        },
        "sparsity_parameters": _sparsity_details(session.sparsity(index)) if info.sparse else {},
    }


def described(session: Session, indices: Sequence[int], most: int = 3) -> str:
    """Names, types and shapes of tensors: 'x' float32[1, 4], 'y' int32[]."""
    infos = [session.info(index) for index in indices[:most]]
    texts = [f"{tensors.shown(info.name)} {info.dtype.name.lower()}{list(info.shape)}" for info in infos]
    if len(indices) > most:
        texts.append(f"{len(indices) - most} more")
    return ", ".join(texts) or "nothing"


def op_details(node: _leadline.NodeInfo, infos: Sequence[_leadline.TensorInfo]) -> dict[str, Any]:
    def types(indices: Iterable[int]) -> list[type]:
        return [tensors.numpy_type(infos[index].dtype) for index in indices if index != -1]

    return {
        "index": node.index,
        "op_name": node.op,
        "inputs": np.array(node.inputs, np.int32),
        "outputs": np.array(node.outputs, np.int32),
        "operand_types": types(node.inputs),
        "result_types": types(node.outputs),
    }
