// SPDX-License-Identifier: Apache-2.0
// Locally connected layers of Keras 2: convolutions with a kernel for every position. Windows are gathered by their
// numbers and multiplied position by position.
#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

/// The elements of each window of a flattened image, window after window, channels last.
std::vector<int32_t> window_numbers(const Dims& image, const Window& w, const Dims& steps) {
  std::vector<int32_t> numbers;
  const bool flat = image.size() == 2;
  const int64_t columns = flat ? 1 : image[1];
  const int64_t channels = image.back();
  for (int64_t r = 0; r < steps[0]; ++r) {
    for (int64_t c = 0; c < (flat ? 1 : steps[1]); ++c) {
      for (int64_t i = 0; i < w.sizes[0]; ++i) {
        for (int64_t j = 0; j < (flat ? 1 : w.sizes[1]); ++j) {
          const int64_t row = r * w.strides[0] + i;
          const int64_t column = flat ? 0 : c * w.strides[1] + j;
          for (int64_t k = 0; k < channels; ++k) {
            numbers.push_back(static_cast<int32_t>((row * columns + column) * channels + k));
          }
        }
      }
    }
  }
  return numbers;
}

}  // namespace

Outputs locally_connected(Call& call) {
  const auto axes = static_cast<size_t>(std::max(call.e.rank(call.x()) - 2, 0));
  require(axes == 1 || axes == 2, kBad, "the input has rank {}, expected 3 or 4", axes + 2);
  const Window w = read_window(call, "kernel_size", axes);
  call.refuse_if(call.config.integer("implementation", 1) != 1,
                 "keeps its kernel in another order; build it with implementation=1");
  call.refuse_if(w.padding == ir::Padding::kSame || w.causal, "is padded, which is not converted; use padding='valid'");
  const int64_t filters = call.config.integer("filters");
  require(filters > 0 && filters <= (1 << 20), kBad, "the number of filters is {}, expected 1 to 2^20", filters);
  const int y = with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const Dims dims = e.dims(x);
    const Dims image(dims.begin() + 1, dims.end());
    Dims steps;
    int64_t places = 1;
    int64_t window = image.back();
    int64_t elements = image.back();
    for (size_t i = 0; i < axes; ++i) {
      call.refuse_if(image[i] < w.sizes[i] || image.back() <= 0, "has an input of unknown size or less than a window");
      steps.push_back((image[i] - w.sizes[i]) / w.strides[i] + 1);
      places *= steps[i];
      window *= w.sizes[i];
      elements *= image[i];
      call.refuse_if(places > (1 << 22) || window > (1 << 22) || elements > INT32_MAX || places * window > (1 << 24),
                     "has more than 2^24 elements in its windows, which is not converted");
    }
    const std::vector<int32_t> numbers = window_numbers(image, w, steps);
    const int table = e.builder().constant(e.name("windows"), DType::kInt32, {places, window}, numbers);
    const int windows = e.gather(e.reshape(x, {-1, elements}), table, 1);  // [batch, places, window]
    const int kernel = call.constant(0, "kernel", {places, window, filters});
    const int product = e.matmul(e.transpose(windows, {1, 0, 2}), kernel);  // [places, batch, filters]
    Dims result = {-1};
    result.insert(result.end(), steps.begin(), steps.end());
    result.push_back(filters);
    const int sum = e.reshape(e.transpose(product, {1, 0, 2}), result);
    if (!call.config.boolean("use_bias", true)) return sum;
    Dims bias = steps;
    bias.push_back(filters);
    return e.add(sum, call.constant(1, "bias", bias));
  });
  return {activation_of(call, y, "activation")};
}

}  // namespace leadline::keras
