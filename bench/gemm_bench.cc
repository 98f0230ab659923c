// SPDX-License-Identifier: Apache-2.0
// Speed of the gemm kernels on one core, in GMAC/s, for every instruction set this CPU has.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i8.h"

#define HWY_WANT_AVX3_DL
#include "kernels/simd_targets.h"
// After the choice of targets.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace {

using leadline::ThreadPool;
using namespace leadline::kernels;

struct Shape {
  const char* what;
  int64_t m, k, n;
};

constexpr Shape kShapes[] = {
    {"1x1 conv 28x28", 784, 512, 512},  {"1x1 conv 112x112", 12544, 32, 64}, {"3x3 conv 7x7", 49, 4608, 512},
    {"1x1 conv 7x7", 49, 960, 320},     {"3x3 conv 56x56", 3136, 576, 64},   {"dense, one row", 1, 1280, 1000},
    {"dense, one row, L1", 1, 128, 64}, {"attention", 128, 64, 128},         {"transformer", 128, 256, 1024},
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Best of several batches of calls, in seconds a call. CPU time of this thread, so that other work on the machine
/// disturbs little; therefore only for pools of one thread.
template <typename Call>
double seconds(const Call& call) {
  double best = 1e9;
  int calls = 1;
  for (int round = 0; round < 12;) {
    const double start = cpu_seconds();
    for (int i = 0; i < calls; ++i) call();
    const double taken = cpu_seconds() - start;
    if (taken < 0.01) {
      calls *= 2;
      continue;
    }
    best = std::min(best, taken / calls);
    ++round;
  }
  return best;
}

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

double f32_gmacs(const Shape& s, ThreadPool& pool) {
  std::vector<float> a(static_cast<size_t>(s.m * s.k), 0.5F);
  std::vector<float> b(static_cast<size_t>(s.n * s.k), 0.25F);
  std::vector<float> c(static_cast<size_t>(s.m * s.n));
  std::vector<float> bias(static_cast<size_t>(s.n), 1.0F);
  const Aligned packed(packed_bytes_f32(s.n, s.k));
  pack_f32(b.data(), s.k, s.n, s.k, packed.data());
  const GemmF32 g{a.data(), s.k, s.m, packed.data(), s.n, s.k, bias.data(), c.data(), s.n, 0.0F};
  return static_cast<double>(s.m * s.n * s.k) / seconds([&] { gemm_f32(g, pool); }) * 1e-9;
}

double i8_gmacs(const Shape& s, ThreadPool& pool) {
  std::vector<int8_t> a(static_cast<size_t>(s.m * s.k), 5);
  std::vector<int8_t> b(static_cast<size_t>(s.n * s.k), -3);
  std::vector<int8_t> c(static_cast<size_t>(s.m * s.n));
  std::vector<int32_t> bias(static_cast<size_t>(s.n), 1);
  std::vector<float> scale(static_cast<size_t>(s.n), 0.001F);
  const Aligned packed(packed_bytes_i8(s.n, s.k));
  const Aligned workspace(pool.size() * gemm_i8_workspace_bytes(s.m, s.k));
  pack_i8(b.data(), s.k, s.n, s.k, packed.data());
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
  return static_cast<double>(s.m * s.n * s.k) / seconds([&] { gemm_i8(g, out, workspace.data(), pool); }) * 1e-9;
}

}  // namespace

int main() {
  ThreadPool one(1);
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  fmt::print("{:<10} {:<20} {:>6} {:>6} {:>6} {:>10} {:>10}\n", "target", "shape", "m", "k", "n", "f32", "int8");
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(~(target - 1));  // this one and those below it: not every file has every target
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const Shape& s : kShapes) {
      fmt::print("{:<10} {:<20} {:>6} {:>6} {:>6} {:>10.1f} {:>10.1f}\n", hwy::TargetName(target), s.what, s.m, s.k,
                 s.n, f32_gmacs(s, one), i8_gmacs(s, one));
    }
  }
}
