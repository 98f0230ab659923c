// SPDX-License-Identifier: Apache-2.0
// Samples for calibration from numpy's files, one at a time: memory does not grow with their number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/npy.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"

namespace leadline::cli {

/// Reads a .npy or .npz file, or a folder of them in the order of their names. An array holds one sample (the shape of
/// the input), or many along its first axis. Arrays of a .npz file are named like the inputs; for a model with one
/// input the only array that fits it will do.
class SampleReader {
 public:
  /// Throws Error(kInvalidArgument, kIo) when there are no files. `limit`: at most so many samples; 0: all.
  SampleReader(const std::string& path, const Model& model, int64_t limit);

  /// Puts the next sample into the inputs of an allocated interpreter; false when there are no more. Throws
  /// Error(kInvalidArgument) that names file, array, input and what does not fit, and for values that are not finite.
  bool next(Interpreter& interpreter);
  const std::string& path() const { return path_; }
  int64_t count() const { return count_; }
  /// Of all samples, as far as known: files that were not opened yet count as much as the open one.
  int64_t expected() const;

 private:
  struct Input {
    std::string name;
    std::string tensor_name;
  };
  void open_next_file(const Interpreter& interpreter);
  std::unique_ptr<ArrayReader> take_array(std::vector<NamedArray>& arrays, size_t input, const TensorInfo& info,
                                          const std::string& path) const;

  std::string path_;
  std::vector<std::string> files_;  // those that are left, last first
  std::vector<Input> inputs_;
  int64_t limit_ = 0;
  std::vector<std::unique_ptr<ArrayReader>> arrays_;  // of the open file, one for each input
  int64_t in_file_ = 0;                               // samples that it has
  int64_t left_ = 0;                                  // and those that were not taken
  int64_t count_ = 0;
};

/// Calls `use` for each sample when it is in the inputs of `interpreter`, with a bar for people who wait; Ctrl-C stops
/// between samples. Throws Error(kInvalidArgument) when there are none. Gives their number.
int64_t for_each_sample(SampleReader samples, Interpreter& interpreter, const std::string& title,
                        const std::function<void()>& use);

}  // namespace leadline::cli
