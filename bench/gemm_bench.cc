// SPDX-License-Identifier: Apache-2.0
// Speed of the gemm kernels alone on one core: GMAC/s, and what share of this machine's measured limit that is.
// LEADLINE_ISA=avx2 (scalar, sse4, avx512) shows what another CPU's kernels do. CPU time counts, not the clock's.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i8.h"
#include "machine_limits.h"
#include "ops/loops/gemm.h"
#include "ops/loops/pack.h"

namespace {

using leadline::ThreadPool;
using namespace leadline::kernels;

struct Shape {
  const char* what;
  int64_t m, k, n;
};

constexpr Shape kShapes[] = {
    {"conv_1x1_28x28", 784, 512, 512},   {"conv_1x1_112x112", 12544, 32, 64}, {"conv_3x3_7x7", 49, 4608, 512},
    {"conv_1x1_7x7", 49, 960, 320},      {"conv_3x3_56x56", 3136, 576, 64},   {"dense_one_row", 1, 1280, 1000},
    {"dense_one_row_small", 1, 128, 64}, {"attention", 128, 64, 128},         {"transformer", 128, 256, 1024},
};

/// Bytes aligned to a cache line.
class Aligned {
 public:
  explicit Aligned(int64_t bytes) : data_(static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kLine))) {}
  ~Aligned() { ::operator delete(data_, kLine); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  std::byte* data() const { return data_; }

 private:
  static constexpr std::align_val_t kLine{64};
  std::byte* data_;
};

/// Times `call`, which does the products of `s`.
template <typename Call>
void measure(benchmark::State& state, const Shape& s, double limit, const Call& call) {
  const double start = leadline::bench::cpu_seconds();
  call();
  leadline::bench::CallTimes times(leadline::bench::cpu_seconds() - start);
  for (auto _ : state) {
    call();
    times.tick();
  }
  if (times.seconds() <= 0) return;
  const double rate = static_cast<double>(s.m * s.n * s.k) * 1e-9 / times.seconds();
  state.counters["GMAC/s"] = rate;
  state.counters["percent_of_limit"] = 100.0 * rate / limit;
}

void gemm_f32_case(benchmark::State& state, const Shape& s) {
  ThreadPool pool(1);
  const std::vector<float> a(static_cast<size_t>(s.m * s.k), 0.5F);
  const std::vector<float> b(static_cast<size_t>(s.n * s.k), 0.25F);
  std::vector<float> c(static_cast<size_t>(s.m * s.n));
  const std::vector<float> bias(static_cast<size_t>(s.n), 1.0F);
  const Aligned packed(packed_bytes_f32(s.n, s.k));
  leadline::ops::pack_matrix(b.data(), s.k, s.n, s.k, packed.data());
  const GemmF32 g{a.data(), s.k, s.m, packed.data(), s.n, s.k, bias.data(), c.data(), s.n, 0.0F};
  measure(state, s, leadline::bench::f32_limit(), [&] { leadline::ops::gemm_f32(g, pool); });
}

void gemm_i8_case(benchmark::State& state, const Shape& s) {
  ThreadPool pool(1);
  const std::vector<int8_t> a(static_cast<size_t>(s.m * s.k), 5);
  const std::vector<int8_t> b(static_cast<size_t>(s.n * s.k), -3);
  std::vector<int8_t> c(static_cast<size_t>(s.m * s.n));
  const std::vector<int32_t> bias(static_cast<size_t>(s.n), 1);
  const std::vector<float> scale(static_cast<size_t>(s.n), 0.001F);
  const Aligned packed(packed_bytes_i8(s.n, s.k));
  const Aligned workspace(pool.size() * gemm_i8_workspace_bytes(s.m, s.k));
  leadline::ops::pack_matrix(b.data(), s.k, s.n, s.k, packed.data());
  GemmI8 g;
  g.a = a.data();
  g.lda = s.k;
  g.m = s.m;
  g.a_zero_point = -4;
  g.b = packed.data();
  g.n = s.n;
  g.k = s.k;
  g.bias = bias.data();
  RequantizedOutput out;
  out.c = c.data();
  out.ldc = s.n;
  out.scale = scale.data();
  measure(state, s, leadline::bench::i8_limit(), [&] { leadline::ops::gemm_i8(g, out, workspace.data(), pool); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& s : kShapes) {
    const std::string shape = fmt::format("{}_{}x{}x{}", s.what, s.m, s.k, s.n);
    const auto add = [&](const char* type, auto function) {
      benchmark::RegisterBenchmark(fmt::format("gemm/{}/{}", type, shape).c_str(), function, s)
          ->MinTime(0.1)
          ->Unit(benchmark::kMicrosecond);
    };
    add("f32", gemm_f32_case);
    add("int8", gemm_i8_case);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
