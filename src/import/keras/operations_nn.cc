// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops on images and sequences: convolutions with kernels given as arguments, pools,
// blocks, attention, normalization, patches; and those on bits.
#include <algorithm>
#include <cmath>

#include "import/bits.h"
#include "import/keras/operations.h"
#include "import/keras/spatial.h"
#include "ops/conv_3d.h"
#include "ops/space_depth.h"

namespace leadline::keras {
namespace {

constexpr int64_t kMaxSteps = 64;              // of what is written out step by step
constexpr int64_t kMaxPatchWeights = 1 << 20;  // of the kernel that cuts patches out
constexpr float kMasked = -1e9F;

int kernel_of(Call& call, size_t index, const char* name, int x, size_t rank) {
  const int kernel = operand(call, index, name, x);
  const Dims dims = call.e.dims(kernel);
  require(dims.size() == rank, kBad, "'{}' has rank {}, expected {}", name, dims.size(), rank);
  call.refuse_if(std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n <= 0; }),
                 "has a kernel of unknown size, which is not converted; fix its size");
  return kernel;
}

Window window_of(Call& call) {
  const int axes = call.e.rank(call.x()) - 2;
  require(axes >= 1 && axes <= 3, ErrorCode::kUnsupported, "the input has rank {}, expected 3 to 5", axes + 2);
  return read_window(call, "kernel_size", static_cast<size_t>(axes));
}

int convolve_tensors(Call& call, int x, int kernel, Window w) {
  Emitter& e = call.e;
  const Dims dims = e.dims(kernel);
  const size_t axes = w.strides.size();
  w.sizes.assign(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(axes));
  const int bias = zero_bias(e, dims.back());
  if (axes == 3) {
    call.refuse_if(dims[3] != e.dims(x).back(), "has groups over three axes, which are not converted");
    return emit_conv_3d(e, x, kernel, bias, w);
  }
  if (axes == 2) return emit_conv_2d(e, x, e.transpose(kernel, {3, 0, 1, 2}), bias, w);
  const int filter = e.expand_dims(e.transpose(kernel, {2, 0, 1}), 1);
  return e.squeeze(emit_conv_2d(e, e.expand_dims(x, 1), filter, bias, with_height(w)), 1);
}

int depthwise_tensors(Call& call, int x, int kernel, Window w) {
  Emitter& e = call.e;
  const Dims dims = e.dims(kernel);
  const size_t axes = w.strides.size();
  w.sizes.assign(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(axes));
  require(dims[axes] == e.dims(x).back(), kBad, "a kernel for {} channels, the input has {}", dims[axes],
          e.dims(x).back());
  require(dims[axes] <= (1 << 24) && dims.back() <= (1 << 16), kBad, "{} x {} channels", dims[axes], dims.back());
  const int64_t wide = dims[axes] * dims.back();
  if (axes == 1) w = with_height(w);
  const int filter = e.reshape(kernel, {1, w.sizes[0], w.sizes[1], wide});
  const int image = axes == 1 ? e.expand_dims(x, 1) : x;
  const int y = emit_depthwise(e, image, filter, zero_bias(e, wide), dims.back(), w);
  return axes == 1 ? e.squeeze(y, 1) : y;
}

Outputs convolve(Call& call) {
  const Window w = window_of(call);
  return {with_channels_last(call, [&](int x) {
    return convolve_tensors(call, x, kernel_of(call, 1, "kernel", x, w.strides.size() + 2), w);
  })};
}

Outputs depthwise_conv(Call& call) {
  const Window w = window_of(call);
  call.refuse_if(w.strides.size() > 2, "has three axes, which are not converted");
  return {with_channels_last(call, [&](int x) {
    return depthwise_tensors(call, x, kernel_of(call, 1, "kernel", x, w.strides.size() + 2), w);
  })};
}

Outputs separable_conv(Call& call) {
  const Window w = window_of(call);
  call.refuse_if(w.strides.size() > 2, "has three axes, which are not converted");
  return {with_channels_last(call, [&](int x) {
    const size_t rank = w.strides.size() + 2;
    const int y = depthwise_tensors(call, x, kernel_of(call, 1, "depthwise_kernel", x, rank), w);
    Window one;
    one.strides = one.dilations = std::vector<int64_t>(w.strides.size(), 1);
    return convolve_tensors(call, y, kernel_of(call, 2, "pointwise_kernel", x, rank), one);
  })};
}

