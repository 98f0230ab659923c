# SPDX-License-Identifier: Apache-2.0
"""Interpreter._interpreter: the methods of LiteRT's native class that scripts reach through to, over Leadline's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline._leadline import InvalidArgumentError
from leadline._native.tensors import Array

if TYPE_CHECKING:
    from leadline.lite.interpreter import Interpreter


class InterpreterWrapper:
    """One of them for each access: it holds nothing but the Interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._owner = interpreter

    def AllocateTensors(self, subgraph_index: int = -1) -> None:
        self._owner._session_of(max(0, subgraph_index)).allocate()

    def Invoke(self, subgraph_index: int = -1) -> None:
        self._owner._session_of(max(0, subgraph_index)).invoke()

    def InputIndices(self) -> Array:
        return np.array(self._owner._main.inputs, np.int32)

    def OutputIndices(self) -> Array:
        return np.array(self._owner._main.outputs, np.int32)

    def ResizeInputTensor(self, i: int, value: Sequence[int], strict: bool, subgraph_index: int = -1) -> None:
        self._owner._session_of(max(0, subgraph_index)).resize(i, value, strict)

    def NumSubgraphs(self) -> int:
        return self._owner.num_subgraphs()

    def NumTensors(self, subgraph_index: int) -> int:
        return self._owner._session_of(subgraph_index).tensor_count

    def TensorName(self, tensor_index: int, subgraph_index: int = 0) -> str:
        name: str = self._details(tensor_index, subgraph_index)["name"]
        return name

    def TensorType(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._details(tensor_index, subgraph_index)["dtype"]

    def TensorSize(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._details(tensor_index, subgraph_index)["shape"]

    def TensorSizeSignature(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._details(tensor_index, subgraph_index)["shape_signature"]

    def TensorSparsityParameters(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._details(tensor_index, subgraph_index)["sparsity_parameters"]

    def TensorQuantization(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._details(tensor_index, subgraph_index)["quantization"]

    def TensorQuantizationParameters(self, tensor_index: int, subgraph_index: int = 0) -> tuple[Any, ...]:
        return tuple(self._details(tensor_index, subgraph_index)["quantization_parameters"].values())

    def SetTensor(self, i: int, value: Any, subgraph_index: int = 0) -> None:
        self._owner._session_of(subgraph_index).set(i, value)

    def GetTensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        return self._owner.get_tensor(tensor_index, subgraph_index)

    def GetSubgraphIndexFromSignature(self, signature_key: str) -> int:
        signature = self._owner._signatures.get(signature_key)
        if signature is None:
            raise InvalidArgumentError(f'Invalid signature_key provided: "{signature_key}".')
        return signature.subgraph

    def GetSignatureDefs(self) -> dict[str, dict[str, dict[str, int]]]:
        return self._owner._get_full_signature_list()

    def ResetVariableTensors(self) -> None:
        self._owner.reset_all_variables()

    def NumNodes(self) -> int:
        return len(self._owner._main.description.nodes)

    def NodeName(self, i: int) -> str:
        name: str = self._owner._get_op_details(i)["op_name"]
        return name

    def NodeInputs(self, i: int) -> Array:
        inputs: Array = self._owner._get_op_details(i)["inputs"]
        return inputs

    def NodeOutputs(self, i: int) -> Array:
        outputs: Array = self._owner._get_op_details(i)["outputs"]
        return outputs

    def tensor(self, base_object: object, tensor_index: int, subgraph_index: int = 0) -> Array:
        del base_object
        return self._owner._session_of(subgraph_index).view(tensor_index)

    def _details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        return self._owner._get_tensor_details(tensor_index, subgraph_index)
