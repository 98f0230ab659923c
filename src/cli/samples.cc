// SPDX-License-Identifier: Apache-2.0
#include "cli/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/opened_model.h"
#include "cli/progress.h"
#include "cli/tensor_io.h"
#include "leadline/error.h"

namespace leadline::cli {
namespace {

template <typename... Args>
[[noreturn]] void bad_argument(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

/// How many samples for an input of `shape` an array holds; nothing when it does not fit.
std::optional<int64_t> samples_in(const Shape& array, const Shape& shape) {
  if (array == shape) return 1;
  const auto same_tail = [&](int array_from, int shape_from) {
    if (array.rank() - array_from != shape.rank() - shape_from) return false;
    for (int i = 0; i + array_from < array.rank(); ++i) {
      if (array[array_from + i] != shape[shape_from + i]) return false;
    }
    return true;
  };
  if (array.rank() >= 1 && shape.rank() >= 1 && shape[0] == 1 && same_tail(1, 1)) return array[0];
  if (array.rank() >= 1 && same_tail(1, 0)) return array[0];
  return std::nullopt;
}

bool is_array_file(const std::filesystem::path& path) {
  return path.extension() == ".npy" || path.extension() == ".npz";
}

void check_finite(const TensorMemory& memory, const std::string& input, int64_t sample) {
  if (memory.dtype != DType::kFloat32) return;
  for (int64_t at = 0; at + 4 <= memory.bytes; at += 4) {
    float value;
    std::memcpy(&value, memory.data + at, sizeof(value));
    if (!std::isfinite(value)) {
      bad_argument("sample {}, input '{}': element {} is {}; ranges cannot be learned from it", sample, input, at / 4,
                   value);
    }
  }
}

}  // namespace

SampleReader::SampleReader(const std::string& path, const Model& model, int64_t limit) : path_(path), limit_(limit) {
  std::error_code no_error;
  if (std::filesystem::is_directory(path, no_error)) {
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(path, problem)) {
      if (is_array_file(entry.path())) files_.push_back(entry.path().string());
    }
    if (problem) throw Error(ErrorCode::kIo, fmt::format("{}: {}", path, problem.message()));
    std::sort(files_.rbegin(), files_.rend());
    if (files_.empty()) bad_argument("the folder {} has no .npy or .npz files", path);
  } else {
    files_.push_back(path);
  }
  const SubgraphInfo subgraph = model.subgraph(0);
  const std::vector<SignatureInfo> signatures = model.signatures();
  const auto signature = std::find_if(signatures.begin(), signatures.end(),
                                      [](const SignatureInfo& candidate) { return candidate.subgraph == 0; });
  for (const int index : subgraph.inputs) {
    Input input{subgraph.tensors[static_cast<size_t>(index)].name, {}};
    input.tensor_name = input.name;
    if (signature != signatures.end()) {
      for (const auto& [name, tensor] : signature->inputs) {
        if (tensor == index) input.name = name;
      }
    }
    inputs_.push_back(std::move(input));
  }
}

std::unique_ptr<ArrayReader> SampleReader::take_array(std::vector<NamedArray>& arrays, size_t input,
                                                      const TensorInfo& info, const std::string& path) const {
  const auto take = [&](const auto& fits) -> std::unique_ptr<ArrayReader> {
    for (NamedArray& array : arrays) {
      if (array.array && fits(array)) return std::move(array.array);
    }
    return nullptr;
  };
  const Input& wanted = inputs_[input];
  auto found = take([&](const NamedArray& array) { return array.name == wanted.name; });
  if (!found) found = take([&](const NamedArray& array) { return array.name == wanted.tensor_name; });
  if (!found) found = take([&](const NamedArray& array) { return array.name == fmt::format("arr_{}", input); });
  if (!found && inputs_.size() == 1) {
    const auto fits = [&](const NamedArray& array) {
      return array.array && (arrays.size() == 1 || samples_in(array.array->header().shape, info.shape).has_value());
    };
    if (std::count_if(arrays.begin(), arrays.end(), fits) == 1) found = take(fits);
  }
  if (found) return found;
  std::string names;
  for (const NamedArray& array : arrays) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", array.name);
  bad_argument("{} has no array for input '{}'; it has {}", path, wanted.name, names.empty() ? "none" : names);
}

void SampleReader::open_next_file(const Interpreter& interpreter) {
  const std::string path = files_.back();
  files_.pop_back();
  std::vector<NamedArray> arrays = open_arrays(path);
  arrays_.clear();
  std::optional<int64_t> samples;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorInfo info = interpreter.tensor_info(interpreter.inputs()[i]);
    if (info.dtype == DType::kString) bad_argument("input '{}' is text, which has no ranges", inputs_[i].name);
    auto array = take_array(arrays, i, info, path);
    check_type({info.index, inputs_[i].name, inputs_[i].tensor_name}, info, *array);
    const std::optional<int64_t> here = samples_in(array->header().shape, info.shape);
    if (!here) {
      bad_argument("{} has shape {}, input '{}' takes {}: an array holds one sample, or many along its first axis",
                   array->where(), array->header().shape.to_string(), inputs_[i].name, info.shape.to_string());
    }
    if (samples && *samples != *here) {
      bad_argument("{} holds {} samples, the arrays before it {}", array->where(), *here, *samples);
    }
    samples = here;
    arrays_.push_back(std::move(array));
  }
  left_ = in_file_ = samples.value_or(0);
}

int64_t SampleReader::expected() const {
  const int64_t all = count_ + left_ + static_cast<int64_t>(files_.size()) * in_file_;
  return limit_ > 0 ? std::min(limit_, all) : all;
}

bool SampleReader::next(Interpreter& interpreter) {
  if (limit_ > 0 && count_ >= limit_) return false;
  while (left_ == 0) {
    if (files_.empty()) return false;
    open_next_file(interpreter);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorMemory memory = interpreter.tensor(interpreter.inputs()[i]);
    arrays_[i]->read_next({memory.data, static_cast<size_t>(memory.bytes)});
    check_finite(memory, inputs_[i].name, count_);
  }
  --left_;
  ++count_;
  return true;
}

int64_t for_each_sample(SampleReader samples, Interpreter& interpreter, const std::string& title,
                        const std::function<void()>& use) {
  const StopOnSignal stop;
  ProgressBar bar(title);
  while (samples.next(interpreter)) {
    use();
    bar.update(samples.count(), samples.expected());
    if (StopOnSignal::stopped()) throw Error(ErrorCode::kCancelled, "stopped before it was finished");
  }
  if (samples.count() == 0) bad_argument("{} holds no samples", samples.path());
  return samples.count();
}

}  // namespace leadline::cli
