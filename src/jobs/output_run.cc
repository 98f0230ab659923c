// SPDX-License-Identifier: Apache-2.0
#include "jobs/output_run.h"

#include <algorithm>

#include "core/cpu_time.h"
#include "debug/decode.h"
#include "debug/index.h"
#include "debug/output_score.h"
#include "leadline/interpreter.h"
#include "leadline/sample_reader.h"
#include "runtime/loaded_model.h"

namespace leadline::jobs {
namespace {

/// The fastest of at most this many runs, or of those that fit into this time: the first ones find caches cold.
constexpr int kTimedRuns = 20;
constexpr double kTimedSeconds = 0.05;

/// Runs what is set again, for its time alone; `seconds` is the fastest run so far. Inputs stay as they are.
double fastest_run(Interpreter& interpreter, double seconds) {
  const double start = process_cpu_seconds();
  for (int run = 0; run < kTimedRuns && process_cpu_seconds() - start < kTimedSeconds; ++run) {
    const double begin = process_cpu_seconds();
    interpreter.invoke();
    seconds = std::min(seconds, process_cpu_seconds() - begin);
  }
  return seconds;
}

int64_t row_width(const Shape& shape) {
  const int64_t last = shape.rank() > 0 ? shape[shape.rank() - 1] : 1;
  return last > 65536 ? 1 : last;  // positions rather than classes
}

}  // namespace

DebugMeasure measure_outputs(const Model& model, const std::vector<const KeptSamples::Kept*>& samples,
                             const OutputRunOptions& options) {
  InterpreterOptions how;
  how.num_threads = options.num_threads;
  how.budget = options.budget;
  how.subgraph = options.subgraph;
  how.keep_plans = false;
  Interpreter interpreter(model, how);
  const auto& values = model.loaded()->graph()->subgraphs[debug::at(options.subgraph)].values;
  const size_t outputs = options.outputs.empty() ? interpreter.outputs().size() : options.outputs.size();
  debug::OutputScore score(outputs);
  std::vector<float> decoded;
  double seconds = 0.0;
  for (size_t s = 0; s < samples.size(); ++s) {
    Sample sample = samples[s]->sample;
    for (size_t i = 0; i < options.inputs.size(); ++i) {
      sample.inputs[debug::at(options.inputs[i])] = samples[s]->sample.inputs[i];
    }
    set_inputs(interpreter, sample);
    const double start = process_cpu_seconds();
    interpreter.invoke();
    const double took = process_cpu_seconds() - start;
    seconds = s == 0 ? took : std::min(seconds, took);
    debug::OutputScore own(options.each != nullptr ? outputs : 0);
    for (size_t i = 0; i < outputs; ++i) {
      const int place = options.outputs.empty() ? static_cast<int>(i) : options.outputs[i];
      const std::vector<float>& expected = samples[s]->outputs[i];
      if (place < 0 || expected.empty()) continue;
      const int index = interpreter.outputs()[debug::at(place)];
      const TensorInfo info = interpreter.tensor_info(index);
      const TensorMemory memory = interpreter.tensor(index);
      const Quantization& quantization = values[debug::at(index)].quantization;
      if (!debug::Decoder::readable(info.dtype, quantization) ||
          info.shape.elements() != static_cast<int64_t>(expected.size())) {
        continue;
      }
      decoded.resize(expected.size());
      debug::Decoder(info.dtype, info.shape, memory.data, quantization)
          .read(0, static_cast<int64_t>(decoded.size()), decoded.data());
      score.add(i, decoded.data(), expected.data(), static_cast<int64_t>(decoded.size()), row_width(info.shape));
      if (options.each == nullptr) continue;
      own.add(i, decoded.data(), expected.data(), static_cast<int64_t>(decoded.size()), row_width(info.shape));
    }
    if (options.each != nullptr) options.each->push_back(own.measure());
  }
  if (options.timed && !samples.empty()) seconds = fastest_run(interpreter, seconds);
  DebugMeasure result = score.measure();
  result.file_bytes = model.file_bytes();
  result.seconds = seconds;
  return result;
}

}  // namespace leadline::jobs