/// A convolution whose kernel puts every element of a window into a channel of its own.
Outputs extract_patches(Call& call) {
  Emitter& e = call.e;
  require(e.rank(call.x()) == 4, ErrorCode::kUnsupported, "the input has rank {}, expected 4", e.rank(call.x()));
  Window w = read_window(call, "size", 2);
  if (!call.config.has("strides")) w.strides = w.sizes;
  return {with_channels_last(call, [&](int x) {
    const int64_t channels = e.dims(x).back();
    call.refuse_if(channels < 1 || channels > 1024 || w.sizes[0] > 1024 || w.sizes[1] > 1024,
                   "makes patches of unknown or too many elements, which are not converted");
    const int64_t elements = w.sizes[0] * w.sizes[1] * channels;
    call.refuse_if(elements * elements > kMaxPatchWeights,
                   "makes patches too large to be converted; make them smaller");
    std::vector<float> unit(static_cast<size_t>(elements * elements), 0.0F);
    for (int64_t i = 0; i < elements; ++i) unit[static_cast<size_t>(i * elements + i)] = 1.0F;
    return convolve_tensors(call, x, e.floats(unit, {w.sizes[0], w.sizes[1], channels, elements}), w);
  })};
}

Outputs batch_norm(Call& call) {
  Emitter& e = call.e;
  const int x = call.x();
  const int axis = e.axis(x, integer_setting(call, SIZE_MAX, "axis", -1));
  const auto vector_of = [&](size_t index, const char* name) {
    Dims dims(static_cast<size_t>(e.rank(x) - axis), 1);  // axes before it are broadcast anyway
    dims[0] = -1;
    const int v = operand(call, index, name, x);
    return axis + 1 == e.rank(x) ? v : e.reshape(v, dims);
  };
  const bool scaled = call.arguments.find(4, "scale") != nullptr;
  const bool moved = call.arguments.find(3, "offset") != nullptr;
  int factor = e.unary("RSQRT", e.add(vector_of(2, "variance"), call.config.number("epsilon", 1e-3)));
  if (scaled) factor = e.mul(factor, vector_of(4, "scale"));
  const int shift = e.mul(vector_of(1, "mean"), factor);
  const int y = e.mul(x, factor);
  return {moved ? e.add(y, e.sub(vector_of(3, "offset"), shift)) : e.sub(y, shift)};
}

/// Query [batch, T, heads, size], key and value [batch, S, heads, size].
Outputs dot_product_attention(Call& call) {
  Emitter& e = call.e;
  const int q = call.x();
  const int k = operand(call, 1, "key", q);
  const int v = operand(call, 2, "value", q);
  const Dims sizes = e.dims(q);
  require(sizes.size() == 4 && e.rank(k) == 4 && e.rank(v) == 4, kBad, "query, key and value must have rank 4");
  call.refuse_if(sizes[3] <= 0 || sizes[2] <= 0 || sizes[2] != e.dims(k)[2],
                 "has fewer heads of keys than of queries, which is not converted; repeat the keys and values");
  call.refuse_if(call.config.has("attn_logits_soft_cap"), "has a soft cap, which is not converted");
  const auto scale = setting(call, 5, "scale");
  const double factor = scale && scale->is_number() ? scale->number() : 1.0 / std::sqrt(static_cast<double>(sizes[3]));
  const int heads = e.transpose(e.mul(q, factor), {0, 2, 1, 3});
  int scores = e.matmul(heads, e.transpose(k, {0, 2, 1, 3}), false, true);
  if (call.arguments.find(3, "bias") != nullptr) scores = e.add(scores, operand(call, 3, "bias", q));
  if (call.arguments.find(4, "mask") != nullptr) {
    const int mask = operand(call, 4, "mask", q);
    scores = e.select(e.cast(mask, DType::kBool), scores, e.scalar(kMasked));
  }
  if (flag_setting(call, SIZE_MAX, "is_causal")) {
    const int64_t rows = sizes[1];
    const int64_t columns = e.dims(k)[1];
    call.refuse_if(rows <= 0 || columns <= 0 || rows > 4096 || columns > 4096,
                   "is causal over sequences of unknown or great length, which is not converted; fix the length");
    std::vector<float> added;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) added.push_back(c <= r ? 0.0F : kMasked);
    scores = e.add(scores, e.floats(added, {rows, columns}));
  }
  const int mixed = e.matmul(e.softmax(scores), e.transpose(v, {0, 2, 1, 3}));
  return {e.transpose(mixed, {0, 2, 1, 3})};
}

Outputs cumprod(Call& call) {
  Emitter& e = call.e;
  const auto given = setting(call, 1, "axis");
  const int x = given ? call.x() : e.reshape(call.x(), {-1});
  const int axis = given ? e.axis(x, given->integer()) : 0;
  const int64_t steps = e.dims(x)[static_cast<size_t>(axis)];
  call.refuse_if(
      steps < 1 || steps > kMaxSteps,
      fmt::format("multiplies along an axis of unknown size or more than {}, which is not converted", kMaxSteps));
  if (steps == 1) return {x};
  std::vector<int> parts = e.split(x, axis, static_cast<int>(steps));
  for (size_t i = 1; i < parts.size(); ++i) parts[i] = e.mul(parts[i - 1], parts[i]);
  return {e.concat(parts, axis)};
}

