// SPDX-License-Identifier: Apache-2.0
// Which files hold the samples, and what the labels of pictures are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leadline/samples.h"

namespace leadline::jobs {

/// Files in the order in which they are read.
struct SampleFiles {
  std::vector<std::string> paths;
  std::vector<int64_t> labels;  ///< of each file; empty: none
  bool pictures = false;        ///< else arrays

  /// What the lists take, as it is charged.
  int64_t bytes() const;
};

/// Lists the files of `path` (open_samples() says which). Throws Error(kInvalidArgument, kIo) when there are none.
SampleFiles list_sample_files(const std::string& path, const SampleFileOptions& options);

/// Labels or expected outputs that come in an array of their own: one row for each sample.
class TargetArray {
 public:
  /// `where` is "file.npy" or "file.npz:name".
  TargetArray(std::string where, std::shared_ptr<Budget> budget);
  ~TargetArray();
  TargetArray(const TargetArray&) = delete;
  TargetArray& operator=(const TargetArray&) = delete;

  int64_t rows() const;
  int64_t row_bytes() const;
  /// The next row. Throws Error(kInvalidArgument) when there are no more.
  SampleTensor next();
  void rewind();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::unique_ptr<SampleSource> array_file_samples(SampleFiles files, const Model& model, SampleFileOptions options);
std::unique_ptr<SampleSource> picture_samples(SampleFiles files, const Model& model, SampleFileOptions options);

}  // namespace leadline::jobs
