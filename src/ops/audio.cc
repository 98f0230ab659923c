// SPDX-License-Identifier: Apache-2.0
// AudioSpectrogram: samples [time, channels] -> power (or magnitude) of the frequencies of each Hann window
//                   [channels, windows, bins].
// Mfcc: such power spectra [channels, windows, bins] and the sample rate -> mel-frequency cepstral coefficients.
// Both compute in double precision, as TFLite does.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "io/flexbuffer_map.h"
#include "ops/contraction.h"
#include "ops/families.h"
#include "ops/loops/fft.h"
#include "ops/loops/split.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

FlexMap read_map(const OpContext& c) {
  auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  return *map;
}

/// What a cosine or a logarithm costs.
constexpr double kCosineCost = 32;

struct SpectrogramOptions {
  int64_t window = 0;
  int64_t stride = 0;
  bool squared = false;

  int64_t fft_length() const { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window))); }
};

SpectrogramOptions read_spectrogram_options(const OpContext& c) {
  const FlexMap map = read_map(c);
  const SpectrogramOptions o{map.get_int("window_size", 0), map.get_int("stride", 0),
                             map.get_bool("magnitude_squared", false)};
  c.require(o.window >= 2, "window_size is {}, expected 2 or more", o.window);
  c.require(o.stride >= 1, "stride is {}, expected 1 or more", o.stride);
  return o;
}

void infer_spectrogram(InferContext& c) {
  const SpectrogramOptions o = read_spectrogram_options(c);
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& input = c.input(0).shape;
  c.require(input.rank() == 2, "the samples have shape {}, expected [time, channels]", input.to_string());
  const int64_t windows = input[0] < o.window ? 0 : 1 + (input[0] - o.window) / o.stride;
  c.set_output_shape(0, {input[1], windows, o.fft_length() / 2 + 1});
}

class SpectrogramKernel final : public Kernel {
 public:
  SpectrogramKernel(PrepareContext& c, const SpectrogramOptions& o) : o_(o), fft_(o.fft_length()), slots_(c.threads()) {
    BlockLayout packed;
    table_at_ = packed.take(fft_.table_size() * static_cast<int64_t>(sizeof(Complex)));
    hann_at_ = packed.take(o_.window * static_cast<int64_t>(sizeof(double)));
    c.request_packed(packed.size(), "spectrogram");
    BlockLayout slot;
    samples_at_ = slot.take(fft_.length() * static_cast<int64_t>(sizeof(double)));
    bins_at_ = slot.take(fft_.bins() * static_cast<int64_t>(sizeof(Complex)));
    slot_bytes_ = slot.size();
    c.request_scratch(checked_multiply(c, slots_, slot_bytes_));
  }

  void pack(std::byte* packed) override {
    fft_.fill_table(reinterpret_cast<Complex*>(packed + table_at_));
    auto* hann = reinterpret_cast<double*>(packed + hann_at_);
    for_items(o_.window, kCosineCost, [&](int64_t i) {
      hann[i] = 0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(o_.window));
    });
  }

  void run(RunContext& c) override {
    const Shape& output = c.output(0).shape;
    const int64_t frames = output[0] * output[1];
    const double cost = 64 * static_cast<double>(fft_.length());
    for_slots(c.pool(), slots_, frames, cost, [&](int64_t slot, int64_t begin, int64_t end) {
      for (int64_t frame = begin; frame < end; ++frame) {
        transform(c, frame / output[1], frame % output[1], c.scratch() + slot * slot_bytes_,
                  c.output(0).mutable_as<float>() + frame * fft_.bins());
      }
    });
  }

 private:
  void transform(const RunContext& c, int64_t channel, int64_t frame, std::byte* scratch, float* result) const {
    const int64_t channels = c.input(0).shape[1];
    const float* input = c.input(0).as<float>() + frame * o_.stride * channels + channel;
    const auto* hann = reinterpret_cast<const double*>(c.packed() + hann_at_);
    auto* samples = reinterpret_cast<double*>(scratch + samples_at_);
    auto* bins = reinterpret_cast<Complex*>(scratch + bins_at_);
    for_items(o_.window, 2, [&](int64_t i) { samples[i] = static_cast<double>(input[i * channels]) * hann[i]; });
    for_items(fft_.length() - o_.window, 1, [&](int64_t i) { samples[o_.window + i] = 0.0; });
    // A power of two needs no workspace.
    fft_.forward(reinterpret_cast<const Complex*>(c.packed() + table_at_), samples, bins, nullptr);
    for_items(fft_.bins(), 8, [&](int64_t k) {
      const auto power = static_cast<float>(bins[k].real() * bins[k].real() + bins[k].imag() * bins[k].imag());
      result[k] = o_.squared ? power : std::sqrt(power);
    });
  }

  SpectrogramOptions o_;
  RealFft fft_;
  int64_t slots_;  // parts that run at the same time, each with scratch of its own
  int64_t slot_bytes_ = 0;
  int64_t table_at_ = 0, hann_at_ = 0;    // packed
  int64_t samples_at_ = 0, bins_at_ = 0;  // inside a slot
};

