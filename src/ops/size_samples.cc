// SPDX-License-Identifier: Apache-2.0
#include "ops/size_samples.h"

#include <algorithm>

namespace leadline::ops {
namespace {

struct Sizes {
  int64_t batch;            // of first axes
  int64_t length;           // of other axes of tensors up to rank 3: sequences
  int64_t image;            // of other axes of tensors of higher rank
  int64_t wide = 0;         // added for each further axis: images are wide in some sets and tall in others
  int64_t input_steps = 0;  // how many times `length` is divided by two before it starts again, input by input
  int64_t input_more = 0;   // added to `length` and `image` for each input before
  int64_t batch_more = 0;   // added to `batch` for each input before; not of vectors, one for each row of another
};

/// 64 * 105 can be halved six times and divided by 3, 5 and 7: windows fit and what was halved meets again. Small
/// lengths fit into tables of any size. Size 1 is a case of its own in many programs, so it must be among them. Sizes
/// that nothing divides show what a program pads or cuts off. First axes are long in two sets: a vector may be a sound.
/// The last six are for programs that compare sizes: pictures much wider than high or higher than wide, inputs that
/// are longer or shorter than those before them, and inputs of more or fewer rows, which may not be one batch.
constexpr int64_t kLarge = 64 * 105;
constexpr std::array<Sizes, kSizeSamples> kSizes = {{
    {6, kLarge * 2, kLarge * 2},
    {10, kLarge * 3, kLarge * 3},
    {3, 4, kLarge},
    {2, 2, kLarge * 4},
    {4, 3, 224},
    {7, 5, 448},
    {1, 1, 1},
    {5, 64, 64},
    {8, 256, 1024, -128},
    {kLarge * 2, 8, 12},
    {11, kLarge, kLarge, kLarge},
    {12, 4, kLarge, kLarge, 2},
    {13, 37, 331, 6},
    {1511, 11, 131, -2},
    {9, 48, 96, 6400},
    {14, 1500, kLarge, -6500},
    {15, 40, 120, 130, 0, 40},
    {17, 901, 703, -400, 0, -211},
    {18, 34, 130, 0, 0, 0, 18},
    {50, 26, 140, 0, 0, 0, -7},
}};
constexpr int64_t kLeast = 2;  // of sizes that get smaller from axis to axis or from input to input

}  // namespace

std::optional<int64_t> SizeSamples::common_size(int axis) const {
  std::optional<int64_t> size;
  for (const auto& shape : *this) {
    if (!shape || axis >= shape->rank()) continue;
    if (size && *size != (*shape)[axis]) return {};
    size = (*shape)[axis];
  }
  return size;
}

bool SizeSamples::same_size(int axis, const SizeSamples& other, int other_axis) const {
  for (size_t s = 0; s < kSizeSamples; ++s) {
    const auto& a = (*this)[s];
    const auto& b = other[s];
    if (!a || !b) continue;
    if (axis >= a->rank() || other_axis >= b->rank() || (*a)[axis] != (*b)[other_axis]) return false;
  }
  return true;
}

Shape sample_shape(const Dims& dims, size_t sample, size_t input, size_t apart) {
  const Sizes& sizes = kSizes[sample];
  const auto more = [](int64_t size, int64_t step, size_t times) {
    return step == 0 ? size : std::max(kLeast, size + step * static_cast<int64_t>(times));
  };
  Shape shape;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    int64_t size = more(sizes.batch, dims.size() > 1 ? sizes.batch_more : 0, apart);
    if (axis > 0) {
      size = dims.size() > 3 ? sizes.image : sizes.length;
      if (sizes.input_steps > 0 && dims.size() <= 3) size >>= input % static_cast<size_t>(sizes.input_steps);
      size = more(more(size, sizes.wide, axis - 1), sizes.input_more, apart);
    }
    shape.push_back(dims[axis] >= 0 ? dims[axis] : size);
  }
  return shape;
}

SizeSamples sample_shapes(const Dims& dims) {
  SizeSamples shapes;
  for (size_t s = 0; s < kSizeSamples; ++s) shapes[s] = sample_shape(dims, s);
  return shapes;
}

}  // namespace leadline::ops
