// SPDX-License-Identifier: Apache-2.0
// Convolutions of the kernels, cut into pieces and split over threads.
// Invariant: results do not depend on pieces or threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/conv/conv2d.h"
#include "kernels/conv/conv3d.h"
#include "kernels/conv/conv_i16.h"
#include "ops/loops/pack.h"

namespace leadline::ops {

/// Packs filters [out_c, filter_h, filter_w, filter_c] into kAlignment-aligned memory, for s.method. The bytes stay in
/// the process.
void conv_pack(const kernels::ConvShape& s, const float* filter, std::byte* packed);
/// From IEEE float16 bits, to float32.
void conv_pack(const kernels::ConvShape& s, const uint16_t* filter, std::byte* packed);
/// The plain method stores the filter as it is (and uint8_t minus 128: take 128 off the zero point given with it too);
/// Winograd takes `zero_point` off here, and ignores the one given with it.
void conv_pack(const kernels::ConvShape& s, const int8_t* filter, std::byte* packed, int32_t zero_point = 0);
void conv_pack(const kernels::ConvShape& s, const uint8_t* filter, std::byte* packed, int32_t zero_point = 128);
void conv_pack(const kernels::ConvShape& s, const CompactWeights& filter, std::byte* packed, int32_t zero_point = 0);

/// The whole convolution, split over the pool by output pixels, or by channels when pixels are few.
/// `workspace` has pool.size() times the bytes of one thread.
void convolve(const kernels::ConvF32& conv, std::byte* workspace, ThreadPool& pool);
void convolve(const kernels::ConvI8& conv, std::byte* workspace, ThreadPool& pool);
void convolve(const kernels::ConvHybrid& conv, std::byte* workspace, ThreadPool& pool);
void convolve(const kernels::ConvI16& conv, std::byte* workspace, ThreadPool& pool);
void convolve(const kernels::Conv3DF32& conv, std::byte* workspace, ThreadPool& pool);

}  // namespace leadline::ops
