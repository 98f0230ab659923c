// SPDX-License-Identifier: Apache-2.0
// Flex ops that draw random numbers. Stateless ones are functions of their key and counter (or seed); the others have a
// stream that continues from run to run. With seeds the numbers are TensorFlow's, which are those of Philox4x32-10.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "kernels/random/philox.h"
#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

using Words = std::array<uint32_t, 4>;

/// A place in the stream of a key.
struct Stream {
  std::array<uint32_t, 2> key = {};
  uint64_t low = 0;
  uint64_t high = 0;

  /// Block `i` from here.
  Words block(uint64_t i) const {
    const uint64_t at = low + i;
    const uint64_t upper = high + (at < low ? 1 : 0);
    return kernels::philox4x32(key, {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32),
                                     static_cast<uint32_t>(upper), static_cast<uint32_t>(upper >> 32)});
  }
};

std::array<uint32_t, 2> halves(uint64_t value) {
  return {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
}

/// Mixes a user's seeds, so that close seeds have unrelated streams. The constants are TensorFlow's.
Stream stream_of_seed(uint64_t first, uint64_t second) {
  const auto a = halves(first);
  const auto b = halves(second);
  const Words mixed = kernels::philox4x32({0x3EC8F720U, 0x02461E29U}, {a[0], a[1], b[0], b[1]});
  return {{mixed[0], mixed[1]}, 0, (uint64_t{mixed[3]} << 32) | mixed[2]};
}

uint64_t word_at(const TensorView& tensor, int64_t i) {
  return tensor.dtype == DType::kInt32 ? static_cast<uint64_t>(int64_t{tensor.as<int32_t>()[i]})
                                       : static_cast<uint64_t>(tensor.as<int64_t>()[i]);
}

// Distributions: how many results a block of four words makes, and which.

float unit_float(uint32_t bits) { return std::bit_cast<float>(0x3F800000U | (bits & 0x7FFFFFU)) - 1.0F; }
double unit_double(uint32_t high, uint32_t low) {
  const uint64_t fraction = (uint64_t{high & 0xFFFFFU} << 32) | low;
  return std::bit_cast<double>((uint64_t{1023} << 52) | fraction) - 1.0;
}

/// Box and Muller's transform.
std::array<float, 2> normal_floats(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0F * std::log(std::max(unit_float(a), 1.0e-7F)));
  const float angle = static_cast<float>(2.0 * M_PI) * unit_float(b);
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}
std::array<double, 2> normal_doubles(const Words& w) {
  const double radius = std::sqrt(-2.0 * std::log(std::max(unit_double(w[0], w[1]), 1.0e-7)));
  const double angle = 2.0 * M_PI * unit_double(w[2], w[3]);
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

struct Uniform {
  static constexpr uint64_t kStride = 1;  // blocks from one group of results to the next
  static std::array<float, 4> make(const Stream& s, uint64_t i, float) {
    const Words w = s.block(i);
    return {unit_float(w[0]), unit_float(w[1]), unit_float(w[2]), unit_float(w[3])};
  }
  static std::array<double, 2> make(const Stream& s, uint64_t i, double) {
    const Words w = s.block(i);
    return {unit_double(w[0], w[1]), unit_double(w[2], w[3])};
  }
};

struct Normal {
  static constexpr uint64_t kStride = 1;
  static std::array<float, 4> make(const Stream& s, uint64_t i, float) {
    const Words w = s.block(i);
    const auto a = normal_floats(w[0], w[1]);
    const auto b = normal_floats(w[2], w[3]);
    return {a[0], a[1], b[0], b[1]};
  }
  static std::array<double, 2> make(const Stream& s, uint64_t i, double) { return normal_doubles(s.block(i)); }
};

/// Numbers beyond two standard deviations are drawn again; a group of results has 256 samples for each of its own.
struct TruncatedNormal {
  static constexpr uint64_t kStride = 256;
  static std::array<float, 4> make(const Stream& s, uint64_t i, float) {
    std::array<float, 4> result{};
    size_t count = 0;
    for (uint64_t block = i;; ++block) {
      const Words w = s.block(block);
      for (size_t k = 0; k < 4; k += 2) {
        for (float value : normal_floats(w[k], w[k + 1])) {
          if (std::abs(value) >= 2.0F) continue;
          result[count++] = value;
          if (count == result.size()) return result;
        }
      }
    }
  }
  static std::array<double, 2> make(const Stream& s, uint64_t i, double) {
    std::array<double, 2> result{};
    size_t count = 0;
    for (uint64_t block = i;; ++block) {
      for (double value : normal_doubles(s.block(block))) {
        if (std::abs(value) >= 2.0) continue;
        result[count++] = value;
        if (count == result.size()) return result;
      }
    }
  }
};

template <typename Distribution, typename T>
void fill(RunContext& run, const Stream& stream) {
  using Number = Compute<T>;
  constexpr auto kGroup = static_cast<int64_t>(16 / sizeof(Number));
  // Doubles that are drawn again have half as many results in a group.
  constexpr uint64_t kStride = Distribution::kStride == 1 ? 1 : Distribution::kStride * kGroup / 4;
  T* out = run.output(0).mutable_as<T>();
  const int64_t count = run.output(0).elements();
  run.pool().for_pieces((count + kGroup - 1) / kGroup, 96, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto group = Distribution::make(stream, static_cast<uint64_t>(i) * kStride, Number{});
      for (int64_t k = 0; k < std::min(kGroup, count - kGroup * i); ++k) {
        out[kGroup * i + k] = static_cast<T>(group[static_cast<size_t>(k)]);
      }
    }
  });
}

