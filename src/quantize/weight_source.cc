// SPDX-License-Identifier: Apache-2.0
#include "quantize/weight_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/half.h"

namespace leadline::quantize {
namespace {

/// A tensor seen as [outer][slices][inner], with a scale for each slice.
struct SliceView {
  int64_t outer = 1;
  int64_t slices = 1;
  int64_t inner = 1;
};

SliceView slice_view(const Shape& shape, int axis) {
  SliceView view;
  if (axis < 0) {
    view.inner = shape.elements();
    return view;
  }
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? view.outer : i == axis ? view.slices : view.inner) *= shape[i];
  return view;
}

float load(const std::byte* data, int64_t i) {
  float value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(float)), sizeof(float));
  return value;
}

/// Calls body with the floats, read into memory of its own when they are in a source.
template <typename Body>
void with_floats(const FloatConstant& constant, Body&& body) {
  if (constant.source == nullptr) {
    body(constant.data.data());
    return;
  }
  const auto bytes = static_cast<size_t>(constant.source->bytes());
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  constant.source->read({memory.get(), bytes});
  body(static_cast<const std::byte*>(memory.get()));
}

/// What reading the floats takes: nothing when they are in memory.
int64_t reading_bytes(const FloatConstant& constant) {
  return constant.source == nullptr ? 0 : constant.source->bytes() + ir::extra_bytes(*constant.source);
}

class SymmetricSource final : public ir::PlannedSource {
 public:
  SymmetricSource(FloatConstant constant, int axis, std::vector<float> scales, int bits)
      : constant_(std::move(constant)),
        view_(slice_view(constant_.shape, axis)),
        scales_(std::move(scales)),
        bits_(bits) {}

  int64_t bytes() const override { return (constant_.elements() * bits_ + 7) / 8; }
  int64_t extra_bytes() const override { return reading_bytes(constant_); }
  void read(std::span<std::byte> out) const override {
    with_floats(constant_, [&](const std::byte* floats) {
      if (bits_ == 8) {
        for_each([&](int64_t i, int q) { out[static_cast<size_t>(i)] = static_cast<std::byte>(q & 0xFF); }, floats);
        return;
      }
      std::fill(out.begin(), out.end(), std::byte{0});
      for_each(
          [&](int64_t i, int q) {
            out[static_cast<size_t>(i / 2)] |= static_cast<std::byte>((q & 0xF) << (i % 2 == 0 ? 0 : 4));
          },
          floats);
    });
  }

 private:
  template <typename Put>
  void for_each(Put&& put, const std::byte* floats) const {
    const int limit = symmetric_limit(bits_);
    int64_t i = 0;
    PacedCheck check;
    for (int64_t o = 0; o < view_.outer; ++o) {
      for (int64_t s = 0; s < view_.slices; ++s) {
        check.count(8 * view_.inner);
        const float scale = scales_[static_cast<size_t>(s)];
        for (int64_t k = 0; k < view_.inner; ++k, ++i) {
          const float q = std::round(load(floats, i) / scale);
          put(i, static_cast<int>(std::clamp(q, static_cast<float>(-limit), static_cast<float>(limit))));
        }
      }
    }
  }

  FloatConstant constant_;
  SliceView view_;
  std::vector<float> scales_;
  int bits_;
};

class HalfSource final : public ir::PlannedSource {
 public:
  explicit HalfSource(FloatConstant constant) : constant_(std::move(constant)) {}
  int64_t bytes() const override { return constant_.elements() * 2; }
  int64_t extra_bytes() const override { return reading_bytes(constant_); }
  void read(std::span<std::byte> out) const override {
    constexpr float kLargestHalf = 65504.0F;
    with_floats(constant_, [&](const std::byte* floats) {
      PacedCheck check;
      for (int64_t i = 0; i < constant_.elements(); ++i) {
        check.count(4);
        // A NaN fails both comparisons and stays.
        const uint16_t half = float_to_half(std::clamp(load(floats, i), -kLargestHalf, kLargestHalf));
        std::memcpy(out.data() + i * 2, &half, sizeof(half));
      }
    });
  }

 private:
  FloatConstant constant_;
};

}  // namespace

FloatConstant float_constant(const ir::Graph& graph, const ir::Value& value) {
  FloatConstant constant;
  constant.shape = value.shape;
  constant.source = value.source;
  if (value.source != nullptr) return constant;
  constant.data = value.data;
  const auto inside = [&](const std::vector<std::byte>& block) {
    return std::less_equal<>()(block.data(), value.data.data()) &&
           std::less_equal<>()(value.data.data() + value.data.size(), block.data() + block.size());
  };
  const auto found =
      std::find_if(graph.storage.begin(), graph.storage.end(), [&](const auto& block) { return inside(*block); });
  if (found != graph.storage.end()) {
    constant.owner = *found;
  } else {
    constant.owner = graph.bytes;
  }
  return constant;
}

std::vector<float> symmetric_scales(const FloatConstant& constant, int axis, int limit) {
  const SliceView view = slice_view(constant.shape, axis);
  std::vector<float> largest(static_cast<size_t>(view.slices), 0.0F);
  bool finite = true;
  with_floats(constant, [&](const std::byte* floats) {
    int64_t i = 0;
    PacedCheck check;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t s = 0; s < view.slices; ++s) {
        check.count(2 * view.inner);
        float most = largest[static_cast<size_t>(s)];
        for (int64_t k = 0; k < view.inner; ++k, ++i) {
          const float magnitude = std::fabs(load(floats, i));
          finite &= magnitude <= std::numeric_limits<float>::max();
          most = std::max(most, magnitude);
        }
        largest[static_cast<size_t>(s)] = most;
      }
    }
  });
  require(finite, ErrorCode::kUnsupported, "a constant of shape {} holds values that are not finite",
          constant.shape.to_string());
  for (float& value : largest) {
    value = static_cast<float>(static_cast<double>(value) / limit);
    if (!(value > 0.0F)) value = 1.0F / static_cast<float>(limit);
  }
  return largest;
}

ir::Source symmetric_source(FloatConstant constant, int axis, std::vector<float> scales, int bits) {
  return std::make_shared<SymmetricSource>(std::move(constant), axis, std::move(scales), bits);
}

ir::Source half_source(FloatConstant constant) { return std::make_shared<HalfSource>(std::move(constant)); }

}  // namespace leadline::quantize
