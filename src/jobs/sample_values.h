// SPDX-License-Identifier: Apache-2.0
// The values of samples: what can be converted to an input's type, what they are, and the conversion itself, piece by
// piece into the memory of the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "leadline/model.h"
#include "leadline/samples.h"

namespace leadline::jobs {

bool is_real(DType type);     ///< float32, float16, bfloat16 or float64
bool is_integer(DType type);  ///< of any size, without bool

/// How values of one type get into an input of another.
enum class Conversion {
  kNone,      ///< the same bytes
  kPack,      ///< integers of less than a byte, one to a byte -> packed
  kReal,      ///< integers and floats -> floats
  kInteger,   ///< integers -> integers that hold the same values
  kQuantize,  ///< floats -> the integers that stand for them
  kRefused,
};
Conversion conversion_of(DType from, const TensorInfo& to);

/// What the values are once they have been converted to a float type.
struct ValueSummary {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  int64_t not_finite = 0;
  int64_t first_not_finite = -1;  ///< number of the element
  bool whole = true;              ///< all are whole numbers
};
ValueSummary summarize(const SampleTensor& tensor, DType to);

/// Whether each of the integers is in the range of `to`.
bool integers_fit(const SampleTensor& tensor, DType to);

/// Writes the values into `out`, the memory of an input of the same shape. Values were checked before: what does not
/// fit is clamped.
void convert(const SampleTensor& tensor, const TensorInfo& to, std::span<std::byte> out);

/// Element `index` as a number. The type is real or an integer.
double real_at(const SampleTensor& tensor, int64_t index);
/// Element `index` of integers; nothing for other types and for values beyond int64.
std::optional<int64_t> integer_at(const SampleTensor& tensor, int64_t index);

}  // namespace leadline::jobs