/// The choice of the first condition that holds.
Outputs select_op(Call& call) {
  Emitter& e = call.e;
  const Argument* conditions = call.arguments.find(0, "condlist");
  const Argument* choices = call.arguments.find(1, "choicelist");
  require(conditions != nullptr && choices != nullptr && !choices->list.empty() &&
              conditions->list.size() == choices->list.size(),
          kBad, "conditions and choices do not match");
  for (size_t i = 0; i < choices->list.size(); ++i) {
    call.refuse_if(conditions->list[i].tensor < 0 || choices->list[i].tensor < 0,
                   "has conditions or choices that are not tensors, which is not converted");
  }
  const int like = choices->list[0].tensor;
  int result =
      call.arguments.find(2, "default") != nullptr ? operand(call, 2, "default", like) : e.scalar_like(like, 0.0);
  for (size_t i = choices->list.size(); i-- > 0;) {
    result = e.select(conditions->list[i].tensor, choices->list[i].tensor, e.cast(result, e.dtype(like)));
  }
  return {result};
}

/// What is before and after along an axis of `size`: two of `before`, `after` and the target are given.
std::pair<int64_t, int64_t> borders(Call& call, const char* before, const char* after, const char* target, int64_t size,
                                    int sign) {
  const auto find = [&](const char* key) -> std::optional<int64_t> {
    const auto found = call.config.find(key);
    if (!found || found->is_null()) return {};
    const int64_t n = found->integer();
    require(n >= 0 && n <= (1 << 24), kBad, "'{}' is {}", key, n);
    return n;
  };
  std::optional<int64_t> first = find(before);
  std::optional<int64_t> last = find(after);
  if (const auto wanted = find(target)) {
    call.refuse_if(size < 0, "has images of unknown size, which is not converted with a target size");
    const int64_t all = sign * (*wanted - size);
    if (!first && last) first = all - *last;
    if (!last && first) last = all - *first;
  }
  require(first && last && *first >= 0 && *last >= 0, kBad, "'{}', '{}' and '{}' do not fit images of {}", before,
          after, target, size);
  return {*first, *last};
}

int height_axis(Call& call) {
  const int rank = call.e.rank(call.x());
  require(rank == 3 || rank == 4, kBad, "the images have rank {}, expected 3 or 4", rank);
  return channels_first(call) ? rank - 2 : rank - 3;
}

Outputs pad_images(Call& call) {
  Emitter& e = call.e;
  const auto axis = static_cast<size_t>(height_axis(call));
  const Dims dims = e.dims(call.x());
  std::vector<std::pair<int64_t, int64_t>> pads(dims.size());
  pads[axis] = borders(call, "top_padding", "bottom_padding", "target_height", dims[axis], 1);
  pads[axis + 1] = borders(call, "left_padding", "right_padding", "target_width", dims[axis + 1], 1);
  return {e.pad(call.x(), pads)};
}

Outputs crop_images(Call& call) {
  Emitter& e = call.e;
  const int axis = height_axis(call);
  const Dims dims = e.dims(call.x());
  int x = call.x();
  const auto crop = [&](int at, const char* before, const char* after, const char* target) {
    const int64_t size = dims[static_cast<size_t>(at)];
    const auto [first, last] = borders(call, before, after, target, size, -1);
    require(size < 0 || first + last < size, kBad, "nothing is left of images of {}", size);
    x = e.slice(x, at, first, last == 0 ? INT64_MAX : -last);
  };
  crop(axis, "top_cropping", "bottom_cropping", "target_height");
  crop(axis + 1, "left_cropping", "right_cropping", "target_width");
  return {x};
}

