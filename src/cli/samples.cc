// SPDX-License-Identifier: Apache-2.0
#include "cli/samples.h"

#include "cli/progress.h"

namespace leadline::cli {

int64_t run_samples(SampleReader& reader, Interpreter& interpreter, const std::string& title,
                    const std::function<void()>& use) {
  const StopOnSignal stop;
  ProgressBar bar(title);
  const auto progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !StopOnSignal::stopped();
  };
  return for_each_sample(reader, progress, [&](const Sample& sample) {
    set_inputs(interpreter, sample);
    use();
  });
}

}  // namespace leadline::cli
