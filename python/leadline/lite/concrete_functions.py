# SPDX-License-Identifier: Apache-2.0
"""Functions of TensorFlow on their way to a .tflite model, through a temporary SavedModel."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from leadline._leadline import InvalidArgumentError


class Saved(NamedTuple):
    """What was saved, and how TensorFlow names and orders the tensors of a model without a signature."""

    keys: list[str]
    plain_inputs: list[tuple[str, str]]  # name in the signature, name of the tensor
    plain_outputs: list[tuple[str, str]]
    bare: bool  # the functions were saved without the object they belong to: TensorFlow writes no signature then


def check(functions: Sequence[Any]) -> None:
    if not functions:
        raise InvalidArgumentError("from_concrete_functions() needs at least one function")
    for function in functions:
        if not hasattr(function, "structured_input_signature"):
            raise InvalidArgumentError(
                f"expected concrete functions, got {type(function).__name__}; call get_concrete_function() first"
            )


def save(tf: Any, functions: Sequence[Any], trackable: Any, path: Path) -> Saved:
    """Saves them with `trackable` where TensorFlow can: it takes no tf.function, and of a loaded SavedModel nothing
    that was not traced. Else with the variables they refer to, which is all that most need.
    """
    keys = ["serving_default"] if len(functions) == 1 else _names(functions)
    signatures = dict(zip(keys, functions, strict=True))
    bare = trackable is None or not _save(tf, trackable, path, signatures)
    if bare:
        holder = tf.Module()
        holder.variables_of_functions = [variable for function in functions for variable in function.variables]
        if not _save(tf, holder, path, signatures):  # a result is more than a tensor, or a dict of such
            flat = {key: _flat(tf, function) for key, function in signatures.items()}
            tf.saved_model.save(holder, str(path), signatures=flat)
    plain = _interface(tf, functions[0]) if len(functions) == 1 else ([], [])
    return Saved(keys, *plain, bare)


def _save(tf: Any, trackable: Any, path: Path, signatures: dict[str, Any]) -> bool:
    try:
        tf.saved_model.save(trackable, str(path), signatures=signatures)
    except Exception:
        shutil.rmtree(path, ignore_errors=True)
        return False
    return True


def _flat(tf: Any, function: Any) -> Any:
    """The same function with its results in one dict of tensors: what is in tuples of tuples gets numbers."""
    captured = {id(tensor) for tensor in function.graph.internal_captures}
    arguments = [tensor for tensor in function.inputs if id(tensor) not in captured]
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype, name=_argument_name(tensor)) for tensor in arguments]

    def flat(*values: Any) -> dict[str, Any]:
        results = tf.nest.flatten(function(*values))
        return {f"output_{number}": result for number, result in enumerate(results)}

    return tf.function(flat, input_signature=specs).get_concrete_function()


def _interface(tf: Any, function: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Arguments in the order of the function, and results in that of its structure, by their names in a signature."""
    captured = {id(tensor) for tensor in function.graph.internal_captures}
    arguments = [tensor for tensor in function.inputs if id(tensor) not in captured]
    inputs = [(_argument_name(tensor), tensor.op.name) for tensor in arguments]
    structure = function.structured_outputs
    if isinstance(structure, dict) and not any(tf.nest.is_nested(value) for value in structure.values()):
        keys = sorted(structure)
    else:
        keys = [f"output_{i}" for i in range(len(tf.nest.flatten(structure)))]
    outputs = [(key, _plain(tensor.name)) for key, tensor in zip(keys, function.outputs, strict=False)]
    return inputs, outputs


def _argument_name(tensor: Any) -> str:
    """The name that a signature has for an argument: TensorFlow notes what the user called it."""
    try:
        return str(tensor.op.get_attr("_user_specified_name").decode())
    except ValueError:
        return str(tensor.op.name)


def _plain(name: str) -> str:
    return name.removesuffix(":0")


def _names(functions: Sequence[Any]) -> list[str]:
    """The names that users gave them: "__inference_add_12" was add."""
    names: list[str] = []
    for function in functions:
        given = function.name.decode() if isinstance(function.name, bytes) else str(function.name)
        name = unique = re.sub(r"^__inference_|_\d+$", "", given)
        count = 0
        while unique in names:
            count += 1
            unique = f"{name}_{count}"
        names.append(unique)
    return names
