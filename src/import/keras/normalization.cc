// SPDX-License-Identifier: Apache-2.0
// Normalizations. What is known before a run becomes one product and one sum per channel, which passes move into the
// convolution before it.
#include <cmath>

#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

/// Sizes with which a vector along `axis` broadcasts over `x`.
Dims along(Emitter& e, int x, int axis, int64_t size) {
  if (axis == e.rank(x) - 1) return {size};
  Dims dims(static_cast<size_t>(e.rank(x) - axis), 1);
  dims[0] = size;
  return dims;
}

int affine(Emitter& e, int x, int axis, const std::vector<float>& factor, const std::vector<float>& offset) {
  const Dims dims = along(e, x, axis, static_cast<int64_t>(factor.size()));
  return e.add(e.mul(x, e.floats(factor, dims)), e.floats(offset, dims));
}

int single_axis(Call& call, int64_t otherwise) {
  const auto axis = call.config.find("axis");
  const std::vector<int64_t> axes = axis ? axis->integers() : std::vector<int64_t>{otherwise};
  call.refuse_if(axes.size() != 1, "has several axes, of which one is converted");
  return call.e.axis(call.x(), axes[0]);
}

/// `x` over its deviation; the mean is taken off unless `center` is false.
int standardize(Emitter& e, int x, const std::vector<int32_t>& axes, double epsilon, bool center = true) {
  const int centered = center ? e.sub(x, e.reduce("MEAN", x, axes, true)) : x;
  const int variance = e.reduce("MEAN", e.mul(centered, centered), axes, true);
  return e.mul(centered, e.unary("RSQRT", e.add(variance, epsilon)));
}

/// gamma and beta over `axes` of x, in the layer's variables from 0 on.
int scale_and_center(Call& call, int x, const std::vector<int32_t>& axes, bool scale, bool center) {
  Emitter& e = call.e;
  const Dims all = e.dims(x);
  Dims own;
  Dims target(all.size() - static_cast<size_t>(axes.front()), 1);
  for (const int32_t axis : axes) {
    own.push_back(all[static_cast<size_t>(axis)]);
    target[static_cast<size_t>(axis - axes.front())] = own.back();
  }
  size_t next = 0;
  if (scale) x = e.mul(x, call.constant(next++, "gamma", own, {}, target));
  if (center) x = e.add(x, call.constant(next, "beta", own, {}, target));
  return x;
}

std::vector<float> numbers_as_floats(const Config& value, size_t limit) {
  const std::vector<double> numbers = value.numbers(limit);
  return {numbers.begin(), numbers.end()};
}

}  // namespace

Outputs batch_normalization(Call& call) {
  Emitter& e = call.e;
  const int axis = single_axis(call, -1);
  const int64_t size = e.dims(call.x())[static_cast<size_t>(axis)];
  size_t next = 0;
  std::vector<float> gamma;
  std::vector<float> beta;
  if (call.config.boolean("scale", true)) gamma = call.values(next++, "gamma", {size});
  if (call.config.boolean("center", true)) beta = call.values(next++, "beta", {size});
  const std::vector<float> mean = call.values(next, "moving_mean", {size});
  const std::vector<float> variance = call.values(next + 1, "moving_variance", {size});
  const double epsilon = call.config.number("epsilon", 1e-3);
  std::vector<float> factor(mean.size());
  std::vector<float> offset(mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    const double f = (gamma.empty() ? 1.0 : gamma[i]) / std::sqrt(static_cast<double>(variance[i]) + epsilon);
    factor[i] = static_cast<float>(f);
    offset[i] = static_cast<float>((beta.empty() ? 0.0 : beta[i]) - mean[i] * f);
  }
  return {affine(e, call.x(), axis, factor, offset)};
}

Outputs layer_normalization(Call& call) {
  Emitter& e = call.e;
  const auto axis = call.config.find("axis");
  const std::vector<int32_t> axes = e.axes(call.x(), axis ? axis->integers() : std::vector<int64_t>{-1});
  require(!axes.empty(), kBad, "there is no axis to normalize");
  const bool rms = call.config.boolean("rms_scaling", false);
  const bool scale = call.config.boolean("scale", true) || rms;
  const bool center = call.config.boolean("center", true) && !rms;
  const int y = standardize(e, call.x(), axes, call.config.number("epsilon", 1e-3), !rms);
  return {scale_and_center(call, y, axes, scale, center)};
}

Outputs rms_normalization(Call& call) {
  Emitter& e = call.e;
  const auto axis = call.config.find("axis");
  const std::vector<int32_t> axes = e.axes(call.x(), axis ? axis->integers() : std::vector<int64_t>{-1});
  require(!axes.empty(), kBad, "there is no axis to normalize");
  const int y = standardize(e, call.x(), axes, call.config.number("epsilon", 1e-6), false);
  return {scale_and_center(call, y, axes, true, false)};
}

