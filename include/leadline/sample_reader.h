// SPDX-License-Identifier: Apache-2.0
// Samples brought to the form a model takes, and checked on the way: what every job reads its samples through.
//
//   leadline::SampleReader reader(model, *source);
//   while (const leadline::Sample* sample = reader.next()) {
//     leadline::set_inputs(interpreter, *sample);
//     interpreter.invoke();
//   }
//   for (const leadline::SampleFinding& finding : reader.findings()) std::cerr << finding.message << '\n';
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leadline/calibration.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"
#include "leadline/progress.h"
#include "leadline/samples.h"

namespace leadline {

/// Something about a set of samples that its owner should know.
struct SampleFinding {
  enum class Severity { kNote, kWarning };
  Severity severity = Severity::kWarning;
  std::string message;
  std::optional<int64_t> sample;  ///< number of the sample, from 0
  std::string input;              ///< name of the input; empty: all
};

struct SampleReaderOptions {
  int64_t limit = 0;  ///< reads at most this many samples; 0: all
  /// Refuse NaN and infinity, and look for samples that may not be what was meant (findings()).
  bool lint = true;
};

/// Reads the samples of a source for a model. Inputs are found by name or taken in order; shapes must fit (unknown
/// dimensions take any size), types must convert without losing more than precision, values must be finite. Floats
/// for a quantized integer input are taken as real values. Not thread-safe; keeps a reference to the source.
class SampleReader {
 public:
  SampleReader(const Model& model, SampleSource& source, SampleReaderOptions options = {});
  ~SampleReader();
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;

  /// The next sample, its subgraph set and its inputs in the order of that subgraph; null when there are no more. Valid
  /// until the next call. Throws Error(kInvalidArgument) that names the sample and the input when it cannot serve, and
  /// when the source has no samples at all.
  const Sample* next();
  /// Samples read since the beginning or rewind().
  int64_t count() const;
  /// Of all samples, where that is known; options().limit is considered.
  std::optional<int64_t> size() const;
  /// Begins again; false when the source cannot. Samples are checked again, but add no findings.
  bool rewind();

  /// What was found so far; complete when next() returned null.
  const std::vector<SampleFinding>& findings() const;
  /// Adds what shows when the samples were run: inputs that the model scales although they were scaled before, and the
  /// first sample that made it compute NaN or infinity.
  void look_at(const Calibration& calibration, const std::optional<NotFiniteValue>& first_not_finite);

 private:
  friend std::vector<Shape> sample_shapes(const Model& model, const SampleSource& source);
  struct State;
  std::unique_ptr<State> state_;
};

/// The shapes of the main subgraph's inputs in samples of `source`, where the model leaves sizes open and the source
/// knows them (SampleSource::sizes); else empty. What does not fit is said when the samples are read.
std::vector<Shape> sample_shapes(const Model& model, const SampleSource& source);

/// Puts a sample of a SampleReader into the inputs of an interpreter of its subgraph: resizes where shapes differ,
/// allocates, converts types, quantizes floats for integer inputs.
void set_inputs(Interpreter& interpreter, const Sample& sample);

/// The values of a tensor of such a sample as bytes of the input it is for, as set_inputs() writes them.
std::vector<std::byte> input_bytes(const SampleTensor& tensor, const TensorInfo& input);

/// Calls `use` for each sample that is left. An Error of `use` gets the sample's number in front of its message.
/// `progress` is called after each with the number done and size(), or -1 where that is unknown. Returns the number of
/// samples.
int64_t for_each_sample(SampleReader& reader, const Progress& progress, const std::function<void(const Sample&)>& use);

}  // namespace leadline