std::unique_ptr<Kernel> prepare_spectrogram(PrepareContext& c) {
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  return std::make_unique<SpectrogramKernel>(c, read_spectrogram_options(c));
}

struct MfccOptions {
  double upper_hz = 0;
  double lower_hz = 0;
  int64_t bands = 0;
  int64_t coefficients = 0;
};

MfccOptions read_mfcc_options(const OpContext& c) {
  const FlexMap map = read_map(c);
  const MfccOptions o{static_cast<double>(map.get_int("upper_frequency_limit", 0)),
                      static_cast<double>(map.get_int("lower_frequency_limit", 0)),
                      map.get_int("filterbank_channel_count", 0), map.get_int("dct_coefficient_count", 0)};
  c.require(o.lower_hz >= 0 && o.upper_hz > o.lower_hz,
            "the frequency limits are {} and {}, expected 0 <= lower < upper", o.lower_hz, o.upper_hz);
  c.require(o.coefficients >= 1 && o.coefficients <= o.bands,
            "dct_coefficient_count is {}, expected 1 to filterbank_channel_count, which is {}", o.coefficients,
            o.bands);
  return o;
}

void infer_mfcc(InferContext& c) {
  const MfccOptions o = read_mfcc_options(c);
  c.require_input_type(0, {DType::kFloat32});
  c.require_input_type(1, {DType::kInt32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& input = c.input(0).shape;
  c.require(input.rank() == 3 && input[2] >= 2,
            "the spectra have shape {}, expected [channels, windows, 2 or more bins]", input.to_string());
  c.require(c.input(1).shape.elements() == 1, "the sample rate has shape {}, expected one value",
            c.input(1).shape.to_string());
  c.set_output_shape(0, {input[0], input[1], o.coefficients});
}

double mel(double hz) { return 1127.0 * std::log1p(hz / 700.0); }

/// Triangular bands evenly spaced in mel: bin i gives `weight` of itself to band `band`, the rest to the band after it.
struct BinShare {
  double weight = 0;
  int64_t band = 0;  // -1: below the first centre
};

class MfccKernel final : public Kernel {
 public:
  MfccKernel(PrepareContext& c, const MfccOptions& o, int64_t bins) : o_(o), bins_(bins), slots_(c.threads()) {
    const int64_t cosines = checked_multiply(c, o_.coefficients, o_.bands);
    c.request_packed(checked_multiply(c, cosines, static_cast<int64_t>(sizeof(double))), "mfcc");
    BlockLayout scratch;
    shares_at_ = scratch.take(bins_ * static_cast<int64_t>(sizeof(BinShare)));
    slot_bytes_ = align_up(o_.bands * static_cast<int64_t>(sizeof(double)));
    slots_at_ = scratch.take(checked_multiply(c, slots_, slot_bytes_));
    c.request_scratch(scratch.size());
  }

  /// Rows of an orthonormal cosine transform, scaled as HTK does.
  void pack(std::byte* packed) override {
    auto* cosines = reinterpret_cast<double*>(packed);
    const auto n = static_cast<double>(o_.bands);
    for_items(o_.coefficients * o_.bands, kCosineCost, [&](int64_t at) {
      const auto i = static_cast<double>(at / o_.bands);
      const auto j = static_cast<double>(at % o_.bands);
      cosines[at] = std::sqrt(2.0 / n) * std::cos(i * std::numbers::pi / n * (j + 0.5));
    });
  }

  void run(RunContext& c) override {
    const int32_t rate = *c.input(1).as<int32_t>();
    c.require(rate > 0, "the sample rate is {}, expected more than 0", rate);
    const double hz_per_bin = 0.5 * rate / static_cast<double>(bins_ - 1);
    const Shape& output = c.output(0).shape;
    // As TFLite does it, limits above half the sample rate give zeros.
    if (o_.upper_hz / hz_per_bin >= static_cast<double>(bins_)) {
      fill_bytes(c.output(0).data, std::byte{0}, c.output(0).bytes);
      return;
    }
    // The bin of frequency 0 never counts.
    const auto first = static_cast<int64_t>(1.5 + o_.lower_hz / hz_per_bin);
    const auto last = static_cast<int64_t>(o_.upper_hz / hz_per_bin);
    auto* shares = reinterpret_cast<BinShare*>(c.scratch() + shares_at_);
    share_bins(hz_per_bin, first, last, shares);
    const int64_t frames = output[0] * output[1];
    const double cost = 8 * static_cast<double>(bins_) + kCosineCost * static_cast<double>(o_.bands) +
                        static_cast<double>(o_.coefficients * o_.bands);
    for_slots(c.pool(), slots_, frames, cost, [&](int64_t slot, int64_t begin, int64_t end) {
      for (int64_t frame = begin; frame < end; ++frame) {
        transform(c.input(0).as<float>() + frame * bins_, shares, first, last,
                  reinterpret_cast<const double*>(c.packed()),
                  reinterpret_cast<double*>(c.scratch() + slots_at_ + slot * slot_bytes_),
                  c.output(0).mutable_as<float>() + frame * o_.coefficients);
      }
    });
  }

 private:
  void share_bins(double hz_per_bin, int64_t first, int64_t last, BinShare* shares) const {
    const double low = mel(o_.lower_hz);
    const double spacing = (mel(o_.upper_hz) - low) / static_cast<double>(o_.bands + 1);
    auto centre = [&](int64_t band) { return low + spacing * static_cast<double>(band + 1); };
    int64_t band = 0;
    for_items(last - first + 1, kCosineCost, [&](int64_t n) {
      const int64_t i = first + n;
      const double place = mel(static_cast<double>(i) * hz_per_bin);
      for_items(o_.bands - band, 2, [&](int64_t) {
        if (!(centre(band) < place)) return false;
        ++band;
        return true;
      });
      const double below = band > 0 ? centre(band - 1) : low;
      shares[i] = {(centre(band) - place) / (centre(band) - below), band - 1};
    });
  }

  void transform(const float* spectrum, const BinShare* shares, int64_t first, int64_t last, const double* cosines,
                 double* bands, float* result) const {
    for_items(o_.bands, 1, [&](int64_t i) { bands[i] = 0.0; });
    for_items(last - first + 1, 8, [&](int64_t n) {
      const int64_t i = first + n;
      const double magnitude = std::sqrt(static_cast<double>(spectrum[i]));
      const double share = magnitude * shares[i].weight;
      if (shares[i].band >= 0) bands[shares[i].band] += share;
      if (shares[i].band + 1 < o_.bands) bands[shares[i].band + 1] += magnitude - share;
    });
    constexpr double kFloor = 1e-12;  // keeps the logarithm of silence finite
    for_items(o_.bands, kCosineCost, [&](int64_t i) { bands[i] = std::log(bands[i] < kFloor ? kFloor : bands[i]); });
    for_items(o_.coefficients, static_cast<double>(o_.bands), [&](int64_t i) {
      double sum = 0.0;
      for_items(o_.bands, 1, [&](int64_t j) { sum += cosines[i * o_.bands + j] * bands[j]; });
      result[i] = static_cast<float>(sum);
    });
  }

  MfccOptions o_;
  int64_t bins_;
  int64_t slots_;  // parts that run at the same time, each with scratch of its own
  int64_t shares_at_ = 0, slots_at_ = 0, slot_bytes_ = 0;
};

std::unique_ptr<Kernel> prepare_mfcc(PrepareContext& c) {
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  return std::make_unique<MfccKernel>(c, read_mfcc_options(c), c.input(0).shape[2]);
}

}  // namespace

void register_audio(Registry& registry) {
  registry.add({.id = ir::OpId::custom("AudioSpectrogram"),
                .max_version = 1,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .infer = infer_spectrogram,
                .prepare = prepare_spectrogram,
                .types = "f32"});
  registry.add({.id = ir::OpId::custom("Mfcc"),
                .max_version = 1,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .infer = infer_mfcc,
                .prepare = prepare_mfcc,
                .types = "f32"});
}

}  // namespace leadline::ops
