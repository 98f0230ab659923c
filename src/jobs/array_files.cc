// SPDX-License-Identifier: Apache-2.0
// Samples of numpy's files, streamed: one sample is in memory at a time.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/buffer.h"
#include "core/cancel.h"
#include "core/charge.h"
#include "core/error.h"
#include "io/npy.h"
#include "jobs/sample_files.h"
#include "jobs/sample_lint.h"
#include "jobs/sample_shapes.h"

namespace leadline::jobs {
namespace {

/// The samples in an array for an input.
struct Split {
  int64_t samples = 0;
  Shape shape;  // of one
};

std::optional<Split> split(const Shape& array, const SampleInput& input) {
  const Shape& shape = input.tensor.shape;
  const auto tail_fits = [&](int array_from, int shape_from) {
    if (array.rank() - array_from != shape.rank() - shape_from) return false;
    for (int i = 0; i + array_from < array.rank(); ++i) {
      if (!input.takes_any(shape_from + i) && array[array_from + i] != shape[shape_from + i]) return false;
    }
    return true;
  };
  if (array.rank() >= 1 && shape.rank() >= 1 && shape[0] == 1 && tail_fits(1, 1)) {
    Shape one = array;
    one.set(0, 1);
    return Split{array[0], one};
  }
  if (tail_fits(0, 0)) return Split{1, array};
  if (array.rank() >= 1 && tail_fits(1, 0)) return Split{array[0], Shape(array.dims().subspan(1))};
  return std::nullopt;
}

/// The type of an array for an input; raw bytes are what the input holds where numpy has no name for it.
std::optional<DType> type_for(const ArrayType& type, DType input) {
  if (const std::optional<DType> known = array_dtype(type)) return known;
  const std::optional<std::string> raw = npy_descr(input);
  if (raw && type.kind == 'V' && *raw == fmt::format("{}V{}", (*raw)[0], type.item_bytes)) return input;
  return std::nullopt;
}

/// Inputs of the main subgraph by the names of its signature.
std::vector<SampleInput> inputs_of(const Model& model) {
  const SubgraphInfo subgraph = model.subgraph(0);
  const std::vector<SignatureInfo> signatures = model.signatures();
  const auto signature = std::find_if(signatures.begin(), signatures.end(),
                                      [](const SignatureInfo& candidate) { return candidate.subgraph == 0; });
  std::vector<SampleInput> inputs;
  for (const int index : subgraph.inputs) {
    SampleInput& input = inputs.emplace_back();
    input.tensor = subgraph.tensors[static_cast<size_t>(index)];
    input.name = input.tensor.name;
    if (signature == signatures.end()) continue;
    for (const auto& [name, tensor] : signature->inputs) {
      if (tensor == index) input.name = name;
    }
  }
  return inputs;
}

class ArrayFileSource final : public SampleSource {
 public:
  ArrayFileSource(SampleFiles files, const Model& model, SampleFileOptions options)
      : files_(std::move(files)),
        options_(std::move(options)),
        inputs_(inputs_of(model)),
        lists_(options_.budget, MemoryCategory::kInputsOutputs),
        buffers_(inputs_.size()) {
    require(!inputs_.empty(), kBadArgument, "the model has no inputs");
    const bool file = options_.labels.ends_with(".npy") || options_.labels.find(".npz") != std::string::npos;
    if (!options_.labels.empty() && files_.labels.empty()) {
      if (file) {
        target_file_ = std::make_unique<TargetArray>(options_.labels, options_.budget);
      } else {
        target_name_ = options_.labels;
      }
    }
    for (const std::string& path : files_.paths) {
      check_cancelled();
      const File file_here = open(path);
      size_ += file_here.samples;
      peak_bytes_ = std::max(peak_bytes_, file_here.bytes());
      std::vector<Shape> shapes;
      for (const Column& column : file_here.inputs) shapes.push_back(column.split.shape);
      largest_ = largest_shapes(largest_, shapes);
    }
    if (target_file_) {
      require(target_file_->rows() >= size_, kBadArgument, "{} has labels for {} samples, expected {}", options_.labels,
              target_file_->rows(), size_);
      peak_bytes_ += align_up(target_file_->row_bytes());
    }
  }

  bool next(Sample& sample) override {
    lists_.resize(files_.bytes());
    while (left_ == 0) {
      if (next_file_ == files_.paths.size()) return false;
      file_ = open(files_.paths[next_file_++]);
      left_ = file_.samples;
    }
    sample.name = files_.paths.size() > 1 ? files_.paths[next_file_ - 1] : "";
    sample.inputs.clear();
    sample.targets.clear();
    for (size_t i = 0; i < inputs_.size(); ++i) sample.inputs.push_back(read(file_.inputs[i], buffers_[i]));
    if (file_.target.array) sample.targets.push_back(read(file_.target, target_buffer_));
    if (target_file_) sample.targets.push_back(target_file_->next());
    if (!files_.labels.empty()) {
      label_ = files_.labels[next_file_ - 1];
      sample.targets.push_back({"", DType::kInt64, {}, std::as_bytes(std::span(&label_, 1)), {}});
    }
    --left_;
    return true;
  }

  std::optional<int64_t> size() const override { return size_; }
  bool rewind() override {
    next_file_ = 0;
    left_ = 0;
    if (target_file_) target_file_->rewind();
    return true;
  }
  int64_t peak_bytes() const override { return files_.bytes() + peak_bytes_; }
  Sample sizes() const override { return sample_of(largest_); }

