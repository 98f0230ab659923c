# SPDX-License-Identifier: Apache-2.0
"""Writing .tflite models from Python, with numpy's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from leadline import _leadline
from leadline._leadline import DType
from leadline._native import tensors

_DTYPES: dict[np.dtype[Any], DType] = {
    np.dtype(kind): dtype for dtype, kind in tensors._NUMPY_TYPES.items() if kind is not np.object_
}
# Several types share numpy's 8-bit ones; these are what an array without further word is.
_DTYPES |= {np.dtype(np.int8): DType.INT8, np.dtype(np.uint8): DType.UINT8}


def dtype_of(dtype: Any) -> DType:
    """The type of the format for a numpy type, or what names one."""
    if isinstance(dtype, DType):
        return dtype
    kind = np.dtype(dtype)
    if kind.kind in "OSU":
        return DType.STRING
    return DType.BFLOAT16 if kind.name == "bfloat16" else _DTYPES[kind]


def _is_nested(shape: Any) -> bool:
    return any(isinstance(size, (list, tuple)) for size in shape)


class Subgraph:
    """One subgraph of a model being built. Tensors are known by their indices."""

    def __init__(self, builder: _leadline.ModelBuilder, index: int) -> None:
        self._builder = builder
        self.index = index
        self._inputs: list[int] = []
        self._outputs: list[int] = []

    def tensor(
        self,
        name: str,
        dtype: Any,
        shape: Iterable[int] = (),
        *,
        scales: Any = (),
        zero_points: Any = (),
        axis: int = 0,
        signature: Iterable[int] = (),
        variable: bool = False,
    ) -> int:
        """A tensor that a node writes, or the state of one (`variable`).

        `dtype` is a numpy type or a leadline.DType. `scales` and `zero_points` quantize it, along dimension `axis` when
        there are several; in `signature`, -1 stands for dimensions that may change.
        """
        info = self._info(name, dtype_of(dtype), shape, scales, zero_points, axis, signature, variable)
        return self._builder.add_tensor(self.index, info)

    def input(self, name: str, dtype: Any, shape: Iterable[int] = (), **options: Any) -> int:
        """A tensor that the caller sets; `options` are those of tensor()."""
        index = self.tensor(name, dtype, shape, **options)
        self._inputs.append(index)
        return index

    def constant(
        self,
        name: str,
        value: Any,
        dtype: Any = None,
        *,
        scales: Any = (),
        zero_points: Any = (),
        axis: int = 0,
        signature: Iterable[int] = (),
        sparsity: _leadline.SparsityInfo | None = None,
        shape: Iterable[int] | None = None,
    ) -> int:
        """A tensor with the contents of the array `value`.

        `dtype` says what numpy cannot (leadline.DType.INT4). With `sparsity`, `value` holds the stored values of a
        sparse tensor of shape `shape`.
        """
        array = np.asarray(value)
        kind = dtype_of(array.dtype if dtype is None else dtype)
        dims = array.shape if shape is None else tuple(shape)
        info = self._info(name, kind, dims, scales, zero_points, axis, signature, False)
        spec = tensors.TensorSpec(0, name, kind, np.dtype(tensors.numpy_type(kind)), array.shape, False)
        data = tensors.to_bytes(array, spec)
        return self._builder.add_constant(self.index, info, data.reshape(-1).view(np.uint8), sparsity)

    def node(
        self,
        op: str,
        inputs: Iterable[Any],
        outputs: int | Iterable[int] = 1,
        *,
        name: str = "",
        dtype: Any = None,
        shape: Any = None,
        custom_options: bytes = b"",
        version: int = 0,
        intermediates: Iterable[int] = (),
        custom: bool = False,
        **attributes: Any,
    ) -> Any:
        """A node, and the tensor it computes (a list of them for several). The same as node() of
        leadline.register_keras_layer's builder, but that tensors are numbers.

        `op` is the name of the format ("CONV_2D") or of a custom op. `inputs` are tensors and arrays; None or -1 is an
        absent input. `outputs` is how many tensors to make, or tensors that were made before. Of those that are made:
        `name`; `dtype` where it is not that of the first input (a list for several); `shape` where it does not follow
        from the inputs, as for custom ops (a list of shapes for several). `attributes` have the names of the format
        (stride_w=2); those not given keep the format's defaults. `custom` says that `op` is a custom op: needed, unless
        it is registered or has `custom_options`, when its name is in upper case or close to one of the format.
        """
        numbers = [self._number(tensor, op) for tensor in inputs]
        options = (attributes, custom_options, list(intermediates), version, custom)
        if isinstance(outputs, int):
            dtypes = [] if dtype is None else list(dtype) if isinstance(dtype, (list, tuple)) else [dtype] * outputs
            shapes = [] if shape is None else list(shape) if outputs != 1 or _is_nested(shape) else [shape]
            made = self._builder.add_results(
                self.index,
                op,
                numbers,
                *options,
                outputs,
                name,
                [dtype_of(kind) for kind in dtypes],
                [[int(size) for size in sizes] for sizes in shapes],
            )
        else:
            # Tensors that were made before have their own: these are attributes, as STABLEHLO_COMPOSITE's name.
            given = {"name": name or None, "dtype": dtype, "shape": shape}
            attributes |= {key: value for key, value in given.items() if value is not None}
            made = list(outputs)
            self._builder.add_node(self.index, op, numbers, made, *options)
        return made[0] if len(made) == 1 else made

    def _number(self, tensor: Any, op: str) -> int:
        if tensor is None:
            return -1
        return self.constant(f"{op}/constant", tensor) if isinstance(tensor, np.ndarray) else tensor

    def output(self, *tensors: int) -> None:
        """Adds outputs of the subgraph."""
        self._outputs += tensors

    def __repr__(self) -> str:
        return f"<leadline.{type(self).__name__} {self.index}: inputs {self._inputs}, outputs {self._outputs}>"

    def _finish(self) -> None:
        self._builder.set_inputs(self.index, self._inputs)
        self._builder.set_outputs(self.index, self._outputs)

    def blockwise(self, tensor: int, scales: int, block_size: int, zero_points: int = -1) -> None:
        """Quantizes `tensor` in blocks; `scales` and `zero_points` are constants of the same subgraph."""
        self._builder.set_blockwise(self.index, tensor, scales, zero_points, block_size)

    @staticmethod
    def _info(
        name: str,
        dtype: DType,
        shape: Iterable[int],
        scales: Any,
        zero_points: Any,
        axis: int,
        signature: Iterable[int],
        variable: bool,
    ) -> _leadline.TensorInfo:
        return _leadline.make_tensor_info(
            name,
            dtype,
            [int(size) for size in shape],
            [int(size) for size in signature],
            np.atleast_1d(scales).astype(np.float64).tolist(),
            np.atleast_1d(zero_points).astype(np.int64).tolist(),
            axis,
            variable,
        )


class ModelBuilder(Subgraph):
    """A model being built; itself the main subgraph.

    >>> builder = leadline.ModelBuilder()
    >>> x = builder.input("x", np.float32, [1, 4])
    >>> y = builder.node("ADD", [x, builder.constant("c", np.ones(4, np.float32))], name="y")
    >>> builder.output(y)
    >>> content = builder.to_tflite()
    """

    def __init__(self) -> None:
        super().__init__(_leadline.ModelBuilder(), 0)
        self._called: list[Subgraph] = []  # without the main one: a cycle would keep the constants until a collection

    def subgraph(self, name: str) -> Subgraph:
        """A new subgraph, for ops that call one."""
        self._called.append(Subgraph(self._builder, self._builder.add_subgraph(name)))
        return self._called[-1]

    def signature(self, key: str, subgraph: Subgraph, inputs: dict[str, int], outputs: dict[str, int]) -> None:
        """Names a way to call a subgraph."""
        self._builder.add_signature(key, subgraph.index, inputs, outputs)

    def to_tflite(self) -> bytes:
        """The bytes of a .tflite file. Raises InvalidModelError when the model is not legal."""
        for subgraph in (self, *self._called):
            subgraph._finish()
        return self._builder.to_tflite()
