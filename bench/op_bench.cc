// SPDX-License-Identifier: Apache-2.0
// Speed of one op at a time on one core: GMAC/s or GB/s, and what share of this machine's measured limit that is.
// `op_bench --write FOLDER` writes the models instead, for bench/compare.py to run beside other engines.
// LEADLINE_ISA=avx2 (scalar, sse4, avx512) shows what another CPU's kernels do. CPU time counts, not the clock's.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "fill_inputs.h"
#include "leadline/interpreter.h"
#include "machine_limits.h"
#include "op_cases.h"

namespace {

using leadline::Interpreter;
using leadline::Model;
using leadline::bench::OpCase;

void run_case(benchmark::State& state, const OpCase& op) {
  const Model model = Model::from_bytes(op.model);
  Interpreter interpreter(model);
  interpreter.allocate();
  leadline::bench::fill_inputs(interpreter);
  interpreter.invoke();
  const double start = leadline::bench::cpu_seconds();
  interpreter.invoke();
  leadline::bench::CallTimes times(leadline::bench::cpu_seconds() - start);
  for (auto _ : state) {
    interpreter.invoke();
    times.tick();
  }
  if (times.seconds() <= 0) return;
  const double work = static_cast<double>(op.macs > 0 ? op.macs : op.bytes) * 1e-9;
  const double limit = op.macs == 0 ? leadline::bench::copy_limit(op.bytes)
                       : op.integer ? leadline::bench::i8_limit()
                                    : leadline::bench::f32_limit();
  state.counters[op.macs > 0 ? "GMAC/s" : "GB/s"] = work / times.seconds();
  state.counters["percent_of_limit"] = 100.0 * work / times.seconds() / limit;
}

/// conv/1x1/int8 as FOLDER/conv-1x1-int8.tflite.
void write_model(const OpCase& op, const std::filesystem::path& folder) {
  std::string name = op.name;
  std::replace(name.begin(), name.end(), '/', '-');
  std::ofstream file(folder / (name + ".tflite"), std::ios::binary);
  file.write(reinterpret_cast<const char*>(op.model.data()), static_cast<std::streamsize>(op.model.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<OpCase> cases = leadline::bench::make_op_cases();
  if (argc == 3 && std::string_view(argv[1]) == "--write") {
    for (const OpCase& op : cases) write_model(op, argv[2]);
    return 0;
  }
  for (const OpCase& op : cases) {
    benchmark::RegisterBenchmark(op.name.c_str(), run_case, op)->MinTime(0.1)->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext(
      "limit of one core",
      fmt::format("{:.0f} GMAC/s float32, {:.0f} GMAC/s int8, {:.0f} GB/s copied in the caches",
                  leadline::bench::f32_limit(), leadline::bench::i8_limit(), leadline::bench::copy_limit(16384)));
  benchmark::RunSpecifiedBenchmarks();
}
