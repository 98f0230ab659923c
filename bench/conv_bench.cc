// SPDX-License-Identifier: Apache-2.0
// 3x3 stride-1 convolutions of real models on one core: the plain kernel against Winograd, in effective GMAC/s (of the
// plain convolution), on this CPU's best instruction set or the one LEADLINE_BENCH_TARGET names (AVX2, SSE4, ...).
// LEADLINE_BENCH_COLD_MB: megabytes of packed filters to cycle through, as the other layers of a model would.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "kernels/conv/conv2d.h"
#include "ops/loops/conv.h"

#define HWY_WANT_AVX3_DL
#include "kernels/simd_targets.h"
// After the choice of targets.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace {

using leadline::ThreadPool;
using namespace leadline::kernels;

struct Layer {
  const char* what;
  int64_t size, in_c, out_c;
  int64_t pad = 1;
};

constexpr Layer kLayers[] = {
    {"resnet50_56", 56, 64, 64},      {"resnet50_28", 28, 128, 128},     {"resnet50_14", 14, 256, 256},
    {"resnet50_7", 7, 512, 512},      {"inception_149", 149, 32, 32, 0}, {"inception_147", 147, 32, 64},
    {"inception_73", 73, 80, 192, 0}, {"inception_35_64", 35, 64, 96},   {"inception_35_96", 35, 96, 96},
    {"inception_8", 8, 448, 384},     {"densenet_56", 56, 128, 32},      {"densenet_28", 28, 128, 32},
    {"densenet_14", 14, 128, 32},     {"densenet_7", 7, 128, 32},        {"face_96x16", 96, 16, 16},
    {"face_64x32", 64, 32, 32},       {"ssd_19", 19, 256, 546},          {"ssd_10", 10, 256, 546},
    {"ssd_3", 3, 128, 546},           {"resnet8_32", 32, 16, 16},        {"resnet8_8", 8, 64, 64},
};

ConvShape shape(const Layer& layer, ConvMethod method) {
  ConvShape s;
  s.in_h = s.in_w = layer.size;
  s.in_c = s.filter_c = layer.in_c;
  s.out_h = s.out_w = layer.size + 2 * layer.pad - 2;
  s.out_c = layer.out_c;
  s.filter_h = s.filter_w = 3;
  s.pad_top = s.pad_left = layer.pad;
  s.method = method;
  return s;
}

/// Bytes aligned to a cache line, zeroed.
class Aligned {
 public:
  explicit Aligned(int64_t bytes) : data_(static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kLine))) {
    std::memset(data_, 0, static_cast<size_t>(bytes));
  }
  Aligned(Aligned&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Aligned& operator=(Aligned&&) = delete;
  ~Aligned() { ::operator delete(data_, kLine); }
  std::byte* data() const { return data_; }

 private:
  static constexpr std::align_val_t kLine{64};
  std::byte* data_;
};

/// Several copies of the packed filters, used in turn.
std::vector<Aligned> filters(int64_t bytes) {
  const char* text = std::getenv("LEADLINE_BENCH_COLD_MB");
  const int64_t wanted = text == nullptr ? 0 : std::strtoll(text, nullptr, 10) * 1'000'000;
  std::vector<Aligned> copies;
  for (int64_t total = 0; copies.empty() || total < wanted; total += bytes) copies.emplace_back(bytes);
  return copies;
}

void report(benchmark::State& state, const ConvShape& s) {
  const double macs = static_cast<double>(s.rows() * s.out_w * s.out_c * s.filter_size());
  state.counters["GMAC/s"] =
      benchmark::Counter(macs * 1e-9, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

void run_f32(benchmark::State& state, const ConvShape& s) {
  const std::vector<float> input(static_cast<size_t>(s.in_h * s.in_w * s.in_c), 0.5F);
  const std::vector<float> filter(static_cast<size_t>(s.out_c * s.filter_size()), 0.25F);
  const std::vector<float> bias(static_cast<size_t>(s.out_c), 1.0F);
  std::vector<float> output(static_cast<size_t>(s.rows() * s.out_w * s.out_c));
  const std::vector<Aligned> packed = filters(conv_packed_bytes_f32(s));
  for (const Aligned& copy : packed) leadline::ops::conv_pack(s, filter.data(), copy.data());
  ThreadPool one(1);
  const Aligned workspace(conv_workspace_bytes_f32(s));
  ConvF32 conv{s, input.data(), nullptr, bias.data(), output.data(), 0.0F};
  size_t next = 0;
  for (auto _ : state) {
    conv.filter = packed[next++ % packed.size()].data();
    leadline::ops::convolve(conv, workspace.data(), one);
  }
  report(state, s);
}

void run_i8(benchmark::State& state, const ConvShape& s) {
  const std::vector<int8_t> input(static_cast<size_t>(s.in_h * s.in_w * s.in_c), 5);
  const std::vector<int8_t> filter(static_cast<size_t>(s.out_c * s.filter_size()), -3);
  const std::vector<int32_t> bias(static_cast<size_t>(s.out_c), 1);
  const std::vector<float> scale(static_cast<size_t>(s.out_c), 0.001F);
  std::vector<int8_t> output(static_cast<size_t>(s.rows() * s.out_w * s.out_c));
  const std::vector<Aligned> packed = filters(conv_packed_bytes_i8(s));
  for (const Aligned& copy : packed) leadline::ops::conv_pack(s, filter.data(), copy.data());
  ThreadPool one(1);
  const Aligned workspace(conv_workspace_bytes_i8(s));
  ConvI8 conv;
  conv.shape = s;
  conv.input = input.data();
  conv.input_zero_point = -4;
  conv.bias = bias.data();
  conv.output = output.data();
  conv.scale = scale.data();
  size_t next = 0;
  for (auto _ : state) {
    conv.filter = packed[next++ % packed.size()].data();
    leadline::ops::convolve(conv, workspace.data(), one);
  }
  report(state, s);
}

void choose_target() {
  const char* wanted = std::getenv("LEADLINE_BENCH_TARGET");
  if (wanted == nullptr) return;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (std::string(hwy::TargetName(target)) == wanted) {
      hwy::SetSupportedTargetsForTest(~(target - 1));  // this one and those below it
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      return;
    }
  }
  fmt::print(stderr, "conv_bench: this CPU has no target {}\n", wanted);
  std::exit(2);
}

void add(const std::string& name, void (*run)(benchmark::State&, const ConvShape&), const ConvShape& s, bool chosen) {
  benchmark::RegisterBenchmark((name + (chosen ? "*" : "")).c_str(), [run, s](benchmark::State& state) {
    run(state, s);
  })->Unit(benchmark::kMillisecond);
}

}  // namespace

/// A star marks the method that prepare() chooses.
int main(int argc, char** argv) {
  choose_target();
  for (const Layer& layer : kLayers) {
    const ConvMethod f32 = conv_method_f32(shape(layer, ConvMethod::kPlain));
    const ConvMethod i8 = conv_method_i8(shape(layer, ConvMethod::kPlain), {128, layer.in_c * 9 * 32});
    for (const auto& [method, name] : {std::pair{ConvMethod::kPlain, "plain"},
                                       {ConvMethod::kWinograd2, "winograd2"},
                                       {ConvMethod::kWinograd4, "winograd4"}}) {
      const ConvShape s = shape(layer, method);
      add(fmt::format("f32/{}/{}", layer.what, name), run_f32, s, method == f32);
      add(fmt::format("i8/{}/{}", layer.what, name), run_i8, s, method == i8);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