Outputs rgb_to_hsv(Call& call) {
  return {with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const int last = e.rank(x) - 1;
    require(e.dims(x).back() == 3, kBad, "the images have {} channels, expected 3", e.dims(x).back());
    const std::vector<int> rgb = e.split(x, last, 3);
    const int value = e.reduce("REDUCE_MAX", x, {last}, true);
    const int range = e.sub(value, e.reduce("REDUCE_MIN", x, {last}, true));
    const int zero = e.scalar(0.0F);
    const int coloured = e.compare("GREATER", range, zero);
    const int one = e.scalar(1.0F);
    const int saturation =
        e.select(e.compare("GREATER", value, zero), e.div(range, e.select(coloured, value, one)), zero);
    const int sixth = e.div(e.scalar(1.0F / 6.0F), e.select(coloured, range, one));
    const auto part = [&](int a, int b, double from) {
      return e.add(e.mul(sixth, e.sub(rgb[static_cast<size_t>(a)], rgb[static_cast<size_t>(b)])), from);
    };
    int hue = e.select(e.compare("EQUAL", rgb[1], value), part(2, 0, 2.0 / 6.0), part(0, 1, 4.0 / 6.0));
    hue = e.select(e.compare("EQUAL", rgb[0], value), part(1, 2, 0.0), hue);
    hue = e.select(coloured, hue, zero);
    hue = e.select(e.compare("LESS", hue, zero), e.add(hue, 1.0), hue);
    return e.concat({hue, saturation, value}, last);
  })};
}

Outputs bitwise_xor(Call& call) {
  const auto [a, b] = operands(call, "x", "y");
  return {call.e.binary("BITWISE_XOR", a, b)};
}

Outputs bitwise_and(Call& call) {
  const auto [a, b] = operands(call, "x", "y");
  return {importing::bitwise_and(call.e, a, b)};
}

Outputs bitwise_or(Call& call) {
  const auto [a, b] = operands(call, "x", "y");
  return {importing::bitwise_or(call.e, a, b)};
}

Outputs bitwise_not(Call& call) { return {importing::bitwise_not(call.e, call.x())}; }

Outputs left_shift(Call& call) {
  const auto [a, b] = operands(call, "x", "y");
  return {importing::left_shift(call.e, a, b)};
}

Outputs right_shift(Call& call) {
  const auto [a, b] = operands(call, "x", "y");
  return {call.e.binary("RIGHT_SHIFT", a, b)};
}

template <const char* const& Op>
Outputs blocks(Call& call) {
  Emitter& e = call.e;
  ops::BlockSizeAttributes a;
  const int64_t size = integer_setting(call, 1, "block_size", 0);
  require(size > 1 && size <= 65536, kBad, "the block size is {}, expected 2 to 65536", size);
  a.block_size = static_cast<int32_t>(size);
  return {with_channels_last(call, [&](int x) { return e.builder().node(Op, {x}, e.name(Op), a); })};
}
constexpr const char* kDepthToSpace = "DEPTH_TO_SPACE";
constexpr const char* kSpaceToDepth = "SPACE_TO_DEPTH";

Outputs max_pool(Call& call) {
  const auto axes = static_cast<size_t>(std::max(call.e.rank(call.x()) - 2, 1));
  const Window w = read_window(call, "pool_size", axes);
  return {with_channels_last(call, [&](int x) { return pool_window(call.e, "MAX_POOL_2D", x, w); })};
}
Outputs average_pool(Call& call) {
  const auto axes = static_cast<size_t>(std::max(call.e.rank(call.x()) - 2, 1));
  const Window w = read_window(call, "pool_size", axes);
  return {with_channels_last(call, [&](int x) { return pool_window(call.e, "AVERAGE_POOL_2D", x, w); })};
}

Outputs grayscale(Call& call) {
  return {with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const int weights = e.floats({0.2989F, 0.587F, 0.114F});
    return e.reduce("SUM", e.mul(e.cast(x, DType::kFloat32), weights), {e.rank(x) - 1}, true);
  })};
}

constexpr LayerClass kNnOperations[] = {
    {"Conv", convolve},
    {"DepthwiseConv", depthwise_conv},
    {"SeparableConv", separable_conv},
    {"ExtractPatches", extract_patches},
    {"BatchNorm", batch_norm},
    {"DotProductAttention", dot_product_attention},
    {"Cumprod", cumprod},
    {"Select", select_op},
    {"DepthToSpace", blocks<kDepthToSpace>},
    {"SpaceToDepth", blocks<kSpaceToDepth>},
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"AdaptiveMaxPool", adaptive_max_pooling},
    {"AdaptiveAveragePool", adaptive_average_pooling},
    {"RGBToGrayscale", grayscale},
    {"Resize", resize_operation},
    {"PadImages", pad_images},
    {"CropImages", crop_images},
    {"RGBToHSV", rgb_to_hsv},
    {"BitwiseXor", bitwise_xor},
    {"BitwiseAnd", bitwise_and},
    {"BitwiseOr", bitwise_or},
    {"BitwiseLeftShift", left_shift},
    {"LeftShift", left_shift},
    {"BitwiseNot", bitwise_not},
    {"BitwiseInvert", bitwise_not},
    {"BitwiseRightShift", right_shift},
    {"RightShift", right_shift},
};

}  // namespace

std::span<const LayerClass> nn_operations() { return kNnOperations; }

}  // namespace leadline::keras
