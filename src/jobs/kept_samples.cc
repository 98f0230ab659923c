// SPDX-License-Identifier: Apache-2.0
#include "jobs/kept_samples.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leadline::jobs {
namespace {

constexpr int64_t kMostSamples = 32;
constexpr int64_t kMostBytes = int64_t{32} << 20;

int64_t bytes_of(const Interpreter& interpreter, const std::vector<int>& tensors, size_t first) {
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(first, tensors.size()); ++i) bytes += interpreter.tensor_info(tensors[i]).bytes;
  return bytes;
}

}  // namespace

int64_t KeptSamples::capacity(const Interpreter& interpreter) {
  const int64_t one = bytes_of(interpreter, interpreter.inputs(), interpreter.inputs().size()) +
                      bytes_of(interpreter, interpreter.outputs(), interpreter.outputs().size());
  // Two at least: one to choose by, one to measure on.
  return std::max(std::min(kMostSamples * one, kMostBytes), 2 * one);
}

KeptSamples::KeptSamples(const std::shared_ptr<Budget>& budget, int64_t capacity, std::optional<int64_t> samples)
    : capacity_(capacity), charge_(budget, MemoryCategory::kInputsOutputs) {
  if (samples) stride_ = std::max<int64_t>(1, (*samples + kMostSamples - 1) / kMostSamples);
}

void KeptSamples::add(const Sample& sample, const Interpreter& interpreter, size_t float_outputs) {
  if (seen_++ % stride_ != 0 || static_cast<int64_t>(kept_.size()) >= kMostSamples) return;
  int64_t bytes = bytes_of(interpreter, interpreter.outputs(), float_outputs);
  for (const SampleTensor& tensor : sample.inputs) bytes += static_cast<int64_t>(tensor.data.size());
  if (charge_.bytes() + bytes > capacity_) return;
  charge_.resize(charge_.bytes() + bytes);
  auto kept = std::make_unique<Kept>();
  kept->sample = sample;
  kept->sample.targets.clear();
  for (SampleTensor& tensor : kept->sample.inputs) {
    kept->bytes.emplace_back(tensor.data.begin(), tensor.data.end());
    tensor.data = kept->bytes.back();
  }
  for (size_t i = 0; i < float_outputs; ++i) {
    const int output = interpreter.outputs()[i];
    std::vector<float> values;
    if (interpreter.tensor_info(output).dtype == DType::kFloat32) {
      const TensorMemory memory = interpreter.tensor(output);
      values.resize(static_cast<size_t>(memory.bytes) / sizeof(float));
      if (!values.empty()) std::memcpy(values.data(), memory.data, values.size() * sizeof(float));
    }
    kept->outputs.push_back(std::move(values));
  }
  kept_.push_back(std::move(kept));
}

std::vector<const KeptSamples::Kept*> KeptSamples::part(Part part) const {
  std::vector<const Kept*> result;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const bool chosen_by = i % 2 == 0;
    if (part == Part::kAll || kept_.size() == 1 || chosen_by == (part == Part::kChosenBy)) {
      result.push_back(kept_[i].get());
    }
  }
  return result;
}

size_t KeptSamples::count(Part part) const { return this->part(part).size(); }

std::unique_ptr<SampleSource> KeptSamples::source(Part part) const {
  const auto next = std::make_shared<size_t>(0);
  std::vector<const Kept*> samples = this->part(part);
  const auto size = static_cast<int64_t>(samples.size());
  return callback_samples(
      [next, samples = std::move(samples)](Sample& sample) {
        if (*next >= samples.size()) return false;
        sample = samples[(*next)++]->sample;
        return true;
      },
      [next] { *next = 0; }, size);
}

}  // namespace leadline::jobs
