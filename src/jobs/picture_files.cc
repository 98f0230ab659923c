// SPDX-License-Identifier: Apache-2.0
// Samples of pictures: one is decoded at a time, into the form that the model's input has.
#include <algorithm>
#include <utility>

#include "core/buffer.h"
#include "core/cancel.h"
#include "core/charge.h"
#include "core/error.h"
#include "jobs/picture_tensor.h"
#include "jobs/sample_files.h"
#include "jobs/sample_shapes.h"

namespace leadline::jobs {
namespace {

/// The one input of the main subgraph.
SampleInput input_of(const Model& model) {
  const SubgraphInfo subgraph = model.subgraph(0);
  require(subgraph.inputs.size() == 1, kBadArgument, "the model has {} inputs, expected one for pictures",
          subgraph.inputs.size());
  SampleInput input;
  input.tensor = subgraph.tensors[static_cast<size_t>(subgraph.inputs[0])];
  input.name = input.tensor.name;
  return input;
}

class PictureSource final : public SampleSource {
 public:
  PictureSource(SampleFiles files, const Model& model, SampleFileOptions options)
      : files_(std::move(files)),
        options_(std::move(options)),
        form_(picture_form(input_of(model), options_.pictures)),
        lists_(options_.budget, MemoryCategory::kInputsOutputs) {
    if (!options_.labels.empty() && files_.labels.empty()) {
      targets_ = std::make_unique<TargetArray>(options_.labels, options_.budget);
      require(std::cmp_greater_equal(targets_->rows(), files_.paths.size()), kBadArgument,
              "{} has labels for {} samples, expected {}", options_.labels, targets_->rows(), files_.paths.size());
    }
    for (const std::string& path : files_.paths) {
      check_cancelled();
      const PictureHeader header = read_picture_header(path);
      decode_bytes_ = std::max(decode_bytes_, header.decode_bytes(form_.channels));
      tensor_bytes_ = std::max(tensor_bytes_, form_.bytes(header.height, header.width));
      largest_ = largest_shapes(largest_, {form_.shape(header.height, header.width)});
    }
  }

  bool next(Sample& sample) override {
    lists_.resize(files_.bytes());
    if (at_ == files_.paths.size()) return false;
    const std::string& path = files_.paths[at_];
    if (!tensor_) tensor_ = Buffer(options_.budget, tensor_bytes_, MemoryCategory::kInputsOutputs);
    const Picture picture = read_picture(path, form_.channels, options_.budget);
    const int64_t bytes = form_.bytes(picture.height, picture.width);
    require(bytes <= tensor_.bytes(), ErrorCode::kIo, "{}: the picture changed while it was read", path);
    const std::span<std::byte> data(tensor_.data(), static_cast<size_t>(bytes));
    write_picture(picture, form_, options_.pictures, data);
    sample.name = path;
    sample.inputs = {{"", form_.dtype, form_.shape(picture.height, picture.width), data, {}}};
    sample.targets.clear();
    if (targets_) sample.targets.push_back(targets_->next());
    if (!files_.labels.empty()) {
      label_ = files_.labels[at_];
      sample.targets.push_back({"", DType::kInt64, {}, std::as_bytes(std::span(&label_, 1)), {}});
    }
    ++at_;
    return true;
  }

  std::optional<int64_t> size() const override { return std::ssize(files_.paths); }
  bool rewind() override {
    at_ = 0;
    if (targets_) targets_->rewind();
    return true;
  }
  int64_t peak_bytes() const override {
    return files_.bytes() + decode_bytes_ + align_up(tensor_bytes_) + (targets_ ? align_up(targets_->row_bytes()) : 0);
  }
  Sample sizes() const override { return sample_of(largest_); }

 private:
  SampleFiles files_;
  SampleFileOptions options_;
  PictureForm form_;
  Charge lists_;  // from the first sample on
  std::unique_ptr<TargetArray> targets_;
  int64_t decode_bytes_ = 0;  // of the largest picture
  int64_t tensor_bytes_ = 0;
  std::vector<Shape> largest_;
  Buffer tensor_;
  size_t at_ = 0;
  int64_t label_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> picture_samples(SampleFiles files, const Model& model, SampleFileOptions options) {
  return std::make_unique<PictureSource>(std::move(files), model, std::move(options));
}

}  // namespace leadline::jobs