template <typename Distribution>
void fill_floats(RunContext& run, const Stream& stream) {
  switch (run.output(0).dtype) {
    case DType::kFloat64:
      return fill<Distribution, double>(run, stream);
    default:
      return fill<Distribution, float>(run, stream);
  }
}

/// Words as integers: 4 of 32 bits or 2 of 64 bits in a block, low half first.
template <typename T, typename Convert>
void fill_words(RunContext& run, const Stream& stream, const Convert& convert) {
  constexpr auto kGroup = static_cast<int64_t>(16 / sizeof(T));
  T* out = run.output(0).mutable_as<T>();
  const int64_t count = run.output(0).elements();
  run.pool().for_pieces((count + kGroup - 1) / kGroup, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Words w = stream.block(static_cast<uint64_t>(i));
      for (int64_t k = 0; k < std::min(kGroup, count - kGroup * i); ++k) {
        const auto at = static_cast<size_t>(k);
        const uint64_t word = sizeof(T) == 4 ? w[at] : (uint64_t{w[2 * at + 1]} << 32) | w[2 * at];
        out[kGroup * i + k] = convert(word);
      }
    }
  });
}

/// Integers from `low` on, below `high`.
template <typename T>
void fill_range(RunContext& run, const Stream& stream, int low_input) {
  const T low = *run.input(low_input).as<T>();
  const T high = *run.input(low_input + 1).as<T>();
  if (run.output(0).elements() == 0) return;
  run.require(low < high, "the range from {} to {} is empty", low, high);
  using U = std::make_unsigned_t<T>;
  const U range = static_cast<U>(static_cast<U>(high) - static_cast<U>(low));
  fill_words<T>(run, stream, [=](uint64_t word) {
    return static_cast<T>(static_cast<U>(low) + static_cast<U>(static_cast<U>(word) % range));
  });
}

void fill_integers(RunContext& run, const Stream& stream, int low_input) {
  const bool wide = dtype_bits(run.output(0).dtype) == 64;
  wide ? fill_range<int64_t>(run, stream, low_input) : fill_range<int32_t>(run, stream, low_input);
}

void fill_bits(RunContext& run, const Stream& stream) {
  const bool wide = dtype_bits(run.output(0).dtype) == 64;
  if (wide)
    fill_words<uint64_t>(run, stream, [](uint64_t word) { return word; });
  else
    fill_words<uint32_t>(run, stream, [](uint64_t word) { return static_cast<uint32_t>(word); });
}

using Fill = void (*)(RunContext&, const Stream&);

// Stateless ops: (shape, seed[2], ...) and (shape, key[1], counter[2], alg, ...)

enum class NumberKind : uint8_t { kFloats, kRange, kBits };

void check_result(InferContext& c, NumberKind kind, int range_input) {
  if (kind == NumberKind::kFloats) {
    c.require_output_type(0, {DType::kFloat32, DType::kFloat64});
    return;
  }
  c.require_output_type(0, {DType::kInt32, DType::kInt64, DType::kUInt32, DType::kUInt64});
  if (kind != NumberKind::kRange) return;
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  for (int i = range_input; i < range_input + 2; ++i) {
    require_same_type(c, c.input(i), c.output(0));
    require_elements(c, i, 1);
  }
}

