# SPDX-License-Identifier: Apache-2.0
"""Attributes of tf.lite's TFLiteConverter that are neither about quantization nor in its guide, and what they do here.

Scripts set them, so they are accepted. One that asks for something Leadline does not do is named in a warning when the
model is converted, and none is silently without effect.
"""

from __future__ import annotations

import warnings
from typing import Any

# Attributes with TensorFlow's defaults, for which there is nothing to do: they choose between its own implementations,
# or allow what is always done here.
NOTHING_TO_DO: dict[str, Any] = {
    "experimental_new_converter": True,
    "experimental_new_quantizer": True,
    "experimental_new_dynamic_range_quantizer": True,
    "experimental_enable_resource_variables": True,
    "legalize_custom_tensor_list_ops": False,
    "unfold_batchmatmul": False,
    "model_origin_framework": "UNSET",
    "saved_model_dir": None,
    "_experimental_new_quantizer": True,
    "_experimental_allow_all_select_tf_ops": False,
    "_experimental_default_to_single_batch_in_tensor_list_ops": False,
    "_experimental_disable_fuse_mul_and_fc": False,
    "_experimental_enable_composite_direct_lowering": True,
    "_experimental_enable_dynamic_update_slice": False,
    "_experimental_guarantee_all_funcs_one_use": False,
    "_experimental_lower_tensor_list_ops": True,
    "_experimental_unsafe_fuse_dynamic_shaped_broadcast": False,
    "_experimental_use_buffer_offset": False,
    # Without the prefix, as some scripts write them.
    "experimental_default_to_single_batch_in_tensor_list_ops": False,
    "experimental_use_buffer_offset": False,
    "allow_all_select_tf_ops": False,
}

# Those that ask for something else, with what is done instead.
NOT_DONE: dict[str, tuple[Any, str]] = {
    "serialize_debug_metadata": (False, "the file has no debug metadata; tensors keep the names of the model"),
    "elide_elementsattrs_if_larger": (None, "there is no MLIR to print; print leadline.lite's converter.to_text()"),
    "enable_timing": (None, "there are no passes of MLIR to time; leadline.lite shows progress"),
    "ir_dump_dir": (None, "there is no MLIR to dump; see leadline inspect --nodes"),
    "ir_dump_func_regex": (None, "there is no MLIR to dump; see leadline inspect --nodes"),
    "ir_dump_pass_regex": (None, "there is no MLIR to dump; see leadline inspect --nodes"),
    "print_ir_after": (None, "there is no MLIR to print; see leadline inspect --nodes"),
    "print_ir_before": (None, "there is no MLIR to print; see leadline inspect --nodes"),
    "print_ir_module_scope": (None, "there is no MLIR to print; see leadline inspect --nodes"),
    "_experimental_preserve_assert_op": (False, "assertions are left out"),
    "experimental_preserve_assert_op": (False, "assertions are left out"),
    "_experimental_low_bit_qat": (False, "weights have 8 bits; leadline.quantize has modes of 4"),
    "_experimental_strict_qdq": (False, "conversions between float and integers stand where nodes need them"),
    "_experimental_reduce_type_precision": (False, "integers keep their types"),
    "_experimental_tf_quantization_mode": (None, "models are quantized after they are converted"),
    "_experimental_quantization_options": (None, "models are quantized after they are converted"),
    "experimental_stablehlo_quantizer_config": (None, "there is no StableHLO in a converted model"),
    "_experimental_sparsify_model": (False, "use Optimize.EXPERIMENTAL_SPARSITY"),
}


def add_attributes(converter: Any) -> None:
    """Sets all of them on a new converter."""
    for name, value in NOTHING_TO_DO.items():
        setattr(converter, name, value)
    for name, (value, _) in NOT_DONE.items():
        setattr(converter, name, value)


def warn(converter: Any, stacklevel: int) -> None:
    """Says which attributes ask for what is not done."""
    for name, (default, instead) in NOT_DONE.items():
        if getattr(converter, name, default) != default:
            warnings.warn(f"{name} has no effect here: {instead}", stacklevel=stacklevel + 1)