/// Channels become [groups, channels of each]; mean and deviation are those of a group over all other axes.
Outputs group_normalization(Call& call) {
  Emitter& e = call.e;
  const int x = call.x();
  const int axis = single_axis(call, -1);
  const Dims dims = e.dims(x);
  const int64_t channels = dims[static_cast<size_t>(axis)];
  int64_t groups = call.config.integer("groups", 32);
  if (groups == -1) groups = channels;
  require(groups > 0 && channels > 0 && channels % groups == 0, kBad, "{} channels in {} groups", channels, groups);
  std::vector<Emitter::Size> split;
  std::vector<Emitter::Size> whole;
  std::vector<int32_t> axes;
  for (int i = 0; i < e.rank(x); ++i) {
    whole.emplace_back(x, i);
    if (i == axis) {
      split.insert(split.end(), {{-1, groups}, {-1, channels / groups}});
      axes.push_back(i + 1);
    } else {
      split.emplace_back(x, i);
      if (i != 0) axes.push_back(i > axis ? i + 1 : i);
    }
  }
  const int grouped = e.reshape_like(x, split);
  const int normal = standardize(e, grouped, axes, call.config.number("epsilon", 1e-3));
  const int y = e.reshape_like(normal, whole);
  return {scale_and_center(call, y, {axis}, call.config.boolean("scale", true), call.config.boolean("center", true))};
}

Outputs unit_normalization(Call& call) {
  Emitter& e = call.e;
  const auto axis = call.config.find("axis");
  const std::vector<int32_t> axes = e.axes(call.x(), axis ? axis->integers() : std::vector<int64_t>{-1});
  const int x = call.x();
  const int square = e.reduce("SUM", e.mul(x, x), axes, true);
  return {e.mul(x, e.unary("RSQRT", e.binary("MAXIMUM", square, e.scalar(1e-12F))))};
}

Outputs rescaling(Call& call) {
  Emitter& e = call.e;
  const int x = e.cast(call.x(), DType::kFloat32);
  const auto read = [&](std::string_view key, float otherwise) {
    const auto found = call.config.find(key);
    if (!found) return e.scalar(otherwise);
    if (found->is_number()) return e.scalar(static_cast<float>(found->number()));
    // A numpy array is saved with its values inside.
    const Config list = found->is_object() ? found->get("config").get("value") : *found;
    return e.floats(numbers_as_floats(list, 1 << 16));
  };
  const int scale = read("scale", 1.0F);
  const int offset = read("offset", 0.0F);
  return {e.add(e.mul(x, scale), offset)};
}

Outputs normalization(Call& call) {
  Emitter& e = call.e;
  const int x = e.cast(call.x(), DType::kFloat32);
  const auto axis = call.config.find("axis");
  const std::vector<int32_t> axes = e.axes(x, axis ? axis->integers() : std::vector<int64_t>{});
  Dims own;
  Dims wide(axes.empty() ? 0 : static_cast<size_t>(e.rank(x) - axes.front()), 1);
  for (const int32_t a : axes) {
    own.push_back(e.dims(x)[static_cast<size_t>(a)]);
    wide[static_cast<size_t>(a - axes.front())] = own.back();
  }
  std::vector<float> mean;
  std::vector<float> variance;
  if (call.config.has("mean") && call.config.has("variance")) {
    const auto read = [&](std::string_view key) {
      const Config value = call.config.get(key);  // a numpy array is saved with its values inside
      return numbers_as_floats(value.is_object() ? value.get("config").get("value") : value, 1 << 20);
    };
    mean = read("mean");
    variance = read("variance");
  } else {
    mean = call.values(0, "mean", own);
    variance = call.values(1, "variance", own);
  }
  require(mean.size() == variance.size() && !mean.empty(), kBad, "{} means and {} variances", mean.size(),
          variance.size());
  const bool invert = call.config.boolean("invert", false);
  std::vector<float> factor(mean.size());
  std::vector<float> offset(mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    const double deviation = std::max(std::sqrt(static_cast<double>(variance[i])), 1e-7);
    factor[i] = static_cast<float>(invert ? deviation : 1.0 / deviation);
    offset[i] = static_cast<float>(invert ? mean[i] : -mean[i] / deviation);
  }
  if (factor.size() == 1) wide.assign(wide.size(), 1);  // one for all
  return {e.add(e.mul(x, e.floats(factor, wide)), e.floats(offset, wide))};
}

Outputs layer_scale(Call& call) {
  return {call.e.mul(call.x(), call.constant(0, "gamma", {call.e.dims(call.x()).back()}))};
}

}  // namespace leadline::keras