template <bool kKeyed, NumberKind kKind>
void infer_stateless(InferContext& c) {
  node_def(c);
  require_indices(c, 0);
  require_elements(c, 1, kKeyed ? 1 : 2);
  if (kKeyed) {
    c.require_input_type(1, {DType::kUInt64, DType::kInt64});
    c.require_input_type(2, {DType::kUInt64, DType::kInt64});
    require_elements(c, 2, 2);
    c.require_input_type(3, {DType::kInt32});
    require_elements(c, 3, 1);
  } else {
    require_indices(c, 1);
  }
  check_result(c, kKind, kKeyed ? 4 : 2);
  if (!c.known(0)) return c.defer();
  c.set_output_shape(0, shape_of_input(c, 0));
}

constexpr int32_t kPhilox = 1;
constexpr int32_t kAutomatic = 3;

template <bool kKeyed>
Stream stream_of(const RunContext& run) {
  if (!kKeyed) return stream_of_seed(word_at(run.input(1), 0), word_at(run.input(1), 1));
  const int32_t algorithm = *run.input(3).as<int32_t>();
  run.require(algorithm == kPhilox || algorithm == kAutomatic,
              "the random generator is number {}, expected 1 (Philox) or 3 (automatic)", algorithm);
  return {halves(word_at(run.input(1), 0)), word_at(run.input(2), 0), word_at(run.input(2), 1)};
}

template <bool kKeyed, Fill kFill>
std::unique_ptr<Kernel> prepare_stateless(PrepareContext&) {
  return make_kernel([](RunContext& run) { kFill(run, stream_of<kKeyed>(run)); });
}

template <bool kKeyed>
std::unique_ptr<Kernel> prepare_stateless_range(PrepareContext&) {
  return make_kernel([](RunContext& run) { fill_integers(run, stream_of<kKeyed>(run), kKeyed ? 4 : 2); });
}

/// StatelessRandomGetKeyCounter(seed) -> key, counter; ...Alg also the generator.
void infer_key_counter(InferContext& c) {
  node_def(c);
  require_indices(c, 0);
  require_elements(c, 0, 2);
  c.require_output_type(0, {DType::kUInt64});
  c.require_output_type(1, {DType::kUInt64});
  c.set_output_shape(0, {1});
  c.set_output_shape(1, {2});
  if (c.output_count() < 3) return;
  c.require_output_type(2, {DType::kInt32});
  c.set_output_shape(2, {});
}

std::unique_ptr<Kernel> prepare_key_counter(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const Stream s = stream_of_seed(word_at(run.input(0), 0), word_at(run.input(0), 1));
    *run.output(0).mutable_as<uint64_t>() = (uint64_t{s.key[1]} << 32) | s.key[0];
    run.output(1).mutable_as<uint64_t>()[0] = s.low;
    run.output(1).mutable_as<uint64_t>()[1] = s.high;
    if (run.output_count() > 2) *run.output(2).mutable_as<int32_t>() = kPhilox;
  });
}

void infer_algorithm(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kInt32});
  c.set_output_shape(0, {});
}

std::unique_ptr<Kernel> prepare_algorithm(PrepareContext&) {
  return make_kernel([](RunContext& run) { *run.output(0).mutable_as<int32_t>() = kPhilox; });
}

// Ops with a stream of their own: (shape, ...), attributes seed and seed2

template <NumberKind kKind>
void infer_stateful(InferContext& c) {
  node_def(c);
  require_indices(c, 0);
  check_result(c, kKind, 1);
  if (!c.known(0)) return c.defer();
  c.set_output_shape(0, shape_of_input(c, 0));
}

uint64_t entropy() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

/// The node's stream, kept for its life. Seeds of 0 stand for other numbers in every interpreter.
struct Seeds {
  uint64_t first = 0;
  uint64_t second = 0;
  explicit Seeds(const OpContext& c)
      : first(static_cast<uint64_t>(node_def(c).integer("seed", 0))),
        second(static_cast<uint64_t>(node_def(c).integer("seed2", 0))) {
    if (first != 0 || second != 0) return;
    first = entropy();
    second = entropy();
  }
};

/// What is kept between runs: how far the stream was used, and the seeds of a node without seeds of its own.
struct StreamState {
  uint64_t used = 0;
  uint64_t seeded = 0;
  uint64_t first = 0;
  uint64_t second = 0;
};

/// Takes the next `count` results of the node's stream: TensorFlow reserves 256 samples for each.
Stream next_stream(const RunContext& run, const Seeds& seeds, int64_t count) {
  auto* state = reinterpret_cast<StreamState*>(run.persistent());
  if (state->seeded == 0) *state = {0, 1, seeds.first, seeds.second};
  const Stream stream{halves(state->first), state->used, state->second};
  state->used += static_cast<uint64_t>(count) * 64;
  return stream;
}

