// SPDX-License-Identifier: Apache-2.0
// STFTSpectrogram, whose transform is a convolution with its own weights, and MelSpectrogram by RFFT2D.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "import/keras/spatial.h"
#include "ops/pad.h"

namespace leadline::keras {
namespace {

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

/// Pads of an axis that mirror what is inside, the edge once.
int reflect(Emitter& e, int x, int axis, int64_t width) {
  std::vector<int32_t> pads(static_cast<size_t>(e.rank(x)) * 2, 0);
  pads[static_cast<size_t>(axis) * 2] = pads[static_cast<size_t>(axis) * 2 + 1] = static_cast<int32_t>(width);
  const int paddings = e.builder().constant(e.name("Paddings"), DType::kInt32, {e.rank(x), 2}, pads);
  ops::MirrorPadAttributes a;
  a.mode = ops::MirrorMode::kReflect;
  return e.builder().node("MIRROR_PAD", {x, paddings}, e.name("MirrorPad"), a);
}

std::vector<float> window_weights(Call& call, int64_t length, int64_t whole) {
  const auto named = call.config.find("window");
  std::vector<float> result(static_cast<size_t>(whole), 0.0F);
  const auto at = static_cast<size_t>((whole - length) / 2);
  if (!named) {
    std::fill(result.begin(), result.end(), 1.0F);
    return result;
  }
  if (!named->is_text()) {
    const Config list = named->is_object() ? named->get("config").get("value") : *named;
    const std::vector<double> values = list.numbers(static_cast<size_t>(length));
    require(static_cast<int64_t>(values.size()) == length, kBad, "the window has {} elements, expected {}",
            values.size(), length);
    for (size_t i = 0; i < values.size(); ++i) result[at + i] = static_cast<float>(values[i]);
    return result;
  }
  const std::string name = named->text();
  call.refuse_if(name != "hann" && name != "hamming",
                 fmt::format("has the window '{}'; hann and hamming are known", printable(name)));
  const double base = name == "hann" ? 0.5 : 0.54;
  for (int64_t i = 0; i < length; ++i) {
    const double turn = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    result[at + static_cast<size_t>(i)] = static_cast<float>(base - (1.0 - base) * std::cos(turn));
  }
  return result;
}

/// Triangles over the bins of a spectrum, [bands, bins]: as HTK makes them, without the lowest bin.
std::vector<float> mel_matrix(int64_t bands, int64_t bins, double rate, double low, double high) {
  const auto mel = [](double hertz) { return 1127.0 * std::log(1.0 + hertz / 700.0); };
  const double from = mel(low);
  const double step = (mel(high) - from) / static_cast<double>(bands + 1);
  std::vector<float> matrix(static_cast<size_t>(bands * bins), 0.0F);
  for (int64_t bin = 1; bin < bins; ++bin) {
    const double m = mel(rate / 2.0 * static_cast<double>(bin) / static_cast<double>(bins - 1));
    for (int64_t band = 0; band < bands; ++band) {
      const double rising = (m - from) / step - static_cast<double>(band);
      const double value = std::max(0.0, std::min(rising, 2.0 - rising));
      matrix[static_cast<size_t>(band * bins + bin)] = static_cast<float>(value);
    }
  }
  return matrix;
}

/// Overlapping parts of the last axis of [batch, samples]: blocks that all begin at multiples of what divides both the
/// length and the stride are picked by their numbers.
int frames_of(Call& call, int x, int64_t length, int64_t stride) {
  Emitter& e = call.e;
  const int64_t samples = e.dims(x)[1];
  require(samples >= length, kBad, "{} samples are less than a frame of {}", samples, length);
  const int64_t count = 1 + (samples - length) / stride;
  const int64_t block = std::gcd(length, stride);
  const int64_t used = (count - 1) * stride + length;
  const int64_t per_frame = length / block;
  call.refuse_if(count > (1 << 24) / per_frame, "has too many frames, which is not converted; use a larger stride");
  std::vector<int32_t> numbers;
  for (int64_t frame = 0; frame < count; ++frame) {
    for (int64_t i = 0; i < per_frame; ++i) numbers.push_back(static_cast<int32_t>(frame * (stride / block) + i));
  }
  const int cut = used == samples ? x : e.slice(x, 1, 0, used);
  const int blocks = e.reshape(cut, {-1, used / block, block});
  const int table = e.builder().constant(e.name("frames"), DType::kInt32, {count, per_frame}, numbers);
  return e.reshape(e.gather(blocks, table, 1), {-1, count, length});
}

int decibels(Call& call, int x) {
  Emitter& e = call.e;
  const double floor = call.config.number("min_power", 1e-10);
  const double reference = std::max(std::abs(call.config.number("ref_power", 1.0)), floor);
  const double scale = 10.0 / std::numbers::ln10;
  require(floor > 0.0, kBad, "the least power is {}, expected more than 0", floor);
  int y = e.mul(e.unary("LOG", e.binary("MAXIMUM", x, e.scalar_like(x, floor))), scale);
  y = e.add(y, -10.0 * std::log10(reference));
  std::vector<int32_t> all;
  for (int axis = 0; axis < e.rank(y); ++axis) all.push_back(axis);
  const int least = e.add(e.reduce("REDUCE_MAX", y, all, false), -call.config.number("top_db", 80.0));
  return e.binary("MAXIMUM", y, least);
}

}  // namespace

Outputs mel_spectrogram(Call& call) {
  Emitter& e = call.e;
  const int x = e.cast(call.x(), DType::kFloat32);
  require(e.rank(x) == 2, ErrorCode::kUnsupported, "the input has rank {}; [batch, samples] is converted", e.rank(x));
  call.refuse_if(e.dims(x)[1] < 0, "has an unknown number of samples, which is not converted; fix the input's size");
  const int64_t size = call.config.integer("fft_length", 2048);
  const int64_t stride = call.config.integer("sequence_stride", 512);
  const int64_t length = call.config.integer("sequence_length", size);
  const int64_t bands = call.config.integer("num_mel_bins", 128);
  require(size > 1 && size <= (1 << 20) && stride > 0 && stride <= (1 << 20) && length > 0 && length <= size &&
              bands > 0 && bands <= (1 << 16) && size / 2 < e.dims(x)[1],
          kBad, "frames of {} every {} samples, {} bands, of {} samples", size, stride, bands, e.dims(x)[1]);
  call.refuse_if((size & (size - 1)) != 0,
                 "has an fft_length that is not a power of two, which TFLite's transform needs");
  const int frames = frames_of(call, reflect(e, x, 1, size / 2), size, stride);
  const int weighed = e.mul(frames, e.floats(window_weights(call, length, size)));
  const int64_t count = e.dims(frames)[1];
  const int spectrum =
      e.builder().node("RFFT2D", {e.reshape(weighed, {-1, count, 1, size}), e.ints({1, static_cast<int32_t>(size)})},
                       e.name("rfft"), DType::kComplex64);
  const int64_t bins = size / 2 + 1;
  int y = e.builder().node("COMPLEX_ABS", {spectrum}, e.name("magnitude"), DType::kFloat32);
  y = e.reshape(y, {-1, count, bins});
  const double exponent = call.config.number("mag_exp", 2.0);
  if (exponent == 2.0) {
    y = e.mul(y, y);
  } else if (exponent != 1.0) {
    y = e.binary("POW", y, e.scalar_like(y, exponent));
  }
  const double rate = call.config.number("sampling_rate", 16000);
  const double low = call.config.number("min_freq", 20.0);
  const double high = call.config.number("max_freq", rate / 2.0);
  require(rate > 0.0 && low >= 0.0 && high > low && high < 1e9, kBad, "frequencies from {} to {}", low, high);
  call.refuse_if(bands * bins > (1 << 24), "has more than 2^24 weights of bands, which is not converted");
  y = e.fully_connected(y, e.floats(mel_matrix(bands, bins, rate, low, high), {bands, bins}), ir::kAbsent);
  if (call.config.boolean("power_to_db", true)) y = decibels(call, y);
  return {e.transpose(y, {0, 2, 1})};
}

Outputs stft_spectrogram(Call& call) {
  Emitter& e = call.e;
  const bool first = channels_first(call);
  int x = e.cast(call.x(), DType::kFloat32);
  require(e.rank(x) == 3, kBad, "the input has rank {}, expected 3", e.rank(x));
  if (!first) x = e.transpose(x, {0, 2, 1});  // [batch, channels, time]
  const int64_t channels = e.dims(x)[1];
  const int64_t samples = e.dims(x)[2];
  call.refuse_if(channels < 0 || samples < 0, "has an input of unknown size, which is not converted; fix its size");
  const std::string mode = call.config.text("mode", "log");
  const int64_t length = call.config.integer("frame_length", 256);
  const int64_t step = call.config.integer("frame_step", length);
  require(length > 0 && length <= (1 << 20) && step > 0 && step <= (1 << 20), kBad, "frames of {} every {}", length,
          step);
  Window w;
  w.sizes = {length};
  w.strides = {step};
  w.dilations = {1};
  const std::string padding = call.config.text("padding", "valid");
  require(padding == "valid" || padding == "same", kBad, "the padding is '{}'", printable(padding));
  w.padding = padding == "same" ? ir::Padding::kSame : ir::Padding::kValid;
  const int signal = e.reshape(x, {-1, samples, 1});
  const auto part = [&](size_t index, const char* name) {  // [batch * channels, time, bins]
    const int64_t bins = call.weight(index, name, {length, 1, -1}).shape[2];
    return convolve(call, signal, index, name, {length, 1, bins}, -1, w);
  };
  int y = -1;
  if (mode == "real") {
    y = part(0, "real_kernel");
  } else if (mode == "imag") {
    y = part(0, "imag_kernel");
  } else {
    const int real = part(0, "real_kernel");
    const int imag = part(1, "imag_kernel");
    const auto power = [&] { return e.add(e.mul(real, real), e.mul(imag, imag)); };
    const auto at_least = [&](int v) { return e.binary("MAXIMUM", v, e.scalar_like(v, kEpsilon)); };
    if (mode == "angle") {
      y = e.binary("ATAN2", imag, real);
    } else if (mode == "stft") {
      y = e.concat({real, imag}, 2);
    } else if (mode == "psd") {  // all but the first and last bin count twice
      std::vector<float> twice(static_cast<size_t>(std::max<int64_t>(e.dims(real)[2], 0)), 2.0F);
      require(!twice.empty(), kBad, "the spectrum has no bins");
      twice.front() = twice.back() = 1.0F;
      y = e.mul(power(), e.floats(twice));
    } else {
      require(mode == "magnitude" || mode == "log", kBad, "the mode is '{}'", printable(mode));
      y = e.unary("SQRT", at_least(power()));
      if (mode == "log") y = e.unary("LOG", at_least(y));
    }
  }
  const int64_t frames = e.dims(y)[1];
  const int64_t bins = e.dims(y)[2];
  const int all = e.reshape(y, {-1, channels, frames, bins});
  if (call.config.boolean("expand_dims", false)) return {first ? all : e.transpose(all, {0, 2, 3, 1})};
  if (first) return {e.reshape(e.transpose(all, {0, 1, 3, 2}), {-1, channels * bins, frames})};
  return {e.reshape(e.transpose(all, {0, 2, 1, 3}), {-1, frames, channels * bins})};
}

}  // namespace leadline::keras