 private:
  /// An array that holds a tensor of every sample of its file.
  struct Column {
    std::unique_ptr<ArrayReader> array;
    DType dtype = DType::kFloat32;
    Split split;
    int64_t sample_bytes() const { return split.samples == 0 ? 0 : array->header().bytes / split.samples; }
  };
  struct File {
    std::vector<Column> inputs;
    Column target;
    int64_t samples = 0;
    int64_t bytes() const {
      int64_t bytes = target.array ? align_up(target.sample_bytes()) : 0;
      for (const Column& column : inputs) bytes += align_up(column.sample_bytes());
      return bytes;
    }
  };

  File open(const std::string& path) const {
    std::vector<NamedArray> arrays = open_arrays(path);
    File file;
    // The labels first: they are not taken for an input then.
    if (!target_name_.empty()) file.target = target_column(arrays, path);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      file.inputs.push_back(input_column(arrays, i, path));
      const Column& column = file.inputs.back();
      if (i == 0) file.samples = column.split.samples;
      require(column.split.samples == file.samples, kBadArgument, "{} holds {} samples, the arrays before it {}",
              column.array->where(), column.split.samples, file.samples);
    }
    if (file.target.array) {
      require(file.target.split.samples == file.samples, kBadArgument, "{} holds labels for {} samples, expected {}",
              file.target.array->where(), file.target.split.samples, file.samples);
    }
    return file;
  }

  Column input_column(std::vector<NamedArray>& arrays, size_t position, const std::string& path) const {
    const SampleInput& input = inputs_[position];
    require(input.tensor.dtype != DType::kString, kBadArgument,
            "input '{}' is text, which files of samples cannot hold", input.name);
    Column column{take(arrays, position, path), {}, {}};
    const ArrayHeader& header = column.array->header();
    const std::optional<DType> dtype = type_for(header.type, input.tensor.dtype);
    require(dtype.has_value(), kBadArgument, "{} is {}, input '{}' takes {}", column.array->where(),
            type_name(header.type), input.name, dtype_name(input.tensor.dtype));
    column.dtype = *dtype;
    const std::optional<Split> found = split(header.shape, input);
    require(found.has_value(), kBadArgument,
            "{} has shape {}, input '{}' takes {}: an array holds one sample, or many along its first axis",
            column.array->where(), header.shape.to_string(), input.name, input.shape_text());
    column.split = *found;
    return column;
  }

  Column target_column(std::vector<NamedArray>& arrays, const std::string& path) const {
    for (NamedArray& candidate : arrays) {
      if (candidate.name != target_name_) continue;
      Column column{std::move(candidate.array), {}, {}};
      const ArrayHeader& header = column.array->header();
      const std::optional<DType> dtype = array_dtype(header.type);
      require(dtype.has_value() && header.shape.rank() >= 1, kBadArgument,
              "{} is {} of shape {}, expected numbers, one label for each sample", column.array->where(),
              type_name(header.type), header.shape.to_string());
      column.dtype = *dtype;
      column.split = {header.shape[0], Shape(header.shape.dims().subspan(1))};
      return column;
    }
    fail(kBadArgument, "{} has no array '{}' for the labels; it has {}", path, target_name_, names_of(arrays));
  }

  static std::string names_of(const std::vector<NamedArray>& arrays) {
    std::string names;
    for (const NamedArray& array : arrays) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", array.name);
    return names.empty() ? "none" : names;
  }

  std::unique_ptr<ArrayReader> take(std::vector<NamedArray>& arrays, size_t position, const std::string& path) const {
    const auto take_first = [&](const auto& fits) -> std::unique_ptr<ArrayReader> {
      for (NamedArray& candidate : arrays) {
        if (candidate.array && fits(candidate)) return std::move(candidate.array);
      }
      return nullptr;
    };
    const SampleInput& input = inputs_[position];
    for (const std::string& name : {input.name, input.tensor.name, fmt::format("arr_{}", position)}) {
      if (auto found = take_first([&](const NamedArray& candidate) { return candidate.name == name; })) return found;
    }
    if (inputs_.size() == 1) {
      const auto fits = [&](const NamedArray& candidate) {
        return candidate.array && (arrays.size() == 1 || split(candidate.array->header().shape, input).has_value());
      };
      if (std::count_if(arrays.begin(), arrays.end(), fits) == 1) return take_first(fits);
    }
    fail(kBadArgument, "{} has no array for input '{}'; it has {}", path, input.name, names_of(arrays));
  }

  SampleTensor read(Column& column, Buffer& buffer) const {
    const int64_t bytes = column.sample_bytes();
    if (buffer.bytes() < bytes) {
      buffer = {};  // first, so that both are never charged
      buffer = Buffer(options_.budget, bytes, MemoryCategory::kInputsOutputs);
    }
    const std::span<std::byte> data(buffer.data(), static_cast<size_t>(bytes));
    column.array->read_next(data);
    return {"", column.dtype, column.split.shape, data, {}};
  }

  SampleFiles files_;
  SampleFileOptions options_;
  std::vector<SampleInput> inputs_;
  Charge lists_;                              // from the first sample on
  std::string target_name_;                   // of an array in each file
  std::unique_ptr<TargetArray> target_file_;  // or all of them in one
  int64_t size_ = 0;
  int64_t peak_bytes_ = 0;
  std::vector<Shape> largest_;
  File file_;
  size_t next_file_ = 0;
  int64_t left_ = 0;  // samples of the open file
  std::vector<Buffer> buffers_;
  Buffer target_buffer_;
  int64_t label_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> array_file_samples(SampleFiles files, const Model& model, SampleFileOptions options) {
  return std::make_unique<ArrayFileSource>(std::move(files), model, std::move(options));
}

}  // namespace leadline::jobs