template <Fill kFill>
std::unique_ptr<Kernel> prepare_stateful(PrepareContext& c) {
  c.request_persistent(sizeof(StreamState));
  return make_kernel(
      [seeds = Seeds(c)](RunContext& run) { kFill(run, next_stream(run, seeds, run.output(0).elements())); });
}

std::unique_ptr<Kernel> prepare_stateful_range(PrepareContext& c) {
  c.request_persistent(sizeof(StreamState));
  return make_kernel([seeds = Seeds(c)](RunContext& run) {
    fill_integers(run, next_stream(run, seeds, run.output(0).elements()), 1);
  });
}

// RandomShuffle(value): Fisher and Yates, of rows

void infer_shuffle(InferContext& c) {
  node_def(c);
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_shuffle(PrepareContext& c) {
  c.request_persistent(sizeof(StreamState));
  return make_kernel([seeds = Seeds(c)](RunContext& run) {
    const TensorView& out = run.output(0);
    if (out.bytes == 0) return;
    copy_bytes(out.data, run.input(0).data, out.bytes);
    const int64_t rows = out.shape.rank() == 0 ? 1 : out.shape[0];
    const int64_t bytes = out.bytes / rows;
    const Stream stream = next_stream(run, seeds, rows);
    for_items(rows - 1, 64 + static_cast<double>(bytes) * kByteCost, [&](int64_t i) {
      const auto word = stream.block(static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i) % 4];
      const int64_t other = i + static_cast<int64_t>(word % static_cast<uint64_t>(rows - i));
      if (other != i) std::swap_ranges(out.data + i * bytes, out.data + (i + 1) * bytes, out.data + other * bytes);
    });
  });
}

// Multinomial(logits, num_samples), StatelessMultinomial(logits, num_samples, seed)

template <bool kStateless>
void infer_multinomial(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  c.require_input_type(1, {DType::kInt32});
  require_elements(c, 1, 1);
  if (kStateless) {
    require_indices(c, 2);
    require_elements(c, 2, 2);
  }
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  const Shape& logits = c.input(0).shape;
  c.require(logits.rank() == 2 && logits[1] > 0, "the logits have shape {}, expected rank 2 and at least one class",
            logits.to_string());
  if (!c.known(1)) return c.defer();
  const int64_t samples = integer_of_input(c, 1);
  c.require(samples >= 0, "the number of samples is {}, expected 0 or more", samples);
  c.set_output_shape(0, {logits[0], samples});
}

template <typename T>
void sample_classes(const RunContext& run, const Stream& stream) {
  const TensorView& logits = run.input(0);
  const int64_t classes = logits.shape[1];
  const int64_t samples = run.output(0).shape[1];
  const TensorView& out = run.output(0);
  auto* sums = run.scratch_as<double>();
  uint64_t drawn = 0;
  for_items(logits.shape[0], 18 * static_cast<double>(classes) + 64 * static_cast<double>(samples), [&](int64_t row) {
    const T* values = logits.as<T>() + row * classes;
    T largest = std::numeric_limits<T>::lowest();
    for (int64_t i = 0; i < classes; ++i) {
      if (std::isfinite(values[i])) largest = std::max(largest, values[i]);
    }
    double total = 0;
    for (int64_t i = 0; i < classes; ++i) {
      if (std::isfinite(values[i])) total += std::exp(static_cast<double>(values[i]) - static_cast<double>(largest));
      sums[i] = total;
    }
    for (int64_t s = 0; s < samples; ++s, ++drawn) {
      const Words w = stream.block(drawn / 2);
      const size_t half = drawn % 2 * 2;
      const double place = unit_double(w[half], w[half + 1]) * total;
      const int64_t chosen = std::upper_bound(sums, sums + classes, place) - sums;
      const int64_t at = row * samples + s;
      if (out.dtype == DType::kInt64)
        out.mutable_as<int64_t>()[at] = chosen;
      else
        out.mutable_as<int32_t>()[at] = static_cast<int32_t>(chosen);
    }
  });
}

void sample(const RunContext& run, const Stream& stream) {
  if (run.input(0).dtype == DType::kFloat32)
    sample_classes<float>(run, stream);
  else
    sample_classes<double>(run, stream);
}

