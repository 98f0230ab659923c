// SPDX-License-Identifier: Apache-2.0
// What stands for unknown sizes while a graph is built: several sets of sizes, each of which the model might be run
// with. Large ones for windows over images, small ones for tables that a sequence is looked up in, sets in which
// sizes of different inputs and axes are the same and sets in which they differ, each way round: what is the same in
// all of them becomes a constant, so a comparison of two sizes must hold in one set and fail in another.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "leadline/types.h"

namespace leadline::ops {

/// Sizes of a tensor; -1 where they are not known before a run.
struct Dims : std::vector<int64_t> {
  using vector::vector;
  Dims(std::vector<int64_t> sizes) : vector(std::move(sizes)) {}
  Dims(const Shape& shape) : vector(shape.begin(), shape.end()) {}
};

inline constexpr size_t kSizeSamples = 20;

/// The shapes of one tensor, sample by sample; nothing where the sample's sizes were ruled out.
struct SizeSamples : std::array<std::optional<Shape>, kSizeSamples> {
  /// The size that all samples have there, or nothing. Samples without the axis do not count.
  std::optional<int64_t> common_size(int axis) const;
  /// Whether every sample has the same size there as `other` has at `other_axis`.
  bool same_size(int axis, const SizeSamples& other, int other_axis) const;
};

/// A tensor of these dims in sample number `sample`. `input` counts the inputs of a graph, 0 for other tensors; `apart`
/// is the same for inputs that need not be of one batch, 0 for those of a body, whose sizes agree as the values' do.
Shape sample_shape(const Dims& dims, size_t sample, size_t input = 0, size_t apart = 0);
/// Samples of tensors of these dims.
SizeSamples sample_shapes(const Dims& dims);

}  // namespace leadline::ops
