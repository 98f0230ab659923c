// SPDX-License-Identifier: Apache-2.0
// Samples that the caller has in memory, or makes.
#include "leadline/samples.h"

#include <utility>

#include "core/error.h"

namespace leadline {
namespace {

class CallbackSource final : public SampleSource {
 public:
  CallbackSource(std::function<bool(Sample&)> next, std::function<void()> rewind, std::optional<int64_t> size)
      : next_(std::move(next)), rewind_(std::move(rewind)), size_(size) {}

  bool next(Sample& sample) override { return next_(sample); }
  std::optional<int64_t> size() const override { return size_; }
  bool rewind() override {
    if (!rewind_) return false;
    rewind_();
    return true;
  }

 private:
  std::function<bool(Sample&)> next_;
  std::function<void()> rewind_;
  std::optional<int64_t> size_;
};

/// Arrays cut along their first dimension.
class ArraySource final : public SampleSource {
 public:
  ArraySource(std::vector<SampleTensor> inputs, std::vector<SampleTensor> targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {
    require(!inputs_.empty(), ErrorCode::kInvalidArgument, "samples need at least one array");
    for (const SampleTensor& array : inputs_) check(array);
    for (const SampleTensor& array : targets_) check(array);
  }

  bool next(Sample& sample) override {
    if (at_ == *count_) return false;
    cut(inputs_, sample.inputs);
    cut(targets_, sample.targets);
    ++at_;
    return true;
  }
  std::optional<int64_t> size() const override { return count_; }
  bool rewind() override {
    at_ = 0;
    return true;
  }
  Sample sizes() const override {
    Sample sample;
    if (*count_ == 0) return sample;
    for (SampleTensor part : inputs_) {
      part.shape.set(0, 1);
      part.data = {};
      sample.inputs.push_back(std::move(part));
    }
    return sample;
  }

 private:
  void check(const SampleTensor& array) {
    require(array.shape.rank() >= 1, ErrorCode::kInvalidArgument,
            "array '{}' has no dimensions, expected one that counts samples", array.name);
    require(dtype_bits(array.dtype) > 0, ErrorCode::kInvalidArgument, "array '{}' is {}, expected a type of fixed size",
            array.name, dtype_name(array.dtype));
    if (!count_) count_ = array.shape[0];
    require(*count_ == array.shape[0], ErrorCode::kInvalidArgument, "array '{}' holds {} samples, those before it {}",
            array.name, array.shape[0], *count_);
    const std::optional<int64_t> elements = array.shape.checked_elements();
    require(elements && static_cast<int64_t>(array.data.size()) / item_bytes(array) == *elements &&
                array.data.size() % static_cast<size_t>(item_bytes(array)) == 0,
            ErrorCode::kInvalidArgument, "array '{}' of shape {} has {} bytes", array.name, array.shape.to_string(),
            array.data.size());
  }

  static int64_t item_bytes(const SampleTensor& array) { return std::max(8, dtype_bits(array.dtype)) / 8; }

  void cut(const std::vector<SampleTensor>& arrays, std::vector<SampleTensor>& parts) const {
    parts = arrays;
    for (SampleTensor& part : parts) {
      const size_t bytes = part.data.size() / static_cast<size_t>(*count_);
      part.shape.set(0, 1);
      part.data = part.data.subspan(static_cast<size_t>(at_) * bytes, bytes);
    }
  }

  std::vector<SampleTensor> inputs_;
  std::vector<SampleTensor> targets_;
  std::optional<int64_t> count_;
  int64_t at_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> callback_samples(std::function<bool(Sample&)> next, std::function<void()> rewind,
                                               std::optional<int64_t> size) {
  return std::make_unique<CallbackSource>(std::move(next), std::move(rewind), size);
}

std::unique_ptr<SampleSource> array_samples(std::vector<SampleTensor> inputs, std::vector<SampleTensor> targets) {
  return std::make_unique<ArraySource>(std::move(inputs), std::move(targets));
}

}  // namespace leadline
