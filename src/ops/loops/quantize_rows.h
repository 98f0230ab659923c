// SPDX-License-Identifier: Apache-2.0
// Rows of floats quantized while running (dynamic range), cut into pieces and split over threads.
#pragma once

#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/quant/dynamic.h"

namespace leadline::ops {

/// Quantizes `rows` rows of `size` values each: whole rows on each thread, or parts of them where rows are few.
void quantize_rows(const float* values, int64_t rows, int64_t size, int8_t* quantized,
                   kernels::RowParameters parameters, ThreadPool& pool,
                   kernels::RowRule rule = kernels::RowRule::kXnnpack);

/// One row on the calling thread.
kernels::RowQuantization quantize_row(const float* values, int64_t count, int8_t* quantized, kernels::RowRule rule);

}  // namespace leadline::ops
