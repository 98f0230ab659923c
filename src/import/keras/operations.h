// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops in functional models: tables of rows, and how operations read what they are called with.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "import/keras/layer_functions.h"

namespace leadline::keras {

/// Operand `index` of an operation: a tensor, or a constant of the type of the other operand.
int operand(Call& call, size_t index, std::string_view name, int like);
/// Both operands of an operation, of one type.
std::pair<int, int> operands(Call& call, std::string_view first, std::string_view second);

/// A constant that is given as an argument or is in the operation's configuration.
std::optional<Config> setting(const Call& call, size_t position, std::string_view name);
int64_t integer_setting(const Call& call, size_t position, std::string_view name, int64_t otherwise);
bool flag_setting(const Call& call, size_t position, std::string_view name);
/// Axes of the first tensor; all of them when none is named.
std::vector<int32_t> axes_setting(Call& call, size_t position, std::string_view name);

/// Sizes that an operation is called with, as an int32 vector, when tensors are among them; -1 when none is.
int computed_sizes(Call& call, size_t position, std::string_view name);

/// operations_math.cc, operations_shape.cc, operations_nn.cc, operations_traced.cc
std::span<const LayerClass> math_operations();
std::span<const LayerClass> shape_operations();
std::span<const LayerClass> nn_operations();
std::span<const LayerClass> traced_operations();

}  // namespace leadline::keras
