// SPDX-License-Identifier: Apache-2.0
#include "api/keras_weight.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/boundary.h"
#include "core/error.h"
#include "core/join.h"

namespace leadline {
namespace {

/// Values that a user's function returns.
class ReaderSource final : public ir::PlannedSource {
 public:
  ReaderSource(KerasWeight::Reader reader, int64_t bytes) : reader_(std::move(reader)), bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }
  /// The function may well make the values first: a copy from another device.
  int64_t extra_bytes() const override { return bytes_; }
  void read(std::span<std::byte> out) const override { reader_(out); }

 private:
  KerasWeight::Reader reader_;
  int64_t bytes_;
};

int64_t bytes_of(DType dtype, const Shape& shape, const std::string& name) {
  const auto bytes = storage_bytes(dtype, shape);
  require(dtype_bits(dtype) >= 8 && bytes.has_value(), kBadArgument, "variable '{}' has type {} and shape {}", name,
          dtype_name(dtype), shape.to_string());
  return *bytes;
}

}  // namespace

KerasWeight make_weight(const keras::Weight& weight, std::string key) {
  require(weight.source != nullptr && storage_bytes(weight.dtype, weight.shape) == weight.source->bytes(),
          ErrorCode::kInvalidModel, "variable '{}' of shape {} has {} bytes", printable(weight.name),
          weight.shape.to_string(), weight.source ? weight.source->bytes() : 0);
  return KerasWeight(std::make_shared<const KerasWeight::Data>(
      KerasWeight::Data{weight.name, weight.dtype, weight.shape, weight.source, std::move(key)}));
}

KerasWeight::KerasWeight(std::string name, DType dtype, const Shape& shape, Reader reader) try {
  require(reader != nullptr, kBadArgument, "variable '{}' has no function that reads it", name);
  const int64_t size = bytes_of(dtype, shape, name);
  data_ = std::make_shared<const Data>(
      Data{std::move(name), dtype, shape, std::make_shared<ReaderSource>(std::move(reader), size), ""});
} catch (...) {
  rethrow_as_error();
}

const std::string& KerasWeight::name() const { return data_->name; }
DType KerasWeight::dtype() const { return data_->dtype; }
const Shape& KerasWeight::shape() const { return data_->shape; }
int64_t KerasWeight::bytes() const { return data_->source->bytes(); }

void KerasWeight::read(std::span<std::byte> out) const try {
  require(static_cast<int64_t>(out.size()) == bytes(), kBadArgument, "variable '{}' has {} bytes, the memory for it {}",
          name(), bytes(), out.size());
  data_->source->read(out);
} catch (...) {
  rethrow_as_error();
}

KerasWeight KerasWeight::transposed(const std::vector<int>& permutation) const try {
  std::vector<int> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool good = static_cast<int>(sorted.size()) == shape().rank();
  for (size_t i = 0; good && i < sorted.size(); ++i) good = sorted[i] == static_cast<int>(i);
  require(good, kBadArgument, "[{}] is not a permutation of the {} axes of variable '{}'", join(permutation, ", "),
          shape().rank(), name());
  Data data = *data_;
  for (size_t i = 0; i < permutation.size(); ++i) data.shape.set(static_cast<int>(i), shape()[permutation[i]]);
  data.source = ir::transposed_source(data_->source, shape(), permutation, dtype_bits(dtype()) / 8);
  // The shape too: a reshape may lie between two of these.
  if (!data.key.empty()) data.key += fmt::format(":{}T{}", shape().to_string(), join(permutation, ","));
  return KerasWeight(std::make_shared<const Data>(std::move(data)));
} catch (...) {
  rethrow_as_error();
}

KerasWeight KerasWeight::reshaped(const Shape& target) const try {
  require(target.checked_elements() == shape().checked_elements(), kBadArgument,
          "variable '{}' of shape {} cannot have shape {}", name(), shape().to_string(), target.to_string());
  Data data = *data_;
  data.shape = target;
  return KerasWeight(std::make_shared<const Data>(std::move(data)));
} catch (...) {
  rethrow_as_error();
}

KerasWeight KerasWeight::converted(DType target) const try {
  if (target == dtype()) return *this;
  require(ir::convertible(dtype(), target), kBadArgument, "variable '{}' has type {}, which cannot become {}", name(),
          dtype_name(dtype()), dtype_name(target));
  Data data = *data_;
  data.dtype = target;
  data.source = ir::converted_source(data_->source, dtype(), target);
  if (!data.key.empty()) data.key += fmt::format(":{}", dtype_name(target));
  return KerasWeight(std::make_shared<const Data>(std::move(data)));
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