template <bool kStateless>
std::unique_ptr<Kernel> prepare_multinomial(PrepareContext& c) {
  c.request_scratch(checked_multiply(c, c.input(0).shape[1], sizeof(double)));
  if (kStateless) {
    return make_kernel(
        [](RunContext& run) { sample(run, stream_of_seed(word_at(run.input(2), 0), word_at(run.input(2), 1))); });
  }
  c.request_persistent(sizeof(StreamState));
  return make_kernel([seeds = Seeds(c)](RunContext& run) {
    // Rounded up to four, and 512 blocks for each: more than the others reserve.
    const int64_t rounded = (run.output(0).shape[1] + 3) / 4 * 4;
    sample(run, next_stream(run, seeds, run.input(0).shape[0] * rounded * 8));
  });
}

}  // namespace

void register_flex_random(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare,
                       std::string_view types, bool pure) {
    OpDef row = flex_row(name, inputs, outputs, infer, prepare, types);
    row.pure = pure;
    registry.add(std::move(row));
  };
  constexpr std::string_view kFloats = "f32 f64";
  constexpr std::string_view kIntegers = "i32 i64";
  constexpr Fill kUniform = fill_floats<Uniform>;
  constexpr Fill kNormal = fill_floats<Normal>;
  constexpr Fill kTruncated = fill_floats<TruncatedNormal>;
  add("FlexRandomUniform", 1, 1, infer_stateful<NumberKind::kFloats>, prepare_stateful<kUniform>, kFloats, false);
  add("FlexRandomStandardNormal", 1, 1, infer_stateful<NumberKind::kFloats>, prepare_stateful<kNormal>, kFloats, false);
  add("FlexTruncatedNormal", 1, 1, infer_stateful<NumberKind::kFloats>, prepare_stateful<kTruncated>, kFloats, false);
  add("FlexRandomUniformInt", 3, 1, infer_stateful<NumberKind::kRange>, prepare_stateful_range, kIntegers, false);
  add("FlexRandomShuffle", 1, 1, infer_shuffle, prepare_shuffle, "any of fixed size", false);
  add("FlexMultinomial", 2, 1, infer_multinomial<false>, prepare_multinomial<false>, kFloats, false);
  add("FlexStatelessMultinomial", 3, 1, infer_multinomial<true>, prepare_multinomial<true>, kFloats, true);
  add("FlexStatelessRandomUniform", 2, 1, infer_stateless<false, NumberKind::kFloats>,
      prepare_stateless<false, kUniform>, kFloats, true);
  add("FlexStatelessRandomNormal", 2, 1, infer_stateless<false, NumberKind::kFloats>, prepare_stateless<false, kNormal>,
      kFloats, true);
  add("FlexStatelessTruncatedNormal", 2, 1, infer_stateless<false, NumberKind::kFloats>,
      prepare_stateless<false, kTruncated>, kFloats, true);
  add("FlexStatelessRandomUniformInt", 4, 1, infer_stateless<false, NumberKind::kRange>, prepare_stateless_range<false>,
      kIntegers, true);
  add("FlexStatelessRandomUniformFullInt", 2, 1, infer_stateless<false, NumberKind::kBits>,
      prepare_stateless<false, fill_bits>, "i32 i64 u32 u64", true);
  add("FlexStatelessRandomUniformV2", 4, 1, infer_stateless<true, NumberKind::kFloats>,
      prepare_stateless<true, kUniform>, kFloats, true);
  add("FlexStatelessRandomNormalV2", 4, 1, infer_stateless<true, NumberKind::kFloats>, prepare_stateless<true, kNormal>,
      kFloats, true);
  add("FlexStatelessTruncatedNormalV2", 4, 1, infer_stateless<true, NumberKind::kFloats>,
      prepare_stateless<true, kTruncated>, kFloats, true);
  add("FlexStatelessRandomUniformIntV2", 6, 1, infer_stateless<true, NumberKind::kRange>, prepare_stateless_range<true>,
      kIntegers, true);
  add("FlexStatelessRandomUniformFullIntV2", 4, 1, infer_stateless<true, NumberKind::kBits>,
      prepare_stateless<true, fill_bits>, "i32 i64 u32 u64", true);
  add("FlexStatelessRandomGetKeyCounter", 1, 2, infer_key_counter, prepare_key_counter, "i32 i64", true);
  add("FlexStatelessRandomGetKeyCounterAlg", 1, 3, infer_key_counter, prepare_key_counter, "i32 i64", true);
  add("FlexStatelessRandomGetAlg", 0, 1, infer_algorithm, prepare_algorithm, "i32", true);
}

}  // namespace leadline::ops
