// SPDX-License-Identifier: Apache-2.0
// Random operands for the tests of convolutions and matrix products.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/half.h"
#include "kernels/reference/conv.h"
#include "kernels/reference/matmul.h"
#include "ops/op_testing.h"

namespace leadline::ops {

/// `count` values: integers over [lo, hi], real numbers in [-1, 1).
template <typename T>
std::vector<T> random_values(int64_t count, uint32_t seed, int lo = -100, int hi = 100) {
  std::mt19937 generator(seed);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<double>(generator()) / 2147483648.0 - 1.0);
    } else {
      value = static_cast<T>(lo + static_cast<int>(generator() % static_cast<uint32_t>(hi - lo + 1)));
    }
  }
  return values;
}

/// The naive loops over whole tensors.
template <typename In, typename Zero, typename Weight, typename Finish, typename Out>
void reference_conv(const kernels::reference::ConvShape& s, const In* input, Zero zero, const Weight* filter,
                    int32_t filter_zero, const Finish& finish, Out* output) {
  const kernels::reference::Conv<In, Weight, Zero, Finish, Out> conv{
      {s, input, zero, filter, filter_zero, finish, output}};
  kernels::reference::compute_outputs(conv, 0, conv.outputs());
}
template <typename In, typename Zero, typename Weight, typename Finish, typename Out>
void reference_transpose_conv(const kernels::reference::ConvShape& s, const In* input, Zero zero, const Weight* filter,
                              int32_t filter_zero, const Finish& finish, Out* output) {
  const kernels::reference::TransposeConv<In, Weight, Zero, Finish, Out> conv{
      {s, input, zero, filter, filter_zero, finish, output}};
  kernels::reference::compute_outputs(conv, 0, conv.outputs());
}
template <typename A, typename B, typename Zero, typename Finish, typename C>
void reference_product(const kernels::reference::MatmulShape& s, const A* a, Zero zero, const B* b, int32_t b_zero,
                       const Finish& finish, C* c, int64_t first_row = 0) {
  const kernels::reference::Matmul<A, B, Zero, Finish, C> product{s, a, zero, b, b_zero, finish, c, first_row};
  kernels::reference::compute_outputs(product, 0, product.outputs());
}

/// Quantized per channel along `axis`, scales around `scale`.
inline Quantization channel_quantized(int64_t channels, int axis, float scale) {
  Quantization q;
  q.axis = axis;
  for (int64_t i = 0; i < channels; ++i) {
    q.scale.push_back(scale * (0.5F + static_cast<float>(i % 7) / 7.0F));
    q.zero_point.push_back(0);
  }
  return q;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// float16 bits of the values.
inline std::vector<std::byte> half_bytes(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_half(value));
  return bytes_of(bits);
}

/// Integers of `bits` bits, packed from the low end of each byte.
inline std::vector<std::byte> packed_bytes(const std::vector<int8_t>& values, int bits) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  std::vector<std::byte> bytes((values.size() + per_byte - 1) / per_byte);
  for (size_t i = 0; i < values.size(); ++i) {
    const unsigned field = static_cast<unsigned>(values[i]) & ((1U << bits) - 1U);
    bytes[i / per_byte] |= static_cast<std::byte>(field << (i % per_byte * static_cast<size_t>(bits)));
  }
  return bytes;
}

/// Runs and expects an Error whose message holds `part`.
inline void expect_refused(OpTester& t, const char* part) {
  try {
    t.run();
    ADD_FAILURE() << "expected an error with '" << part << "'";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

}  // namespace leadline::ops
