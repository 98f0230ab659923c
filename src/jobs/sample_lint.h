// SPDX-License-Identifier: Apache-2.0
// What a set of samples shows about itself while it is read: values that were not scaled, samples that are all alike,
// one that is unlike the others. Memory does not grow with the number of samples.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/op_id.h"
#include "jobs/sample_values.h"
#include "leadline/calibration.h"
#include "leadline/model.h"
#include "leadline/sample_reader.h"

namespace leadline::jobs {

/// An input of a subgraph as samples know it.
struct SampleInput {
  std::string name;  ///< of its signature, or of the tensor
  TensorInfo tensor;
  ir::OwnedOpId first_op;  ///< the op that reads it first; none: it is not read
  int first_output = -1;   ///< tensor that this op computes

  /// Whether a dimension of the model takes any size.
  bool takes_any(int axis) const;
  /// "[any, 28, 28, 1]".
  std::string shape_text() const;
  bool is_image() const;
};

class SampleLint {
 public:
  /// `subgraph` and `input` say which input was read; `where` names sample and input.
  void add_values(int subgraph, int input, const SampleInput& spec, const std::string& where, int64_t sample,
                  const SampleTensor& tensor, const ValueSummary& values);
  void add_integers(int subgraph, int input, const SampleInput& spec, const std::string& where, int64_t sample,
                    const SampleTensor& tensor);
  /// All tensors of a sample, to see whether samples differ.
  void add_sample(const Sample& sample);
  /// What only the whole set shows.
  void finish(int64_t samples, const std::vector<std::vector<SampleInput>>& inputs);
  void look_at(const Calibration& calibration, const std::vector<std::vector<SampleInput>>& inputs);
  void add_not_finite(const Model& model, const NotFiniteValue& value);

  const std::vector<SampleFinding>& findings() const { return findings_; }

 private:
  struct Seen {
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    bool whole = true;
    int64_t values = 0;
    std::vector<double> magnitudes;  // of the first samples
  };
  using Key = std::pair<int, int>;  // subgraph and input

  Seen& seen(Key key);
  void judge(Key key, const SampleInput& spec);
  void add_once(const char* kind, Key key, SampleFinding finding);

  std::vector<std::pair<Key, Seen>> seen_;
  std::set<std::pair<std::string, Key>> known_;  // findings made once for each input
  std::set<uint32_t> checksums_;
  std::vector<SampleFinding> findings_;
};

}  // namespace leadline::jobs
