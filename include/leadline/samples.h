// SPDX-License-Identifier: Apache-2.0
// Samples: what a job runs a model on, one at a time, so that memory does not grow with their number.
//
//   auto images = leadline::callback_samples([&](leadline::Sample& sample) {
//     if (next == images.size()) return false;
//     sample.inputs = {{.dtype = DType::kFloat32, .shape = {1, 28, 28, 1}, .data = bytes_of(images[next++])}};
//     return true;
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leadline/budget.h"
#include "leadline/model.h"
#include "leadline/types.h"

namespace leadline {

/// One tensor of a sample. The bytes belong to the maker of the sample.
struct SampleTensor {
  std::string name = {};  ///< of an input, as its signature or the file calls it; empty: by position
  DType dtype = DType::kFloat32;
  Shape shape = {};
  /// In C order. Integers of less than a byte take one byte each; strings are a buffer as the format lays it out.
  std::span<const std::byte> data = {};
  std::string type_name = {};  ///< what its owner calls the type, for messages; empty: dtype_name()
};

/// One set of inputs.
struct Sample {
  std::string name = {};  ///< for messages, such as a file's; empty: its number
  std::string signature;  ///< key of the signature it is for; empty: the main one
  int subgraph = 0;       ///< of that signature; SampleReader sets it
  std::vector<SampleTensor> inputs;
  /// What the model should make of the inputs, for jobs that judge it: a label (one integer) or the expected outputs.
  std::vector<SampleTensor> targets;
};

/// Samples one after the other. Not thread-safe.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// Makes `sample` the next one; false when there are no more. What it holds is valid until the next call. Throws
  /// Error that names the file or the sample.
  virtual bool next(Sample& sample) = 0;
  /// How many samples there are in all, where that is known before they are read.
  virtual std::optional<int64_t> size() const { return std::nullopt; }
  /// Begins again with the first sample. False when that is not possible, as with a generator.
  virtual bool rewind() { return false; }
  /// The most bytes it holds at a time, charged to its budget from the first sample on. Memory of the caller is not
  /// counted.
  virtual int64_t peak_bytes() const { return 0; }
  /// Inputs without data, each dimension the largest of any sample, where that is known before they are read; where
  /// only the first sample is known, its sizes. No inputs: nothing is known.
  virtual Sample sizes() const { return {}; }
};

/// Samples of a function that fills in the next one and returns whether there was one. `rewind`: called to begin again;
/// without it the samples can be read once. `size`: how many there are, where that is known.
std::unique_ptr<SampleSource> callback_samples(std::function<bool(Sample&)> next, std::function<void()> rewind = {},
                                               std::optional<int64_t> size = std::nullopt);

/// Samples of arrays in memory, which are not copied: the first dimension of each counts samples, and a sample has the
/// same dimension with size 1. Throws Error(kInvalidArgument) when the counts differ or a size does not fit.
std::unique_ptr<SampleSource> array_samples(std::vector<SampleTensor> inputs, std::vector<SampleTensor> targets = {});

/// How pictures become the values of an input: resized to the input's size (or the one given), then
/// (value - mean) * scale for each channel. Without mean and scale an input takes the bytes 0 to 255 as they are; an
/// int8 input takes them less 128.
struct PictureOptions {
  enum class Colors {
    kAuto,  ///< grey for an input of one channel, else RGB
    kRgb,
    kBgr,
    kGrey,
  };
  enum class Resize { kBilinear, kNearest };

  int64_t height = 0;  ///< 0: the input's
  int64_t width = 0;
  std::vector<float> mean = {};   ///< one, or one for each channel; empty: 0
  std::vector<float> scale = {};  ///< likewise; empty: 1
  Colors colors = Colors::kAuto;
  Resize resize = Resize::kBilinear;
};

/// "auto", "rgb", "bgr", "grey"; "bilinear", "nearest". Throw Error(kInvalidArgument) that lists the names.
PictureOptions::Colors parse_picture_colors(std::string_view name);
PictureOptions::Resize parse_picture_resize(std::string_view name);

struct SampleFileOptions {
  PictureOptions pictures = {};
  /// What the model should make of each sample: a .npy file, an array of a .npz file ("file.npz:name"), an array by
  /// this name in the .npz files of the samples themselves, or a .csv file with lines of file,label, which then also
  /// says which files of the folder are used, and in which order. Empty: none, but the names of class folders.
  std::string labels = {};
  /// Text file with one class name in each line, for labels that are names; empty: names of class folders in
  /// alphabetical order, or the numbers that they are.
  std::string classes = {};
  std::shared_ptr<Budget> budget = {};  ///< charged for the sample that is read; null: the model's
};

/// Samples of files for `model`: a .npy or .npz file, a PNG or JPEG picture, a folder of either in the order of their
/// names, or a folder of class folders with pictures. An array holds one sample (the shape of the input) or many along
/// its first axis; arrays of a .npz file are named like the inputs, and for a model with one input the only array that
/// fits will do. Reads the headers of all files, so that count and memory are known. Throws Error(kInvalidArgument,
/// kIo) that names the file.
std::unique_ptr<SampleSource> open_samples(const std::string& path, const Model& model, SampleFileOptions options = {});

/// Whether this build of Leadline can read pictures.
bool reads_pictures() noexcept;

}  // namespace leadline
